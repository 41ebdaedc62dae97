//! Endpoints to scrape, and the request.

use std::fmt;
use std::time::Duration;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use ureq::http::HeaderValue;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

/// The maximum size of an answer: a node_exporter of a large machine answers with less than one megabyte.
const MOST_BYTES: u64 = 16 << 20;

/// The time-out of an answer. Exporters collect their metrics on request, on hosts that may have no CPU to spare.
const PATIENCE: Duration = Duration::from_secs(5);

/// A URL that cannot be scraped. It does not show the URL, which may have a password in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("--scrape: {0}")]
pub struct UrlError(String);

/// Permitted query keys: those that select an exporter's collectors. The store keeps the URL as given, and the value of
/// any other key may be a token.
const QUERIES: [&str; 3] = ["collect[]", "exclude[]", "name[]"];

/// An endpoint with its connection, which is reused for all scrapes.
pub(super) struct Endpoint {
    /// Without the user's name and password.
    url: String,
    /// Host and port as given.
    label: String,
    /// "Basic …".
    authorization: Option<HeaderValue>,
    agent: ureq::Agent,
}

/// Without the password.
impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("url", &self.url).finish_non_exhaustive()
    }
}

impl Endpoint {
    /// Parses `host[:port][/path][?query]` and `http[s]://[user@]host[:port][/path][?query]`; the path is `/metrics` by
    /// default. The password is that of the user in the URL. A URL is stored, and command lines are visible to all
    /// users: a URL that could contain a secret is refused (a password, a query that does not select collectors).
    pub(super) fn parse(url: &str, password: Option<&str>) -> Result<Self, UrlError> {
        let fail = |why: &str| Err(UrlError(why.to_owned()));
        let url = url.trim();
        if url.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return fail("the URL contains a space: write it as %20");
        }
        let (scheme, rest) = match url.split_once("://") {
            None if url.contains('@') => {
                return fail("a user name requires the scheme: http://USER@HOST:PORT");
            }
            None => ("http", url),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => ("http", rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => ("https", rest),
            Some(_) => return fail("the URL must begin with http:// or https://"),
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        if path.contains(['#', '@']) {
            return fail(
                "an @ or # follows the host: in a user name, write @ as %40, / as %2F, ? as %3F and # as \
                 %23",
            );
        }
        let query = path.split_once('?').map_or("", |(_, query)| query);
        let chooses = |one: &str| {
            let key = one.split('=').next().unwrap_or_default();
            QUERIES.iter().any(|known| decoded(key).as_deref() == Some(known.as_bytes()))
        };
        if !query.split('&').filter(|one| !one.is_empty()).all(chooses) {
            return fail(
                "only collect[], exclude[] and name[] are allowed in the query, because the URL is stored",
            );
        }
        let path = match path {
            "" | "/" => "/metrics".to_owned(),
            query if query.starts_with('?') => format!("/metrics{query}"),
            path => path.to_owned(),
        };
        // A password may contain an unescaped "@"; a host contains none.
        let (user, label) =
            authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
        let host = label.rsplit_once(':').map_or(label, |(host, port)| {
            if port.bytes().all(|b| b.is_ascii_digit()) { host } else { label }
        });
        if host.is_empty() {
            return fail("the URL has no host: http://HOST:PORT/metrics");
        }
        let authorization = match user {
            None => None,
            Some(user) if user.contains(':') => {
                return fail(
                    "a password in a URL is visible to everyone who lists the processes: write \
                     http://USER@HOST:PORT, and give the password in the environment variable \
                     KELVIN_SCRAPE_PASSWORD",
                );
            }
            Some(user) => {
                let Some(mut user) = decoded(user) else {
                    return fail("a % in the user name is not followed by two hexadecimal digits");
                };
                let Some(password) = password else {
                    return fail(
                        "the URL names a user: give the password in the environment variable KELVIN_SCRAPE_PASSWORD",
                    );
                };
                user.push(b':');
                user.extend_from_slice(password.as_bytes());
                let mut value = HeaderValue::try_from(format!("Basic {}", BASE64_STANDARD.encode(&user)))
                    .map_err(|_| UrlError("the user name or password cannot be sent".into()))?;
                value.set_sensitive(true);
                Some(value)
            }
        };
        let url = format!("{scheme}://{label}{path}");
        if ureq::http::Uri::try_from(&*url).is_err() {
            return fail("not a valid URL; use http://HOST:PORT/metrics");
        }
        Ok(Self { url, label: label.to_owned(), authorization, agent: agent(scheme == "https") })
    }

    /// Host and port, the prefix of its metrics' names.
    pub(super) fn label(&self) -> &str {
        &self.label
    }

    /// The URL without user, password and query.
    pub(super) fn shown(&self) -> &str {
        self.url.split('?').next().unwrap_or_default()
    }

    /// The text that it answers with.
    pub(super) fn get(&self) -> Result<String, String> {
        let mut request = self.agent.get(&self.url).header("accept", "text/plain; version=0.0.4");
        if let Some(authorization) = &self.authorization {
            request = request.header("authorization", authorization.clone());
        }
        let mut response = request.call().map_err(|error| self.failure(&error))?;
        let body = response.body_mut().with_config().limit(MOST_BYTES).lossy_utf8(true);
        body.read_to_string().map_err(|error| self.failure(&error))
    }

    fn failure(&self, error: &ureq::Error) -> String {
        let place = self.shown();
        match error {
            ureq::Error::StatusCode(401 | 403) => {
                format!(
                    "{place} refused access: write http://USER@ before the host, and give the password in \
                     KELVIN_SCRAPE_PASSWORD"
                )
            }
            ureq::Error::StatusCode(404) => format!("{place} does not exist: include the path in the URL"),
            ureq::Error::StatusCode(code) => format!("{place} returned HTTP status {code}"),
            ureq::Error::HostNotFound => format!("{place}: no such host"),
            ureq::Error::Timeout(_) => format!("{place} did not answer within {} s", PATIENCE.as_secs()),
            ureq::Error::BodyExceedsLimit(_) => {
                format!("{place} returned more than {} MiB", MOST_BYTES >> 20)
            }
            other => format!("{place}: {other}"),
        }
    }
}

fn agent(tls: bool) -> ureq::Agent {
    let mut config = ureq::Agent::config_builder()
        .timeout_global(Some(PATIENCE))
        // An exporter runs near the database: a proxy in between would change the measurement, and would see the
        // password.
        .proxy(None)
        .max_redirects(3)
        .max_idle_connections(1)
        .max_idle_age(Duration::from_mins(5))
        .user_agent("kelvin");
    if tls {
        // The system's certificate authorities: exporters inside a company may have internal certificates.
        let system = rustls_native_certs::load_native_certs().certs;
        let roots: Vec<_> = system.iter().map(|one| Certificate::from_der(one).to_owned()).collect();
        config =
            config.tls_config(TlsConfig::builder().root_certs(RootCerts::new_with_certs(&roots)).build());
    }
    config.build().new_agent()
}

/// Text with %XX decoded.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let mut bytes = text.bytes();
    let mut out = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        out.push(match byte {
            b'%' => (digit(bytes.next())? * 16 + digit(bytes.next())?) as u8,
            other => other,
        });
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(url: &str) -> (String, String, String) {
        let endpoint = Endpoint::parse(url, Some("open sesame")).unwrap();
        let authorization = endpoint.authorization.as_ref().map(|value| value.to_str().unwrap().to_owned());
        (endpoint.url.clone(), endpoint.label.clone(), authorization.unwrap_or_default())
    }

    #[test]
    fn a_url_may_leave_out_what_goes_without_saying() {
        let plain = |url: &str, label: &str| (url.to_owned(), label.to_owned(), String::new());
        assert_eq!(of("db1:9100"), plain("http://db1:9100/metrics", "db1:9100"));
        assert_eq!(of("HTTPS://db1"), plain("https://db1/metrics", "db1"));
        assert_eq!(of("http://[::1]:9100/"), plain("http://[::1]:9100/metrics", "[::1]:9100"));
        let chosen = "http://db1/a?collect[]=cpu&exclude%5B%5D=arp";
        assert_eq!(of(chosen), plain(chosen, "db1"));
        assert_eq!(Endpoint::parse(chosen, None).unwrap().shown(), "http://db1/a");
        for bad in [
            "",
            "http://",
            "ftp://db1",
            "http://:9100",
            "http://u@",
            "http://a b/",
            "http://%zz@h",
            "http://u:p@h",
        ] {
            assert!(Endpoint::parse(bad, Some("p")).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_password_is_sent_and_never_shown() {
        // RFC 7617 has this pair as its example.
        let url = "http://Aladdin@db1:9100/metrics";
        assert_eq!(of(url).2, "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
        let endpoint = Endpoint::parse(url, Some("open sesame")).unwrap();
        let shown = format!("{endpoint:?} {} {} {}", endpoint.url, endpoint.label(), endpoint.shown());
        assert!(
            !shown.contains("sesame") && !shown.contains("Aladdin") && !shown.contains("QWxh"),
            "{shown}"
        );
        let error = Endpoint::parse("gopher://u:secret@h", None).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("secret"));
    }

    #[test]
    fn what_the_store_would_keep_is_refused() {
        for (url, says) in [
            ("admin:secret@db1:9100", "http://USER@HOST"),
            ("http://admin:secret@db1:9100", "KELVIN_SCRAPE_PASSWORD"),
            ("http://admin@db1:9100", "KELVIN_SCRAPE_PASSWORD"),
            ("http://db1/a?token=secret", "query"),
            ("db1?collect[]=cpu&token=secret", "query"),
            ("db1?secret", "query"),
            ("http://u:12#secret@db1", "%23"),
            ("http://u:12/secret@db1", "%2F"),
            ("http://u:very secret@db1", "%20"),
        ] {
            let error = Endpoint::parse(url, None).unwrap_err().to_string();
            assert!(error.contains(says) && !error.contains("secret"), "{url}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_url_makes_it_panic(url in "(https?://)?([a-z:@/?#%.]|\\[|\\]|\\PC){0,30}") {
            if let Ok(endpoint) = Endpoint::parse(&url, Some("p")) {
                prop_assert!(!endpoint.label().is_empty() && !endpoint.label().contains('@'));
            }
        }
    }
}

//! Checks of a request: its host header, its origin, and the token that is needed to start runs.

use std::net::IpAddr;

use sha2::{Digest, Sha256};
use tiny_http::{Header, Method, Request};

/// The header that holds the token.
pub(super) const TOKEN: &str = "X-Kelvin-Token";

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It names an unknown host: a web site may have pointed its own name to this address.
    Host,
    /// Another web site makes it.
    Origin,
    /// Only GET and POST are supported.
    Method,
    /// It has no token, or a wrong one.
    Token,
    /// Nothing can be started here.
    ReadOnly,
}

impl Refusal {
    pub(super) fn status(self) -> u16 {
        match self {
            Self::Host => 421,
            Self::Origin | Self::ReadOnly => 403,
            Self::Method => 405,
            Self::Token => 401,
        }
    }

    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Host => {
                "this server does not accept that host name; use its address, or start it with --host-name \
                 NAME"
            }
            Self::Origin => "requests from other web sites are rejected",
            Self::Method => "GET and POST only",
            Self::Token => "the token is missing or wrong",
            Self::ReadOnly => "this server is read-only; `kelvin serve --allow-start` permits starting runs",
        }
    }
}

/// The first value of a header.
fn header<'a>(headers: &'a [Header], name: &'static str) -> Option<&'a str> {
    headers.iter().find(|header| header.field.equiv(name)).map(|header| header.value.as_str())
}

/// Refuses requests that no page of this server makes. `names` are the host names, in addition to addresses, for which
/// it answers.
pub(super) fn check(request: &Request, names: &[String]) -> Result<(), Refusal> {
    let post = match request.method() {
        Method::Get => false,
        Method::Post => true,
        _ => return Err(Refusal::Method),
    };
    let headers = request.headers();
    let host = header(headers, "Host").filter(|host| is_ours(host, names)).ok_or(Refusal::Host)?;
    let of_host = |origin: &str| {
        ["http://", "https://"]
            .iter()
            .any(|scheme| origin.strip_prefix(scheme).is_some_and(|rest| rest == host))
    };
    if header(headers, "Origin").is_some_and(|origin| !of_host(origin)) {
        return Err(Refusal::Origin);
    }
    match header(headers, "Sec-Fetch-Site") {
        None | Some("same-origin" | "none") => Ok(()),
        // A link to a page may be followed from anywhere: it changes nothing, and no other site can read it.
        Some(_) if !post && header(headers, "Sec-Fetch-Dest") == Some("document") => Ok(()),
        Some(_) => Err(Refusal::Origin),
    }
}

/// Whether a request that names this host is meant for this server. A web site can point its own name to any address,
/// but cannot have an address as its name.
fn is_ours(host: &str, names: &[String]) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    bare.parse::<IpAddr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || names.iter().any(|own| own.eq_ignore_ascii_case(name))
}

/// The token that allows starting runs. Its digest is stored and compared, so that neither length nor content can be
/// determined from the time of a refusal.
pub(super) struct Token([u8; 32]);

impl Token {
    pub(super) fn new(token: &str) -> Self {
        Self(Sha256::digest(token).into())
    }

    pub(super) fn check(&self, request: &Request) -> Result<(), Refusal> {
        let given: [u8; 32] = Sha256::digest(header(request.headers(), TOKEN).unwrap_or_default()).into();
        let differs = self.0.iter().zip(given).fold(0, |differs, (own, given)| differs | (own ^ given));
        if std::hint::black_box(differs) == 0 { Ok(()) } else { Err(Refusal::Token) }
    }
}

#[cfg(test)]
mod tests {
    use tiny_http::TestRequest;

    use super::*;

    fn request(headers: &[(&str, &str)], method: Method) -> Request {
        let request = TestRequest::new().with_method(method).with_path("/");
        let with = |request: TestRequest, (name, value): &(&str, &str)| {
            request.with_header(Header::from_bytes(name.as_bytes(), value.as_bytes()).unwrap())
        };
        headers.iter().fold(request, with).into()
    }

    #[test]
    fn a_name_of_somebody_elses_is_refused_and_addresses_are_not() {
        let names = ["bench.example".to_owned()];
        for host in
            ["127.0.0.1:8420", "[::1]:8420", "localhost", "LOCALHOST:1", "10.0.0.7", "bench.example:80"]
        {
            assert_eq!(check(&request(&[("Host", host)], Method::Get), &names), Ok(()), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example:8420", "127.0.0.1.evil.example", ""] {
            assert_eq!(check(&request(&[("Host", host)], Method::Get), &names), Err(Refusal::Host), "{host}");
        }
        assert_eq!(check(&request(&[], Method::Get), &names), Err(Refusal::Host));
        assert_eq!(check(&request(&[("Host", "localhost")], Method::Delete), &names), Err(Refusal::Method));
    }

    #[test]
    fn other_sites_can_link_and_nothing_else() {
        let of = |more: &[(&str, &str)], method| {
            let mut headers = vec![("Host", "localhost:1")];
            headers.extend(more);
            check(&request(&headers, method), &[])
        };
        let cross = ("Sec-Fetch-Site", "cross-site");
        assert_eq!(of(&[cross, ("Sec-Fetch-Dest", "document")], Method::Get), Ok(()));
        assert_eq!(of(&[cross, ("Sec-Fetch-Dest", "document")], Method::Post), Err(Refusal::Origin));
        assert_eq!(of(&[cross, ("Sec-Fetch-Dest", "empty")], Method::Get), Err(Refusal::Origin));
        assert_eq!(of(&[("Sec-Fetch-Site", "same-site")], Method::Get), Err(Refusal::Origin));
        assert_eq!(
            of(&[("Sec-Fetch-Site", "same-origin"), ("Origin", "http://localhost:1")], Method::Post),
            Ok(())
        );
        for origin in ["http://evil.example", "null", "http://localhost:2"] {
            assert_eq!(of(&[("Origin", origin)], Method::Get), Err(Refusal::Origin), "{origin}");
        }
    }

    #[test]
    fn only_the_token_is_the_token() {
        let token = Token::new("s3cret");
        let given = |value: &str| token.check(&request(&[(TOKEN, value)], Method::Post));
        assert_eq!(given("s3cret"), Ok(()));
        for wrong in ["", "s3cre", "s3crett", "S3cret"] {
            assert_eq!(given(wrong), Err(Refusal::Token), "{wrong:?}");
        }
        assert_eq!(token.check(&request(&[], Method::Post)), Err(Refusal::Token));
    }
}

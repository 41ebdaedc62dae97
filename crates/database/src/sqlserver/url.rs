//! `sqlserver://` and `mssql://` URLs, without passwords.

use std::path::PathBuf;

use super::config::PORT;
use super::{Config, Encrypt, Password};
use crate::url::{Split, port, seconds, yes_or_no};
use crate::{Error, Result};

const PASSWORD_REMEDY: &str =
    "leave it out of the URL, where others can read it; use MSSQL_PASSWORD, SQLCMDPASSWORD, or the prompt";

pub(crate) fn parse(url: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<Config> {
    let env = |name: &str| env(name).filter(|value| !value.is_empty());
    let Some(("sqlserver" | "mssql", rest)) = url.split_once("://") else {
        return Err(Error::usage("a SQL Server URL begins with sqlserver:// or mssql://")
            .with_help("for example sqlserver://user@host:1433/database"));
    };
    let (rest, instance) = cut_instance(rest);
    // Read by the same rules as a database's name.
    let instance = match instance {
        Some(text) => Split::parse(&format!("/{text}"), PASSWORD_REMEDY)?.database,
        None => None,
    };
    let mut found = Split::parse(&rest, PASSWORD_REMEDY)?;
    let mut config = Config::new("", PORT, "", "");
    config.instance = instance;
    for (name, value) in std::mem::take(&mut found.parameters) {
        parameter(&mut config, &mut found, &name, value)?;
    }
    config.host = found.host.unwrap_or_else(|| "localhost".to_owned());
    if config.host.contains([',', '/']) {
        return Err(Error::usage(format!("{:?} in the URL is not a host", config.host))
            .with_help("write the port behind a colon: sqlserver://user@host:1433/database"));
    }
    config.port = match (&found.port, &config.instance) {
        (Some(text), _) => Some(port(text)?),
        (None, Some(_)) => None,
        (None, None) => Some(PORT),
    };
    config.database = found.database.unwrap_or_default();
    config.token = env("MSSQL_ACCESS_TOKEN").filter(|_| found.user.is_none()).map(Password::new);
    config.user = match found.user {
        Some(_) if config.token_file.is_some() => {
            return Err(Error::usage("the URL names both a user and an access token")
                .with_help("the access token identifies the user: omit the user from the URL"));
        }
        Some(user) => user,
        None if config.token.is_some() || config.token_file.is_some() => String::new(),
        None => {
            return Err(Error::usage("the URL names no user").with_help(
                "add it: sqlserver://user@host/database; without one, give an access token with accessTokenFile= or \
                 MSSQL_ACCESS_TOKEN",
            ));
        }
    };
    Ok(config)
}

fn parameter(config: &mut Config, found: &mut Split, name: &str, value: Option<String>) -> Result<()> {
    // Microsoft's clients do not mind the case.
    match (name.to_ascii_lowercase().as_str(), value) {
        ("user", value) => found.user = value,
        ("host", value) => found.host = value,
        ("port", value) => found.port = value,
        ("database", value) => found.database = value,
        ("instance", value) => config.instance = value,
        ("encrypt", Some(word)) => {
            config.encrypt = Encrypt::from_word(&word).ok_or_else(|| {
                Error::usage(format!("unknown encrypt {word:?}"))
                    .with_help("known values are strict, mandatory and optional")
            })?;
        }
        ("trustservercertificate", Some(text)) => {
            config.trust_server_certificate = yes_or_no("trustServerCertificate", &text)?;
        }
        ("hostnameincertificate", value) => config.host_name_in_certificate = value,
        ("sslrootcert", value) => config.root_certificate = value.map(PathBuf::from),
        ("accesstokenfile", value) => config.token_file = value.map(PathBuf::from),
        ("connect_timeout", Some(text)) => config.connect_timeout = seconds("connect_timeout", &text)?,
        ("encrypt" | "trustservercertificate" | "connect_timeout", None) => {}
        _ => {
            return Err(Error::usage(format!("unknown URL parameter {name:?}")).with_help(
                "known parameters are user, host, port, instance, database, encrypt, trustServerCertificate, \
                 hostNameInCertificate, sslrootcert, accessTokenFile and connect_timeout",
            ));
        }
    }
    Ok(())
}

/// Takes the `;instance` out of the address.
fn cut_instance(rest: &str) -> (String, Option<&str>) {
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let from = rest[..end].rfind('@').map_or(0, |at| at + 1);
    match rest[from..end].find(';') {
        Some(at) => (format!("{}{}", &rest[..from + at], &rest[end..]), Some(&rest[from + at + 1..end])),
        None => (rest.to_owned(), None),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::ErrorClass;

    fn read(url: &str) -> Result<Config> {
        parse(url, &|_| None)
    }

    #[test]
    fn reads_what_urls_say() {
        let c = read(
            "mssql://u%40x@db.example:6000;INST/my%20db?Encrypt=strict&hostNameInCertificate=a.b&sslrootcert=/c/a.pem\
             &connect_timeout=3",
        )
        .unwrap();
        assert_eq!(
            (c.host.as_str(), c.port, c.instance.as_deref()),
            ("db.example", Some(6000), Some("INST"))
        );
        assert_eq!((c.user.as_str(), c.database.as_str()), ("u@x", "my db"));
        assert_eq!((c.encrypt, c.connect_timeout), (Encrypt::Strict, Duration::from_secs(3)));
        assert_eq!(c.host_name_in_certificate.as_deref(), Some("a.b"));
        let c = read("sqlserver://sa@h").unwrap();
        assert_eq!((c.port, c.encrypt, c.trust_server_certificate), (Some(1433), Encrypt::Mandatory, false));
        let c = read("sqlserver://sa@h;X?trustservercertificate=yes&encrypt=no").unwrap();
        assert_eq!((c.port, c.instance.as_deref(), c.encrypt), (None, Some("X"), Encrypt::Optional));
        assert!(c.trust_server_certificate);
        let token = parse("sqlserver://h/d", &|name| (name == "MSSQL_ACCESS_TOKEN").then(|| "t".to_owned()));
        assert_eq!(token.unwrap().token, Some(Password::new("t")));
    }

    #[test]
    fn names_what_is_wrong_and_repeats_no_password() {
        for (url, part) in [
            ("postgres://h", "begins with sqlserver://"),
            ("sqlserver://sa:s3cret@h/d", "MSSQL_PASSWORD"),
            ("sqlserver://sa@h/d?password=s3cret", "MSSQL_PASSWORD"),
            ("sqlserver://h/d", "names no user"),
            ("sqlserver://sa@h,1433/d", "behind a colon"),
            ("sqlserver://sa@h/d?frob=1", "\"frob\""),
            ("sqlserver://sa@h/d?encrypt=maybe", "\"maybe\""),
            ("sqlserver://sa@h/d?trustServerCertificate=maybe", "neither true nor false"),
            ("sqlserver://sa@h/d?accessTokenFile=/t", "both a user and an access token"),
        ] {
            let error = read(url).unwrap_err();
            assert_eq!(error.class(), ErrorClass::Usage, "{url}");
            let text = error.to_string();
            assert!(text.contains(part) && !text.contains("s3cret"), "{url}: {text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn what_is_displayed_means_the_same(
            user in "[^\0]{1,12}",
            database in "[^\0]{0,12}",
            host in "[^\0,/]{1,12}",
            port in proptest::option::of(1..=u16::MAX),
            instance in proptest::option::of("[^\0]{1,12}"),
            encrypt in proptest::sample::select(vec![Encrypt::Strict, Encrypt::Mandatory, Encrypt::Optional]),
            trusts: bool,
            name in proptest::option::of("[^\0]{1,12}"),
            root in proptest::option::of("/[^\0]{1,12}"),
            token in proptest::option::of("/[^\0]{1,12}"),
            seconds in 1..=86_400_u64,
        ) {
            let mut config = Config::new(&host, 1433, &user, &database);
            config.port = port.or(if instance.is_some() { None } else { Some(1433) });
            config.instance = instance;
            config.encrypt = encrypt;
            config.trust_server_certificate = trusts;
            config.host_name_in_certificate = name;
            config.root_certificate = root.map(Into::into);
            if token.is_some() {
                config.user = String::new();
            }
            config.token_file = token.map(Into::into);
            config.connect_timeout = Duration::from_secs(seconds);
            let read = parse(&config.to_string(), &|_| None).unwrap();
            proptest::prop_assert_eq!(format!("{config:?}"), format!("{read:?}"), "{}", config);
        }
    }
}

//! `postgres://` URLs, as libpq reads them, without passwords.

use std::path::{Path, PathBuf};

use super::{ChannelBinding, Config, Host};
use crate::url::{Split, port, seconds, system_user, yes_or_no};
use crate::{Error, Result};

type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

const PASSWORD_REMEDY: &str =
    "leave it out of the URL, where others can read it; use PGPASSWORD, ~/.pgpass, or the prompt";

/// What the URL said, before the environment and the defaults fill the gaps.
#[derive(Default)]
struct Parts {
    user: Option<String>,
    host: Option<String>,
    port: Option<String>,
    database: Option<String>,
    ssl_mode: Option<String>,
    ssl_root_certificate: Option<String>,
    channel_binding: Option<String>,
    prepared_statements: Option<String>,
    connect_timeout: Option<String>,
    application_name: Option<String>,
    options: Option<String>,
}

pub(crate) fn parse(url: &str, env: Env<'_>) -> Result<Config> {
    resolve(split(url)?, env)
}

fn split(url: &str) -> Result<Parts> {
    let Some(rest) = url.strip_prefix("postgres://").or_else(|| url.strip_prefix("postgresql://")) else {
        return Err(Error::usage("a PostgreSQL URL begins with postgres:// or postgresql://")
            .with_help("for example postgres://user@host:5432/database"));
    };
    let found = Split::parse(rest, PASSWORD_REMEDY)?;
    let mut parts = Parts {
        user: found.user,
        host: found.host,
        port: found.port,
        database: found.database,
        ..Parts::default()
    };
    for (name, value) in found.parameters {
        parameter(&name, value, &mut parts)?;
    }
    Ok(parts)
}

fn parameter(name: &str, value: Option<String>, parts: &mut Parts) -> Result<()> {
    let slot = match name {
        "user" => &mut parts.user,
        "host" => &mut parts.host,
        "port" => &mut parts.port,
        "dbname" => &mut parts.database,
        "sslmode" => &mut parts.ssl_mode,
        "sslrootcert" => &mut parts.ssl_root_certificate,
        "channel_binding" => &mut parts.channel_binding,
        "prepared_statements" => &mut parts.prepared_statements,
        "connect_timeout" => &mut parts.connect_timeout,
        "application_name" => &mut parts.application_name,
        "options" => &mut parts.options,
        _ => {
            return Err(Error::usage(format!("unknown URL parameter {name:?}")).with_help(
                "known parameters are user, host, port, dbname, sslmode, sslrootcert, channel_binding, \
                 connect_timeout, application_name, options and prepared_statements",
            ));
        }
    };
    *slot = value;
    Ok(())
}

fn resolve(parts: Parts, env: Env<'_>) -> Result<Config> {
    let env = |name: &str| env(name).filter(|value| !value.is_empty());
    let port = parts.port.or_else(|| env("PGPORT")).map_or(Ok(5432), |text| port(&text))?;
    let host = match parts.host.or_else(|| env("PGHOST")) {
        Some(host) => Host::parse(host)?,
        None => default_host(port),
    };
    let user = parts.user.or_else(|| env("PGUSER")).or_else(system_user).or_else(|| env("USER")).ok_or_else(
        || Error::usage("the URL names no user").with_help("add it, postgres://user@host/db, or set PGUSER"),
    )?;
    let database = parts.database.or_else(|| env("PGDATABASE")).unwrap_or_else(|| user.clone());
    let mut config = Config::new(host, port, &user, &database);
    let root = parts.ssl_root_certificate.or_else(|| env("PGSSLROOTCERT"));
    (config.ssl_mode, config.ssl_root_certificate) =
        config.host.trust(parts.ssl_mode.or_else(|| env("PGSSLMODE")), root)?;
    if let Some(name) = parts.channel_binding.or_else(|| env("PGCHANNELBINDING")) {
        config.channel_binding = ChannelBinding::from_name(&name).ok_or_else(|| {
            Error::usage(format!("unknown channel_binding {name:?}"))
                .with_help("known values are disable, prefer and require")
        })?;
    }
    if let Some(text) = parts.prepared_statements {
        config.prepared_statements = yes_or_no("prepared_statements", &text)?;
    }
    if let Some(text) = parts.connect_timeout.or_else(|| env("PGCONNECT_TIMEOUT")) {
        config.connect_timeout = seconds("connect_timeout", &text)?;
    }
    if let Some(name) = parts.application_name {
        config.application_name = name;
    }
    config.options = parts.options.or_else(|| env("PGOPTIONS"));
    Ok(config)
}

/// The socket directory where a server listens at this port, or localhost. libpq has one directory compiled
/// in; it differs between distributions.
fn default_host(port: u16) -> Host {
    ["/run/postgresql", "/var/run/postgresql", "/tmp"]
        .into_iter()
        .find(|directory| Path::new(directory).join(format!(".s.PGSQL.{port}")).exists())
        .map_or_else(|| Host::Tcp("localhost".to_owned()), |directory| Host::Unix(PathBuf::from(directory)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    use super::super::SslMode;
    use crate::ErrorClass;

    fn read(url: &str) -> Result<Config> {
        parse(url, &|name| (name == "PGUSER").then(|| "ada".to_owned()))
    }

    fn refused(url: &str) -> String {
        let error = read(url).expect_err(url);
        assert_eq!(error.class(), ErrorClass::Usage, "{url}");
        error.to_string()
    }

    #[test]
    fn reads_what_libpq_reads() {
        let c = read(
            "postgresql://u%40x@db.example:6000/my%20db?sslmode=verify-full&sslrootcert=/c/a.pem\
             &connect_timeout=3&application_name=x&options=-c%20work_mem%3D1MB",
        )
        .unwrap();
        assert_eq!(c.host, Host::Tcp("db.example".into()));
        assert_eq!((c.port, c.user.as_str(), c.database.as_str()), (6000, "u@x", "my db"));
        assert_eq!(c.ssl_mode, SslMode::VerifyFull);
        assert_eq!(c.ssl_root_certificate.as_deref(), Some(Path::new("/c/a.pem")));
        assert_eq!(c.connect_timeout, Duration::from_secs(3));
        assert_eq!(c.application_name, "x");
        assert_eq!(c.options.as_deref(), Some("-c work_mem=1MB"));
        assert_eq!(read("postgres://[::1]:77/x").unwrap().host, Host::Tcp("::1".into()));
        for url in ["postgres:///db?host=/run/pg&port=9", "postgres://%2Frun%2Fpg:9/db"] {
            let c = read(url).unwrap();
            assert_eq!(c.host, Host::Unix("/run/pg".into()), "{url}");
            assert_eq!((c.port, c.user.as_str(), c.database.as_str()), (9, "ada", "db"));
        }
        for (word, meaning) in [("yes", true), ("true", true), ("no", false), ("false", false), ("0", false)]
        {
            let c = read(&format!("postgres://h?prepared_statements={word}")).unwrap();
            assert_eq!(c.prepared_statements, meaning, "{word}");
        }
        let c = read("postgres://h").unwrap();
        assert_eq!((c.database.as_str(), c.port, c.ssl_mode), ("ada", 5432, SslMode::Prefer));
    }

    #[test]
    fn takes_the_environment_for_what_is_missing() {
        let env = |name: &str| {
            let value = match name {
                "PGHOST" => "/sock",
                "PGPORT" => "7",
                "PGUSER" => "u",
                "PGDATABASE" => "d",
                "PGSSLMODE" => "require",
                _ => return None,
            };
            Some(value.to_owned())
        };
        let c = parse("postgres://", &env).unwrap();
        assert_eq!(c.to_string(), "postgres://u@/d?host=/sock&port=7");
        assert_eq!(c.ssl_mode, SslMode::Require);
    }

    #[test]
    fn display_is_read_back() {
        for url in [
            "postgres://u@h:1/d",
            "postgres://u@[::1]:1/d?sslmode=disable",
            "postgres://u%20@/d?host=/x%20y&port=3",
            "postgres://a%2Fb@h:1/c%2Fd",
            "postgres://u@h:1/d?connect_timeout=3&application_name=x",
            "postgres://u@fe80%3A%3A1%25eth0:1/d",
            "postgres://u@h:1/d?channel_binding=require&prepared_statements=false",
        ] {
            assert_eq!(read(url).unwrap().to_string(), url);
        }
    }

    #[test]
    fn trust_in_the_system_verifies_all() {
        let c = read("postgres://u@h/d?sslrootcert=system").unwrap();
        assert_eq!((c.ssl_mode, c.ssl_root_certificate), (SslMode::VerifyFull, None));
        for mode in ["disable", "prefer", "require", "verify-ca"] {
            let message = refused(&format!("postgres://u@h/d?sslmode={mode}&sslrootcert=system"));
            assert!(message.contains("too weak"), "{message}");
        }
        let env = |name: &str| match name {
            "PGSSLMODE" => Some("require".to_owned()),
            "PGSSLROOTCERT" => Some("system".to_owned()),
            _ => None,
        };
        assert!(parse("postgres://u@h/d", &env).is_err());
        assert!(parse("postgres://u@h/d?sslmode=verify-full", &env).is_ok());
        assert!(refused("postgres://u@h/d?sslmode=verify-ca").contains("sslrootcert="));
        assert!(read("postgres://u@h/d?sslmode=verify-ca&sslrootcert=/c.pem").is_ok());
    }

    #[test]
    fn refuses_a_password_without_repeating_it() {
        for url in [
            "postgres://u:s3cret@h/db",
            "postgres://u:s3@cret@h/db",
            "postgres://u:s3cret/x@h/db",
            "postgres://u:s3cret?x@h/db",
            "postgres://u:s3cret#x@h/db",
            "postgres://u@h/db?password=s3cret",
            "postgres://u:s3cret",
            "postgres://u:s3cret%zz@h",
        ] {
            let message = refused(url);
            assert!(!message.contains("s3") && !message.contains("cret"), "{message}");
        }
        assert!(refused("postgres://u:x@h/db").contains("PGPASSWORD"));
    }

    proptest::proptest! {
        #[test]
        fn what_is_displayed_means_the_same(
            user in "[^\0]{1,12}",
            database in "[^\0]{1,12}",
            // A comma separates hosts, and what begins with a slash is a directory.
            host in "[^\0,]{1,12}",
            port in 1..=u16::MAX,
            mode in proptest::sample::select(vec!["disable", "prefer", "require", "verify-ca", "verify-full"]),
            root in "/[^\0]{0,12}",
            seconds in 1..=86_400_u64,
            name in "[^\0]{1,12}",
            options in proptest::option::of("[^\0]{1,12}"),
            binding in proptest::sample::select(vec!["disable", "prefer", "require"]),
            prepared_statements: bool,
        ) {
            let host = if host.starts_with('/') { Host::Unix(host.into()) } else { Host::Tcp(host) };
            let mut config = Config::new(host, port, &user, &database);
            if matches!(config.host, Host::Tcp(_)) {
                config.ssl_mode = SslMode::from_name(mode).unwrap();
                config.ssl_root_certificate = Some(root.into());
            }
            config.connect_timeout = Duration::from_secs(seconds);
            config.application_name = name;
            config.options = options;
            config.channel_binding = ChannelBinding::from_name(binding).unwrap();
            config.prepared_statements = prepared_statements;
            let read = parse(&config.to_string(), &|_| None).unwrap();
            proptest::prop_assert_eq!(format!("{config:?}"), format!("{read:?}"), "{}", config);
        }
    }

    #[test]
    fn names_what_is_wrong() {
        for (url, part) in [
            ("mysql://h", "begins with postgres://"),
            ("postgres://h:0/d", "port"),
            ("postgres://h:70000/d", "port"),
            ("postgres://h/d?port=x", "port"),
            ("postgres://h/d%2", "database name has an invalid percent-encoding at character 2"),
            ("postgres://%gg@h/d", "user name"),
            ("postgres://h/d%00", "%00"),
            ("postgres://h/d%ff", "UTF-8"),
            ("postgres://h/d?frob=1", "\"frob\""),
            ("postgres://h/d?sslmode=maybe", "\"maybe\""),
            ("postgres://h/d?sslmode", "no value"),
            ("postgres://[::1/d", "closing"),
            ("postgres://[zz]/d", "IPv6"),
            ("postgres://::1/d", "brackets"),
            ("postgres://a,b/d", "one server"),
            ("postgres://h/a/b", "%2F"),
            ("postgres://h/d?connect_timeout=-1", "connect_timeout"),
            ("postgres://h/d?channel_binding=maybe", "\"maybe\""),
            ("postgres://h/d?prepared_statements=maybe", "\"maybe\""),
        ] {
            let message = refused(url);
            assert!(message.contains(part), "{url}: {message}");
        }
    }
}

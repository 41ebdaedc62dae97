//! `postgres://` URLs, as libpq reads them, without passwords.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{ChannelBinding, Config, Host, SslMode};
use crate::{Error, Result};

type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

const PASSWORD_REMEDY: &str = "leave it out of the URL, where others can read it, and give it in PGPASSWORD, in \
                               ~/.pgpass, or at the prompt";

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
    if rest.contains('#') {
        return Err(Error::usage("the URL holds a '#'").with_help("write it as %23"));
    }
    let (before_query, query) = rest.split_once('?').map_or((rest, None), |(a, b)| (a, Some(b)));
    let (authority, path) = before_query.split_once('/').map_or((before_query, None), |(a, b)| (a, Some(b)));
    // The last '@', since an unescaped one in a password would otherwise put the rest of it into messages.
    let (userinfo, hostport) = authority.rsplit_once('@').map_or((None, authority), |(a, b)| (Some(a), b));

    let mut parts = Parts::default();
    if let Some(userinfo) = userinfo {
        if userinfo.contains(':') {
            return Err(Error::usage("the URL holds a password").with_help(PASSWORD_REMEDY));
        }
        parts.user = decode(userinfo, "the user name")?;
    }
    // "user:secret" without '@' would be read as host and port, and "postgres://u:a/b@h/db" as path: an '@'
    // after the authority means that a part of a password may follow.
    if path.is_some_and(|p| p.contains('@')) || (userinfo.is_none() && query.is_some_and(|q| q.contains('@')))
    {
        return Err(Error::usage("the URL holds an '@' after the host")
            .with_help(format!("write it as %40; if it belongs to a password, {PASSWORD_REMEDY}")));
    }
    split_host(hostport, &mut parts)?;
    if let Some(path) = path {
        if path.contains('/') {
            return Err(Error::usage("the database name holds a '/'").with_help("write it as %2F"));
        }
        parts.database = decode(path, "the database name")?;
    }
    for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
        parameter(pair, &mut parts)?;
    }
    Ok(parts)
}

fn split_host(hostport: &str, parts: &mut Parts) -> Result<()> {
    let (host, port) = if let Some(bracketed) = hostport.strip_prefix('[') {
        let Some((address, after)) = bracketed.split_once(']') else {
            return Err(Error::usage("the IPv6 address in the URL has no closing ']'"));
        };
        if address.parse::<std::net::Ipv6Addr>().is_err() {
            return Err(Error::usage(format!("{address:?} in the URL is not an IPv6 address")));
        }
        match after.strip_prefix(':') {
            Some(port) => (address, Some(port)),
            None if after.is_empty() => (address, None),
            None => return Err(Error::usage(format!("{after:?} follows the address instead of a port"))),
        }
    } else {
        match hostport.split_once(':') {
            Some((_, port)) if port.contains(':') => {
                return Err(Error::usage("the host in the URL holds more than one ':'")
                    .with_help("write an IPv6 address in brackets: [::1]"));
            }
            Some((host, port)) => (host, Some(port)),
            None => (hostport, None),
        }
    };
    parts.host = decode(host, "the host")?;
    parts.port = port.filter(|port| !port.is_empty()).map(str::to_owned);
    Ok(())
}

fn parameter(pair: &str, parts: &mut Parts) -> Result<()> {
    let (name, value) = pair.split_once('=').ok_or_else(|| {
        Error::usage(format!("the URL's parameter {pair:?} has no value")).with_help("write name=value")
    })?;
    let name = decode(name, "a parameter's name")?.unwrap_or_default();
    if name == "password" || name == "passfile" {
        return Err(Error::usage(format!("the URL holds the parameter {name}")).with_help(PASSWORD_REMEDY));
    }
    let slot = match name.as_str() {
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
            return Err(Error::usage(format!("the URL's parameter {name:?} is not known")).with_help(
                "known are user, host, port, dbname, sslmode, sslrootcert, channel_binding, connect_timeout, \
                 application_name, options and prepared_statements",
            ));
        }
    };
    *slot = decode(value, &format!("the parameter {name}"))?;
    Ok(())
}

/// Resolves %xx. `None` for an empty part. Errors name the part and the position, not the text.
fn decode(text: &str, part: &str) -> Result<Option<String>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes().enumerate();
    while let Some((at, byte)) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |found: Option<(usize, u8)>| found.and_then(|(_, b)| (b as char).to_digit(16));
        let value = digit(rest.next()).and_then(|high| Some(high * 16 + digit(rest.next())?));
        match value {
            None => {
                return Err(Error::usage(format!(
                    "{part} has a bad percent-encoding at its character {}",
                    at + 1
                ))
                .with_help("a % is followed by two hexadecimal digits; write % itself as %25"));
            }
            Some(0) => {
                return Err(Error::usage(format!("{part} holds %00, which PostgreSQL has no place for")));
            }
            Some(value) => bytes.push(value as u8),
        }
    }
    let text =
        String::from_utf8(bytes).map_err(|_| Error::usage(format!("{part} is not UTF-8 when decoded")))?;
    if text.contains('\0') {
        return Err(Error::usage(format!("{part} holds a zero byte, which PostgreSQL has no place for")));
    }
    Ok(Some(text).filter(|text| !text.is_empty()))
}

fn resolve(parts: Parts, env: Env<'_>) -> Result<Config> {
    let env = |name: &str| env(name).filter(|value| !value.is_empty());
    let port = match parts.port.or_else(|| env("PGPORT")) {
        None => 5432,
        Some(text) => match text.parse::<u16>() {
            Ok(port) if port > 0 => port,
            // A bad port may be a password whose '@' was forgotten: it is not repeated.
            _ => return Err(Error::usage("the port is not a number from 1 to 65535")),
        },
    };
    let host = match parts.host.or_else(|| env("PGHOST")) {
        Some(host) if host.contains(',') => {
            return Err(
                Error::usage("more than one host is given").with_help("Kelvin measures one server at a time")
            );
        }
        Some(host) if host.starts_with('/') => Host::Unix(PathBuf::from(host)),
        Some(host) => Host::Tcp(host),
        None => default_host(port),
    };
    let user = parts.user.or_else(|| env("PGUSER")).or_else(system_user).or_else(|| env("USER")).ok_or_else(
        || {
            Error::usage("no user is named")
                .with_help("write it in the URL, postgres://user@host/db, or set PGUSER")
        },
    )?;
    let database = parts.database.or_else(|| env("PGDATABASE")).unwrap_or_else(|| user.clone());
    let mut config = Config::new(host, port, &user, &database);
    let root = parts.ssl_root_certificate.or_else(|| env("PGSSLROOTCERT"));
    trust(&mut config, parts.ssl_mode.or_else(|| env("PGSSLMODE")), root)?;
    if let Some(name) = parts.channel_binding.or_else(|| env("PGCHANNELBINDING")) {
        config.channel_binding = ChannelBinding::from_name(&name).ok_or_else(|| {
            Error::usage(format!("channel_binding {name:?} is not known"))
                .with_help("known are disable, prefer and require")
        })?;
    }
    if let Some(text) = parts.prepared_statements {
        config.prepared_statements = yes_or_no("prepared_statements", &text)?;
    }
    if let Some(text) = parts.connect_timeout.or_else(|| env("PGCONNECT_TIMEOUT")) {
        let seconds =
            text.parse::<u32>().ok().filter(|seconds| (1..=86_400).contains(seconds)).ok_or_else(|| {
                Error::usage(format!("connect_timeout {text:?} is not a number of seconds from 1 to 86400"))
            })?;
        config.connect_timeout = Duration::from_secs(seconds.into());
    }
    if let Some(name) = parts.application_name {
        config.application_name = name;
    }
    config.options = parts.options.or_else(|| env("PGOPTIONS"));
    Ok(config)
}

fn yes_or_no(name: &str, text: &str) -> Result<bool> {
    match text {
        "true" | "yes" | "on" | "1" => Ok(true),
        "false" | "no" | "off" | "0" => Ok(false),
        _ => Err(Error::usage(format!("{name} {text:?} is neither true nor false"))),
    }
}

/// How much TLS and whom to trust.
fn trust(config: &mut Config, mode: Option<String>, root: Option<String>) -> Result<()> {
    let system = root.as_deref() == Some("system");
    config.ssl_mode = match mode {
        // As libpq: who names the system's roots means to verify, and any name would do without the name.
        None if system => SslMode::VerifyFull,
        None => SslMode::default(),
        Some(name) => SslMode::from_name(&name).ok_or_else(|| {
            Error::usage(format!("sslmode {name:?} is not known"))
                .with_help("known are disable, prefer, require, verify-ca and verify-full")
        })?,
    };
    if system && config.ssl_mode != SslMode::VerifyFull {
        return Err(Error::usage(format!(
            "sslmode={} is too weak for sslrootcert=system: anyone can have a certificate of those roots",
            config.ssl_mode.name()
        ))
        .with_help(
            "use sslmode=verify-full, or name the certificate authority's PEM file with sslrootcert=",
        ));
    }
    config.ssl_root_certificate = root.filter(|_| !system).map(PathBuf::from);
    if matches!(config.host, Host::Tcp(_)) { super::tls::check_trust(config) } else { Ok(()) }
}

/// The socket directory where a server listens at this port, or localhost. libpq has one directory compiled
/// in; it differs between distributions.
fn default_host(port: u16) -> Host {
    ["/run/postgresql", "/var/run/postgresql", "/tmp"]
        .into_iter()
        .find(|directory| Path::new(directory).join(format!(".s.PGSQL.{port}")).exists())
        .map_or_else(|| Host::Tcp("localhost".to_owned()), |directory| Host::Unix(PathBuf::from(directory)))
}

/// The name of the effective user, which libpq takes too.
fn system_user() -> Option<String> {
    let id = rustix::process::geteuid().as_raw().to_string();
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == id).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
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
            ("postgres://h/d%2", "database name has a bad percent-encoding at its character 2"),
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

//! `mysql://` and `mariadb://` URLs, without passwords.

use std::path::{Path, PathBuf};

use super::{Config, Host, Product};
use crate::url::{Split, port, seconds, system_user, yes_or_no};
use crate::{Error, Result};

const PASSWORD_REMEDY: &str =
    "leave it out of the URL, where others can read it; use MYSQL_PWD, [client] in ~/.my.cnf, or the prompt";

/// Where distributions have the socket.
const SOCKETS: [&str; 4] =
    ["/run/mysqld/mysqld.sock", "/var/lib/mysql/mysql.sock", "/tmp/mysql.sock", "/run/mysql/mysql.sock"];

pub(crate) fn parse(url: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<Config> {
    let env = |name: &str| env(name).filter(|value| !value.is_empty());
    let (product, rest) = match url.split_once("://") {
        Some(("mysql", rest)) => (Product::Mysql, rest),
        Some(("mariadb", rest)) => (Product::Mariadb, rest),
        _ => {
            return Err(Error::usage("a MySQL URL begins with mysql:// or mariadb://")
                .with_help("for example mysql://user@host:3306/database"));
        }
    };
    let mut found = Split::parse(rest, PASSWORD_REMEDY)?;
    let (mut socket, mut mode, mut root) = (None, None, None);
    let mut config = Config::new(Host::Tcp(String::new()), 3306, "", "");
    config.product = product;
    for (name, value) in std::mem::take(&mut found.parameters) {
        match (name.as_str(), value) {
            ("user", value) => found.user = value,
            ("host", value) => found.host = value,
            ("port", value) => found.port = value,
            ("database", value) => found.database = value,
            ("socket", value) => socket = value,
            ("sslmode", value) => mode = value,
            ("sslrootcert", value) => root = value,
            ("server_public_key", value) => config.server_public_key = value.map(PathBuf::from),
            ("get_server_public_key", Some(text)) => {
                config.get_server_public_key = yes_or_no("get_server_public_key", &text)?;
            }
            ("connect_timeout", Some(text)) => config.connect_timeout = seconds("connect_timeout", &text)?,
            ("get_server_public_key" | "connect_timeout", None) => {}
            _ => {
                return Err(Error::usage(format!("unknown URL parameter {name:?}")).with_help(
                    "known parameters are user, host, port, database, socket, sslmode, sslrootcert, \
                     connect_timeout, server_public_key and get_server_public_key",
                ));
            }
        }
    }
    if let Some(text) = found.port.or_else(|| env("MYSQL_TCP_PORT")) {
        config.port = port(&text)?;
    }
    config.host = host(found.host, socket, &env)?;
    config.user = found.user.or_else(system_user).or_else(|| env("USER")).ok_or_else(|| {
        Error::usage("the URL names no user").with_help("add it: mysql://user@host/database")
    })?;
    config.database = found.database.unwrap_or_default();
    (config.ssl_mode, config.ssl_root_certificate) = config.host.trust(mode, root)?;
    Ok(config)
}

fn host(named: Option<String>, socket: Option<String>, env: &dyn Fn(&str) -> Option<String>) -> Result<Host> {
    match (named, socket) {
        (Some(_), Some(_)) => Err(Error::usage("the URL names both a host and a socket").with_help(
            "to use the socket, leave out the host: mysql://user@/database?socket=/run/mysqld/mysqld.sock",
        )),
        (_, Some(path)) => absolute(path),
        (Some(host), _) => Host::parse(host),
        (None, None) => Ok(env("MYSQL_UNIX_PORT")
            .filter(|path| path.starts_with('/'))
            .map(|path| Host::Unix(path.into()))
            .or_else(|| env("MYSQL_HOST").map(Host::Tcp))
            .or_else(|| {
                SOCKETS.iter().find(|path| Path::new(path).exists()).map(|path| Host::Unix(path.into()))
            })
            .unwrap_or_else(|| Host::Tcp("localhost".into()))),
    }
}

fn absolute(path: String) -> Result<Host> {
    if path.starts_with('/') {
        return Ok(Host::Unix(path.into()));
    }
    Err(Error::usage(format!("the socket {path:?} is not an absolute path")))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::SslMode;
    use super::*;
    use crate::ErrorClass;

    fn read(url: &str) -> Result<Config> {
        parse(url, &|name| (name == "MYSQL_HOST").then(|| "there".to_owned()))
    }

    #[test]
    fn reads_what_urls_say() {
        let c = read(
            "mariadb://u%40x@db.example:6000/my%20db?sslmode=verify-full&sslrootcert=/c/a.pem&connect_timeout=3",
        )
        .unwrap();
        assert_eq!(c.product, Product::Mariadb);
        assert_eq!(c.host, Host::Tcp("db.example".into()));
        assert_eq!((c.port, c.user.as_str(), c.database.as_str()), (6000, "u@x", "my db"));
        assert_eq!((c.ssl_mode, c.connect_timeout), (SslMode::VerifyFull, Duration::from_secs(3)));
        for url in ["mysql://u@/d?socket=/run/s", "mysql://u@%2Frun%2Fs/d", "mysql://u@/d?host=/run/s"] {
            assert_eq!(read(url).unwrap().host, Host::Unix("/run/s".into()), "{url}");
        }
        let c = read("mysql://u@").unwrap();
        assert_eq!((c.host, c.port, c.database.as_str()), (Host::Tcp("there".into()), 3306, ""));
    }

    #[test]
    fn names_what_is_wrong_and_repeats_no_password() {
        for (url, part) in [
            ("postgres://h", "begins with mysql://"),
            ("mysql://u:s3cret@h/d", "MYSQL_PWD"),
            ("mysql://u@h/d?password=s3cret", "MYSQL_PWD"),
            ("mysql://u:s3cret", "port"),
            ("mysql://u@h/d?socket=/x", "both a host and a socket"),
            ("mysql://u@/d?socket=x", "absolute"),
            ("mysql://u@h/d?frob=1", "\"frob\""),
            ("mysql://u@h/d?sslmode=maybe", "\"maybe\""),
            ("mysql://u@h/d?sslmode=verify-ca", "sslrootcert="),
            ("mysql://u@h/d?get_server_public_key=maybe", "neither true nor false"),
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
            host in "[^\0,]{1,12}",
            port in 1..=u16::MAX,
            mode in proptest::sample::select(vec!["disable", "prefer", "require", "verify-ca", "verify-full"]),
            root in "/[^\0]{0,12}",
            seconds in 1..=86_400_u64,
            key in proptest::option::of("/[^\0]{1,12}"),
            get_key: bool,
            mariadb: bool,
        ) {
            let host = if host.starts_with('/') { Host::Unix(host.into()) } else { Host::Tcp(host) };
            let is_tcp = matches!(host, Host::Tcp(_));
            let mut config = Config::new(host, if is_tcp { port } else { 3306 }, &user, &database);
            if is_tcp {
                config.ssl_mode = SslMode::from_name(mode).unwrap();
                config.ssl_root_certificate = Some(root.into());
            }
            config.product = if mariadb { Product::Mariadb } else { Product::Mysql };
            config.connect_timeout = Duration::from_secs(seconds);
            config.server_public_key = key.map(Into::into);
            config.get_server_public_key = get_key;
            let read = parse(&config.to_string(), &|_| None).unwrap();
            proptest::prop_assert_eq!(format!("{config:?}"), format!("{read:?}"), "{}", config);
        }
    }
}

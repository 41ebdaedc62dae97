//! The address of a server, and how to log in.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Password, SslMode};
use crate::Result;
use crate::client::{Authority, CONNECT_TIMEOUT, Host, Parameters};
use crate::url::Escaped;

/// The product of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Product {
    /// MySQL.
    #[default]
    Mysql,
    /// MariaDB.
    Mariadb,
}

impl Product {
    /// Its name in targets and of its directories.
    pub fn word(self) -> &'static str {
        match self {
            Self::Mysql => "mysql",
            Self::Mariadb => "mariadb",
        }
    }
}

impl fmt::Display for Product {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mysql => "MySQL",
            Self::Mariadb => "MariaDB",
        })
    }
}

/// Everything a connection needs.
#[derive(Debug, Clone)]
pub struct Config {
    /// The product named in the target's URL. The server itself reports the actual one.
    pub product: Product,
    /// Host, or unix socket.
    pub host: Host,
    /// TCP port; without meaning for a unix socket.
    pub port: u16,
    /// User to log in as.
    pub user: String,
    /// Database to use; empty for none.
    pub database: String,
    /// The password, when one is known. Debug output omits it.
    pub password: Option<Password>,
    /// The TLS mode; ignored on a unix socket.
    pub ssl_mode: SslMode,
    /// File of trusted root certificates (PEM). When absent, [`SslMode::VerifyFull`] trusts the system's,
    /// [`SslMode::VerifyCa`] is refused and the others verify nothing.
    pub ssl_root_certificate: Option<PathBuf>,
    /// File with the server's public key (PEM), with which caching_sha2_password encrypts the password where there is no
    /// TLS.
    pub server_public_key: Option<PathBuf>,
    /// Whether that key may be requested from the server itself. A man in the middle can send another key and read the
    /// password.
    pub get_server_public_key: bool,
    /// Connecting, TLS and login together take no longer than this.
    pub connect_timeout: Duration,
}

impl Config {
    /// Reads a `mysql://` or `mariadb://` URL. Parts that it leaves out come from MYSQL_HOST, MYSQL_TCP_PORT and
    /// MYSQL_UNIX_PORT, then from the clients' defaults. A password in it is refused.
    pub fn parse(url: &str) -> Result<Self> {
        Self::parse_with(url, &|name| std::env::var(name).ok())
    }

    /// [`Config::parse`] with an explicit environment.
    pub fn parse_with(url: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<Self> {
        super::url::parse(url, env)
    }

    /// A configuration for a server on this host reached through the unix socket at `path`.
    pub fn unix(path: &Path, user: &str, database: &str) -> Self {
        Self::new(Host::Unix(path.to_owned()), 3306, user, database)
    }

    /// A configuration with the defaults for everything but the place.
    pub fn new(host: Host, port: u16, user: &str, database: &str) -> Self {
        Self {
            product: Product::default(),
            host,
            port,
            user: user.to_owned(),
            database: database.to_owned(),
            password: None,
            ssl_mode: SslMode::default(),
            ssl_root_certificate: None,
            server_public_key: None,
            get_server_public_key: false,
            connect_timeout: CONNECT_TIMEOUT,
        }
    }

    /// The address in brief, for messages.
    pub(crate) fn address(&self) -> String {
        match &self.host {
            Host::Tcp(name) => format!("{name}, port {}", self.port),
            Host::Unix(path) => path.display().to_string(),
        }
    }
}

/// The URL that means this configuration, never with a password.
impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}@", self.product.word(), Escaped(&self.user, ""))?;
        write!(f, "{}/{}", Authority(&self.host, self.port), Escaped(&self.database, ""))?;
        let mut parameters = Parameters::new(f);
        if let Host::Unix(path) = &self.host {
            parameters.add("socket", &path.to_string_lossy())?;
        } else {
            parameters.add_trust(self.ssl_mode, self.ssl_root_certificate.as_ref())?;
        }
        if let Some(path) = &self.server_public_key {
            parameters.add("server_public_key", &path.to_string_lossy())?;
        }
        if self.get_server_public_key {
            parameters.add("get_server_public_key", "true")?;
        }
        parameters.add_timeout(self.connect_timeout)
    }
}

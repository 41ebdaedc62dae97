//! The address of a server and the options of a connection.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::Password;
use crate::Result;
use crate::client::{Authority, CONNECT_TIMEOUT, Host, Parameters};
use crate::url::Escaped;

/// The port of a default instance.
pub(crate) const PORT: u16 = 1433;

/// How much of a connection is encrypted, with the names of Microsoft's clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Encrypt {
    /// Everything, TLS before anything else (TDS 8.0: SQL Server 2022 and later, Azure).
    Strict,
    /// Everything, TLS within the protocol's first messages (TDS 7.4).
    #[default]
    Mandatory,
    /// The login, and the rest if the server insists.
    Optional,
}

impl Encrypt {
    /// Its keyword in a URL.
    pub fn word(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Mandatory => "mandatory",
            Self::Optional => "optional",
        }
    }

    /// Parses a keyword; `true`, `yes`, `false` and `no` are those of older clients.
    pub fn from_word(word: &str) -> Option<Self> {
        Some(match word.to_ascii_lowercase().as_str() {
            "strict" => Self::Strict,
            "mandatory" | "true" | "yes" => Self::Mandatory,
            "optional" | "false" | "no" => Self::Optional,
            _ => return None,
        })
    }
}

/// Everything a connection needs.
#[derive(Debug, Clone)]
pub struct Config {
    /// Host name or address.
    pub host: String,
    /// TCP port; absent where the instance's port has to be looked up.
    pub port: Option<u16>,
    /// A named instance.
    pub instance: Option<String>,
    /// SQL login; empty with an access token.
    pub user: String,
    /// Database to use; empty for the default database of the login.
    pub database: String,
    /// The password, when one is known. Debug output omits it.
    pub password: Option<Password>,
    /// An access token (Entra) instead of user and password.
    pub token: Option<Password>,
    /// A file with the token, read at every connection since tokens expire.
    pub token_file: Option<PathBuf>,
    /// The encryption mode.
    pub encrypt: Encrypt,
    /// Whether the server's certificate is taken unseen.
    pub trust_server_certificate: bool,
    /// The name that the certificate must have, where that is not the host's.
    pub host_name_in_certificate: Option<String>,
    /// File of trusted root certificates (PEM); the system's when absent.
    pub root_certificate: Option<PathBuf>,
    /// Connecting, TLS and login together take no longer than this.
    pub connect_timeout: Duration,
}

impl Config {
    /// Reads a `sqlserver://` or `mssql://` URL; an access token comes from MSSQL_ACCESS_TOKEN. A password in it is refused.
    ///
    /// # Errors
    /// Where the URL is none of these.
    pub fn parse(url: &str) -> Result<Self> {
        Self::parse_with(url, &|name| std::env::var(name).ok())
    }

    /// [`Config::parse`] with an explicit environment.
    ///
    /// # Errors
    /// Where the URL is none of these.
    pub fn parse_with(url: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<Self> {
        super::url::parse(url, env)
    }

    /// A configuration with the defaults for everything but the place.
    pub fn new(host: &str, port: u16, user: &str, database: &str) -> Self {
        Self {
            host: host.to_owned(),
            port: Some(port),
            instance: None,
            user: user.to_owned(),
            database: database.to_owned(),
            password: None,
            token: None,
            token_file: None,
            encrypt: Encrypt::default(),
            trust_server_certificate: false,
            host_name_in_certificate: None,
            root_certificate: None,
            connect_timeout: CONNECT_TIMEOUT,
        }
    }

    /// A short address, for messages.
    pub(crate) fn address(&self) -> String {
        match (self.port, &self.instance) {
            (None, Some(instance)) => format!("{}, instance {instance}", self.host),
            (port, _) => format!("{}, port {}", self.host, port.unwrap_or(PORT)),
        }
    }

    /// Whether the server runs on this host, as far as the address shows.
    pub(crate) fn is_local(&self) -> bool {
        Host::Tcp(self.host.clone()).is_local()
    }
}

/// The URL that means this configuration, never with a password.
impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sqlserver://")?;
        if !self.user.is_empty() {
            write!(f, "{}@", Escaped(&self.user, ""))?;
        }
        let host = Host::Tcp(self.host.clone());
        match self.port {
            Some(port) => write!(f, "{}", Authority(&host, port))?,
            None if self.host.parse::<std::net::Ipv6Addr>().is_ok() => write!(f, "[{}]", self.host)?,
            None => write!(f, "{}", Escaped(&self.host, ""))?,
        }
        if let Some(instance) = &self.instance {
            write!(f, ";{}", Escaped(instance, ""))?;
        }
        write!(f, "/{}", Escaped(&self.database, ""))?;
        let mut parameters = Parameters::new(f);
        if self.encrypt != Encrypt::default() {
            parameters.add("encrypt", self.encrypt.word())?;
        }
        if self.trust_server_certificate {
            parameters.add("trustServerCertificate", "true")?;
        }
        if let Some(name) = &self.host_name_in_certificate {
            parameters.add("hostNameInCertificate", name)?;
        }
        if let Some(path) = &self.root_certificate {
            parameters.add("sslrootcert", &path.to_string_lossy())?;
        }
        if let Some(path) = &self.token_file {
            parameters.add("accessTokenFile", &path.to_string_lossy())?;
        }
        parameters.add_timeout(self.connect_timeout)
    }
}

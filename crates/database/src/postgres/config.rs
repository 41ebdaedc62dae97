//! The address of a server, and how to log in.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Password, SslMode};
use crate::Result;
use crate::client::{Authority, CONNECT_TIMEOUT, Host, Parameters};
use crate::process_sessions::{PROGRAM, session_name};
use crate::url::Escaped;

/// Whether the login is tied to the TLS connection that carries it, with libpq's meanings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ChannelBinding {
    /// Never.
    Disable,
    /// If the server offers it, which it does under TLS with scram-sha-256.
    #[default]
    Prefer,
    /// Always: a login that is not bound to this TLS connection is refused, and no password is sent.
    Require,
}

impl ChannelBinding {
    /// The mode of this name, as `channel_binding=` writes it.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "disable" => Self::Disable,
            "prefer" => Self::Prefer,
            "require" => Self::Require,
            _ => return None,
        })
    }

    /// The name as `channel_binding=` writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Disable => "disable",
            Self::Prefer => "prefer",
            Self::Require => "require",
        }
    }
}

/// Everything a connection needs.
#[derive(Debug, Clone)]
pub struct Config {
    /// Host, or directory of the unix socket.
    pub host: Host,
    /// TCP port, or the number in the socket's name; never 0.
    pub port: u16,
    /// Role to log in as.
    pub user: String,
    /// Database to connect to.
    pub database: String,
    /// The password, when one is known. Debug output omits it.
    pub password: Option<Password>,
    /// The TLS mode; ignored on a unix socket.
    pub ssl_mode: SslMode,
    /// File of trusted root certificates (PEM). When absent, [`SslMode::VerifyFull`] trusts the system's,
    /// [`SslMode::VerifyCa`] is refused and the others verify nothing.
    pub ssl_root_certificate: Option<PathBuf>,
    /// Whether the login must be tied to the TLS connection.
    pub channel_binding: ChannelBinding,
    /// Whether statements are prepared once per connection and then called by name. Without it the text is sent with
    /// each execution, as the unnamed statement and in the same round trip. A pooler in transaction mode needs this: a
    /// named statement stays on the server connection, which the pooler assigns to other clients.
    pub prepared_statements: bool,
    /// Connecting, TLS and login together take no longer than this.
    pub connect_timeout: Duration,
    /// The name shown in `pg_stat_activity`; "kelvin" stands for a name unique to this process
    /// ([`Config::session_name`]).
    pub application_name: String,
    /// Settings for the session in the form of `postgres` options, such as `-c work_mem=64MB`.
    pub options: Option<String>,
}

impl Config {
    /// Reads a `postgres://` URL. Parts that it leaves out come from PGHOST, PGPORT, PGUSER, PGDATABASE, PGSSLMODE,
    /// PGSSLROOTCERT, PGCHANNELBINDING, PGCONNECT_TIMEOUT and PGOPTIONS, then from libpq's defaults. A password in it
    /// is refused.
    pub fn parse(url: &str) -> Result<Self> {
        Self::parse_with(url, &|name| std::env::var(name).ok())
    }

    /// [`Config::parse`] with an explicit environment.
    pub fn parse_with(url: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<Self> {
        super::url::parse(url, env)
    }

    /// A configuration for a server on this host reached through the unix socket in `directory`.
    pub fn unix(directory: &Path, port: u16, user: &str, database: &str) -> Self {
        Self::new(Host::Unix(directory.to_owned()), port, user, database)
    }

    /// A configuration with the defaults for everything but the place.
    pub fn new(host: Host, port: u16, user: &str, database: &str) -> Self {
        Self {
            host,
            port,
            user: user.to_owned(),
            database: database.to_owned(),
            password: None,
            ssl_mode: SslMode::default(),
            ssl_root_certificate: None,
            channel_binding: ChannelBinding::default(),
            prepared_statements: true,
            connect_timeout: CONNECT_TIMEOUT,
            application_name: PROGRAM.to_owned(),
            options: None,
        }
    }

    /// The name of the sessions: "kelvin 1f9a04c7" by default, or the chosen name.
    pub fn session_name(&self) -> &str {
        if self.application_name == PROGRAM { session_name() } else { &self.application_name }
    }

    /// The address in brief, for messages.
    pub(crate) fn address(&self) -> String {
        match &self.host {
            Host::Tcp(name) => format!("{name}, port {}", self.port),
            Host::Unix(_) => self.socket_path().display().to_string(),
        }
    }

    /// The unix socket's path; meaningless for TCP.
    pub(crate) fn socket_path(&self) -> PathBuf {
        match &self.host {
            Host::Unix(directory) => directory.join(format!(".s.PGSQL.{}", self.port)),
            Host::Tcp(_) => PathBuf::new(),
        }
    }
}

/// The URL that means this configuration, never with a password.
impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "postgres://{}@", Escaped(&self.user, ""))?;
        write!(f, "{}/{}", Authority(&self.host, self.port), Escaped(&self.database, ""))?;
        let mut parameters = Parameters::new(f);
        if let Host::Unix(directory) = &self.host {
            parameters.add("host", &directory.to_string_lossy())?;
            parameters.add("port", &self.port.to_string())?;
        } else {
            parameters.add_trust(self.ssl_mode, self.ssl_root_certificate.as_ref())?;
        }
        if self.channel_binding != ChannelBinding::default() {
            parameters.add("channel_binding", self.channel_binding.name())?;
        }
        if !self.prepared_statements {
            parameters.add("prepared_statements", "false")?;
        }
        parameters.add_timeout(self.connect_timeout)?;
        if self.application_name != PROGRAM {
            parameters.add("application_name", &self.application_name)?;
        }
        if let Some(options) = &self.options {
            parameters.add("options", options)?;
        }
        Ok(())
    }
}

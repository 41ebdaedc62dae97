//! What the clients of servers share besides the socket: the address, conditions that break a session, and the memory of a
//! batch's results.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::stream::tls::{self, SslMode};
use crate::url::Escaped;
use crate::{Error, Result, Rows};

pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A server's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    /// A host name or address without brackets.
    Tcp(String),
    /// The unix socket (MySQL), or the directory that holds it (PostgreSQL: `.s.PGSQL.port`).
    Unix(PathBuf),
}

impl Host {
    /// The host of a URL or of the environment: what begins with a slash is a path.
    pub(crate) fn parse(text: String) -> Result<Self> {
        if text.contains(',') {
            return Err(Error::usage("the URL names more than one host")
                .with_help("Kelvin measures one server at a time"));
        }
        Ok(if text.starts_with('/') { Self::Unix(text.into()) } else { Self::Tcp(text) })
    }

    /// Whether the server runs on this host, judging by the address.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Unix(_) => true,
            Self::Tcp(name) => {
                name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
            }
        }
    }

    /// A name for the server in file names.
    pub(crate) fn file_name(&self, port: u16) -> String {
        let host = match self {
            Self::Tcp(name) => name.into(),
            Self::Unix(path) => path.to_string_lossy(),
        };
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' || c == '-' { c } else { '_' };
        let name: String = host.chars().map(plain).collect();
        format!("{name}_{port}")
    }

    /// Which server's certificates are trusted, by the words of a URL; checked where there is TLS.
    pub(crate) fn trust(
        &self,
        mode: Option<String>,
        root: Option<String>,
    ) -> Result<(SslMode, Option<PathBuf>)> {
        let (mode, root) = tls::trust(mode, root)?;
        if matches!(self, Self::Tcp(_)) {
            tls::check_trust(mode, root.as_deref())?;
        }
        Ok((mode, root))
    }
}

/// The address within a URL, which for a unix socket is empty.
pub(crate) struct Authority<'a>(pub(crate) &'a Host, pub(crate) u16);

impl fmt::Display for Authority<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let port = self.1;
        match self.0 {
            Host::Tcp(name) if name.parse::<std::net::Ipv6Addr>().is_ok() => write!(f, "[{name}]:{port}"),
            Host::Tcp(name) => write!(f, "{}:{port}", Escaped(name, "")),
            Host::Unix(_) => Ok(()),
        }
    }
}

/// Writes the parameters of a URL.
pub(crate) struct Parameters<'a, 'b> {
    f: &'a mut fmt::Formatter<'b>,
    separator: char,
}

impl<'a, 'b> Parameters<'a, 'b> {
    pub(crate) fn new(f: &'a mut fmt::Formatter<'b>) -> Self {
        Self { f, separator: '?' }
    }

    pub(crate) fn add(&mut self, name: &str, value: &str) -> fmt::Result {
        let separator = std::mem::replace(&mut self.separator, '&');
        write!(self.f, "{separator}{name}={}", Escaped(value, "/"))
    }

    /// What differs from the defaults of TLS.
    pub(crate) fn add_trust(&mut self, mode: SslMode, root: Option<&PathBuf>) -> fmt::Result {
        if mode != SslMode::default() {
            self.add("sslmode", mode.name())?;
        }
        root.map_or(Ok(()), |path| self.add("sslrootcert", &path.to_string_lossy()))
    }

    pub(crate) fn add_timeout(&mut self, timeout: Duration) -> fmt::Result {
        if timeout == CONNECT_TIMEOUT {
            return Ok(());
        }
        self.add("connect_timeout", &timeout.as_secs().max(1).to_string())
    }
}

/// Connects by `attempt`, whose error says whether TLS had been begun. As libpq: what fails under TLS may work without, when TLS
/// was only preferred and `may_be_tls` the reason.
pub(crate) fn attempts<S>(
    mode: SslMode,
    may_be_tls: impl Fn(&Error) -> bool,
    attempt: impl Fn(SslMode) -> std::result::Result<S, (Error, bool)>,
) -> Result<S> {
    match attempt(mode) {
        Err((error, true)) if mode == SslMode::Prefer && may_be_tls(&error) => {
            attempt(SslMode::Disable).map_err(|_| error)
        }
        other => other.map_err(|(error, _)| error),
    }
}

/// How to encrypt a further connection to a session's server: exactly if the session is.
pub(crate) fn as_encrypted(session_is: bool, mode: SslMode) -> SslMode {
    match (session_is, mode) {
        (false, _) => SslMode::Disable,
        (true, SslMode::Prefer) => SslMode::Require,
        (true, mode) => mode,
    }
}

/// Refuses to go on with a broken connection.
#[inline]
pub(crate) fn must_be_whole(broken: bool) -> Result<()> {
    if broken { Err(Error::connection_lost("the connection was lost earlier")) } else { Ok(()) }
}

/// Refuses to go on past statements that were queued and not flushed.
#[inline]
pub(crate) fn must_be_flushed(queued: usize) -> Result<()> {
    if queued == 0 {
        Ok(())
    } else {
        Err(Error::usage(format!("{queued} queued statements have not been flushed")))
    }
}

/// Results that a smaller batch did not need, kept for their memory.
#[derive(Debug, Default)]
pub(crate) struct SpareRows(Vec<Rows>);

impl SpareRows {
    /// Gives `results` one empty result for each statement, keeping the memory of all for later batches.
    pub(crate) fn resize(&mut self, results: &mut Vec<Rows>, count: usize) {
        if results.len() > count {
            self.0.extend(results.drain(count..));
        }
        results.resize_with(count, || self.0.pop().unwrap_or_default());
        for rows in results {
            rows.reset(0, false);
        }
    }
}

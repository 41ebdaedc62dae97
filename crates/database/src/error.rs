//! Errors, classified so that they can be counted.

use std::fmt;

/// The result of everything a database does.
pub type Result<T> = std::result::Result<T, Error>;

/// The kinds of failure that a load driver distinguishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorClass {
    /// The transaction lost against a concurrent one (SQLSTATE 40001). Retryable.
    SerializationFailure,
    /// Chosen as the victim of a deadlock (SQLSTATE 40P01). Worth repeating.
    Deadlock,
    /// A lock was not granted in time (SQLSTATE 55P03, SQLITE_BUSY). Worth repeating.
    LockNotAvailable,
    /// The connection is lost or was never made; whether a commit under way succeeded is unknown.
    ConnectionLost,
    /// No answer within the time-out, or the server cancelled the statement (SQLSTATE 57014).
    Timeout,
    /// Wrong user or password, or no permission to connect.
    Authentication,
    /// No space left where the server or the file is (SQLSTATE 53100, SQLITE_FULL).
    DiskFull,
    /// A constraint was violated (SQLSTATE class 23).
    Constraint,
    /// The statement itself is wrong: syntax, unknown table, wrong type (SQLSTATE class 42, 22).
    Statement,
    /// The server violated its protocol, or is not the expected server.
    Protocol,
    /// The user gave something unusable: a URL, a path, a setting.
    Usage,
    /// Any other refusal by the server.
    Server,
}

impl ErrorClass {
    /// Whether repeating the same transaction on the same connection can succeed.
    pub fn is_retryable(self) -> bool {
        matches!(self, Self::SerializationFailure | Self::Deadlock | Self::LockNotAvailable)
    }
}

impl fmt::Display for ErrorClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SerializationFailure => "serialization failure",
            Self::Deadlock => "deadlock",
            Self::LockNotAvailable => "lock not available",
            Self::ConnectionLost => "connection lost",
            Self::Timeout => "time-out",
            Self::Authentication => "authentication",
            Self::DiskFull => "disk full",
            Self::Constraint => "constraint",
            Self::Statement => "statement",
            Self::Protocol => "protocol",
            Self::Usage => "usage",
            Self::Server => "server",
        })
    }
}

/// The engine's own code of an error: an SQLSTATE such as `40001`, MySQL's number and SQLSTATE such as `1213/40001`, or
/// SQLite's name such as `SQLITE_BUSY`.
/// Empty when the error did not come from the server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Code(pub String);

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A failed operation. Boxed, so that a `Result` stays one word in the measured path.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    class: ErrorClass,
    code: Code,
    message: String,
    /// The server's additional information: detail, hint, the statement's position.
    help: Option<String>,
}

impl Error {
    /// An error of `class` with `message`: a lower-case fragment that reads after "failed to …: ".
    pub fn new(class: ErrorClass, message: impl Into<String>) -> Self {
        Self(Box::new(Inner { class, code: Code::default(), message: message.into(), help: None }))
    }

    /// The same error with the engine's own code.
    #[must_use]
    pub fn with_code(mut self, code: impl Into<String>) -> Self {
        self.0.code = Code(code.into());
        self
    }

    /// The same error with a remedy, or with the server's additional information.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.0.help = Some(help.into());
        self
    }

    /// The same error, its message preceded by the operation that failed.
    #[must_use]
    pub fn context(mut self, doing: &str) -> Self {
        self.0.message = format!("{doing}: {}", self.0.message);
        self
    }

    /// The server broke its protocol.
    pub fn protocol(message: impl Into<String>) -> Self {
        Self::new(ErrorClass::Protocol, message)
    }

    /// The connection is lost.
    pub fn connection_lost(message: impl Into<String>) -> Self {
        Self::new(ErrorClass::ConnectionLost, message)
    }

    /// The user gave something unusable.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(ErrorClass::Usage, message)
    }

    /// The class of the failure.
    pub fn class(&self) -> ErrorClass {
        self.0.class
    }

    /// The engine's own code; empty when there is none.
    pub fn code(&self) -> &Code {
        &self.0.code
    }

    /// The message alone.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Detail, hint or remedy.
    pub fn help(&self) -> Option<&str> {
        self.0.help.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        if !self.0.code.0.is_empty() {
            write!(f, " ({})", self.0.code)?;
        }
        if let Some(help) = &self.0.help {
            write!(f, "\n  {}", help.replace('\n', "\n  "))?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

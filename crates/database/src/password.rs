//! Passwords: they are never shown; and the message if one is missing.

use std::fmt;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::{Error, ErrorClass, Result};

/// A password. Debug shows nothing of it, and there is no Display.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

impl Password {
    /// Keeps `text` as a password.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub(crate) fn expose(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(…)")
    }
}

const MISSING: &str = "the server asks for a password, but none was given";

/// The server wants a password, and none was given; `remedy` says where one can be.
pub(crate) fn missing_for(user: &str, remedy: &str) -> Error {
    Error::new(ErrorClass::Authentication, format!("{MISSING} for user {user:?}")).with_help(remedy)
}

/// Whether connecting failed only because the server wants a password and none was given: asking the user
/// for one and connecting again is worth it.
pub fn is_missing(error: &Error) -> bool {
    error.class() == ErrorClass::Authentication && error.message().contains(MISSING)
}

/// Refuses a file with a password that others can read.
pub(crate) fn must_be_private(path: &Path, metadata: &Metadata) -> Result<()> {
    if metadata.mode() & 0o077 != 0 {
        return Err(Error::usage(format!("the password file {} can be read by others", path.display()))
            .with_help(format!("chmod 0600 {}", path.display())));
    }
    Ok(())
}

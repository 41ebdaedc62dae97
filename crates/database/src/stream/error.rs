//! The operating system's errors as the workspace's error.

use std::io;

use crate::{Error, ErrorClass};

/// Text from the server without what could steer a terminal.
pub(crate) fn printable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes)
        .chars()
        .map(|c| if c.is_control() && c != '\n' && c != '\t' { ' ' } else { c })
        .collect()
}

/// A failure of the socket while `doing` something.
#[cold]
pub(crate) fn from_io(error: &io::Error, doing: &str) -> Error {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => timeout(doing),
        _ => Error::connection_lost(format!("{doing}: {error}")),
    }
}

#[cold]
pub(crate) fn timeout(doing: &str) -> Error {
    Error::new(ErrorClass::Timeout, format!("{doing}: timeout, no response from the server"))
}

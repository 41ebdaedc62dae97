//! What can go wrong, with the place where it was found.

use std::io;
use std::path::{Path, PathBuf};

/// Why a trace cannot be recorded or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Something in a file does not belong there.
    #[error("{}: {place}: {problem}", path.display())]
    Input {
        /// The file.
        path: PathBuf,
        /// Its line or byte.
        place: String,
        /// What is wrong.
        problem: String,
    },
    /// This host, or this user, cannot record.
    #[error("{0}")]
    Unavailable(String),
    /// The kernel refused something.
    #[error("{what}: {cause}")]
    System {
        /// What was tried, with the file's name.
        what: String,
        /// The kernel's answer.
        #[source]
        cause: io::Error,
    },
    /// A reader of another format refused the file.
    #[error(transparent)]
    Storage(#[from] kelvin_storage::Error),
}

impl Error {
    /// Something tried that the kernel refused; for `map_err`.
    pub fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |cause| Self::System { what, cause }
    }

    /// A line of a file that does not belong there.
    pub fn line(path: &Path, line: u64, problem: impl Into<String>) -> Self {
        Self::Input { path: path.into(), place: format!("line {line}"), problem: problem.into() }
    }

    /// A byte of a file from which on it cannot be read.
    pub fn byte(path: &Path, byte: u64, problem: impl Into<String>) -> Self {
        Self::Input { path: path.into(), place: format!("byte {byte}"), problem: problem.into() }
    }
}

/// What this crate's functions return.
pub type Result<T> = std::result::Result<T, Error>;

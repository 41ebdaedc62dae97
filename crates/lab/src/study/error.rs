//! Errors of studies.

use std::path::PathBuf;

use crate::BenchError;

/// Why an operation failed. The text states the location and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// A file cannot be read or written.
    #[error("cannot {what} {path}: {source}")]
    File {
        /// The operation: "read", "write", "make", "lock".
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A file cannot be parsed.
    #[error("{path}: {message}")]
    Parse {
        /// The file.
        path: String,
        /// The error and its location.
        message: String,
    },
    /// The request conflicts with the present state.
    #[error("{0}")]
    Refused(String),
    /// A cell could not be applied, or the environment could not be restored.
    #[error("{what}: {source}")]
    Conditions {
        /// The operation that failed.
        what: String,
        /// The cause.
        source: BenchError,
    },
    /// Too many consecutive runs failed.
    #[error(
        "{failures} runs failed in a row, the last one with: {last}; the results so far are kept, and the \
        same command continues from there"
    )]
    Failing {
        /// The number of failures.
        failures: u32,
        /// The last error.
        last: String,
    },
    /// Code around the runs failed.
    #[error(transparent)]
    Around(Box<dyn std::error::Error + Send + Sync>),
}

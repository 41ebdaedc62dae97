//! Why something cannot be done with a study.

use std::path::PathBuf;

use crate::BenchError;

/// What went wrong; the text says where and what to do.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// A file cannot be read or written.
    #[error("cannot {what} {path}: {source}")]
    File {
        /// "read", "write", "make", "lock".
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The text of a file is wrong.
    #[error("{path}: {message}")]
    Parse {
        /// The file.
        path: String,
        /// What is wrong, and where.
        message: String,
    },
    /// It does not go together with what is there.
    #[error("{0}")]
    Refused(String),
    /// A cell could not be made, or its environment could not be restored.
    #[error("{what}: {source}")]
    Conditions {
        /// What was tried.
        what: String,
        /// Why not.
        source: BenchError,
    },
    /// The runs fail one after another.
    #[error(
        "{failures} runs failed in a row, the last one with: {last}; the results so far are kept, and the \
        same command continues from there"
    )]
    Failing {
        /// How many.
        failures: u32,
        /// Why.
        last: String,
    },
    /// What happens around the runs failed.
    #[error(transparent)]
    Around(Box<dyn std::error::Error + Send + Sync>),
}

//! Errors of runs.

use kelvin_run::RunError;
use kelvin_store::RunId;

type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why a run was not made, or ended early.
#[derive(Debug, thiserror::Error)]
pub enum StoreBenchError {
    /// An error before the run began; nothing was measured.
    #[error(transparent)]
    Failed(Cause),
    /// The same, with the operation that failed.
    #[error("{what}")]
    FailedWhile {
        /// The operation, such as "cannot use sqlite:x.db".
        what: String,
        /// The cause.
        source: Cause,
    },
    /// The request cannot be fulfilled; nothing was measured.
    #[error("{0}")]
    Refused(String),
    /// The check of freshly built data could not be executed.
    #[error(transparent)]
    Check(RunError),
    /// A stop was requested; the text says what it left behind.
    #[error("{0}")]
    Stopped(String),
    /// An error ended a run that had begun and is stored.
    #[error("run {0} ended early")]
    EndedEarly(RunId, #[source] RunError),
    /// An error after the measurement, which is stored.
    #[error("the run was measured and is stored, but cannot be shown")]
    Kept(#[source] Cause),
}

impl StoreBenchError {
    /// An error after the measurement.
    pub fn kept(cause: impl Into<Cause>) -> Self {
        Self::Kept(cause.into())
    }

    /// The error of the run, or of a check of its data, if it is one.
    pub fn run_error(&self) -> Option<&RunError> {
        match self {
            Self::Check(error) | Self::EndedEarly(_, error) => Some(error),
            _ => None,
        }
    }
}

/// Adds the failed operation to an error.
pub(crate) trait Doing<T> {
    fn doing(self, what: impl Into<String>) -> Result<T, StoreBenchError>;
}

impl<T, E: Into<Cause>> Doing<T> for Result<T, E> {
    fn doing(self, what: impl Into<String>) -> Result<T, StoreBenchError> {
        self.map_err(|error| StoreBenchError::FailedWhile { what: what.into(), source: error.into() })
    }
}

macro_rules! failed {
    ($($error:ty),*) => { $(
        impl From<$error> for StoreBenchError {
            fn from(error: $error) -> Self {
                Self::Failed(error.into())
            }
        }
    )* };
}

failed!(
    kelvin_database::Error,
    kelvin_storage::Error,
    kelvin_store::Error,
    crate::reset::ResetError,
    serde_json::Error
);

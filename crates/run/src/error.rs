//! Errors of a run.

use kelvin_database::Error;
use kelvin_measure::SinkError;

/// Why a run could not start or continue.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The database returned an error.
    #[error(transparent)]
    Database(#[from] Error),
    /// The I/O jobs cannot be run.
    #[error(transparent)]
    Storage(#[from] kelvin_storage::Error),
    /// The operating system denied something that the run needs, or the run's setup is invalid.
    #[error("{0}")]
    Start(String),
    /// An event could not be stored.
    #[error("a result could not be stored: {0}")]
    Sink(#[from] SinkError),
    /// A stop was requested while nothing was being measured: while connecting, or during a check.
    #[error("interrupted")]
    Interrupted,
}

//! Why there is no run.

use kelvin_database::Error;
use kelvin_measure::SinkError;

/// Why a run could not start or go on.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The database refused.
    #[error(transparent)]
    Database(#[from] Error),
    /// The I/O jobs cannot be run.
    #[error(transparent)]
    Storage(#[from] kelvin_storage::Error),
    /// The operating system refused something that the run needs.
    #[error("{0}")]
    Start(String),
    /// An event could not be kept.
    #[error("a result could not be stored: {0}")]
    Sink(#[from] SinkError),
    /// Somebody asked to stop where nothing is being measured: while connecting, or in a check.
    #[error("interrupted")]
    Interrupted,
}

//! All exit codes. `docs/exit-codes.md` is the same table for users.

use std::process::ExitCode;

use kelvin_lab::store_bench::StoreBenchError;
use kelvin_store::RunState;

/// The exit code of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    /// The command completed, and its measurements count.
    Success = 0,
    /// A void run or a failed comparison: measured, but not valid.
    NotValid = 1,
    /// The input was unusable, or the run could not start. Nothing was measured.
    BadInput = 2,
    /// A counted run in which transactions failed permanently.
    WithErrors = 3,
    /// Ended by an error before the planned end; the measurements are stored.
    Aborted = 4,
    /// No decision: too few counted runs, or a metric that the runs lack.
    NotTestable = 5,
    /// No decision: the scatter is too large to detect a regression of the allowed size.
    Blind = 6,
    /// Ended by Ctrl-C or a signal; the measurements are stored.
    Interrupted = 130,
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        Self::from(code as u8)
    }
}

impl Code {
    /// The exit code of a run in this state. `failed` is the number of transactions that failed permanently.
    pub(crate) fn from_run_state(state: RunState, failed: u64) -> Self {
        match state {
            RunState::Failed => Self::Aborted,
            RunState::Partial => Self::Interrupted,
            RunState::Void => Self::NotValid,
            RunState::Counted if failed > 0 => Self::WithErrors,
            RunState::Counted => Self::Success,
        }
    }

    /// The code for an error that reached `main`.
    pub(crate) fn from_error(error: &anyhow::Error) -> Self {
        use kelvin_run::RunError;
        let made = error.downcast_ref::<StoreBenchError>();
        match made.and_then(StoreBenchError::run_error).or_else(|| error.downcast_ref::<RunError>()) {
            Some(RunError::Interrupted) => return Self::Interrupted,
            Some(RunError::Sink(_)) => return Self::Aborted,
            _ => {}
        }
        match made {
            // The run is in the store, complete or not.
            Some(StoreBenchError::Kept(_) | StoreBenchError::EndedEarly(..)) => Self::Aborted,
            _ if is_stop(error) => Self::Interrupted,
            _ => Self::BadInput,
        }
    }
}

/// Whether the error is a stop request that arrived while nothing was being measured.
pub(crate) fn is_stop(error: &anyhow::Error) -> bool {
    error.downcast_ref::<Stopped>().is_some()
        || matches!(error.downcast_ref(), Some(StoreBenchError::Stopped(_)))
}

/// The user asked to stop while nothing was being measured.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Stopped(pub(crate) String);

/// The chain of an error on one line, without causes that the preceding text already contains. The help of the
/// error follows on separate lines.
pub(crate) fn describe(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |text, cause| match text.as_str() {
        "" => cause,
        before if before.contains(&cause) => text,
        before => format!("{before}: {cause}"),
    })
}

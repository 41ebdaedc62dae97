//! The exit codes, all of them, in one place. `docs/exit-codes.md` is the same table for users.

use std::process::ExitCode;

use kelvin_store::{RunId, RunState};

/// What the exit code says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    /// Done, and what was measured counts.
    Success = 0,
    /// A void run, or a comparison that failed: measured, but not to be used.
    NotValid = 1,
    /// The input was unusable, or the run could not start. Nothing was measured.
    BadInput = 2,
    /// A run that counts, but transactions failed for good on the way.
    WithErrors = 3,
    /// Ended by an error before its planned end; what was measured is kept.
    Aborted = 4,
    /// Nothing was decided: too few runs that count, or a figure that they do not have.
    NotTestable = 5,
    /// Nothing was decided: a regression as large as is allowed could not have been seen.
    Blind = 6,
    /// Ended by Ctrl-C or a signal; what was measured is kept.
    Interrupted = 130,
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        Self::from(code as u8)
    }
}

impl Code {
    /// The code of a run by what it is good for. `failed` is the number of transactions that failed for good.
    pub(crate) fn of_run(state: RunState, failed: u64) -> Self {
        match state {
            RunState::Failed => Self::Aborted,
            RunState::Partial => Self::Interrupted,
            RunState::Void => Self::NotValid,
            RunState::Counted if failed > 0 => Self::WithErrors,
            RunState::Counted => Self::Success,
        }
    }

    /// The code for an error that reached `main`.
    pub(crate) fn of_error(error: &anyhow::Error) -> Self {
        use kelvin_run::RunError;
        match error.downcast_ref::<RunError>() {
            Some(RunError::Interrupted) => Self::Interrupted,
            Some(RunError::Sink(_)) => Self::Aborted,
            _ if error.downcast_ref::<Kept>().is_some() => Self::Aborted,
            // It is in the store, and failed there.
            _ if error.downcast_ref::<EndedEarly>().is_some() => Self::Aborted,
            _ if error.downcast_ref::<Stopped>().is_some() => Self::Interrupted,
            _ => Self::BadInput,
        }
    }
}

/// Something went wrong after the measurement, which is kept.
#[derive(Debug, thiserror::Error)]
#[error("the run was measured and is stored, but cannot be shown")]
pub(crate) struct Kept;

/// A run that was begun, and is kept, was ended by an error.
#[derive(Debug, thiserror::Error)]
#[error("run {0} ended early")]
pub(crate) struct EndedEarly(pub(crate) RunId);

/// Somebody asked to stop while nothing was being measured.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Stopped(pub(crate) String);

/// The chain of an error on one line (and its help on the following); a cause that the text before it tells
/// already is left out.
pub(crate) fn describe(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |told, cause| match told.as_str() {
        "" => cause,
        before if before.contains(&cause) => told,
        before => format!("{before}: {cause}"),
    })
}

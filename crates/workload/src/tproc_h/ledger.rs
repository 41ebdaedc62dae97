//! The executions of a run's users, for the driver and the audit.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kelvin_measure::query::{AnswerState, QueryExecution};

/// Counts of the executions since the last call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Tally {
    pub(super) executed: u64,
    /// Executions that failed or timed out.
    pub(super) failed: u64,
    /// Executions whose answers were compared with published answers.
    pub(super) compared: u64,
    /// Executions whose answers differ from the published answers.
    pub(super) differing: u64,
}

#[derive(Debug, Default)]
struct Pages {
    ended: Vec<QueryExecution>,
    tally: Tally,
    window: u32,
    /// Queries that have failed or timed out.
    unanswered: BTreeSet<String>,
}

/// Shared by all users of a run.
#[derive(Debug, Default)]
pub(super) struct Ledger(Mutex<Pages>);

impl Ledger {
    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that RF1 of this window was committed.
    pub(super) fn begin(&self, window: u32) {
        self.pages().window = window;
    }

    /// The window of the next pair of refresh functions: the one after the last window that was passed to
    /// [`Ledger::begin`].
    pub(super) fn next_window(&self) -> u32 {
        self.pages().window.saturating_add(1)
    }

    /// Records an execution that has ended.
    pub(super) fn keep(&self, execution: QueryExecution) {
        let mut pages = self.pages();
        let tally = &mut pages.tally;
        tally.executed += 1;
        tally.failed += u64::from(matches!(execution.state, AnswerState::Failed | AnswerState::TimedOut));
        tally.differing += u64::from(execution.state == AnswerState::Differs);
        tally.compared += u64::from(matches!(execution.state, AnswerState::Published | AnswerState::Differs));
        if matches!(execution.state, AnswerState::Failed | AnswerState::TimedOut) {
            pages.unanswered.insert(execution.query.clone());
        }
        pages.ended.push(execution);
    }

    /// The queries that have failed or timed out.
    pub(super) fn unanswered(&self) -> BTreeSet<String> {
        self.pages().unanswered.clone()
    }

    /// Returns the executions since the last call.
    pub(super) fn take(&self) -> Vec<QueryExecution> {
        std::mem::take(&mut self.pages().ended)
    }

    /// Returns the counts of the executions since the last call.
    pub(super) fn take_tally(&self) -> Tally {
        std::mem::take(&mut self.pages().tally)
    }
}

//! The contents of a study's folder.

use anyhow::Result;
use kelvin_lab::study::{Deviation, Estimate, Folder, Lock, State, Study, StudyPlan};

/// A study and its progress.
#[derive(Debug)]
pub(crate) struct StudyStatus {
    /// Its folder.
    pub(crate) folder: Folder,
    /// The study's question and design.
    pub(crate) study: Study,
    /// All planned runs.
    pub(crate) plan: StudyPlan,
    /// The lock: the hypothesis and everything else that determines the answer, as fixed.
    pub(crate) lock: Option<Lock>,
    /// Deviations from the lock.
    pub(crate) changed: Vec<Deviation>,
    /// The progress according to the ledger.
    pub(crate) state: State,
}

impl StudyStatus {
    /// Reads a folder.
    pub(crate) fn read(folder: Folder) -> Result<Self> {
        let entries = folder.ledger()?;
        Self::with_state(folder, |plan| State::of(plan, &entries))
    }

    /// Reads a folder whose ledger has already been read.
    pub(crate) fn with_state(folder: Folder, state: impl FnOnce(&StudyPlan) -> State) -> Result<Self> {
        let study = folder.study()?;
        let plan = StudyPlan::of(&study);
        let lock = folder.lock()?;
        let changed = lock.as_ref().map(|lock| lock.deviations(&study)).transpose()?.unwrap_or_default();
        let state = state(&plan);
        Ok(Self { folder, study, plan, lock, changed, state })
    }

    /// The estimated duration of a run.
    pub(crate) fn estimate(&self) -> Estimate {
        Estimate::of(&self.study, &self.state.seconds)
    }

    /// How many of the plan's replacement runs are left.
    pub(crate) fn replacements_left(&self) -> u32 {
        self.state.replacements_left(self.plan.replacements)
    }

    /// The progress in a word or two.
    pub(crate) fn label(&self) -> &'static str {
        match (self.state.begun_runs(), self.state.missing()) {
            (0, _) => "planned",
            (_, 0) => "complete",
            _ if self.state.finished => "ended, runs missing",
            _ => "under way",
        }
    }
}

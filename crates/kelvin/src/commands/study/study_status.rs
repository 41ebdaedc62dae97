//! Everything that a study's folder says, read together.

use anyhow::Result;
use kelvin_lab::study::{Deviation, Estimate, Folder, Lock, State, Study, StudyPlan};

/// A study and where it stands.
#[derive(Debug)]
pub(crate) struct StudyStatus {
    /// Its folder.
    pub(crate) folder: Folder,
    /// What is asked.
    pub(crate) study: Study,
    /// Every run.
    pub(crate) plan: StudyPlan,
    /// What was fixed.
    pub(crate) lock: Option<Lock>,
    /// What is not as it was fixed.
    pub(crate) changed: Vec<Deviation>,
    /// What happened.
    pub(crate) state: State,
}

impl StudyStatus {
    /// Reads a folder.
    pub(crate) fn read(folder: Folder) -> Result<Self> {
        let entries = folder.ledger()?;
        Self::with_state(folder, |plan| State::from_entries(plan, &entries))
    }

    /// Reads a folder whose ledger was read already.
    pub(crate) fn with_state(folder: Folder, state: impl FnOnce(&StudyPlan) -> State) -> Result<Self> {
        let study = folder.study()?;
        let plan = StudyPlan::new(&study);
        let lock = folder.lock()?;
        let changed = lock.as_ref().map(|lock| lock.deviations(&study)).transpose()?.unwrap_or_default();
        let state = state(&plan);
        Ok(Self { folder, study, plan, lock, changed, state })
    }

    /// What a run takes.
    pub(crate) fn estimate(&self) -> Estimate {
        Estimate::new(&self.study, &self.state.seconds)
    }

    /// Replacements that are left of the plan's.
    pub(crate) fn replacements_left(&self) -> u32 {
        self.state.replacements_left(self.plan.replacements)
    }

    /// Where it stands, in a word or two.
    pub(crate) fn label(&self) -> &'static str {
        match (self.state.begun_runs(), self.state.missing()) {
            (0, _) => "planned",
            (_, 0) => "complete",
            _ if self.state.finished => "ended, runs missing",
            _ => "under way",
        }
    }
}

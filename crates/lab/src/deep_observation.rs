//! Server instruments that are switched on for one run and restored after it, even if this process is killed
//! in between.

use std::sync::Arc;

use kelvin_database::Engine;
use kelvin_database::target::Target;
use kelvin_observe::engine::{instruments_off, switch_instruments};

use crate::directories;
use crate::error::StoreBenchError;
use crate::undo::{Journal, ReversibleChange};

type Result<T> = std::result::Result<T, StoreBenchError>;

/// Instruments that stay switched on until this is dropped.
pub(crate) struct DeepObservation {
    engine: Arc<dyn Engine>,
    journal: Option<Journal>,
}

impl DeepObservation {
    /// Restores the instruments that an earlier process left on, and switches on those that are off. The sentence is
    /// for the result's notes.
    pub(crate) fn begin(
        engine: &Arc<dyn Engine>,
        target: &Target,
        report: &mut dyn FnMut(&str),
    ) -> Result<(Self, String)> {
        let mut this = Self { engine: Arc::clone(engine), journal: None };
        let before = instruments_off(engine.as_ref())?;
        // In the directory of `kelvin server apply`, whose `restore` finds it.
        let path = directories::settings_journal(target, directories::INSTRUMENTS)?;
        this.journal = Journal::open_left_over(&path).map_err(refused)?;
        if this.journal.is_some() {
            this.restore()?;
            report("the instruments that an earlier run had switched on are switched off again");
            return Self::begin(engine, target, report);
        }
        let consumers = before.iter().filter(|one| one.consumer).count();
        let instruments = before.len() - consumers;
        if before.is_empty() {
            return Ok((this, "observe deep: nothing had to be switched on in the server for it".into()));
        }
        let mut journal = Journal::begin(&path).map_err(refused)?;
        let change = ReversibleChange::Instruments { target: target.to_string(), before: before.clone() };
        journal.about_to(change).map_err(refused)?;
        this.journal = Some(journal);
        // After a partial failure the drop restores them.
        switch_instruments(engine.as_ref(), &before, false)?;
        let note = format!(
            "observe deep: {instruments} instruments and {consumers} consumers of performance_schema were \
             switched on for this run, which costs CPU, and are restored after it"
        );
        Ok((this, note))
    }

    /// Restores the instruments.
    pub(crate) fn end(mut self) -> Result<()> {
        self.restore()
    }

    fn restore(&mut self) -> Result<()> {
        let Some(mut journal) = self.journal.take() else { return Ok(()) };
        for pending in journal.pending().to_vec() {
            if let ReversibleChange::Instruments { before, .. } = &pending.change {
                switch_instruments(self.engine.as_ref(), before, true)?;
                journal.undone(pending.number).map_err(refused)?;
            }
        }
        journal.end().map_err(refused)
    }
}

impl Drop for DeepObservation {
    fn drop(&mut self) {
        // Instruments that cannot be restored stay in the journal; a drop can report nothing.
        let _ = self.restore();
    }
}

fn refused(error: impl std::fmt::Display) -> StoreBenchError {
    StoreBenchError::Refused(format!("observe deep: {error}"))
}

//! A run of a group with all that a summary needs of it.

use kelvin_diagnose::{Evidence, KeyFigure, Severity};
use kelvin_measure::event::Status;
use kelvin_store::{GroupId, RunId, Slot, Store};

use crate::Measured;

/// A run of a group.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The run.
    pub run: RunId,
    /// Where it stands.
    pub slot: Slot,
    /// Why it does not count; none when it does.
    pub void: Option<String>,
    /// Its key figures, the headline first.
    pub figures: Vec<KeyFigure>,
    /// Whether its throughput kept its level.
    pub steady: Steady,
    /// Transactions that failed for good within its window.
    pub failed: u64,
}

/// Whether the throughput of a window kept its level, as the finding `not-steady` has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Steady {
    /// It did.
    Yes,
    /// It did not: the finding in words.
    No(String),
    /// The window was too short to tell, or nobody has looked.
    Unknown,
}

impl Row {
    /// A run that was just made.
    pub fn of(measured: &Measured, slot: &Slot) -> Self {
        Self {
            run: measured.run,
            slot: slot.clone(),
            void: (!measured.counts()).then(|| measured.void.join("; ")),
            figures: measured.figures.clone(),
            steady: Steady::Unknown,
            failed: 0,
        }
    }

    /// Whether it counts.
    pub fn counts(&self) -> bool {
        self.void.is_none()
    }

    /// A figure by its id, or the first; none where it is not known.
    pub fn figure(&self, id: Option<&str>) -> Option<&KeyFigure> {
        match id {
            Some(id) => self.figures.iter().find(|figure| figure.id == id),
            None => self.figures.first(),
        }
    }

    /// Its value.
    pub fn value(&self, id: Option<&str>) -> Option<f64> {
        self.figure(id)?.value
    }
}

/// The runs of a group in their order, from the store.
///
/// # Errors
/// When the store cannot be read or a run in it is damaged.
pub fn rows(store: &Store, group: GroupId) -> kelvin_store::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for member in store.members(group)? {
        let stored = store.load(member.run)?;
        let evidence = Evidence::of(&stored)?;
        // A kelvin that was killed could not say that its last run does not count.
        let unfinished = (stored.status != Status::Complete).then(|| format!("it is {}", stored.state()));
        let steady = kelvin_diagnose::find(&evidence).into_iter().find(|one| one.id == "not-steady");
        rows.push(Row {
            run: member.run,
            slot: member.slot,
            void: member.void.or(unfinished),
            figures: kelvin_diagnose::key_figures(&stored, &evidence, 0, &[])?,
            steady: match steady {
                None => Steady::Yes,
                Some(finding) if finding.severity == Severity::Note => Steady::Unknown,
                Some(finding) => Steady::No(finding.title),
            },
            failed: stored.figures(0)?.all.failed,
        });
    }
    Ok(rows)
}

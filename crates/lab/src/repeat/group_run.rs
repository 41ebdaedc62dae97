//! A run of a group with all that a summary needs of it.

use kelvin_diagnose::{Evidence, KeyFigure, NoisePrice, Severity, judge};
use kelvin_measure::Bounded;
use kelvin_store::{GroupId, GroupKind, GroupSlot, RunId, Store};

use super::RepeatPlan;
use crate::Measured;

/// A run of a group.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupRun {
    /// The run.
    pub run: RunId,
    /// Where it stands.
    pub slot: GroupSlot,
    /// Its state and why it does not count ("void: …"); none when it counts.
    pub void: Option<String>,
    /// Its key figures, the headline first.
    pub figures: Vec<KeyFigure>,
    /// Whether its throughput kept its level.
    pub steady: Steady,
    /// What foreign CPU explains of its figures; none if not examined.
    pub noise: Option<NoisePrice>,
    /// Transactions that failed for good within its window.
    pub failed: u64,
}

/// Whether the throughput of a window kept its level, as the finding `not-steady` has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Steady {
    /// It did.
    Yes,
    /// It did not: the finding as text.
    No(String),
    /// The window was too short, or it was not examined.
    Unknown,
}

impl GroupRun {
    /// A run that was just made.
    pub fn of(measured: &Measured, slot: &GroupSlot) -> Self {
        Self {
            run: measured.run,
            slot: slot.clone(),
            void: measured.judgement.why_not(),
            figures: measured.figures.clone(),
            steady: Steady::Unknown,
            noise: None,
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

    /// Its value, where it is known and not from below only.
    pub fn value(&self, id: Option<&str>) -> Option<f64> {
        self.bounded(id).filter(|value| !value.at_least).map(|value| value.value)
    }

    /// Its value, with whether it is known from below only.
    pub fn bounded(&self, id: Option<&str>) -> Option<Bounded> {
        self.figure(id)?.bounded()
    }
}

/// The runs of a group in their order, from the store.
///
/// # Errors
/// When the store cannot be read or a run in it is damaged.
pub fn group_runs(store: &Store, group: GroupId) -> kelvin_store::Result<Vec<GroupRun>> {
    let mut rows = Vec::new();
    for member in store.members(group)? {
        let stored = store.load(member.run)?;
        let evidence = Evidence::from_run(&stored)?;
        let judged = judge(&stored, &evidence)?;
        let steady = judged.findings.into_iter().find(|one| one.id == "not-steady");
        rows.push(GroupRun {
            run: member.run,
            slot: member.slot,
            void: judged.run.why_not(),
            figures: kelvin_diagnose::key_figures(&stored, &evidence, 0, &[])?,
            steady: match steady {
                None => Steady::Yes,
                Some(finding) if finding.severity == Severity::Note => Steady::Unknown,
                Some(finding) => Steady::No(finding.title),
            },
            noise: kelvin_diagnose::noise(&evidence, 0),
            failed: stored.point_statistics(0)?.all.failed,
        });
    }
    Ok(rows)
}

/// Earlier groups that are examined; each of their runs is read.
const GROUPS: usize = 5;

/// The figure in the newest groups of repeats with the plan's specification, each in the order of its runs: what
/// [`RepeatPlan::earlier`] takes.
///
/// # Errors
/// When the store cannot be read or a run in it is damaged.
pub fn earlier_groups(store: &Store, plan: &RepeatPlan) -> kelvin_store::Result<Vec<Vec<f64>>> {
    let mut groups = store.groups()?;
    groups.sort_by_key(|group| std::cmp::Reverse(group.id));
    let alike = groups.into_iter().filter(|group| {
        let of = || serde_json::from_value::<RepeatPlan>(group.info.body.clone()).ok();
        group.info.kind == GroupKind::Repeat
            && of().is_some_and(|other| other.spec == plan.spec && other.figure == plan.figure)
    });
    let mut found = Vec::new();
    for group in alike.take(GROUPS) {
        let series = super::summary::known(&group_runs(store, group.id)?, plan.figure.as_deref());
        if series.len() > 2 {
            found.push(series);
        }
    }
    Ok(found)
}

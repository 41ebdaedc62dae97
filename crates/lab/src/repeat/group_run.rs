//! A run of a group with the data that a summary needs.

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
    /// Its position in the group.
    pub slot: GroupSlot,
    /// Its state and the reason why it does not count ("void: …"); none when it counts.
    pub void: Option<String>,
    /// Its key figures, the headline first.
    pub figures: Vec<KeyFigure>,
    /// Whether its throughput was steady.
    pub steady: Steady,
    /// The share of its figures that foreign CPU use explains; none if not examined.
    pub noise: Option<NoisePrice>,
    /// Transactions that failed after all retries within its window.
    pub failed: u64,
}

/// Whether the throughput of a window was steady, according to the finding `not-steady`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Steady {
    /// It was steady.
    Yes,
    /// It was not: the finding as text.
    No(String),
    /// The window was too short, or it was not examined.
    Unknown,
}

impl GroupRun {
    /// From a run that was just made.
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

    /// A key figure by its id, or the first one; none where it is unknown.
    pub fn figure(&self, id: Option<&str>) -> Option<&KeyFigure> {
        match id {
            Some(id) => self.figures.iter().find(|figure| figure.id == id),
            None => self.figures.first(),
        }
    }

    /// The value of a key figure; none where it is unknown, or only a lower bound is known.
    pub fn value(&self, id: Option<&str>) -> Option<f64> {
        self.bounded(id).filter(|value| !value.at_least).map(|value| value.value)
    }

    /// The value of a key figure, with whether it is only a lower bound.
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

/// Number of earlier groups that are examined; each of their runs has to be read.
const GROUPS: usize = 5;

/// The metric in the newest groups of repeats with the plan's specification, each in the order of its runs: the value
/// for [`RepeatPlan::earlier`].
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

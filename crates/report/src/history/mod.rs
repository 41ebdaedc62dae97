//! The runs of one branch on one testbed over time: one measure, and the points where its level changed.
//!
//! The runs of a group form one entry, with their median as its value: they were made in succession with the
//! same settings, and are not independent observations of a level. Change points are found by
//! [`kelvin_stats::change_points`]. Void runs are excluded and listed.

mod entries;
mod page;
mod plot;
mod table;
mod text;

use kelvin_diagnose::Better;
use kelvin_measure::text::plural;
use kelvin_stats::change_points::{self, Options};
use kelvin_stats::dependence::independence;
use serde::Serialize;

pub use entries::{HistoryQuery, load, load_each};
pub use page::{page, render as html};
pub use table::table;
pub use text::render as text;

use crate::compare::{Difference, between};

/// One entry: a run, or the counted runs of a group.
#[derive(Debug, Clone, Serialize)]
pub struct HistoryEntry {
    /// Its runs, in ascending order.
    pub runs: Vec<i64>,
    /// Their group.
    pub group: Option<i64>,
    /// Their treatment, if the group has several.
    pub treatment: Option<String>,
    /// When the first of them began.
    pub started: jiff::Timestamp,
    /// The label of the first of them.
    pub label: Option<String>,
    /// The value of the measure: the median of the runs.
    pub value: f64,
    /// Whether the value is a lower bound, because the percentile of a run lies among arrivals without an
    /// answer.
    pub at_least: bool,
    /// The lowest and the highest value of the runs.
    pub range: (f64, f64),
    /// Facts from specification and environment, for each run.
    #[serde(skip)]
    pub(crate) facts: Vec<crate::compare::FactMap>,
}

/// A point where the level changed.
#[derive(Debug, Clone, Serialize)]
pub struct LevelChange {
    /// The first entry of the new level.
    pub index: usize,
    /// Mean between the preceding change point and this one.
    pub before: f64,
    /// Mean between this change point and the next.
    pub after: f64,
    /// p value of the t test between the two levels. It is too small, because the point was selected by a
    /// search.
    pub p: f64,
    /// Whether the change is an improvement; none if unknown.
    pub better: Option<bool>,
    /// Differences in specification and environment since the preceding entry that may be the cause.
    pub changed: Vec<Difference>,
}

impl LevelChange {
    /// The relative change, after over before.
    pub fn ratio(&self) -> f64 {
        self.after / self.before
    }
}

/// One measure of a branch on a testbed.
#[derive(Debug, Clone, Serialize)]
pub struct History {
    /// The branch.
    pub branch: String,
    /// The testbed.
    pub testbed: String,
    /// The workload.
    pub workload: String,
    /// The tenant of a scenario to which the measure belongs; none for other workloads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Id of the measure.
    pub measure: String,
    /// Its name.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// Whether higher or lower is better.
    pub better: Option<Better>,
    /// In chronological order.
    pub entries: Vec<HistoryEntry>,
    /// The change points, in chronological order.
    pub changes: Vec<LevelChange>,
    /// How much entries resemble their neighbours around the levels: a conservative estimate of φ of a
    /// first-order autoregressive process ([`change_points::noise_phi`]). None if change points were not
    /// searched for.
    pub noise_phi: Option<f64>,
    /// Lag-1 autocorrelation of the entries around their levels, and the probability that it is at least as
    /// large in a random order ([`independence`]). None if there are too few entries, or if they are equal.
    pub noise_lag1: Option<(f64, f64)>,
    /// What was left out, and other remarks.
    pub notes: Vec<String>,
}

impl History {
    /// The measure with its tenant: "p99 of tenant oltp".
    pub(crate) fn title(&self) -> String {
        let tenant = self.tenant.as_ref().map_or_else(String::new, |tenant| format!(" of tenant {tenant}"));
        format!("{}{tenant}", self.name)
    }

    /// Finds the change points of the entries.
    pub(crate) fn find_changes(&mut self) {
        if self.too_short() {
            return;
        }
        let values: Vec<f64> = self.entries.iter().map(|entry| entry.value).collect();
        self.noise_phi = Some(change_points::noise_phi(&values));
        let found = change_points::find(&values, &Options::default());
        self.changes = found
            .iter()
            .map(|point| LevelChange {
                index: point.index,
                before: point.before,
                after: point.after,
                p: point.p,
                better: self.better.map(|better| (better == Better::Higher) == (point.after > point.before)),
                changed: self.changed_at(point.index),
            })
            .collect();
        let around = self.levels().into_iter().flat_map(|(from, to, mean)| {
            values.get(from..to).unwrap_or_default().iter().map(move |value| value - mean)
        });
        let found = independence(&around.collect::<Vec<_>>());
        self.noise_lag1 = found.map(|found| (found.lag1, found.p_lag1));
    }

    /// The facts of an entry that differ from those of the preceding entry.
    fn changed_at(&self, index: usize) -> Vec<Difference> {
        let (Some(before), Some(now)) =
            (index.checked_sub(1).and_then(|before| self.entries.get(before)), self.entries.get(index))
        else {
            return Vec::new();
        };
        let mut found = between(&before.facts, &now.facts);
        found.retain(|difference| difference.matters);
        found
    }

    /// The levels between the change points: the first entry, one past the last, and the mean.
    pub(crate) fn levels(&self) -> Vec<(usize, usize, f64)> {
        let ends = self.changes.iter().map(|change| change.index).chain([self.entries.len()]);
        let mut from = 0;
        let mut levels = Vec::new();
        for to in ends {
            let values: Vec<f64> = self.entries[from..to].iter().map(|entry| entry.value).collect();
            if !values.is_empty() {
                levels.push((from, to, values.iter().sum::<f64>() / values.len() as f64));
            }
            from = to;
        }
        levels
    }

    /// Whether there are too few entries to find a change.
    pub(crate) fn too_short(&self) -> bool {
        self.entries.len() < FEWEST
    }
}

/// Fewest entries in which change points are searched for: four per side, as in a comparison of runs.
const FEWEST: usize = 8;

impl LevelChange {
    /// "-4.2 %, worse".
    pub(crate) fn describe(&self) -> String {
        let good = match self.better {
            Some(true) => ", better",
            Some(false) => ", worse",
            None => "",
        };
        format!("{}{good}", crate::compare::percent(self.ratio()))
    }

    /// What changed with it, as text.
    pub(crate) fn cause(&self) -> String {
        if self.changed.is_empty() {
            return "nothing else recorded changed: check the code under test, the data and the machine"
                .into();
        }
        let words = |d: &Difference| {
            format!(
                "{}: {} → {}",
                d.name,
                Difference::describe_values(&d.a),
                Difference::describe_values(&d.b)
            )
        };
        self.changed.iter().map(words).collect::<Vec<_>>().join("; ")
    }
}

impl HistoryEntry {
    /// "run 12", "runs 12, 13, 14 (group 3)".
    pub(crate) fn name(&self) -> String {
        let word = plural(self.runs.len(), "run", "runs");
        let treatment = self.treatment.as_ref().map_or_else(String::new, |t| format!("/{t}"));
        let group = self.group.map_or_else(String::new, |group| format!(" (group {group}{treatment})"));
        format!("{word} {}{group}", crate::compare::join_runs(&self.runs))
    }
}

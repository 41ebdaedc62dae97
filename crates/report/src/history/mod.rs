//! The runs of one branch on one testbed over time: one measure, and where its level changed.
//!
//! The runs of a group stand as one entry, at their median: they were made at once, of the same thing, and would
//! otherwise pass for so many independent observations of a level. Change points are those of
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

/// One entry: a run, or the runs of a group that count.
#[derive(Debug, Clone, Serialize)]
pub struct HistoryEntry {
    /// Its runs, the oldest first.
    pub runs: Vec<i64>,
    /// The group that they are of.
    pub group: Option<i64>,
    /// What was done to them, where the group has several treatments.
    pub treatment: Option<String>,
    /// When the first of them began.
    pub started: jiff::Timestamp,
    /// The user's name for the first of them.
    pub label: Option<String>,
    /// The measure: the median of the runs.
    pub value: f64,
    /// Whether it is this or more: the percentile of a run lies among arrivals without an answer.
    pub at_least: bool,
    /// The lowest and the highest of the runs.
    pub range: (f64, f64),
    /// Facts of specification and environment, of each run.
    #[serde(skip)]
    pub(crate) facts: Vec<crate::compare::FactMap>,
}

/// A place where the level changed.
#[derive(Debug, Clone, Serialize)]
pub struct LevelChange {
    /// The first entry of the new level.
    pub index: usize,
    /// Mean from the change point before to this one.
    pub before: f64,
    /// Mean from this one to the next.
    pub after: f64,
    /// p of the t test between the two; of a place that was searched for, so it is small wherever a point stands.
    pub p: f64,
    /// Whether it is for the better; none if unknown.
    pub better: Option<bool>,
    /// What of specification and environment changed with the entry, that can be a cause.
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
    /// The tenant of a scenario whose measure it is; none of another workload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Id of the measure.
    pub measure: String,
    /// Its name.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// Which way it is better.
    pub better: Option<Better>,
    /// In the order of time.
    pub entries: Vec<HistoryEntry>,
    /// Where the level changed, in the order of time.
    pub changes: Vec<LevelChange>,
    /// How much entries resemble their neighbours around the levels: φ of an autoregressive process of first order, on the
    /// safe side ([`change_points::noise_phi`]). None where no change was looked for.
    pub noise_phi: Option<f64>,
    /// Lag-1 autocorrelation of the entries around their levels, and how often chance alone makes it as large: of all
    /// orders ([`independence`]). None where they are too few, or equal.
    pub noise_lag1: Option<(f64, f64)>,
    /// What was left out, and what else is there.
    pub notes: Vec<String>,
}

impl History {
    /// The measure with the tenant whose it is: "p99 of tenant oltp".
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

    /// What of an entry's facts is not what it was in the entry before.
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

    /// The levels between the change points: first entry, one past the last, and the mean of it.
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

    /// Fewest entries with which a change can be found.
    pub(crate) fn too_short(&self) -> bool {
        self.entries.len() < FEWEST
    }
}

/// Entries below which no change point is looked for: four a side, as in a comparison of runs.
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

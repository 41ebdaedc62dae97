//! Changes that were tried for a run.

use kelvin_store::{RunId, Store};
use serde::{Deserialize, Serialize};

use crate::Result;

/// A change that `kelvin advise --prove` compared with the run as it was. It is stored with the comparison's group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TriedChange {
    /// The group with the comparison.
    pub group: i64,
    /// The finding that it comes from.
    pub finding: String,
    /// The change in one line.
    pub title: String,
    /// How much it could gain at most, by its bound.
    pub bound: String,
    /// The judged figure, such as "NOPM", and its geometric means without the change and with it; none without a complete block.
    #[serde(default)]
    pub figures: Option<ComparedMeans>,
    /// Whether the comparison decided: not where no change is shown, or too few blocks were complete.
    #[serde(default)]
    pub decided: bool,
    /// Whether the next changes of its session were tried with it.
    #[serde(default)]
    pub kept: bool,
    /// What came of it: the verdict, the effect and its 95 % interval.
    pub answer: String,
    /// Other figures that differ; empty where none does.
    pub others: String,
    /// Waits that changed with it, and whether they were a limit.
    #[serde(default)]
    pub waits: Vec<String>,
    /// Runs and time that it took.
    pub cost: String,
}

/// A figure without a change and with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ComparedMeans {
    /// Its name.
    pub figure: String,
    /// Without.
    pub before: f64,
    /// With.
    pub after: f64,
}

impl TriedChange {
    /// Those of a run, in the order in which they were tried.
    pub(super) fn of(store: &Store, run: RunId) -> Result<Vec<Self>> {
        let groups = store.groups_of_advice(run)?;
        // What an older or a newer Kelvin wrote, and cannot be read here, is left out.
        let read = |body: &serde_json::Value| serde_json::from_value(body.get("answer")?.clone()).ok();
        Ok(groups.iter().filter_map(|group| read(&group.info.body)).collect())
    }
}

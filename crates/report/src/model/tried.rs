//! Changes that were tried for a run.

use kelvin_store::{RunId, Store};
use serde::{Deserialize, Serialize};

use crate::Result;

/// A change that `kelvin advise --prove` compared with the unchanged run. It is stored in the comparison's
/// group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TriedChange {
    /// The group with the comparison.
    pub group: i64,
    /// The finding that suggested it.
    pub finding: String,
    /// The change in one line.
    pub title: String,
    /// Upper bound of the gain.
    pub bound: String,
    /// The judged metric, such as "NOPM", and its geometric means without and with the change; none without a
    /// complete block.
    #[serde(default)]
    pub figures: Option<ComparedMeans>,
    /// Whether the comparison was conclusive: not if no change is shown or too few blocks were complete.
    #[serde(default)]
    pub decided: bool,
    /// Whether the session's next changes were tried on top of it.
    #[serde(default)]
    pub kept: bool,
    /// The result: the verdict, the effect and its 95 % interval.
    pub answer: String,
    /// Other metrics that differ; empty if none does.
    pub others: String,
    /// Waits that changed, and whether they were a limit.
    #[serde(default)]
    pub waits: Vec<String>,
    /// The runs and the time it took.
    pub cost: String,
}

/// A metric without and with a change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ComparedMeans {
    /// Its name.
    pub figure: String,
    /// Geometric mean without the change.
    pub before: f64,
    /// Geometric mean with it.
    pub after: f64,
}

impl TriedChange {
    /// The changes tried for a run, in order.
    pub(super) fn of(store: &Store, run: RunId) -> Result<Vec<Self>> {
        let groups = store.groups_of_advice(run)?;
        // Answers of another Kelvin version that cannot be read are omitted.
        let read = |body: &serde_json::Value| serde_json::from_value(body.get("answer")?.clone()).ok();
        Ok(groups.iter().filter_map(|group| read(&group.info.body)).collect())
    }
}

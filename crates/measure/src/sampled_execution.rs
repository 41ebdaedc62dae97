//! What one execution of a load's statement for its plan (`EXPLAIN (ANALYZE)`) showed.

use serde::{Deserialize, Serialize};

/// One execution of a statement, or why there was none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SampledExecution {
    /// It was not executed, for this reason.
    Refused(String),
    /// It was executed in a transaction that was rolled back.
    Executed {
        /// Its time in milliseconds, with the counting of rows.
        took_ms: f64,
        /// Nodes with ten times as many or as few rows as the planner expected, in the plan's order.
        misestimates: Vec<MisestimatedNode>,
    },
}

/// A node with another number of rows than the planner expected.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MisestimatedNode {
    /// "Seq Scan on public.orders".
    pub node: String,
    /// Its conditions without their values.
    pub condition: String,
    /// The table that it reads, with its schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relation: Option<String>,
    /// The columns of the table that it compares with values, on PostgreSQL for equality.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
    /// Whether the table has a statistics object on all of these columns (PostgreSQL), or statistics of one of them.
    #[serde(default)]
    pub has_statistics: bool,
    /// Rows that the planner expected, in each loop.
    pub estimated: f64,
    /// Rows that there were, in each loop.
    pub actual: f64,
    /// How often it was executed.
    pub loops: f64,
    /// Pages that it and the nodes below it read from the server's buffers or into them; 0 where they are not counted.
    pub pages: u64,
}

impl MisestimatedNode {
    /// How many times as many rows as expected there were, or as many expected as there were; no number of rows is below one.
    pub fn factor(&self) -> f64 {
        let (estimated, actual) = (self.estimated.max(1.0), self.actual.max(1.0));
        (estimated / actual).max(actual / estimated)
    }
}

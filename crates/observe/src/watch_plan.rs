//! How a database is watched.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How closely to watch.
#[derive(Debug, Clone)]
pub struct WatchPlan {
    /// Looks at the sessions a second, 1 to 100.
    pub looks: u32,
    /// Time between two readings of the counters.
    pub figures: Duration,
    /// Statements to report for each point, those with the most time.
    pub statements: usize,
    /// Whether the extension `pg_stat_statements` may be created in the database where it is only preloaded. For
    /// servers that are kelvin's own.
    pub create_extension: bool,
    /// Whether sessions of other applications are distinguished from the load's, which connect as we do. Where there is
    /// no load of ours, all are the ones to watch.
    pub apart: bool,
    /// Whether the texts of the sessions' statements are sent as they come, without their values. Statements
    /// to which the server gives no identifier are then distinguished by their text.
    pub texts: bool,
    /// Whether the statements with the most time are executed once more when the window is over, for the rows of their plans (PostgreSQL, MySQL, MariaDB).
    pub explain: Option<ExplainSample>,
}

/// Which statements are executed for their plans, in a transaction that is rolled back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExplainSample {
    /// Those that only read.
    Reads,
    /// Also those that change data (PostgreSQL).
    Writes,
}

impl Default for WatchPlan {
    fn default() -> Self {
        Self {
            looks: 10,
            figures: Duration::from_secs(1),
            statements: 10,
            create_extension: false,
            apart: false,
            texts: false,
            explain: None,
        }
    }
}

//! What full table scans read.

use kelvin_measure::labels;
use kelvin_measure::text::{rate, significant};
use serde::Serialize;

/// What full table scans read within the window.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct TableReads {
    /// Rows per elapsed second.
    pub rows_per_second: f64,
    /// Bytes of the scanned tables per elapsed second, by their sizes before the load; none if the sizes are
    /// unknown.
    pub table_bytes_per_second: Option<f64>,
}

impl TableReads {
    /// From the counters of a workload that counts rows read, over `seconds` seconds; `None` for other
    /// workloads.
    pub(super) fn of(names: &[String], counters: &[u64], seconds: f64) -> Option<Self> {
        let per_second = |name: &str| {
            let count = counters.get(names.iter().position(|counter| counter == name)?)?;
            (seconds > 0.0).then(|| *count as f64 / seconds)
        };
        Some(Self {
            rows_per_second: per_second(labels::ROWS_READ)?,
            table_bytes_per_second: per_second(labels::TABLE_BYTES_READ),
        })
    }

    /// "530,000 rows/s · 160 MiB/s".
    pub(crate) fn describe(&self) -> String {
        let bytes = self.table_bytes_per_second.map(|bytes| bytes / f64::from(1 << 20));
        let bytes =
            bytes.map_or_else(String::new, |mebibytes| format!(" · {} MiB/s", significant(mebibytes)));
        format!("{} rows/s{bytes}", rate(Some(self.rows_per_second)))
    }
}

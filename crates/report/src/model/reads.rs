//! What scans of whole tables read.

use kelvin_measure::labels;
use kelvin_measure::text::{rate, significant};
use serde::Serialize;

/// What scans of whole tables read within the window.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct TableReads {
    /// Rows per elapsed second.
    pub rows_per_second: f64,
    /// Bytes of the tables, as large as they were before the load, per elapsed second; none where the sizes are not known.
    pub table_bytes_per_second: Option<f64>,
}

impl TableReads {
    /// By the counters of a workload that has these, over so many seconds.
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

//! Rows of the latency tables and the percentile curves.

use kelvin_measure::event::KindCounts;
use kelvin_measure::{Histogram, LatencySummary};
use serde::Serialize;

/// A row of the latency table. Which time it is, service or response, says the table it stands
/// in; none where the samples are too few for the figure.
#[derive(Debug, Clone, Serialize)]
pub struct LatencyRow {
    /// Transaction type, or "all".
    pub kind: String,
    /// Committed.
    pub committed: u64,
    /// Rolled back by the workload's rules.
    pub rolled_back: u64,
    /// Given up after an error; in no latency.
    pub failed: u64,
    /// Repetitions.
    pub retries: u64,
    /// Exact mean.
    pub mean_us: Option<f64>,
    /// Half were faster.
    pub p50_us: Option<f64>,
    /// 95 % were faster.
    pub p95_us: Option<f64>,
    /// 99 % were faster.
    pub p99_us: Option<f64>,
    /// 99.9 % were faster.
    pub p999_us: Option<f64>,
    /// The slowest.
    pub max_us: Option<f64>,
    /// Longer than an hour, recorded as an hour.
    pub clamped: u64,
}

impl LatencyRow {
    /// The row's count in the table: transactions with a latency.
    pub fn count(&self) -> u64 {
        self.committed + self.rolled_back
    }
}

/// Latency over percentile of one transaction type.
#[derive(Debug, Clone, Serialize)]
pub struct Distribution {
    /// Transaction type.
    pub kind: String,
    /// Per cent and microseconds, ascending; only percentiles that the samples support.
    pub points: Vec<(f64, f64)>,
}

pub(super) fn row(name: &str, counts: &KindCounts, latency: &Histogram) -> LatencyRow {
    let summary = latency.summary();
    LatencyRow {
        kind: name.into(),
        committed: counts.committed,
        rolled_back: counts.rolled_back,
        failed: counts.failed,
        retries: counts.retries,
        mean_us: summary.mean.map(|ns| ns / 1e3),
        p50_us: us(&summary, 0),
        p95_us: us(&summary, 1),
        p99_us: us(&summary, 2),
        p999_us: us(&summary, 3),
        max_us: summary.max.map(|ns| ns as f64 / 1e3),
        clamped: latency.clamped(),
    }
}

pub(super) fn us(summary: &LatencySummary, percentile: usize) -> Option<f64> {
    summary.percentiles[percentile].map(|ns| ns as f64 / 1e3)
}

/// Percentiles of the curve: closer together towards the tail, where the interesting part is.
pub(super) fn curve(latency: &Histogram) -> Vec<(f64, f64)> {
    let mut points = Vec::new();
    let mut beyond: f64 = 100.0;
    while beyond > 0.0005 {
        let percent = 100.0 - beyond;
        if let Some(ns) = latency.percentile(percent) {
            points.push((percent, ns as f64 / 1e3));
        }
        beyond /= 1.3;
    }
    points
}

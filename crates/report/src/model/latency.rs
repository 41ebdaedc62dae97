//! Rows of the latency tables and the percentile curves.

use kelvin_measure::event::{KindCounts, Series, SeriesRole};
use kelvin_measure::{Bounded, CensoredTimes, LatencySummary, PERCENTILES};
use kelvin_store::PointStatistics;
use serde::Serialize;

/// A row of the latency table: service or response times, depending on the table. A value is none if the
/// samples are too few for it.
#[derive(Debug, Clone, Serialize)]
pub struct LatencyRow {
    /// Transaction type, or "all".
    pub kind: String,
    /// Committed transactions.
    pub committed: u64,
    /// Transactions rolled back by the workload's rules.
    pub rolled_back: u64,
    /// Transactions that failed for good. They have no service time; among response times they count as
    /// longer than all others.
    pub failed: u64,
    /// Retries.
    pub retries: u64,
    /// Mean, in microseconds like all times of this row.
    pub mean_us: Option<Bounded>,
    /// Median.
    pub p50_us: Option<Bounded>,
    /// 95th percentile.
    pub p95_us: Option<Bounded>,
    /// 99th percentile.
    pub p99_us: Option<Bounded>,
    /// 99.9th percentile.
    pub p999_us: Option<Bounded>,
    /// Maximum.
    pub max_us: Option<Bounded>,
    /// Standard deviation; none if some times are only lower bounds.
    pub stddev_us: Option<f64>,
    /// Names of the values that are only lower bounds, such as "max_us".
    pub at_least: Vec<&'static str>,
    /// Times over an hour, recorded as an hour.
    pub clamped: u64,
    /// For response times: arrivals of the window without an answer (failed, refused, still waiting at the
    /// end, or cut off by it), in per cent of all arrivals. They count as longer than all others. 0 for
    /// service times.
    pub unanswered_percent: f64,
    /// Whether percentiles are missing because fewer than ten samples lie beyond them.
    #[serde(skip)]
    pub(crate) few: bool,
}

impl LatencyRow {
    /// The number of transactions with a latency, as shown in the table.
    pub fn count(&self) -> u64 {
        self.committed + self.rolled_back
    }

    /// Mean, percentiles and maximum, in the order of the tables.
    pub(crate) fn times(&self) -> [Option<Bounded>; 6] {
        [self.mean_us, self.p50_us, self.p95_us, self.p99_us, self.p999_us, self.max_us]
    }
}

/// The percentile curve of one transaction type.
#[derive(Debug, Clone, Serialize)]
pub struct Distribution {
    /// Transaction type.
    pub kind: String,
    /// Percentiles in per cent and latencies in microseconds, ascending; only percentiles that the samples
    /// support.
    pub points: Vec<(f64, f64)>,
}

/// The row for `counts` with these times.
pub(super) fn row(name: &str, counts: &KindCounts, times: CensoredTimes<'_>) -> LatencyRow {
    let us = |value: Option<Bounded>| value.map(|nanos| nanos.times(1e-3));
    let percentile = |percent: f64| us(times.percentile(percent));
    let mut row = LatencyRow {
        kind: name.into(),
        committed: counts.committed,
        rolled_back: counts.rolled_back,
        failed: counts.failed,
        retries: counts.retries,
        mean_us: us(times.mean()),
        p50_us: percentile(50.0),
        p95_us: percentile(95.0),
        p99_us: percentile(99.0),
        p999_us: percentile(99.9),
        max_us: us(times.max()),
        stddev_us: times.answered().deviation().filter(|_| times.unanswered() == 0.0).map(|ns| ns / 1e3),
        at_least: Vec::new(),
        clamped: times.answered().clamped(),
        unanswered_percent: times.unanswered_percent(),
        few: PERCENTILES.iter().any(|percent| times.too_few(*percent)),
    };
    let names = ["mean_us", "p50_us", "p95_us", "p99_us", "p999_us", "max_us"];
    let bounds =
        names.into_iter().zip(row.times()).filter(|(_, time)| time.is_some_and(|time| time.at_least));
    row.at_least = bounds.map(|(name, _)| name).collect();
    row
}

pub(super) fn us(summary: &LatencySummary, percentile: usize) -> Option<f64> {
    summary.percentiles[percentile].map(|ns| ns as f64 / 1e3)
}

/// Points of the percentile curve, closer together in the tail. Percentiles that fall among unanswered
/// arrivals have none.
pub(super) fn curve(times: CensoredTimes<'_>) -> Vec<(f64, f64)> {
    let mut points = Vec::new();
    let mut beyond: f64 = 100.0;
    while beyond > 0.0005 {
        let percent = 100.0 - beyond;
        if let Some(time) = times.percentile(percent).filter(|time| !time.at_least) {
            points.push((percent, time.value / 1e3));
        }
        beyond /= 1.3;
    }
    points
}

/// The latencies by transaction type of a source, as its clients see them. A tenant's name is removed from
/// its types.
pub(super) fn types_of_source(
    series: &[Series],
    figures: &PointStatistics,
    tenant: Option<&str>,
) -> Vec<LatencyRow> {
    let mut rows = if figures.open_loop { responses(series, figures) } else { services(series, figures) };
    rows.retain(|row| row.count() + row.failed > 0);
    let named = |kind: &str| Some(kind.strip_prefix(tenant?)?.strip_prefix(": ")?.to_owned());
    for row in &mut rows {
        row.kind = named(&row.kind).unwrap_or_else(|| std::mem::take(&mut row.kind));
    }
    rows
}

/// The rows of service times.
pub(super) fn services(series: &[Series], figures: &PointStatistics) -> Vec<LatencyRow> {
    transactions(series, &figures.kinds)
        .map(|(name, k)| row(&name.name, k, CensoredTimes::all_answered(&k.latency)))
        .collect()
}

pub(super) fn transactions<'a>(
    series: &'a [Series],
    kinds: &'a [KindCounts],
) -> impl Iterator<Item = (&'a Series, &'a KindCounts)> {
    series.iter().zip(kinds).filter(|(s, _)| s.is_transaction())
}

/// The rows of response times, named after their transactions. They count the arrivals due within the window.
pub(super) fn responses(series: &[Series], figures: &PointStatistics) -> Vec<LatencyRow> {
    let found = series.iter().zip(&figures.kinds).filter_map(|(s, k)| match s.role {
        SeriesRole::Response { of } => Some((usize::from(of), k)),
        _ => None,
    });
    found.filter_map(|(of, k)| Some(row(&series.get(of)?.name, k, figures.response_times_of(k)))).collect()
}

//! Rows of the latency tables and the percentile curves.

use kelvin_measure::event::{KindCounts, Series, SeriesRole};
use kelvin_measure::{Bounded, CensoredTimes, LatencySummary, PERCENTILES};
use kelvin_store::PointStatistics;
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
    /// Given up after an error. They have no service time; among response times they count as longer than all others.
    pub failed: u64,
    /// Repetitions.
    pub retries: u64,
    /// Mean.
    pub mean_us: Option<Bounded>,
    /// Half were faster.
    pub p50_us: Option<Bounded>,
    /// 95 % were faster.
    pub p95_us: Option<Bounded>,
    /// 99 % were faster.
    pub p99_us: Option<Bounded>,
    /// 99.9 % were faster.
    pub p999_us: Option<Bounded>,
    /// The slowest.
    pub max_us: Option<Bounded>,
    /// Standard deviation; none where some are known from below only.
    pub stddev_us: Option<f64>,
    /// Which of these are known from below only, by their names, such as "max_us".
    pub at_least: Vec<&'static str>,
    /// Longer than an hour, recorded as an hour.
    pub clamped: u64,
    /// Of response times: arrivals of the window without an answer (failed, refused, still waiting at the end, cut off by
    /// it) in per cent of all. They count as having taken longer than all others. 0 for service times.
    pub unanswered_percent: f64,
    /// Whether percentiles are none because fewer than ten of the row's lie beyond them.
    #[serde(skip)]
    pub(crate) few: bool,
}

impl LatencyRow {
    /// The row's count in the table: transactions with a latency.
    pub fn count(&self) -> u64 {
        self.committed + self.rolled_back
    }

    /// Mean, percentiles and maximum in the order of the tables.
    pub(crate) fn times(&self) -> [Option<Bounded>; 6] {
        [self.mean_us, self.p50_us, self.p95_us, self.p99_us, self.p999_us, self.max_us]
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

/// The row of `counts`, whose times these are.
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

/// Percentiles of the curve: closer together towards the tail, where the interesting part is; none among what had no
/// answer.
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

/// The rows of the types of transactions that a source did, as its clients see them; a tenant's without its name.
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

/// The rows of response times under the names of their transactions. Their counts are their own: of the arrivals
/// that were to start within the window.
pub(super) fn responses(series: &[Series], figures: &PointStatistics) -> Vec<LatencyRow> {
    let found = series.iter().zip(&figures.kinds).filter_map(|(s, k)| match s.role {
        SeriesRole::Response { of } => Some((usize::from(of), k)),
        _ => None,
    });
    found.filter_map(|(of, k)| Some(row(&series.get(of)?.name, k, figures.response_times_of(k)))).collect()
}

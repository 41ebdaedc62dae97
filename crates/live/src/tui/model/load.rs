//! Counts and latencies of the virtual users, for the newest seconds and for the window.

use std::collections::{BTreeMap, VecDeque};

use kelvin_measure::event::{Arrivals, ErrorCount, LoadPart, Second, Series, SeriesRole};
use kelvin_measure::{Histogram, Nanos};

use super::super::super::{arrivals_after, status::SLIVER};

/// Number of seconds over which "now" is averaged for values that vary strongly.
pub(crate) const RECENT: usize = 5;

/// Largest number of kinds of errors shown separately; the others are totalled.
const MOST_ERRORS: usize = 50;

/// The percentiles of the table, in per cent, followed by the maximum.
pub(crate) const SHOWN: [f64; 3] = [50.0, 95.0, 99.0];

/// The percentiles of [`SHOWN`] and the maximum.
fn figures(histogram: &Histogram) -> [Option<Nanos>; 4] {
    let [p50, p95, p99] = SHOWN.map(|percent| histogram.percentile(percent));
    [p50, p95, p99, histogram.max()]
}

/// Totals of one series over the window so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct KindSum {
    pub(crate) good: u64,
    pub(crate) failed: u64,
    pub(crate) retries: u64,
    latency: Histogram,
    /// The 95th percentile of its latency, in nanoseconds.
    pub(crate) p95: Option<Nanos>,
    recent: VecDeque<(i64, u64, Histogram)>,
}

impl KindSum {
    /// Adds a second, or a later addition to one.
    fn newest(&mut self, second: i64, good: u64, latency: &Histogram) {
        match self.recent.iter_mut().find(|(at, ..)| *at == second) {
            Some((_, sum, histogram)) => {
                *sum += good;
                histogram.add(latency);
            }
            None => self.recent.push_back((second, good, latency.clone())),
        }
        if self.recent.len() > RECENT {
            self.recent.pop_front();
        }
    }

    /// The count of the newest second, and the percentiles of [`SHOWN`] and the maximum over the last
    /// [`RECENT`] seconds.
    pub(crate) fn now(&self) -> (u64, [Option<Nanos>; 4]) {
        let mut sum = Histogram::new();
        self.recent.iter().for_each(|(_, _, histogram)| sum.add(histogram));
        (self.recent.back().map_or(0, |(_, good, _)| *good), figures(&sum))
    }
}

/// One kind of error over the point.
#[derive(Debug, Clone)]
pub(crate) struct ErrorSum {
    pub(crate) count: u64,
    pub(crate) failed: u64,
    pub(crate) message: String,
}

/// The load in the point so far.
#[derive(Debug, Default)]
pub(crate) struct Load {
    /// The series of a second's counts.
    pub(crate) series: Vec<Series>,
    by_second: bool,
    open: bool,
    recent: VecDeque<(i64, Histogram)>,
    window: Histogram,
    /// Latencies of the last [`RECENT`] seconds and of the window: p50, p95, p99, maximum.
    pub(crate) latency: [[Option<Nanos>; 4]; 2],
    /// Totals by series.
    pub(crate) kinds: Vec<KindSum>,
    /// Length of the window so far, in seconds, including the fraction of its last second.
    pub(crate) seconds: f64,
    /// The final length of the window, once known.
    length: Option<f64>,
    /// Headline transactions of the window.
    pub(crate) headline: u64,
    /// Headline transactions of the newest second.
    pub(crate) now: u64,
    newest: Option<i64>,
    /// Errors by class and code, and the total of the others.
    pub(crate) errors: BTreeMap<(String, String), ErrorSum>,
    pub(crate) other_errors: u64,
    /// Arrivals of the newest second; the refused ones are totalled over the point.
    pub(crate) arrivals: Option<Arrivals>,
}

/// Whether the latencies of a role are shown: response times in an open loop, otherwise service times.
fn shows(role: SeriesRole, open: bool) -> bool {
    match role {
        SeriesRole::Transaction => !open,
        SeriesRole::Response { .. } => open,
        SeriesRole::Statement { .. } | SeriesRole::Lag => false,
    }
}

/// The values of one second, for the timeline.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Came {
    pub(super) headline: u64,
    pub(super) latency: [Option<Nanos>; 4],
}

impl Load {
    /// `by_second` is for I/O jobs, whose series are those of all phases: only the seconds of a phase show
    /// whether it has a rate.
    pub(super) fn new(series: Vec<Series>, by_second: bool) -> Self {
        let kinds = vec![KindSum::default(); series.len()];
        let kept = series.iter().any(|series| matches!(series.role, SeriesRole::Response { .. }));
        Self { series, kinds, by_second, open: kept && !by_second, ..Self::default() }
    }

    /// The window has closed and was this long, in seconds.
    pub(super) fn close(&mut self, length: f64) {
        self.length = Some(length);
    }

    /// Whether latencies are response times, which start at the scheduled time.
    pub(crate) fn is_open(&self) -> bool {
        self.open
    }

    /// Whether the latencies of a role are shown.
    pub(super) fn shows(&self, role: SeriesRole) -> bool {
        shows(role, self.open)
    }

    /// The newest second of the load.
    pub(crate) fn newest(&self) -> Option<i64> {
        self.newest
    }

    /// Whether all transactions of a second have response times.
    fn responds(&self, second: &Second) -> bool {
        let (mut good, mut answered) = (0, 0);
        for (series, counts) in self.series.iter().zip(&second.kinds) {
            match series.role {
                SeriesRole::Transaction => good += counts.good(),
                SeriesRole::Response { .. } => answered += counts.latency.count(),
                SeriesRole::Statement { .. } | SeriesRole::Lag => {}
            }
        }
        answered > 0 && answered >= good
    }

    /// Adds a complete second, or a later addition to one.
    pub(super) fn second(&mut self, second: &Second) -> Came {
        if self.by_second {
            self.open = self.responds(second);
        }
        let open = self.open;
        let from = second.second as f64;
        let width = match (second.part, self.length) {
            (LoadPart::Measured, Some(length)) => (length - from).clamp(0.0, 1.0),
            _ => 1.0,
        };
        let (mut latency, mut headline) = (Histogram::new(), 0);
        for ((series, counts), sum) in self.series.iter().zip(&second.kinds).zip(&mut self.kinds) {
            if series.role.counts_in(second.part) {
                sum.good += counts.good();
                sum.failed += counts.failed;
                sum.retries += counts.retries;
                sum.latency.add(&counts.latency);
                sum.p95 = sum.latency.percentile(95.0);
            }
            if width >= SLIVER {
                sum.newest(second.second, counts.good(), &counts.latency);
            }
            if series.role == SeriesRole::Transaction && series.headline {
                headline += counts.committed;
            }
            if shows(series.role, open) {
                latency.add(&counts.latency);
                // As in the report, response times count even if they end after the window.
                if series.role.counts_in(second.part) {
                    self.window.add(&counts.latency);
                }
            }
        }
        if second.part == LoadPart::Measured {
            self.seconds = self.seconds.max(from + width);
            self.headline += headline;
        }
        let recent = self.recent.iter_mut().find(|(at, _)| *at == second.second);
        let added = if let Some((_, sum)) = recent {
            sum.add(&latency);
            figures(sum)
        } else {
            let figures = figures(&latency);
            self.recent.push_back((second.second, latency));
            figures
        };
        if self.recent.len() > RECENT {
            self.recent.pop_front();
        }
        let mut recent = Histogram::new();
        self.recent.iter().for_each(|(_, histogram)| recent.add(histogram));
        self.latency = [figures(&recent), figures(&self.window)];
        match self.newest {
            Some(newest) if newest == second.second && second.part != LoadPart::Tail => self.now += headline,
            Some(newest) if newest > second.second => {}
            // The last second of the load stays visible after the users have stopped.
            _ if second.part == LoadPart::Tail || width < SLIVER => {}
            _ => (self.newest, self.now) = (Some(second.second), headline),
        }
        Came { headline, latency: added }
    }

    pub(super) fn error(&mut self, error: &ErrorCount) {
        let key = (error.class.clone(), error.code.clone());
        if self.errors.len() >= MOST_ERRORS && !self.errors.contains_key(&key) {
            self.other_errors += error.count;
            return;
        }
        let sum = self.errors.entry(key).or_insert_with(|| ErrorSum {
            count: 0,
            failed: 0,
            message: error.message.clone(),
        });
        sum.count += error.count;
        sum.failed += if error.retried { 0 } else { error.count };
    }

    pub(super) fn arrivals(&mut self, new: &Arrivals) {
        self.arrivals = Some(arrivals_after(&self.arrivals.unwrap_or_default(), new));
    }

    /// Errors of any kind, including those that a retry recovered.
    pub(crate) fn all_errors(&self) -> u64 {
        self.errors.values().map(|sum| sum.count).sum::<u64>() + self.other_errors
    }

    /// The series of the selected roles with their totals, in descending order.
    pub(crate) fn top(&self, of: impl Fn(SeriesRole) -> bool) -> Vec<(&str, &KindSum)> {
        let mut top: Vec<_> = self
            .series
            .iter()
            .zip(&self.kinds)
            .filter(|(series, _)| of(series.role))
            .map(|(series, sum)| (series.name.as_str(), sum))
            .collect();
        top.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.good));
        top
    }
}

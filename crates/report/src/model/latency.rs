//! Rows of the latency tables and the percentile curves.

use kelvin_measure::event::KindCounts;
use kelvin_measure::{Histogram, LatencySummary, PERCENTILES};
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
    /// Of response times: arrivals without an answer (refused, or waiting when the window closed) in per cent of
    /// those with a time and those without. They count as having taken longer than all others: the percentiles
    /// are those of all arrivals, and mean and maximum are not known. 0 for service times.
    pub unanswered_percent: f64,
    /// Why percentiles are none.
    #[serde(skip)]
    pub(crate) missing: Missing,
}

/// Why percentiles of a row are none.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Missing {
    /// Fewer than ten arrivals lie beyond one.
    pub(crate) few: bool,
    /// One lies among the arrivals that had no answer.
    pub(crate) unanswered: bool,
}

/// How many of the arrivals of an open loop had an answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Answers {
    /// Those with a response time in per one of them and of those that never got one.
    share: f64,
}

impl Answers {
    /// Of a closed loop, and of service times: what never started is not among them.
    pub(super) const ALL: Self = Self { share: 1.0 };

    /// `answered` arrivals have a response time and `unanswered` were refused or still waited. Those that failed
    /// or that the closing cut off are neither.
    pub(super) fn of(answered: u64, unanswered: u64) -> Self {
        if unanswered == 0 {
            return Self::ALL;
        }
        Self { share: answered as f64 / (answered as f64 + unanswered as f64) }
    }

    fn complete(self) -> bool {
        self.share >= 1.0
    }

    /// How many arrivals there were, answered or not, of which `times` are the answered.
    fn arrivals(self, times: &Histogram) -> f64 {
        times.count() as f64 / self.share
    }

    /// The time at a percentile of all arrivals, of the times of those that were answered: those that were not
    /// are longer, so that it is their (p/share)-th percentile. None when it lies beyond them, and when fewer
    /// than ten arrivals lie beyond it.
    fn percentile(self, times: &Histogram, percent: f64) -> Option<u64> {
        if self.complete() {
            return times.percentile(percent);
        }
        let all = self.arrivals(times);
        if all.is_nan() || few(all, percent) {
            return None;
        }
        // Forgives the rounding of the division by the share.
        let rank = (all * percent / 100.0 - 1e-6).ceil() as u64;
        let mut counted = 0;
        let reached = times.buckets().find(|(_, count)| {
            counted += count;
            counted >= rank
        });
        reached.map(|(ns, _)| ns)
    }

    /// Why the percentiles that are not given are not.
    fn missing(self, times: &Histogram, given: [Option<f64>; PERCENTILES.len()]) -> Missing {
        let mut missing = Missing::default();
        for (percent, _) in PERCENTILES.iter().zip(given).filter(|(_, given)| given.is_none()) {
            // Without any answer their number is none.
            if !self.complete() && (times.is_empty() || !few(self.arrivals(times), *percent)) {
                missing.unanswered = true;
            } else {
                missing.few = true;
            }
        }
        missing
    }
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

/// Whether fewer than ten of `all` lie beyond a percentile.
fn few(all: f64, percent: f64) -> bool {
    // 1e-9 forgives the rounding of 1 − 0.999.
    all * (1.0 - percent / 100.0) + 1e-9 < 10.0
}

pub(super) fn row(name: &str, counts: &KindCounts, times: &Histogram, answers: Answers) -> LatencyRow {
    let given = PERCENTILES.map(|p| answers.percentile(times, p).map(|ns| ns as f64 / 1e3));
    let [p50_us, p95_us, p99_us, p999_us] = given;
    LatencyRow {
        kind: name.into(),
        committed: counts.committed,
        rolled_back: counts.rolled_back,
        failed: counts.failed,
        retries: counts.retries,
        mean_us: times.mean().filter(|_| answers.complete()).map(|ns| ns / 1e3),
        p50_us,
        p95_us,
        p99_us,
        p999_us,
        max_us: times.max().filter(|_| answers.complete()).map(|ns| ns as f64 / 1e3),
        clamped: times.clamped(),
        unanswered_percent: 100.0 * (1.0 - answers.share),
        missing: answers.missing(times, given),
    }
}

pub(super) fn us(summary: &LatencySummary, percentile: usize) -> Option<f64> {
    summary.percentiles[percentile].map(|ns| ns as f64 / 1e3)
}

/// Percentiles of the curve: closer together towards the tail, where the interesting part is.
pub(super) fn curve(times: &Histogram, answers: Answers) -> Vec<(f64, f64)> {
    let mut points = Vec::new();
    let mut beyond: f64 = 100.0;
    while beyond > 0.0005 {
        let percent = 100.0 - beyond;
        if let Some(ns) = answers.percentile(times, percent) {
            points.push((percent, ns as f64 / 1e3));
        }
        beyond /= 1.3;
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn times(values: impl IntoIterator<Item = u64>) -> Histogram {
        let mut times = Histogram::new();
        values.into_iter().for_each(|v| times.record(v));
        times
    }

    #[test]
    fn arrivals_without_an_answer_are_longer_than_all_others() {
        let served = times((1..=9_000).map(|v| v * 1000));
        let of = |unanswered| row("x", &KindCounts::default(), &served, Answers::of(9_000, unanswered));
        let close = |us: Option<f64>, expected: f64| (us.unwrap() / expected - 1.0).abs() < 0.002;
        let all = of(0);
        assert!(close(all.p95_us, 8_550.0) && close(all.p99_us, 8_910.0) && close(all.max_us, 9_000.0));
        assert!(!all.missing.unanswered && all.missing.few && all.unanswered_percent == 0.0);
        // 2 % more that took longer: p99 lies among them, p95 of 9,184 is the 8,725th.
        let some = of(184);
        assert!(close(some.p50_us, 4_592.0) && close(some.p95_us, 8_724.8), "{some:?}");
        assert_eq!((some.p99_us, some.mean_us, some.max_us), (None, None, None));
        // Nine of 9,184 lie beyond p99.9: too few, whatever became of them.
        assert!(some.missing.unanswered && some.missing.few);
        // Three of the served are longer than p99: it is known, since 95 more are.
        let mostly = row("x", &KindCounts::default(), &served, Answers::of(9_000, 87));
        assert!(close(mostly.p99_us, 8_997.0) && !mostly.missing.unanswered, "{mostly:?}");
        // One in 9,001 moves no percentile that is given, and leaves no maximum.
        let one = of(1);
        assert!(close(one.p99_us, 8_911.0) && one.max_us.is_none() && !one.missing.unanswered, "{one:?}");
        let none = row("x", &KindCounts::default(), &Histogram::new(), Answers::of(0, 500));
        assert!(none.p50_us.is_none() && none.missing.unanswered && none.unanswered_percent == 100.0);
        let quiet = row("x", &KindCounts::default(), &Histogram::new(), Answers::of(0, 0));
        assert!(quiet.missing.few && !quiet.missing.unanswered && quiet.unanswered_percent == 0.0);
    }

    proptest! {
        #[test]
        fn a_percentile_is_that_of_all_arrivals_with_the_unanswered_as_the_longest(
            served in prop::collection::vec(1_000_u64..1_000_000_000, 200..2000),
            unanswered in 0_u64..2000,
        ) {
            let answered = times(served.iter().copied());
            // An hour stands for "longer than any".
            let all = times(served.iter().copied().chain((0..unanswered).map(|_| 3_600_000_000_000)));
            let answers = Answers::of(served.len() as u64, unanswered);
            for percent in PERCENTILES {
                if let Some(found) = answers.percentile(&answered, percent) {
                    let expected = all.percentile(percent).unwrap();
                    // Rounding may choose the value's neighbour.
                    let beside = |by: f64| all.percentile(percent + by).unwrap_or(u64::MAX) as f64;
                    let step = 150.0 / all.count() as f64;
                    prop_assert!(
                        (beside(-step) * 0.998..=beside(step) * 1.002).contains(&(found as f64)),
                        "{found} {expected}"
                    );
                }
            }
        }
    }
}

//! Percentiles of a population of which some never got an answer.

use serde::{Serialize, Serializer};

use crate::Histogram;

/// A value that may be a lower bound. In JSON it is a number; a separate field lists the values that are bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounded {
    /// The value, or its lower bound.
    pub value: f64,
    /// Whether this is a lower bound.
    pub at_least: bool,
}

impl Bounded {
    /// A value that is known.
    pub fn exactly(value: f64) -> Self {
        Self { value, at_least: false }
    }

    /// The same in another unit.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        Self { value: self.value * factor, ..self }
    }
}

impl Serialize for Bounded {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.value)
    }
}

/// The times of a population: those of answered transactions, and the number of unanswered ones. The latter count as
/// longer than all others: a percentile is known unless it falls among them, and then it is at least the longest time.
/// Every percentile of a window, in every command, is computed this way.
#[derive(Debug, Clone, Copy)]
pub struct CensoredTimes<'a> {
    answered: &'a Histogram,
    unanswered: f64,
}

impl<'a> CensoredTimes<'a> {
    /// Of a population in which everything that counts was answered.
    pub fn all_answered(answered: &'a Histogram) -> Self {
        Self { answered, unanswered: 0.0 }
    }

    /// Of a population with `unanswered` more without an answer; the share of a type in those of unknown type need not
    /// be an integer.
    pub fn with_unanswered(answered: &'a Histogram, unanswered: f64) -> Self {
        Self { answered, unanswered: unanswered.max(0.0) }
    }

    /// The times that are known, in nanoseconds.
    pub fn answered(self) -> &'a Histogram {
        self.answered
    }

    /// The number of those without a time.
    pub fn unanswered(self) -> f64 {
        self.unanswered
    }

    /// All of the population, answered or not.
    pub fn count(self) -> f64 {
        self.answered.count() as f64 + self.unanswered
    }

    /// Those without an answer, in per cent of all; 0 for an empty population.
    pub fn unanswered_percent(self) -> f64 {
        if self.unanswered > 0.0 { 100.0 * self.unanswered / self.count() } else { 0.0 }
    }

    /// Whether fewer than ten of the population lie beyond a percentile: a handful would decide it.
    pub fn too_few(self, percent: f64) -> bool {
        // 1e-9 forgives the rounding of 1 − 0.999.
        self.count() * (1.0 - percent / 100.0) + 1e-9 < 10.0
    }

    /// The time at a percentile (0-100) of all, in nanoseconds. `None` when fewer than ten lie beyond it, and when
    /// nothing was answered.
    pub fn percentile(self, percent: f64) -> Option<Bounded> {
        if self.unanswered <= 0.0 {
            return self.answered.percentile(percent).map(|nanos| Bounded::exactly(nanos as f64));
        }
        if self.too_few(percent) {
            return None;
        }
        // Forgives the rounding of a part that is not whole.
        let rank = (self.count() * percent / 100.0 - 1e-6).ceil() as u64;
        let mut counted = 0;
        let reached = self.answered.buckets().find(|(_, count)| {
            counted += count;
            counted >= rank
        });
        match reached {
            Some((nanos, _)) => Some(Bounded::exactly(nanos as f64)),
            None => self.max(),
        }
    }

    /// The mean in nanoseconds: exact, or a lower bound as if those without an answer took as long as the longest.
    pub fn mean(self) -> Option<Bounded> {
        let known = self.answered.mean()?;
        if self.unanswered <= 0.0 {
            return Some(Bounded::exactly(known));
        }
        let longest = self.answered.max()? as f64;
        let sum = known * self.answered.count() as f64 + longest * self.unanswered;
        Some(Bounded { value: sum / self.count(), at_least: true })
    }

    /// The longest in nanoseconds.
    pub fn max(self) -> Option<Bounded> {
        let longest = self.answered.max()? as f64;
        Some(Bounded { value: longest, at_least: self.unanswered > 0.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PERCENTILES;

    fn times(values: impl IntoIterator<Item = u64>) -> Histogram {
        let mut times = Histogram::new();
        values.into_iter().for_each(|v| times.record(v));
        times
    }

    fn near(found: Option<Bounded>, expected: f64, at_least: bool) -> bool {
        found.is_some_and(|f| (f.value / expected - 1.0).abs() < 0.002 && f.at_least == at_least)
    }

    #[test]
    fn trial_a1_what_had_no_answer_is_longest_and_a_percentile_among_it_is_at_least_the_longest() {
        let served = times((1..=9_000).map(|v| v * 1000));
        let of = |unanswered: u32| CensoredTimes::with_unanswered(&served, f64::from(unanswered));
        assert!(near(of(0).percentile(99.0), 8_910_000.0, false) && near(of(0).max(), 9_000_000.0, false));
        // One in 9,001 moves no percentile that is reported; mean and maximum are bounds.
        assert!(near(of(1).percentile(99.0), 8_911_000.0, false));
        assert!(near(of(1).max(), 9_000_000.0, true) && near(of(1).mean(), 4_501_000.0, true));
        // 2 % more that took longer: p99 falls among them, p95 of 9,184 is the 8,725th.
        assert!(near(of(184).percentile(95.0), 8_725_000.0, false));
        assert!(near(of(184).percentile(99.0), 9_000_000.0, true));
        // Nine of 9,184 lie beyond p99.9: too few, whatever became of them.
        assert_eq!(of(184).percentile(99.9), None);
        let nothing = Histogram::new();
        let none = CensoredTimes::with_unanswered(&nothing, 500.0);
        assert_eq!((none.percentile(50.0), none.mean(), none.max()), (None, None, None));
        assert_eq!(
            (none.unanswered_percent(), CensoredTimes::all_answered(&nothing).unanswered_percent()),
            (100.0, 0.0)
        );
    }

    #[test]
    fn a_percentile_is_that_of_all_with_the_unanswered_as_the_longest() {
        let mut state = 26_u64;
        let mut below = |most: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % most
        };
        for _ in 0..50 {
            let served: Vec<u64> = (0..200 + below(1800)).map(|_| 1_000 + below(1_000_000_000)).collect();
            let unanswered = below(1000) * below(3);
            let answered = times(served.iter().copied());
            // An hour represents "longer than any".
            let all = times(served.iter().copied().chain((0..unanswered).map(|_| 3_600_000_000_000)));
            let found = CensoredTimes::with_unanswered(&answered, unanswered as f64);
            for percent in PERCENTILES {
                let (found, expected) = (found.percentile(percent), all.percentile(percent));
                assert_eq!(found.is_some(), expected.is_some());
                let (Some(found), Some(expected)) = (found, expected) else { continue };
                let among = expected > 1_000_000_000_000;
                let value = if among { answered.max().unwrap() } else { expected } as f64;
                assert_eq!(found, Bounded { value, at_least: among }, "p{percent} of {}", all.count());
            }
        }
    }
}

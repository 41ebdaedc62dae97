//! Samples of bandwidth and IOPS over windows of a worker's measured time.

use kelvin_measure::Nanos;

use crate::result::Samples;

/// How much shorter than requested a window may be: ticks end when the worker reads its clock.
const SLACK: Nanos = 1_000_000;

/// Makes samples of one direction.
#[derive(Debug, Clone)]
pub(super) struct Windows {
    length: Nanos,
    spent: Nanos,
    sum: f64,
    /// Empty windows before the first and after the last I/O are no samples; those between are.
    pending: u64,
    begun: bool,
    samples: Samples,
}

impl Windows {
    /// With windows of `length` nanoseconds.
    pub(super) fn new(length: Nanos) -> Self {
        Self {
            length: length.max(1),
            spent: 0,
            sum: 0.0,
            pending: 0,
            begun: false,
            samples: Samples::default(),
        }
    }

    /// Adds the `amount` of an interval of `time` that follows the last one.
    pub(super) fn add(&mut self, time: Nanos, amount: f64) {
        self.spent += time;
        self.sum += amount;
        if self.spent + SLACK.min(self.length / 2) < self.length {
            return;
        }
        let (spent, sum) = (std::mem::take(&mut self.spent), std::mem::take(&mut self.sum));
        if sum > 0.0 {
            for _ in 0..std::mem::take(&mut self.pending) {
                self.samples.record(0.0);
            }
            self.begun = true;
            self.samples.record(sum * 1e9 / spent.max(1) as f64);
        } else if self.begun {
            self.pending += 1;
        }
    }

    /// The samples of complete windows.
    pub(super) fn samples(&self) -> Samples {
        self.samples
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_filled_by_ticks_and_a_standstill_counts_only_between_ios() {
        let mut windows = Windows::new(500_000_000);
        for (millis, amount) in [
            (500, 0.0),
            (250, 100.0),
            (250, 150.0),
            (500, 0.0),
            (499, 499.0),
            (1000, 3000.0),
            (700, 0.0),
            (20, 9.0),
        ] {
            windows.add(millis * 1_000_000, amount);
        }
        let samples = windows.samples();
        assert_eq!(samples.count, 4, "500, 0, 1000 and 3000 a second");
        assert_eq!(samples.range, (0.0, 3000.0));
        assert!((samples.mean() - 1125.0).abs() < 1e-9);
    }
}

//! Latencies as a Prometheus histogram with constant bounds.

use kelvin_measure::Histogram;

/// Upper bounds in nanoseconds. Six per decade, so that a quantile interpolated between two bounds has an
/// error of at most a quarter. Exact percentiles are in the run's own result.
pub(crate) const BOUNDS: [u64; 42] = bounds();

const fn bounds() -> [u64; 42] {
    let steps = [10, 15, 20, 30, 50, 70];
    let mut bounds = [0; 42];
    let (mut decade, mut at) = (1_000, 0);
    while at < bounds.len() {
        bounds[at] = steps[at % 6] * decade;
        at += 1;
        if at % 6 == 0 {
            decade *= 10;
        }
    }
    bounds
}

/// Latencies since the start of the run.
#[derive(Debug, Clone)]
pub(crate) struct Latency {
    /// Counts between a bound and the previous one; the last count is above all bounds.
    counts: [u64; BOUNDS.len() + 1],
    /// The sum in seconds.
    pub(crate) sum: f64,
    pub(crate) count: u64,
}

impl Default for Latency {
    fn default() -> Self {
        Self { counts: [0; BOUNDS.len() + 1], sum: 0.0, count: 0 }
    }
}

impl Latency {
    /// Adds the latencies of one second. A latency up to 0.1 % above a bound may be counted below it.
    pub(crate) fn add(&mut self, histogram: &Histogram) {
        let mut bound = 0;
        for (nanos, count) in histogram.buckets() {
            // A histogram bucket is identified by its highest value; its lowest is within 0.1 % of that.
            while BOUNDS.get(bound).is_some_and(|&bound| nanos > bound + bound / 1000) {
                bound += 1;
            }
            self.counts[bound] += count;
            self.count += count;
        }
        self.sum += histogram.sum() as f64 / 1e9;
    }

    /// Upper bounds in seconds and the counts between them; the last bound is infinity.
    pub(crate) fn buckets(&self) -> Vec<(f64, u64)> {
        let bounds = BOUNDS.iter().map(|&nanos| nanos as f64 / 1e9).chain([f64::INFINITY]);
        bounds.zip(self.counts).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bounds_rise_from_ten_microseconds_to_minutes() {
        assert!(BOUNDS.is_sorted_by(|a, b| a < b));
        assert_eq!((BOUNDS[0], BOUNDS[6], BOUNDS[41]), (10_000, 100_000, 70_000_000_000));
    }

    proptest! {
        #[test]
        fn every_latency_is_counted_where_it_belongs(nanos in prop::collection::vec(1_u64..200_000_000_000, 1..200)) {
            let mut histogram = Histogram::new();
            for &n in &nanos {
                histogram.record(n);
            }
            let mut latency = Latency::default();
            latency.add(&histogram);
            prop_assert_eq!(latency.count, nanos.len() as u64);
            let exact: u64 = nanos.iter().sum();
            prop_assert!((latency.sum - exact as f64 / 1e9).abs() < 1e-6);
            let mut below = 0;
            for (bound, count) in latency.buckets() {
                below += count;
                let at_most = |factor: f64| nanos.iter().filter(|&&n| n as f64 / 1e9 <= bound * factor).count() as u64;
                prop_assert!(below >= at_most(0.998) && below <= at_most(1.002), "{} at {}", below, bound);
            }
        }
    }
}

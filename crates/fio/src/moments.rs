//! Count, sum, squares, least and greatest of a series of times.

use serde::Serialize;

/// Of times in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Moments {
    /// How many.
    pub count: u64,
    /// Their sum.
    pub sum: u64,
    /// The sum of their squares.
    pub squares: f64,
    /// The least; `u64::MAX` when there are none.
    pub least: u64,
    /// The greatest.
    pub greatest: u64,
}

impl Default for Moments {
    fn default() -> Self {
        Self { count: 0, sum: 0, squares: 0.0, least: u64::MAX, greatest: 0 }
    }
}

impl Moments {
    /// Takes one more.
    #[inline]
    pub fn record(&mut self, nanos: u64) {
        self.count += 1;
        self.sum += nanos;
        self.squares += (nanos as f64) * (nanos as f64);
        self.least = self.least.min(nanos);
        self.greatest = self.greatest.max(nanos);
    }

    /// Takes so many that are all the same.
    #[inline]
    pub fn record_many(&mut self, nanos: u64, count: u64) {
        self.count += count;
        self.sum += nanos * count;
        self.squares += (nanos as f64) * (nanos as f64) * count as f64;
        self.least = self.least.min(nanos);
        self.greatest = self.greatest.max(nanos);
    }

    /// Takes those of another.
    #[inline]
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.sum += other.sum;
        self.squares += other.squares;
        self.least = self.least.min(other.least);
        self.greatest = self.greatest.max(other.greatest);
    }

    /// Their mean; none when there are none.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// Their standard deviation (of a sample: n − 1); 0 for fewer than two.
    pub fn deviation(&self) -> f64 {
        let Some(mean) = self.mean().filter(|_| self.count > 1) else { return 0.0 };
        let n = self.count as f64;
        ((self.squares - n * mean * mean).max(0.0) / (n - 1.0)).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_deviation_are_those_of_the_sample() {
        let mut all = Moments::default();
        assert_eq!(all.mean(), None);
        let (mut one, mut other) = (Moments::default(), Moments::default());
        for (nanos, half) in [(2, 0), (4, 0), (4, 1), (4, 1), (5, 0), (5, 1), (7, 0), (9, 1)] {
            all.record(nanos);
            if half == 0 { one.record(nanos) } else { other.record(nanos) }
        }
        assert_eq!(all.mean(), Some(5.0));
        assert!((all.deviation() - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12);
        one.merge(&other);
        assert_eq!(one, all);
    }
}

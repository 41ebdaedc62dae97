//! Zipf's law: the k-th most frequent value occurs k^-θ times as often as the first.
//!
//! Drawn by rejection-inversion (Hörmann and Derflinger, Rejection-inversion to generate variates from monotone
//! discrete distributions, ACM TOMACS 6, 1996). It is exact for any number of ranks, without a table and without a sum
//! over the ranks, and needs at most 1.1 uniform numbers per draw on average.

use kelvin_measure::Random;

/// Draws ranks from 0.
#[derive(Debug, Clone)]
pub(crate) struct Zipf {
    theta: f64,
    ranks: u64,
    /// The area under the curve up to rank 1 and up to the last.
    from: f64,
    to: f64,
    /// A point this close to its rank is always under the histogram.
    sure: f64,
}

/// (e^x − 1)/x, also accurate near 0.
fn growth(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.exp_m1() / x } else { 1.0 + x / 2.0 }
}

/// ln(1 + x)/x, also accurate near 0.
fn decay(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.ln_1p() / x } else { 1.0 - x / 2.0 }
}

impl Zipf {
    /// Ranks below `ranks` (at least 1) with the exponent `theta` above 0.
    pub(crate) fn new(theta: f64, ranks: u64) -> Self {
        let mut new = Self { theta, ranks, from: 0.0, to: 0.0, sure: 0.0 };
        new.from = new.area(1.5) - 1.0;
        new.to = new.area(ranks as f64 + 0.5);
        new.sure = 2.0 - new.inverse(new.area(2.5) - new.height(2.0));
        new
    }

    /// The integral of x^-θ from 1.
    fn area(&self, x: f64) -> f64 {
        let log = x.ln();
        growth((1.0 - self.theta) * log) * log
    }

    fn inverse(&self, area: f64) -> f64 {
        let t = (area * (1.0 - self.theta)).max(-1.0);
        (decay(t) * area).exp()
    }

    fn height(&self, x: f64) -> f64 {
        x.powf(-self.theta)
    }

    /// A rank, 0 being the most frequent.
    pub(crate) fn draw(&self, random: &mut Random) -> u64 {
        loop {
            let area = self.to + random.unit() * (self.from - self.to);
            let x = self.inverse(area);
            let rank = (x + 0.5).floor().clamp(1.0, self.ranks as f64);
            if rank - x <= self.sure || area >= self.area(rank + 0.5) - self.height(rank) {
                return (rank as u64).min(self.ranks) - 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::statistics::chi_squared;

    #[test]
    fn ranks_come_as_often_as_the_law_says() {
        let mut random = Random::part(1, 0, 0);
        for (theta, ranks) in [(0.3, 50_u64), (0.9, 200), (1.0, 100), (1.2, 1000), (2.5, 20), (1.2, 1)] {
            let zipf = Zipf::new(theta, ranks);
            let mut seen = vec![0_u64; ranks as usize];
            for _ in 0..100_000 {
                seen[zipf.draw(&mut random) as usize] += 1;
            }
            let law: Vec<f64> = (1..=ranks).map(|k| (k as f64).powf(-theta)).collect();
            let p = chi_squared(&seen, &law, ranks - 1);
            assert!(p > 1e-4, "theta {theta}, {ranks} ranks: {p}");
        }
    }

    #[test]
    fn many_ranks_need_no_sum() {
        // 2^40 ranks: the first has 1/ζ(1.2; 2^40); the tail of the sum by Euler and Maclaurin.
        let ranks = 1_u64 << 40;
        let head: f64 = (1..1000).map(|k| f64::from(k).powf(-1.2)).sum();
        let tail = (1000_f64.powf(-0.2) - (ranks as f64).powf(-0.2)) / 0.2 + 0.5 * 1000_f64.powf(-1.2);
        let zipf = Zipf::new(1.2, ranks);
        let mut random = Random::part(2, 0, 0);
        let first = (0..100_000).filter(|_| zipf.draw(&mut random) == 0).count() as f64 / 100_000.0;
        assert!((first - 1.0 / (head + tail)).abs() < 0.006, "{first} against {}", 1.0 / (head + tail));
    }
}

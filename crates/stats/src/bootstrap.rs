//! The bootstrap: the interval of a statistic from resampling the measurements.

/// The random numbers of the resampling (SplitMix64; Steele, Lea and Flood 2014): the same seed always gives the same
/// interval, so that a report is reproducible.
#[derive(Debug, Clone)]
pub struct Resampler(u64);

impl Resampler {
    /// A separate sequence for each seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// An index below `n`, which must be above 0 and far below 2³², so that the bias does not matter.
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.bits()) * n as u128) >> 64) as usize
    }

    /// A number within (0, 1), never at its ends.
    pub fn unit(&mut self) -> f64 {
        ((self.bits() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// A number of the standard normal distribution (Box and Muller 1958).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.unit().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }
}

/// An interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BootstrapInterval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// The percentile interval of replicates of a statistic at `confidence` within (0, 1). Infinite replicates are allowed.
/// `None` with fewer than 100 replicates or with a NaN: the ends of an interval are determined by the rarest of them.
pub fn percentile(replicates: &[f64], confidence: f64) -> Option<BootstrapInterval> {
    let tail = (1.0 - confidence) / 2.0;
    let sorted = sorted(replicates, confidence)?;
    Some(BootstrapInterval { low: quantile(&sorted, tail), high: quantile(&sorted, 1.0 - tail) })
}

fn sorted(replicates: &[f64], confidence: f64) -> Option<Vec<f64>> {
    let usable = replicates.len() >= 100 && confidence > 0.0 && confidence < 1.0;
    if !usable || replicates.iter().any(|r| r.is_nan()) {
        return None;
    }
    let mut sorted = replicates.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    Some(sorted)
}

/// The p(B + 1)-th smallest, interpolated.
fn quantile(sorted: &[f64], p: f64) -> f64 {
    let last = sorted.len() - 1;
    let place = (p * (sorted.len() + 1) as f64 - 1.0).clamp(0.0, last as f64);
    let (low, part) = (place.floor() as usize, place.fract());
    let (a, b) = (sorted[low], sorted[(low + 1).min(last)]);
    if part == 0.0 || a == b { a } else { a + part * (b - a) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spatial test A of 26 children: Efron and Tibshirani 1993, table 14.1.
    const SPATIAL: [f64; 26] = [
        48.0, 36.0, 20.0, 29.0, 42.0, 42.0, 20.0, 42.0, 22.0, 41.0, 45.0, 14.0, 6.0, 0.0, 33.0, 28.0, 34.0,
        4.0, 32.0, 24.0, 47.0, 41.0, 24.0, 26.0, 30.0, 41.0,
    ];

    fn variance(values: &[f64]) -> f64 {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n
    }

    #[test]
    fn the_variance_of_the_spatial_test_has_its_published_interval() {
        // Section 14.2 and table 14.2: 171.5, 90 % percentile interval (100.8, 233.9), from 2000 resamples, so that its
        // ends vary by a few units.
        assert!((variance(&SPATIAL) - 171.5).abs() < 0.05);
        let mut random = Resampler::new(1);
        let replicates: Vec<f64> = (0..20_000)
            .map(|_| variance(&(0..26).map(|_| SPATIAL[random.below(26)]).collect::<Vec<_>>()))
            .collect();
        let found = percentile(&replicates, 0.9).unwrap();
        assert!((found.low - 100.8).abs() < 4.0 && (found.high - 233.9).abs() < 5.0, "{found:?}");
    }

    #[test]
    fn the_generator_is_what_it_claims_to_be() {
        // The published first values of SplitMix64 from seed 1234567.
        let mut random = Resampler::new(1_234_567);
        assert_eq!([random.bits(), random.bits()], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
        let draws: Vec<f64> = (0..100_000).map(|_| random.normal()).collect();
        assert!(draws.iter().sum::<f64>().abs() / 1e5 < 0.015);
        assert!((variance(&draws) - 1.0).abs() < 0.02);
    }

    #[test]
    fn what_cannot_be_resampled_has_no_interval() {
        assert!(percentile(&[1.0; 99], 0.95).is_none());
        assert!(percentile(&[f64::INFINITY; 200], 0.95).is_some());
    }
}

//! How much runs scatter.

use statrs::distribution::{ChiSquared, ContinuousCDF};

use crate::student::{Sample, describe};

/// A coefficient of variation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Coefficient {
    /// Standard deviation over mean.
    pub cv: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end. Five runs that scatter by 1 % may well be of a benchmark that scatters by 3 %.
    pub high: f64,
}

/// The coefficient of variation of independent normal values with its interval at `confidence`: Vangel's modification of
/// McKay's approximation (The American Statistician 50, 1996, section 2), good while the CV is below a third. None for
/// fewer than two values, a mean that is not above 0, or a CV beyond where the interval has an end.
pub fn coefficient(values: &[f64], confidence: f64) -> Option<Coefficient> {
    let Sample { n, mean, sd } = describe(values)?;
    let cv = sd? / mean;
    if !(mean > 0.0 && cv.is_finite() && confidence > 0.0 && confidence < 1.0) {
        return None;
    }
    let (n, df) = (n as f64, n as f64 - 1.0);
    let chi = ChiSquared::new(df).ok()?;
    let end = |p: f64| {
        let u = chi.inverse_cdf(p);
        let squared = ((u + 2.0) / n - 1.0) * cv.powi(2) + u / df;
        (squared > 0.0).then(|| cv / squared.sqrt())
    };
    let tail = (1.0 - confidence) / 2.0;
    Some(Coefficient { cv, low: end(1.0 - tail)?, high: end(tail)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bootstrap::Resampler;

    #[test]
    fn the_interval_covers_as_often_as_it_says() {
        let mut random = Resampler::new(2);
        for (cv, n) in [(0.01, 5), (0.02, 6), (0.2, 8)] {
            let covered = (0..2000)
                .filter(|_| {
                    let values: Vec<f64> = (0..n).map(|_| 300.0 * (1.0 + cv * random.normal())).collect();
                    let found = coefficient(&values, 0.9).unwrap();
                    found.low <= cv && cv <= found.high
                })
                .count();
            // 1800 ± 13.
            assert!((1760..=1840).contains(&covered), "{cv} {n}: {covered} of 2000");
        }
    }

    #[test]
    fn what_does_not_scatter_or_has_no_mean() {
        assert_eq!(coefficient(&[4.0; 5], 0.95), Some(Coefficient { cv: 0.0, low: 0.0, high: 0.0 }));
        for values in [&[][..], &[1.0], &[0.0, 0.0], &[-1.0, -2.0], &[1.0, f64::NAN]] {
            assert_eq!(coefficient(values, 0.95), None);
        }
        assert_eq!(coefficient(&[1.0, 2.0], 1.0), None);
    }
}

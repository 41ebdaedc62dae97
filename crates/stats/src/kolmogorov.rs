//! The one-sample Kolmogorov–Smirnov test: does a sample come from a given continuous distribution?

/// What the test found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Kolmogorov {
    /// Number of values.
    pub n: usize,
    /// D, the largest distance between the sample's distribution function and the given one.
    pub distance: f64,
    /// Probability of so large a distance or a larger one when the sample does come from the distribution.
    pub p: f64,
}

/// Tests `values`, in any order, against the continuous distribution function `cumulative`, none of whose
/// parameters may have been estimated from the same values (p is then far too large). None for no values, or
/// when one of them or its probability is not a number.
///
/// p is that of Kolmogorov's limiting distribution at (√n + 0.12 + 0.11/√n)·D, which is good from n = 5 on
/// (Stephens, Journal of the Royal Statistical Society B 32, 1970).
///
/// ```
/// let found = kelvin_stats::kolmogorov::one_sample(&[0.1, 0.4, 0.7], |x| x).unwrap();
/// assert!((found.distance - 0.3).abs() < 1e-12); // after 0.7: 3/3 of the sample, 0.7 of the distribution
/// ```
pub fn one_sample(values: &[f64], cumulative: impl Fn(f64) -> f64) -> Option<Kolmogorov> {
    let n = values.len();
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let mut distance: f64 = 0.0;
    for (i, &value) in sorted.iter().enumerate() {
        let expected = cumulative(value);
        if value.is_nan() || expected.is_nan() {
            return None;
        }
        // The sample's function jumps at each value: both sides of the jump count.
        let below = expected - i as f64 / n as f64;
        let above = (i + 1) as f64 / n as f64 - expected;
        distance = distance.max(below).max(above);
    }
    if n == 0 {
        return None;
    }
    let root = (n as f64).sqrt();
    Some(Kolmogorov { n, distance, p: exceeded((root + 0.12 + 0.11 / root) * distance) })
}

/// 1 − K(x): the probability that Kolmogorov's limiting variable √n·D exceeds `x`. The two series are one
/// theta function; each converges in a few terms on its side of 1.
pub fn exceeded(x: f64) -> f64 {
    use std::f64::consts::PI;
    if x <= 0.0 {
        return 1.0;
    }
    let series = if x < 1.0 {
        let terms = (1..=20).map(|k| (-((2 * k - 1) as f64 * PI / x).powi(2) / 8.0).exp());
        1.0 - (2.0 * PI).sqrt() / x * terms.sum::<f64>()
    } else {
        let term = |k: i32| (-2.0 * (f64::from(k) * x).powi(2)).exp();
        2.0 * (1..=20).map(|k| if k % 2 == 1 { term(k) } else { -term(k) }).sum::<f64>()
    };
    series.clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use statrs::distribution::{ContinuousCDF, Normal};

    use super::*;

    #[test]
    fn the_limiting_distribution_is_smirnovs() {
        // Smirnov, Annals of Mathematical Statistics 19, 1948, table of K(x).
        for (x, k) in [
            (0.50, 0.036_055),
            (0.80, 0.455_857),
            (0.99, 0.719_126),
            (1.00, 0.730_000),
            (1.01, 0.740_566),
            (2.00, 0.999_329),
        ] {
            assert!((1.0 - exceeded(x) - k).abs() < 2e-6, "K({x}) = {}", 1.0 - exceeded(x));
        }
        // The usual critical values: 10 %, 5 %, 1 %.
        for (x, p) in [(1.2238, 0.1), (1.3581, 0.05), (1.6276, 0.01)] {
            assert!((exceeded(x) - p).abs() < 3e-5, "{x}");
        }
        assert_eq!((exceeded(0.0), exceeded(1e-9), exceeded(40.0)), (1.0, 1.0, 0.0));
    }

    #[test]
    fn small_samples_meet_the_exact_critical_values() {
        // Exact 5 % points of D (Miller, Journal of the American Statistical Association 51, 1956).
        for (n, critical) in [(5, 0.563_28), (10, 0.409_25), (20, 0.294_08), (40, 0.210_12)] {
            let root = f64::from(n).sqrt();
            let p = exceeded((root + 0.12 + 0.11 / root) * critical);
            assert!((p - 0.05).abs() < 0.001, "n = {n}: {p}");
        }
    }

    #[test]
    fn the_example_of_scipys_manual() {
        // scipy.stats.kstest(linspace(-15, 15, 9), "norm"): D = 0.444356027159, exact p = 0.038850140086.
        let values: Vec<f64> = (0..9).rev().map(|i| -15.0 + 3.75 * f64::from(i)).collect();
        let normal = Normal::standard();
        let found = one_sample(&values, |x| normal.cdf(x)).unwrap();
        assert!((found.distance - 0.444_356_027_159).abs() < 1e-9, "{found:?}");
        assert!((found.p - 0.038_850).abs() < 5e-4, "{found:?}");
    }

    #[test]
    fn a_wrong_distribution_is_found_out() {
        let even: Vec<f64> = (0..1000).map(|i| (f64::from(i) + 0.5) / 1000.0).collect();
        assert!(one_sample(&even, |x| x).unwrap().p > 0.999);
        assert!(one_sample(&even, |x| x * x).unwrap().p < 1e-12);
        assert!(one_sample(&[], |x| x).is_none());
        assert!(one_sample(&[0.5, f64::NAN], |x| x).is_none());
    }
}

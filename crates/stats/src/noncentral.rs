//! The noncentral t distribution: that of t under an effect, from which power is computed.

use statrs::function::gamma::ln_gamma;

use crate::normal;

/// The distance below its peak at which the integrand is negligible, as a logarithm: e⁻⁴⁵ is 3·10⁻²⁰.
const NOTHING: f64 = 45.0;

/// P(T ≤ `t`) of the noncentral t with `df` degrees of freedom and noncentrality `shift`: T = (Z + δ)/S, where S² is a
/// χ² over its degrees of freedom, so that P(T ≤ t) is the mean of Φ(t·S − δ) over S (Johnson, Kotz and Balakrishnan,
/// Continuous Univariate Distributions 2, 1995, chapter 31). Over x = ln S that integrand is smooth and dies away on both
/// sides, where the trapezium rule gains digits with every halving of its step; it is good to ten of them. (The series of
/// AS 243 needs thousands of terms where the shift is large.) None for fewer than one degree of freedom, or a value that
/// is not finite.
///
/// ```
/// // Without a shift it is Student's: P(T ≤ 2.571) at 5 degrees of freedom is 0.975.
/// assert!((kelvin_stats::noncentral::below(2.570_581_8, 5.0, 0.0).unwrap() - 0.975).abs() < 1e-8);
/// ```
pub fn below(t: f64, df: f64, shift: f64) -> Option<f64> {
    if !(t.is_finite() && shift.is_finite()) {
        return None;
    }
    // Φ climbs over a width of 1/|t| in S.
    mean_over_scale(df, t.abs(), |scale| normal::below(t * scale - shift))
}

/// The mean of a probability over S, where S² is a χ² with `df` degrees of freedom divided by their number; `steepness`
/// is the maximum slope of the probability in S. `None` for fewer than one degree of freedom.
pub(crate) fn mean_over_scale(df: f64, steepness: f64, probability: impl Fn(f64) -> f64) -> Option<f64> {
    if !(df >= 1.0 && df.is_finite() && steepness.is_finite()) {
        return None;
    }
    // ln of the density of x = ln S: ν·x − ν·e²ˣ/2, and a constant. Its peak is at x = 0.
    let constant = std::f64::consts::LN_2 + df / 2.0 * (df / 2.0).ln() - ln_gamma(df / 2.0);
    let log_density = |x: f64| df * x - df / 2.0 * (2.0 * x).exp() + constant;
    let floor = log_density(0.0) - NOTHING;
    let deviation = (1.0 / (2.0 * df).sqrt()).min(1.0);
    let end = |direction: f64| {
        let mut x = 0.0;
        while log_density(x) > floor {
            x += direction * deviation;
        }
        x
    };
    let (low, high) = (end(-1.0), end(1.0));
    // At least eight steps per width of the probability, and eight per deviation of x.
    let step = deviation.min(1.0 / (1.0 + steepness * high.exp())).min(0.5) / 8.0;
    let steps = ((high - low) / step).ceil();
    let step = (high - low) / steps;
    let sum: f64 = (0..=steps as usize)
        .map(|i| {
            let x = low + i as f64 * step;
            log_density(x).exp() * probability(x.exp())
        })
        .sum();
    Some((sum * step).clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use statrs::distribution::{ContinuousCDF, StudentsT};

    use super::*;

    #[test]
    fn without_a_shift_it_is_students() {
        for df in [1.0, 2.0, 2.5, 7.0, 40.0, 1000.0] {
            let student = StudentsT::new(0.0, 1.0, df).unwrap();
            for t in [-30.0, -3.0, -0.5, 0.0, 1.0, 2.5, 12.0] {
                let found = below(t, df, 0.0).unwrap();
                assert!((found - student.cdf(t)).abs() < 1e-10, "{t} at {df}: {found} {}", student.cdf(t));
            }
        }
    }

    #[test]
    fn mirrored_it_is_its_own_complement() {
        for (t, df, shift) in [(1.5, 3.0, 2.0), (2.1, 18.0, -1.0), (0.3, 1.0, 5.0)] {
            let both = below(t, df, shift).unwrap() + below(-t, df, -shift).unwrap();
            assert!((both - 1.0).abs() < 1e-10, "{both}");
        }
        // At 0 only the numerator decides: Φ(−δ).
        assert!((below(0.0, 9.0, 1.3).unwrap() - normal::below(-1.3)).abs() < 1e-11);
    }

    #[test]
    fn what_is_no_distribution_has_no_probability() {
        for (t, df, shift) in [(1.0, 0.5, 0.0), (f64::NAN, 3.0, 0.0), (1.0, 3.0, f64::INFINITY)] {
            assert_eq!(below(t, df, shift), None);
        }
    }
}

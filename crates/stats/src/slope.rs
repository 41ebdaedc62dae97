//! By how much one series goes with another: the slope of a line through pairs that come in the order of time.

use crate::ess::precision;
use crate::student::{describe, quantile};

/// A slope with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slope {
    /// Change of y for a change of x by 1.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// The slope of y over x by least squares, with its interval at `confidence`. Its standard error, s/√Σ(x − x̄)² of independent
/// residuals, is widened by √τ of the residuals' autocorrelation ([`crate::ess`]), which also takes its share of the degrees
/// of freedom: neighbouring seconds resemble each other. None for fewer than four pairs, sides of unequal length, a value that
/// is not finite, or an x that does not vary.
pub fn slope(x: &[f64], y: &[f64], confidence: f64) -> Option<Slope> {
    if x.len() != y.len() || x.len() < 4 || x.iter().chain(y).any(|value| !value.is_finite()) {
        return None;
    }
    let (mean_x, mean_y) = (describe(x)?.mean, describe(y)?.mean);
    let squares: f64 = x.iter().map(|x| (x - mean_x).powi(2)).sum();
    if squares <= 0.0 {
        return None;
    }
    let products: f64 = x.iter().zip(y).map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let value = products / squares;
    let residuals: Vec<f64> = x.iter().zip(y).map(|(x, y)| y - mean_y - value * (x - mean_x)).collect();
    let tau = precision(&residuals)?.tau;
    let left = (x.len() - 2) as f64;
    let variance = residuals.iter().map(|residual| residual.powi(2)).sum::<f64>() / left;
    let freedom = (x.len() as f64 / tau - 2.0).max(1.0);
    let half = quantile(f64::midpoint(1.0, confidence), freedom)? * (tau * variance / squares).sqrt();
    Some(Slope { value, low: value - half, high: value + half })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_found_and_its_interval_is_that_of_the_textbook() {
        // By hand: 1.99 ± t(0.975; 3)·s/√10 with s² = 0.107/3.
        let found = slope(&[1.0, 2.0, 3.0, 4.0, 5.0], &[2.1, 3.9, 6.2, 7.8, 10.1], 0.95).unwrap();
        assert!((found.value - 1.99).abs() < 1e-9, "{found:?}");
        assert!((found.low - 1.79994).abs() < 1e-5 && (found.high - 2.18006).abs() < 1e-5, "{found:?}");
    }

    #[test]
    fn what_does_not_vary_or_is_too_short_has_none() {
        assert_eq!(slope(&[1.0; 8], &[1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0], 0.95), None);
        assert_eq!(slope(&[1.0, 2.0, 3.0], &[1.0, 2.0, 3.0], 0.95), None);
        assert_eq!(slope(&[1.0, 2.0, 3.0, f64::NAN], &[1.0, 2.0, 3.0, 4.0], 0.95), None);
        assert_eq!(slope(&[1.0, 2.0, 3.0, 4.0], &[1.0, 2.0, 3.0], 0.95), None);
    }
}

//! Proportions.

/// Half the width of the interval in which an observed proportion of `n` independent trials lies around the
/// true `p`, by the normal approximation to the binomial: z·√(p(1−p)/n). 1 (nothing is known) for `n` = 0.
///
/// ```
/// let error = kelvin_stats::proportion::sampling_error(0.5, 100, 1.96);
/// assert!((error - 0.098).abs() < 1e-12);
/// ```
pub fn sampling_error(p: f64, n: u64, z: f64) -> f64 {
    if n == 0 {
        return 1.0;
    }
    z * (p * (1.0 - p) / n as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_shrinks_with_the_root_and_vanishes_at_certainty() {
        let one = sampling_error(0.01, 1000, 3.0);
        assert!((sampling_error(0.01, 4000, 3.0) - one / 2.0).abs() < 1e-15);
        assert_eq!(sampling_error(0.0, 10, 3.0), 0.0);
        assert_eq!(sampling_error(0.3, 0, 3.0), 1.0);
    }
}

//! The standard normal distribution.

use statrs::distribution::{Continuous, ContinuousCDF, Normal};

/// P(Z > z), exact far out in the tail too.
pub(crate) fn above(z: f64) -> f64 {
    Normal::standard().sf(z)
}

/// P(Z ≤ z).
pub(crate) fn below(z: f64) -> f64 {
    Normal::standard().cdf(z)
}

/// The density at `z`.
pub(crate) fn density(z: f64) -> f64 {
    Normal::standard().pdf(z)
}

/// The z with P(Z > z) = `p`, which must lie within (0, 1).
pub(crate) fn upper_quantile(p: f64) -> f64 {
    -Normal::standard().inverse_cdf(p)
}

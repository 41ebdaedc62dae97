//! The random functions: pgbench's distributions with Kelvin's random number generator.

use std::f64::consts::TAU;

use kelvin_measure::Random;

use super::Fault;

/// Number of integers from `low` to `high`.
fn span(low: i64, high: i64) -> Result<i64, Fault> {
    if low > high {
        return Err(Fault::EmptyRange);
    }
    high.checked_sub(low).and_then(|range| range.checked_add(1)).ok_or(Fault::RangeTooLarge)
}

/// A uniform integer.
#[inline]
pub(super) fn uniform(random: &mut Random, low: i64, high: i64) -> Result<i64, Fault> {
    span(low, high)?;
    Ok(random.range(low, high))
}

/// Maps `at`, in [0, 1], to an integer of the range.
fn scaled(low: i64, high: i64, span: i64, at: f64) -> i64 {
    // For a large range the product rounds up at its end.
    low.saturating_add((span as f64 * at) as i64).min(high)
}

/// A truncated exponential distribution: the larger `parameter`, the closer to `low`.
pub(super) fn exponential(random: &mut Random, low: i64, high: i64, parameter: f64) -> Result<i64, Fault> {
    if parameter.is_nan() || parameter <= 0.0 {
        return Err(Fault::Parameter { name: "exponential", bounds: "greater than zero", value: parameter });
    }
    let span = span(low, high)?;
    let cut = (-parameter).exp();
    let uniform = 1.0 - random.unit();
    Ok(scaled(low, high, span, -(cut + (1.0 - cut) * uniform).ln() / parameter))
}

/// A normal distribution around the middle, truncated at `parameter` standard deviations on both sides.
pub(super) fn gaussian(random: &mut Random, low: i64, high: i64, parameter: f64) -> Result<i64, Fault> {
    if parameter.is_nan() || parameter < 2.0 {
        return Err(Fault::Parameter { name: "gaussian", bounds: "at least 2.000000", value: parameter });
    }
    let span = span(low, high)?;
    // At most 4.6 % of a normal distribution are outside.
    let deviation = loop {
        // Box–Muller transform.
        let radius = (-2.0 * (1.0 - random.unit()).ln()).sqrt();
        let deviation = radius * (TAU * random.unit()).sin();
        if (-parameter..parameter).contains(&deviation) {
            break deviation;
        }
    };
    Ok(scaled(low, high, span, (deviation + parameter) / (parameter * 2.0)))
}

/// A Zipf distribution: the probability of the k-th integer of the range is proportional to k^-`parameter`.
///
/// By rejection from the unbounded distribution (Devroye, Non-Uniform Random Variate Generation, 1986,
/// X.6.1).
pub(super) fn zipfian(random: &mut Random, low: i64, high: i64, parameter: f64) -> Result<i64, Fault> {
    if !(1.001..=1000.0).contains(&parameter) {
        return Err(Fault::Parameter { name: "zipfian", bounds: "in range [1.001, 1000]", value: parameter });
    }
    let span = span(low, high)?;
    if span == 1 {
        return Ok(low);
    }
    let exponent = parameter - 1.0;
    let b = 2.0_f64.powf(exponent);
    loop {
        let u = 1.0 - random.unit();
        let v = random.unit();
        let x = u.powf(-1.0 / exponent).floor();
        let t = (1.0 + 1.0 / x).powf(exponent);
        if v * x * (t - 1.0) / (b - 1.0) <= t / b && x <= span as f64 {
            return Ok(low.saturating_add(x as i64 - 1).min(high));
        }
    }
}

//! How much a series of seconds really says: the effective sample size under autocorrelation.
//!
//! Dyadic batch means. Neighbouring seconds resemble each other, so that n of them hold less than n
//! independent observations. The means of batches of 2^k seconds vary by σ²·τ/2^k once the batches are longer
//! than the memory of the series, where τ is the integrated autocorrelation time (Flyvbjerg and Petersen,
//! J. Chem. Phys. 91, 461, 1989; batch means: Law, Simulation Modeling and Analysis, chapter 9). τ is taken
//! as the largest 2^k·var_k/var_0, over the levels whose τ is above a fifth of the batch length, as latte does.
//!
//! Dyadic batches need a long series: of 20 values they see no memory beyond two. A short one's interval ([`conservative_precision`])
//! takes it for an autoregressive process of first order beside that, and the larger of both errors.
//!
//! It describes the precision within one run only. What differs from run to run (placement, layout of the
//! data, temperature) is not in it: never compare two systems by it.

use crate::dependence::{corrected_phi, effective_count, lag1, widening};
use crate::student::{describe, quantile};

/// Batches of a level must be at least this many, or their variance says nothing.
const FEWEST_BATCHES: usize = 8;

/// Values of which τ can be estimated at all.
const FEWEST: usize = 16;

/// Independent values that a series must be worth more than for its scatter to be known.
const FEWEST_EFFECTIVE: f64 = 1.0;

/// Precision of the mean of one series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Precision {
    /// Number of values.
    pub n: usize,
    /// Their mean.
    pub mean: f64,
    /// Integrated autocorrelation time in values; at least 1.
    pub tau: f64,
    /// Effective sample size, n/τ.
    pub ess: f64,
    /// Standard error of the mean, s/√ESS.
    pub error: f64,
}

impl Precision {
    /// Half the width of the interval of the mean at `confidence`; none when fewer than two effective values.
    pub fn half_width(&self, confidence: f64) -> Option<f64> {
        Some(quantile(f64::midpoint(1.0, confidence), self.ess - 1.0)? * self.error)
    }
}

/// Precision of the mean of `values`, which are in the order of time. None for fewer than two.
pub fn precision(values: &[f64]) -> Option<Precision> {
    let whole = describe(values)?;
    let sd = whole.sd?;
    let n = values.len();
    if sd == 0.0 {
        return Some(Precision { n, mean: whole.mean, tau: 1.0, ess: n as f64, error: 0.0 });
    }
    let mut tau: f64 = 1.0;
    let mut batch = 2;
    while n / batch >= FEWEST_BATCHES {
        let means: Vec<f64> =
            values.chunks_exact(batch).map(|c| c.iter().sum::<f64>() / batch as f64).collect();
        let Some(level) = describe(&means).and_then(|m| m.sd) else { break };
        let found = batch as f64 * level.powi(2) / sd.powi(2);
        if found > 0.2 * batch as f64 {
            tau = tau.max(found);
        }
        batch *= 2;
    }
    let ess = n as f64 / tau;
    Some(Precision { n, mean: whole.mean, tau, ess, error: sd / ess.sqrt() })
}

/// Precision of the mean of `values`, whose interval covers of short series too: the larger of the errors of [`precision`]
/// and of an AR(1) with the φ found, its bias corrected and φ/(2√n) put on top. None where it cannot be estimated: of fewer
/// than 16 values. Where it is stated, a 95 % interval holds the mean in 92 to 97 % up to φ = 0.5, from 30 values on in 91 to
/// 97 % up to φ = 0.8, and in 87 % of 20 values with φ = 0.8, of which it is stated for two thirds; of dependent values it is
/// very wide (`cargo xtask bench lab within`).
pub fn conservative_precision(values: &[f64]) -> Option<Precision> {
    let batches = precision(values)?;
    let n = batches.n;
    if n < FEWEST {
        return None;
    }
    // Values that do not vary have no autocorrelation.
    let Some(lag1) = lag1(values) else { return Some(batches) };
    let phi = corrected_phi(lag1, n)?.max(0.0);
    let phi = phi * (1.0 + 0.5 / (n as f64).sqrt());
    let error = batches.error * (batches.ess / n as f64).sqrt() * widening(n, phi)?;
    let ess = effective_count(n, phi).min(batches.ess);
    let tau = n as f64 / ess;
    (ess > FEWEST_EFFECTIVE).then_some(Precision { tau, ess, error: error.max(batches.error), ..batches })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sum of twelve uniform numbers: near enough to normal.
    fn normal(state: &mut u64) -> f64 {
        let mut sum = 0.0;
        for _ in 0..12 {
            *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            sum += (*state >> 11) as f64 / (1_u64 << 53) as f64;
        }
        sum - 6.0
    }

    #[test]
    fn independent_values_are_worth_themselves() {
        let mut state = 1;
        let values: Vec<f64> = (0..4096).map(|_| 100.0 + normal(&mut state)).collect();
        let found = precision(&values).unwrap();
        assert!((1.0..1.6).contains(&found.tau), "{}", found.tau);
        assert!((found.error - 1.0 / 64.0).abs() < 0.006, "{}", found.error);
    }

    #[test]
    fn an_autoregressive_series_has_its_known_time() {
        // AR(1) with coefficient φ has τ = (1 + φ)/(1 − φ) (Sokal 1997): 9 for φ = 0.8.
        let mut taus = Vec::new();
        for seed in 1..=8 {
            let mut state = seed;
            let mut x = 0.0;
            let values: Vec<f64> = (0..16_384)
                .map(|_| {
                    x = 0.8 * x + normal(&mut state);
                    x
                })
                .collect();
            taus.push(precision(&values).unwrap().tau);
        }
        let mean = taus.iter().sum::<f64>() / 8.0;
        assert!((7.0..12.0).contains(&mean), "τ found {mean}, known 9: {taus:?}");
    }

    #[test]
    fn trial_a9_the_mean_of_few_dependent_seconds_is_known_as_well_as_is_said() {
        let mut random = crate::bootstrap::Resampler::new(51);
        for (n, phi) in [(20, 0.0), (20, 0.5), (20, 0.8), (60, 0.5), (60, 0.8)] {
            // What is not stated is not wrong.
            let wrong = (0..1000)
                .filter(|_| {
                    let values = crate::dependence::autoregressive(n, phi, &mut random);
                    let found = conservative_precision(&values);
                    found.is_some_and(|found| {
                        found.half_width(0.95).is_some_and(|half| found.mean.abs() > half)
                    })
                })
                .count();
            assert!(wrong <= 100, "{n} values, φ {phi}: {wrong} of 1000");
        }
        assert_eq!(conservative_precision(&[1.0, 2.0].repeat(7)), None);
        assert_eq!(conservative_precision(&[5.0; 16]), precision(&[5.0; 16]));
        // A walk of 20 seconds is worth hardly any of them.
        assert!(
            conservative_precision(&(0..20).map(f64::from).collect::<Vec<_>>())
                .is_none_or(|found| found.ess < 2.0)
        );
    }

    #[test]
    fn constants_and_single_values_are_no_surprise() {
        assert_eq!(precision(&[5.0; 10]).unwrap().error, 0.0);
        assert!(precision(&[5.0]).is_none());
        assert!(precision(&[]).is_none());
    }
}

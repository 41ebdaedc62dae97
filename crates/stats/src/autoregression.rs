//! Intervals of values that may resemble the preceding ones, like consecutive runs.
//!
//! n values of an autoregressive process of first order, with the correlation φ between adjacent values, determine
//! their mean only as well as about n·(1 − φ)/(1 + φ) independent ones, and their sample scatter is also too small. φ
//! cannot be estimated from six runs, so that no single value is chosen: every φ of a grid is given its posterior
//! weight from a stated prior, earlier series and the values themselves, and the interval is that of the mixture
//! (Zellner and Tiao, Journal of the American Statistical Association 59, 1964: regression with autocorrelated errors;
//! flat in the mean and in the logarithm of the scatter, both integrated out). With more values the data outweigh the
//! prior.

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::student::describe;

/// The largest φ that the prior holds possible; each below it, from 0, is as likely as the other.
pub const LARGEST: f64 = 0.7;

/// Steps of the grid of φ, of which there are 20, from 0 on.
const STEP: f64 = 0.05;
const STEPS: usize = 20;

/// The distribution of φ, the correlation between adjacent values: a weight for each φ of the grid.
#[derive(Debug, Clone, PartialEq)]
pub struct PhiDistribution {
    logs: Vec<f64>,
}

impl Default for PhiDistribution {
    /// The prior: each φ from 0 to [`LARGEST`] alike.
    fn default() -> Self {
        let log = |phi: f64| if phi < LARGEST + STEP / 2.0 { 0.0 } else { f64::NEG_INFINITY };
        Self { logs: grid().map(log).collect() }
    }
}

impl PhiDistribution {
    /// Updates it with a series with a separate mean and scatter, such as an earlier group of runs: its logarithms, in
    /// the order of the runs. A series of fewer than three values, or of equal ones, has no effect.
    #[must_use]
    pub fn updated_with(mut self, series: &[f64]) -> Self {
        if let Some(found) = fits(series).filter(|_| series.len() > 2) {
            for (log, fit) in self.logs.iter_mut().zip(found) {
                *log += fit.log;
            }
        }
        self
    }

    /// The weights, which sum up to 1.
    fn weights(&self) -> Vec<f64> {
        let highest = self.logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let raw: Vec<f64> = self.logs.iter().map(|log| (log - highest).exp()).collect();
        let sum: f64 = raw.iter().sum();
        raw.into_iter().map(|weight| weight / sum).collect()
    }

    /// The mean of φ.
    pub fn phi(&self) -> f64 {
        grid().zip(self.weights()).map(|(phi, weight)| phi * weight).sum()
    }
}

fn grid() -> impl Iterator<Item = f64> {
    (0..STEPS).map(|i| i as f64 * STEP)
}

/// The fit of the values for one correlation φ.
struct Fit {
    /// The mean by generalised least squares.
    mean: f64,
    /// Its standard error; Student's t with n − 1 degrees of freedom is around it.
    error: f64,
    /// Log-likelihood of φ, without terms that are common to all φ.
    log: f64,
}

/// The fits for each φ of the grid; `None` for fewer than two values, equal ones, or one that is not finite.
fn fits(values: &[f64]) -> Option<Vec<Fit>> {
    let sd = describe(values)?.sd?;
    (sd.is_finite() && sd > 0.0).then(|| grid().map(|phi| fit(values, phi)).collect())
}

/// With R the correlation matrix φ^|i−j|, whose inverse has three diagonals: everything in one pass.
fn fit(values: &[f64], phi: f64) -> Fit {
    let n = values.len();
    let (rest, step) = (1.0 - phi * phi, 1.0 - phi);
    // 1'R⁻¹1 and 1'R⁻¹y, times 1 − φ².
    let information = 2.0 * step + (n - 2) as f64 * step * step;
    let sum: f64 = values.iter().sum();
    let ends = values.first().zip(values.last()).map_or(0.0, |(first, last)| first + last);
    let mean = step * (step * sum + phi * ends) / information;
    let first = values.first().map_or(0.0, |value| value - mean);
    let steps = values.windows(2).map(|pair| (pair[1] - mean - phi * (pair[0] - mean)).powi(2));
    let squares = first * first * rest + steps.sum::<f64>();
    let freedom = (n - 1) as f64;
    // |R| = (1 − φ²)^(n−1); both sums above still lack a division by 1 − φ², which falls out of the error.
    let log = -0.5 * (freedom * rest.ln() + (information / rest).ln() + freedom * (squares / rest).ln());
    Fit { mean, error: (squares / freedom / information).sqrt(), log }
}

/// An interval that allows for dependence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DependentInterval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// The two-sided p of 0: how likely a value as far from 0 is where the truth is 0.
    pub p: f64,
    /// The mean of the posterior correlation between adjacent values.
    pub phi: f64,
}

/// The interval of the mean of possibly dependent values in time order, at `confidence`. For constant values it has no
/// width. `None` for fewer than two values, one that is not finite, or a confidence outside (0, 1).
pub fn mean_interval(values: &[f64], belief: &PhiDistribution, confidence: f64) -> Option<DependentInterval> {
    let Some(found) = fits(values) else { return constant(describe(values)?.mean, values, confidence) };
    let belief = belief.clone().updated_with(values);
    let df = (values.len() - 1) as f64;
    let parts = found.into_iter().map(|fit| (fit.mean, fit.error, df));
    mixture(&parts.collect::<Vec<_>>(), &belief, confidence)
}

/// The interval of mean(b) − mean(a), each in time order with a separate mean and scatter and one correlation for both;
/// for each φ it is Welch's. `None` as for [`mean_interval`].
pub fn difference_interval(
    a: &[f64],
    b: &[f64],
    belief: &PhiDistribution,
    confidence: f64,
) -> Option<DependentInterval> {
    let difference = describe(b)?.mean - describe(a)?.mean;
    let (of_a, of_b) = match (fits(a), fits(b)) {
        (None, None) => return constant(difference, &[a, b].concat(), confidence),
        // A side that never varies has a known mean.
        (a_fits, b_fits) => (a_fits, b_fits),
    };
    let belief = belief.clone().updated_with(a).updated_with(b);
    let side = |fits: &Option<Vec<Fit>>, values: &[f64], i: usize| {
        let of = fits.as_ref().and_then(|fits| fits.get(i));
        of.map_or((describe(values).map_or(f64::NAN, |side| side.mean), 0.0), |fit| {
            (fit.mean, fit.error.powi(2))
        })
    };
    let (na, nb) = (a.len().max(2) as f64 - 1.0, b.len().max(2) as f64 - 1.0);
    let parts = (0..STEPS).map(|i| {
        let ((ma, va), (mb, vb)) = (side(&of_a, a, i), side(&of_b, b, i));
        let df = (va + vb).powi(2) / (va.powi(2) / na + vb.powi(2) / nb);
        (mb - ma, (va + vb).sqrt(), df)
    });
    mixture(&parts.collect::<Vec<_>>(), &belief, confidence).filter(|_| a.len().min(b.len()) > 1)
}

fn constant(value: f64, values: &[f64], confidence: f64) -> Option<DependentInterval> {
    let known =
        values.len() > 1 && values.iter().all(|v| v.is_finite()) && confidence > 0.0 && confidence < 1.0;
    known.then(|| DependentInterval {
        low: value,
        high: value,
        p: f64::from(u8::from(value == 0.0)),
        phi: 0.0,
    })
}

/// The interval of a mixture of t distributions (centre, error, degrees of freedom), by false position.
fn mixture(
    parts: &[(f64, f64, f64)],
    belief: &PhiDistribution,
    confidence: f64,
) -> Option<DependentInterval> {
    if !(confidence > 0.0 && confidence < 1.0) {
        return None;
    }
    let weighted: Vec<(f64, f64, StudentsT, f64)> = parts
        .iter()
        .zip(belief.weights())
        .filter(|(_, weight)| *weight > 1e-9)
        .map(|(&(centre, error, df), weight)| {
            // statrs panics on NaN and infinities.
            let usable = centre.is_finite() && error > 0.0 && error.is_finite() && df.is_finite();
            let student = StudentsT::new(0.0, 1.0, df).ok().filter(|_| usable)?;
            Some((centre, error, student, weight))
        })
        .collect::<Option<_>>()?;
    let below = |x: f64| -> f64 {
        weighted.iter().map(|(centre, error, t, weight)| weight * t.cdf((x - centre) / error)).sum()
    };
    let widest = weighted.iter().map(|one| one.1).fold(0.0, f64::max);
    let middle = weighted.iter().map(|one| one.0 * one.3).sum::<f64>();
    let end = |p: f64| root(|x| below(x) - p, middle, widest);
    let tail = (1.0 - confidence) / 2.0;
    let at_zero = below(0.0);
    let (low, high) = (end(tail), end(1.0 - tail));
    let p = (2.0 * at_zero.min(1.0 - at_zero)).clamp(0.0, 1.0);
    (low.is_finite() && high.is_finite()).then(|| DependentInterval { low, high, p, phi: belief.phi() })
}

/// The root of an increasing function of `x`: a bracket from `start` in steps that double, then false position, halving
/// the weight of an end that stays (Illinois; Dowell and Jarratt, BIT 11, 1971).
fn root(of: impl Fn(f64) -> f64, start: f64, step: f64) -> f64 {
    let (mut near, mut reach) = ((start, of(start)), step);
    let side = if near.1 > 0.0 { -1.0 } else { 1.0 };
    let mut far = near;
    while far.1 * side <= 0.0 && (far.0 + side * reach).is_finite() {
        near = far;
        far.0 += side * reach;
        far.1 = of(far.0);
        reach *= 2.0;
    }
    for _ in 0..60 {
        if (far.0 - near.0).abs() <= 1e-9 * step || far.1 == near.1 {
            break;
        }
        let x = far.0 - far.1 * (far.0 - near.0) / (far.1 - near.1);
        let value = of(x);
        if value * far.1 < 0.0 {
            near = far;
        } else {
            near.1 /= 2.0;
        }
        far = (x, value);
        if value.abs() < 1e-12 {
            break;
        }
    }
    far.0
}

#[cfg(test)]
mod tests;

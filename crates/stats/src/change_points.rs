//! Where the level of a history changed.
//!
//! A series is cut at the largest step, and then again on either side (Scott and Knott, Biometrics 30, 1974); long ones
//! also within overlapping windows, in which a temporary change is large, and weak points are removed at the end,
//! beginning with the weakest (Fleming et al., Hunter: Using Change Point Detection to Hunt for Performance
//! Regressions, ICPE 2023; in use as Apache Otava).
//!
//! Consecutive entries resemble each other, and a test that assumes independence finds changes in noise: in two thirds
//! of the histories of 100 entries at φ = 0.5. The noise is therefore modelled as an autoregressive process of first
//! order, whose φ is estimated from the history itself ([`noise_phi`]). A step is then located and tested by the
//! innovation of each value, which shows where it begins. A temporary jump, or noise that follows no such process, can
//! look like a step: so the means of both levels have to differ, too, with their effective number of values
//! ([`crate::dependence::effective_count`]).

mod noise;
mod steps;

use std::ops::Range;

use crate::dependence::effective_count;
use crate::student::describe;
use crate::student::two_sided;

pub use noise::noise_phi;
use steps::Steps;

/// Minimum number of values on either side of a cut; fewer have no scatter.
const FEWEST: usize = 2;

/// Degrees of freedom that even two short levels have.
const FEWEST_FREEDOM: f64 = 2.0;

/// Number of values up to which positions are tested at the requested p.
const PLACES: f64 = 100.0;

/// The means of two levels have to differ with a p of at most this multiple of the p of a step.
const OF_MEANS: f64 = 3.0;

/// The multiple of p with which candidate points are found before the final selection.
const WEAK: f64 = 10.0;

/// Criteria of a change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// Values searched together, in addition to the whole series; windows overlap by half. At least 10.
    pub window: usize,
    /// A point is kept when the t test of its step has a p below this; with more than 100 values, below this times 100
    /// divided by their number, since there are correspondingly more positions to search.
    pub p: f64,
    /// A point is kept when the level changes by more than this part of the previous one (0.02 = 2 %).
    pub magnitude: f64,
}

impl Default for Options {
    /// Windows of 50, p < 0.0005, any magnitude. More than one in two thousand histories of pure noise have a change
    /// point then, since the position tested is the most extreme of all: 1 to 5 % of those of 100 values, for any φ up
    /// to 0.9 (`cargo xtask bench lab history`).
    fn default() -> Self {
        Self { window: 50, p: 0.0005, magnitude: 0.0 }
    }
}

/// A place where the level changed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChangePoint {
    /// The first value of the new level.
    pub index: usize,
    /// Mean of the values from the previous change point to this one.
    pub before: f64,
    /// Mean of the values from this one to the next change point.
    pub after: f64,
    /// The p of the t test for the step between the two, by generalised least squares; 1 where their means do not
    /// differ. It is biased by the search for the position, so compare it only with [`Options::p`].
    pub p: f64,
}

/// The change points of `values`, in order of time. None of them when a value is not finite.
pub fn find(values: &[f64], options: &Options) -> Vec<ChangePoint> {
    if values.iter().any(|v| !v.is_finite()) {
        return Vec::new();
    }
    let phi = noise_phi(values);
    let noise = Noise { steps: Steps::from_values(values, phi), levels: Levels::from_values(values, phi) };
    let strong = options.p * (PLACES / values.len() as f64).min(1.0);
    let window = options.window.max(10);
    let mut cuts: Vec<usize> = Vec::new();
    noise.divide(0..values.len(), WEAK * strong, &mut cuts);
    // A temporary change is small relative to the whole series, and large within a window.
    let mut start = 0;
    while start + window < values.len() {
        noise.divide(start..start + window, WEAK * strong, &mut cuts);
        start += window / 2;
    }
    if values.len() > window {
        noise.divide(values.len() - window..values.len(), WEAK * strong, &mut cuts);
    }
    cuts.sort_unstable();
    cuts.dedup();
    noise.merge(values, cuts, strong, options.magnitude)
}

/// The model of the noise around the levels.
struct Noise {
    steps: Steps,
    levels: Levels,
}

impl Noise {
    /// Cuts at the largest step, if it is large enough, and then each part again.
    fn divide(&self, range: Range<usize>, p: f64, cuts: &mut Vec<usize>) {
        let Some(cut) = self.steps.largest(range.clone()) else { return };
        if self.steps.p(range.clone(), cut) >= p {
            return;
        }
        cuts.push(cut);
        self.divide(range.start..cut, p, cuts);
        self.divide(cut..range.end, p, cuts);
    }

    /// The points between the levels that `cuts` leave.
    fn points(&self, values: &[f64], cuts: &[usize], strong: f64) -> Vec<ChangePoint> {
        let ends = cuts.iter().skip(1).copied().chain([values.len()]);
        let starts = std::iter::once(0).chain(cuts.iter().copied());
        let point = |((start, cut), end): ((usize, usize), usize)| {
            let (before, after) = (&values[start..cut], &values[cut..end]);
            let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
            let differ = self.levels.p(before, after) < OF_MEANS * strong;
            let p = if differ { self.steps.p(start..end, cut) } else { 1.0 };
            ChangePoint { index: cut, before: mean(before), after: mean(after), p }
        };
        starts.zip(cuts.iter().copied()).zip(ends).map(point).collect()
    }

    /// Removes the weakest point and judges the rest anew, until all that are left are strong and large enough.
    fn merge(&self, values: &[f64], mut cuts: Vec<usize>, strong: f64, least: f64) -> Vec<ChangePoint> {
        let size = |point: &ChangePoint| (point.after - point.before).abs() / point.before.abs();
        loop {
            let points = self.points(values, &cuts, strong);
            let weakest = (0..points.len())
                .filter(|&i| points[i].p >= strong)
                .max_by(|&i, &j| points[i].p.total_cmp(&points[j].p));
            let smallest = || {
                (0..points.len())
                    .filter(|&i| size(&points[i]) <= least)
                    .min_by(|&i, &j| size(&points[i]).total_cmp(&size(&points[j])))
            };
            match weakest.or_else(smallest) {
                Some(i) => cuts.remove(i),
                None => return points,
            };
        }
    }
}

/// The effective number of values of one level.
struct Levels {
    /// The effective number, by the actual number.
    effective: Vec<f64>,
}

impl Levels {
    fn from_values(values: &[f64], phi: f64) -> Self {
        Self { effective: (0..=values.len()).map(|n| effective_count(n, phi)).collect() }
    }

    /// Student's two-sided p between the means of two levels.
    fn p(&self, before: &[f64], after: &[f64]) -> f64 {
        let (Some(a), Some(b)) = (describe(before), describe(after)) else { return 1.0 };
        let (of_a, of_b) = (self.effective[a.n], self.effective[b.n]);
        // Squares around a mean that follows the values: n − n/n′ of σ² each.
        let kept = |n: usize, effective: f64| n as f64 - n as f64 / effective;
        let squares = |s: crate::student::Sample| s.sd.map_or(0.0, |sd| sd.powi(2) * (s.n - 1) as f64);
        let variance = (squares(a) + squares(b)) / (kept(a.n, of_a) + kept(b.n, of_b));
        let error = (variance * (1.0 / of_a + 1.0 / of_b)).sqrt();
        if error > 0.0 {
            let df = (of_a + of_b - 2.0).max(FEWEST_FREEDOM);
            two_sided((b.mean - a.mean) / error, df).unwrap_or(1.0)
        } else {
            f64::from(a.mean == b.mean)
        }
    }
}

#[cfg(test)]
mod tests;

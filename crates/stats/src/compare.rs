//! Whether B differs from A: the one comparison of runs everything else judges by.
//!
//! The unit is the run, never the seconds within one. Values are compared as logarithms, so that the answer is a ratio
//! and its interval is symmetric in it (b/a and a/b say the same).

mod censored;

pub use censored::compare_bounds;

use crate::autoregression::{self, PhiDistribution};
use crate::permutation::{sign_flip, two_samples};
use crate::power::{self, FEWEST};
use crate::rank;
use crate::student::{Ratio, paired_ratio, quantile, welch_ratio};

/// What is compared. All values must be above 0.
#[derive(Debug, Clone, Copy)]
pub enum ComparedSamples<'a> {
    /// The i-th of `a` and the i-th of `b` share a block: what changed from block to block cancels out.
    Paired {
        /// The baseline, one value a block.
        a: &'a [f64],
        /// What is compared with it, in the same blocks.
        b: &'a [f64],
    },
    /// Two groups of runs in an order that was drawn, or in turn: that neighbours resemble each other strikes both alike.
    Independent {
        /// The baseline.
        a: &'a [f64],
        /// What is compared with it.
        b: &'a [f64],
    },
    /// Two groups of which each was measured in one go: its runs may resemble each other ([`autoregression`]).
    Consecutive {
        /// The baseline, in the order of its runs.
        a: &'a [f64],
        /// What is compared with it, likewise.
        b: &'a [f64],
    },
}

impl<'a> ComparedSamples<'a> {
    fn both(self) -> (&'a [f64], &'a [f64]) {
        let (Self::Paired { a, b } | Self::Independent { a, b } | Self::Consecutive { a, b }) = self;
        (a, b)
    }
}

/// The answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeVerdict {
    /// Fewer than four runs a side: whatever they show may be chance.
    NotTestable,
    /// The interval holds 1: no change is shown, which is not yet that there is none (see [`ruled_out`]).
    NoChange,
    /// The interval holds 1, and would not if runs that follow each other were independent: whether there is a change, or
    /// only a level that lasts for some runs, is not detected by groups that were each measured at one time.
    Undetermined,
    /// There is a change, and the estimate is within the noise: too small to matter, or to be resolved here.
    WithinNoise,
    /// There is a change, larger than the noise.
    Changed,
}

impl ChangeVerdict {
    /// As every command and report calls it. "No change" alone would be a claim: see [`ruled_out`].
    pub fn label(self) -> &'static str {
        match self {
            Self::NotTestable => "not testable",
            Self::NoChange => "no change shown",
            Self::Undetermined => "undetermined",
            Self::WithinNoise => "within noise",
            Self::Changed => "changed",
        }
    }
}

/// B against A.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeasuredChange {
    /// B/A, of geometric means, with its interval.
    pub ratio: Ratio,
    /// The probability of a difference as large, up or down, by chance: of all relabellings of the runs (exact, or
    /// drawn with a fixed seed where there are too many). Of consecutive groups no relabelling is as likely as another: it
    /// is that of the interval.
    pub p: f64,
    /// B/A by Hodges and Lehmann's estimate, which outliers do not move: if it is far from `ratio`, look at the runs.
    pub hodges_lehmann: f64,
    /// Runs on side A and on side B.
    pub n: (usize, usize),
    /// The answer.
    pub verdict: ChangeVerdict,
    /// The correlation of neighbouring runs that the interval allows for, of consecutive groups.
    pub phi: Option<f64>,
    /// What was done, as text.
    pub method: &'static str,
}

/// Compares. `noise` is the smallest relative change that matters (0.01 = 1 %): a change is within it when neither B/A
/// nor A/B exceeds 1 + noise. `confidence` is the interval's, 0.95 by custom; "changed" is then a false alarm in at
/// most 5 % of comparisons of like with like. Pairs: Student's t of the logarithms of the ratios; independent runs:
/// Welch's t of the logarithms (see [`paired_ratio`], [`welch_ratio`]); consecutive ones: the same, allowing for a
/// correlation of neighbours ([`autoregression::difference_interval`], with its prior). The verdict is the interval's, the p
/// stands beside it as a check without its assumption. The three-way verdict is that of criterion.rs.
///
/// None with fewer than two runs a side, pairs of unequal number, a value that is not above 0 and finite, a noise below
/// 0 or a confidence outside (0, 1).
pub fn compare(sides: ComparedSamples<'_>, noise: f64, confidence: f64) -> Option<MeasuredChange> {
    if !(noise >= 0.0 && noise.is_finite() && confidence > 0.0 && confidence < 1.0) {
        return None;
    }
    let (a, b) = sides.both();
    let (ratio, dependent) = interval(sides, confidence)?;
    let (log_a, log_b) = (logarithms(a), logarithms(b));
    let phi = dependent.map(|found| found.phi);
    let (p, shift, method) = match sides {
        ComparedSamples::Paired { .. } => {
            let ratios: Vec<f64> = a.iter().zip(b).map(|(a, b)| (b / a).ln()).collect();
            let shift = rank::hodges_lehmann_paired(&ratios)?;
            (sign_flip(&ratios)?, shift, "Student's t on paired log ratios; p by sign flipping")
        }
        ComparedSamples::Independent { .. } => {
            let shift = rank::hodges_lehmann(&log_a, &log_b)?;
            (two_samples(&log_a, &log_b)?, shift, "Welch's t on logarithms; p by permutation")
        }
        ComparedSamples::Consecutive { .. } => {
            let shift = rank::hodges_lehmann(&log_a, &log_b)?;
            (dependent?.p, shift, "Welch's t on logarithms, adjusted for dependence of consecutive runs")
        }
    };
    let n = (a.len(), b.len());
    let holds_one = |ratio: Ratio| ratio.low <= 1.0 && 1.0 <= ratio.high;
    let verdict = if n.0.min(n.1) < FEWEST {
        ChangeVerdict::NotTestable
    } else if holds_one(ratio) {
        let independent = phi.is_some().then(|| welch_ratio(a, b, confidence)).flatten();
        if independent.is_some_and(|ratio| !holds_one(ratio)) {
            ChangeVerdict::Undetermined
        } else {
            ChangeVerdict::NoChange
        }
    } else if ratio.ratio.ln().abs() <= noise.ln_1p() {
        ChangeVerdict::WithinNoise
    } else {
        ChangeVerdict::Changed
    };
    Some(MeasuredChange { ratio, p, hodges_lehmann: shift.exp(), n, verdict, phi, method })
}

/// The smallest relative change of which both directions are ruled out (0.01: neither B/A nor A/B exceeds 1.01): the two
/// one-sided tests reject every larger one, each at 1 − `confidence` (Schuirmann, Journal of Pharmacokinetics and
/// Biopharmaceutics 15, 1987). Where it lies below what matters, "no change shown" is "no change". None as [`compare`],
/// with a confidence up to 0.5, and with fewer than four runs a side.
pub fn ruled_out(sides: ComparedSamples<'_>, confidence: f64) -> Option<f64> {
    let (a, b) = sides.both();
    if a.len().min(b.len()) < FEWEST || confidence.is_nan() || confidence <= 0.5 {
        return None;
    }
    let (ratio, _) = interval(sides, 2.0 * confidence - 1.0)?;
    Some(ratio.low.ln().abs().max(ratio.high.ln().abs()).exp_m1())
}

/// The smallest relative change that a comparison with as many runs, which scatter as these do, calls changed with the
/// probability `power`. It follows from the width of the interval and not from where it lies. None as [`compare`], with
/// fewer than four runs a side, and where not even a tenfold change would be found.
pub fn detectable(sides: ComparedSamples<'_>, noise: f64, confidence: f64, power: f64) -> Option<f64> {
    let (a, b) = sides.both();
    if a.len().min(b.len()) < FEWEST {
        return None;
    }
    let df = match sides {
        ComparedSamples::Paired { .. } => a.len() - 1,
        ComparedSamples::Independent { .. } | ComparedSamples::Consecutive { .. } => a.len() + b.len() - 2,
    };
    let (ratio, _) = interval(sides, confidence)?;
    let error = (ratio.high / ratio.low).ln() / 2.0 / quantile(f64::midpoint(1.0, confidence), df as f64)?;
    power::smallest_effect(power, |effect| {
        power::verdict_power_with_error(error, df as f64, effect, noise, confidence)
    })
}

/// The ratio and its interval, of width 0 where nothing varies at all; of consecutive groups with what it allows for.
fn interval(
    sides: ComparedSamples<'_>,
    confidence: f64,
) -> Option<(Ratio, Option<autoregression::DependentInterval>)> {
    let (a, b) = sides.both();
    if a.iter().chain(b).any(|v| !v.is_finite()) {
        return None;
    }
    match sides {
        ComparedSamples::Paired { .. } => Some((paired_ratio(a, b, confidence)?, None)),
        ComparedSamples::Independent { .. } => Some((welch_ratio(a, b, confidence)?, None)),
        ComparedSamples::Consecutive { .. } => {
            let ratio = welch_ratio(a, b, confidence)?.ratio;
            let (a, b) = (logarithms(a), logarithms(b));
            let found = autoregression::difference_interval(&a, &b, &PhiDistribution::default(), confidence)?;
            Some((Ratio { ratio, low: found.low.exp(), high: found.high.exp() }, Some(found)))
        }
    }
}

fn logarithms(values: &[f64]) -> Vec<f64> {
    values.iter().map(|v| v.ln()).collect()
}

#[cfg(test)]
mod tests;

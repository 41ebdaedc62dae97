//! Whether B differs from A: the one comparison of runs everything else judges by.
//!
//! The unit is the run, never the seconds within one. Values are compared as logarithms, so that the answer is a ratio
//! and its interval is symmetric in it (b/a and a/b say the same).

use crate::permutation::{sign_flip, two_samples};
use crate::rank;
use crate::student::{Ratio, paired_ratio, welch_ratio};

/// Runs a side below which nothing is judged: the exact p of three against three is 0.1 at best, whatever they show.
pub const FEWEST: usize = 4;

/// What is compared. All values must be above 0.
#[derive(Debug, Clone, Copy)]
pub enum Sides<'a> {
    /// The i-th of `a` and the i-th of `b` share a block: what changed from block to block cancels out.
    Paired {
        /// The baseline, one value a block.
        a: &'a [f64],
        /// What is compared with it, in the same blocks.
        b: &'a [f64],
    },
    /// Two groups of runs that have nothing but the machine in common.
    Independent {
        /// The baseline.
        a: &'a [f64],
        /// What is compared with it.
        b: &'a [f64],
    },
}

/// The answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Fewer than four runs a side: whatever they show may be chance.
    NotTestable,
    /// The interval holds 1: no change is shown, which is not yet that there is none (see [`equivalent`]).
    NoChange,
    /// There is a change, and the estimate is within the noise: too small to matter, or to be resolved here.
    WithinNoise,
    /// There is a change, larger than the noise.
    Changed,
}

impl Verdict {
    /// As every command and report calls it. "No change" alone would be a claim: see [`equivalent`].
    pub fn words(self) -> &'static str {
        match self {
            Self::NotTestable => "not testable",
            Self::NoChange => "no change shown",
            Self::WithinNoise => "within noise",
            Self::Changed => "changed",
        }
    }
}

/// B against A.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// B/A, of geometric means, with its interval.
    pub ratio: Ratio,
    /// The probability of a difference as large, up or down, by chance: of all relabellings of the runs (exact, or
    /// drawn with a fixed seed where there are too many).
    pub p: f64,
    /// B/A by Hodges and Lehmann's estimate, which outliers do not move: if it is far from `ratio`, look at the runs.
    pub hodges_lehmann: f64,
    /// Runs on side A and on side B.
    pub n: (usize, usize),
    /// The answer.
    pub verdict: Verdict,
    /// What was done, in words.
    pub method: &'static str,
}

/// Compares. `noise` is the smallest relative change that matters (0.01 = 1 %): a change is within it when neither B/A
/// nor A/B exceeds 1 + noise. `confidence` is the interval's, 0.95 by custom; "changed" is then a false alarm in at
/// most 5 % of comparisons of like with like. Pairs: Student's t of the logarithms of the ratios; independent runs:
/// Welch's t of the logarithms (see [`paired_ratio`], [`welch_ratio`]); the verdict is the interval's, the p stands
/// beside it as a check without its assumption. The three-way verdict is that of criterion.rs.
///
/// None with fewer than two runs a side, pairs of unequal number, a value that is not above 0 and finite, a noise below
/// 0 or a confidence outside (0, 1).
pub fn compare(sides: Sides<'_>, noise: f64, confidence: f64) -> Option<Change> {
    if !(noise >= 0.0 && noise.is_finite() && confidence > 0.0 && confidence < 1.0) {
        return None;
    }
    let ratio = interval(sides, confidence)?;
    let (Sides::Paired { a, b } | Sides::Independent { a, b }) = sides;
    let (p, shift, method) = match sides {
        Sides::Paired { .. } => {
            let ratios: Vec<f64> = a.iter().zip(b).map(|(a, b)| (b / a).ln()).collect();
            let shift = rank::hodges_lehmann_paired(&ratios)?;
            (sign_flip(&ratios)?, shift, "Student's t of the pairs' log ratios; p by flipping signs")
        }
        Sides::Independent { .. } => {
            let (a, b) = (logarithms(a), logarithms(b));
            let shift = rank::hodges_lehmann(&a, &b)?;
            (two_samples(&a, &b)?, shift, "Welch's t of logarithms; p by permutation")
        }
    };
    let n = (a.len(), b.len());
    let verdict = if n.0.min(n.1) < FEWEST {
        Verdict::NotTestable
    } else if ratio.low <= 1.0 && 1.0 <= ratio.high {
        Verdict::NoChange
    } else if ratio.ratio.ln().abs() <= noise.ln_1p() {
        Verdict::WithinNoise
    } else {
        Verdict::Changed
    };
    Some(Change { ratio, p, hodges_lehmann: shift.exp(), n, verdict, method })
}

/// Whether a change by more than `margin` (0.01 = 1 %) is ruled out: both one-sided tests reject it (Schuirmann, Journal
/// of Pharmacokinetics and Biopharmaceutics 15, 1987), each at 1 − `confidence`. It is what turns "no change shown" into
/// "no change". None as [`compare`], and with fewer than four runs a side.
pub fn equivalent(sides: Sides<'_>, margin: f64, confidence: f64) -> Option<bool> {
    let (Sides::Paired { a, b } | Sides::Independent { a, b }) = sides;
    if a.len().min(b.len()) < FEWEST || !(margin > 0.0 && confidence > 0.5) {
        return None;
    }
    let ratio = interval(sides, 2.0 * confidence - 1.0)?;
    let bound = 1.0 + margin;
    Some(1.0 / bound < ratio.low && ratio.high < bound)
}

/// The ratio and its interval; of width 0 where nothing varies at all.
fn interval(sides: Sides<'_>, confidence: f64) -> Option<Ratio> {
    let (Sides::Paired { a, b } | Sides::Independent { a, b }) = sides;
    if a.iter().chain(b).any(|v| !v.is_finite()) {
        return None;
    }
    match sides {
        Sides::Paired { a, b } => paired_ratio(a, b, confidence),
        Sides::Independent { a, b } => welch_ratio(a, b, confidence),
    }
}

fn logarithms(values: &[f64]) -> Vec<f64> {
    values.iter().map(|v| v.ln()).collect()
}

#[cfg(test)]
mod tests;

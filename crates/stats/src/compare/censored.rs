//! Values of which some are lower bounds: a percentile that falls among unanswered arrivals.

use super::{ChangeVerdict, ComparedSamples, FEWEST, MeasuredChange, compare};
use crate::permutation::{sign_flip, two_samples};

/// As [`compare`], where some values are lower bounds: `at_least` marks those of A and of B.
///
/// The interval is that of the bounds taken as values, and each end that such values could move is open: if only B has
/// some, its true mean is not below that of its bounds, so that the lower end holds and there is no upper one (∞); if
/// only A has some, there is no lower end (0); if both have, there is neither. The p is rank-based, which needs only
/// the order of the values: for pairs Wilcoxon's signed ranks (Biometrics Bulletin 1, 1945), for independent runs
/// Gehan's scores (Biometrika 52, 1965), ties counting as equal; both with their exact distributions. The verdict is a
/// change if an end of the interval shows it and the estimate is beyond the noise, or, with neither end, if p does at
/// the level of the interval. It is never "within noise", since the size of the difference is unknown.
///
/// `None` as for [`compare`], and when there is not one mark for each value.
pub fn compare_bounds(
    sides: ComparedSamples<'_>,
    at_least: (&[bool], &[bool]),
    noise: f64,
    confidence: f64,
) -> Option<MeasuredChange> {
    let (a, b) = sides.both();
    let (of_a, of_b) = at_least;
    if of_a.len() != a.len() || of_b.len() != b.len() {
        return None;
    }
    let mut change = compare(sides, noise, confidence)?;
    let (open_a, open_b) = (of_a.contains(&true), of_b.contains(&true));
    if !open_a && !open_b {
        return Some(change);
    }
    let bounded = |values: &[f64], marks: &[bool]| -> Vec<Value> {
        values.iter().zip(marks).map(|(value, mark)| Value { log: value.ln(), at_least: *mark }).collect()
    };
    let (a, b) = (bounded(a, of_a), bounded(b, of_b));
    let (higher, p, method) = match sides {
        ComparedSamples::Paired { .. } => {
            let ranks = signed_ranks(&a, &b);
            let words =
                "bounds: Student's t on paired log ratios, open at censored values; p from signed ranks";
            (ranks.iter().sum::<f64>() > 0.0, sign_flip(&ranks)?, words)
        }
        ComparedSamples::Independent { .. } | ComparedSamples::Consecutive { .. } => {
            let (a, b) = gehan(&a, &b);
            let words = "bounds: Welch's t on logarithms, open at censored values; p from Gehan's scores";
            (b.iter().sum::<f64>() > 0.0, two_samples(&a, &b)?, words)
        }
    };
    let ratio = &mut change.ratio;
    if open_a {
        ratio.low = 0.0;
    }
    if open_b {
        ratio.high = f64::INFINITY;
    }
    let beyond = ratio.ratio.ln().abs() > noise.ln_1p();
    // Ranks of runs that may resemble their neighbours are not exchangeable: their p is not used.
    let exchangeable = !matches!(sides, ComparedSamples::Consecutive { .. });
    let shown = if open_a && open_b {
        exchangeable && p <= 1.0 - confidence && higher == (ratio.ratio > 1.0)
    } else {
        ratio.low > 1.0 || ratio.high < 1.0
    };
    change.verdict = if change.n.0.min(change.n.1) < FEWEST {
        ChangeVerdict::NotTestable
    } else if shown && beyond {
        ChangeVerdict::Changed
    } else {
        ChangeVerdict::NoChange
    };
    (change.p, change.method) = (p, method);
    Some(change)
}

#[derive(Debug, Clone, Copy)]
struct Value {
    log: f64,
    at_least: bool,
}

impl Value {
    /// Whether it is certainly longer than another; a bound is longer than a value that it equals.
    fn exceeds(self, other: Self) -> bool {
        !other.at_least && (self.log > other.log || self.at_least && self.log >= other.log)
    }
}

/// Of each pair the rank of how far apart its values are at least, with the sign of B − A; 0 where neither is the longer
/// for certain. Equal distances share the mean of their ranks.
fn signed_ranks(a: &[Value], b: &[Value]) -> Vec<f64> {
    let distance = |(a, b): (&Value, &Value)| match (b.exceeds(*a), a.exceeds(*b)) {
        (true, _) => (1.0, b.log - a.log),
        (_, true) => (-1.0, a.log - b.log),
        _ => (0.0, 0.0),
    };
    let pairs: Vec<(f64, f64)> = a.iter().zip(b).map(distance).collect();
    let signed = || pairs.iter().filter(|(sign, _)| *sign != 0.0);
    let rank = |of: f64| {
        let below = signed().filter(|(_, distance)| *distance < of).count();
        let upto = signed().filter(|(_, distance)| *distance <= of).count();
        (below + upto + 1) as f64 / 2.0
    };
    pairs.iter().map(|(sign, distance)| if *sign == 0.0 { 0.0 } else { sign * rank(*distance) }).collect()
}

/// For each value, the number of values that it exceeds, minus the number that exceed it.
fn gehan(a: &[Value], b: &[Value]) -> (Vec<f64>, Vec<f64>) {
    let all = || a.iter().chain(b);
    let score = |one: &Value| {
        let sign = |other: &Value| i32::from(one.exceeds(*other)) - i32::from(other.exceeds(*one));
        f64::from(all().map(sign).sum::<i32>())
    };
    (a.iter().map(score).collect(), b.iter().map(score).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bootstrap::Resampler;

    const NONE: [bool; 6] = [false; 6];

    #[test]
    fn trial_a1_a_bound_opens_the_end_that_it_could_move_and_no_other() {
        let a = [10.0, 10.2, 9.9, 10.1, 10.0, 9.8];
        let slower = a.map(|value| value * 1.3);
        let one = [false, false, true, false, false, false];
        let pairs = ComparedSamples::Paired { a: &a, b: &slower };
        let exact = compare(pairs, 0.01, 0.95).unwrap();
        let found = compare_bounds(pairs, (&NONE, &one), 0.01, 0.95).unwrap();
        assert_eq!((found.ratio.low, found.ratio.high), (exact.ratio.low, f64::INFINITY));
        assert_eq!((found.verdict, found.p), (ChangeVerdict::Changed, 2.0 / 64.0));
        // Faster as far as is known: the bound could lie anywhere above.
        let faster = a.map(|value| value * 0.7);
        let sides = ComparedSamples::Paired { a: &a, b: &faster };
        assert_eq!(
            compare_bounds(sides, (&NONE, &one), 0.01, 0.95).unwrap().verdict,
            ChangeVerdict::NoChange
        );
        let found = compare_bounds(sides, (&one, &NONE), 0.01, 0.95).unwrap();
        assert_eq!((found.ratio.low, found.verdict), (0.0, ChangeVerdict::Changed));
        assert_eq!(compare_bounds(sides, (&NONE, &NONE), 0.01, 0.95), compare(sides, 0.01, 0.95));
        assert_eq!(compare_bounds(sides, (&NONE, &[true]), 0.01, 0.95), None);
        // Bounds on both sides: the order of the others decides.
        let both = ComparedSamples::Independent { a: &a, b: &slower };
        let found = compare_bounds(both, (&one, &one), 0.01, 0.95).unwrap();
        assert_eq!((found.ratio.low, found.ratio.high), (0.0, f64::INFINITY));
        assert_eq!(found.verdict, ChangeVerdict::Changed, "{found:?}");
        let all = [true; 6];
        assert_eq!(compare_bounds(both, (&all, &all), 0.01, 0.95).unwrap().p, 1.0);
    }

    #[test]
    fn trial_a1_values_cut_from_above_raise_no_more_false_alarms_than_they_may() {
        let mut random = Resampler::new(2611);
        for paired in [true, false] {
            let mut alarms = 0;
            for _ in 0..1000 {
                let mut draw = || -> (Vec<f64>, Vec<bool>) {
                    // A value above a limit that varies from run to run is only known as a lower bound.
                    let one = |_| {
                        let (value, limit) = (random.normal() * 0.1, 0.05 + random.normal() * 0.1);
                        (f64::exp(value.min(limit)), value > limit)
                    };
                    (0..8).map(one).unzip()
                };
                let ((a, of_a), (b, of_b)) = (draw(), draw());
                let (a, b) = (&a[..], &b[..]);
                let sides = if paired {
                    ComparedSamples::Paired { a, b }
                } else {
                    ComparedSamples::Independent { a, b }
                };
                let found = compare_bounds(sides, (&of_a, &of_b), 0.0, 0.95).unwrap();
                alarms += u32::from(found.verdict == ChangeVerdict::Changed);
            }
            // 5 % and three standard errors.
            assert!(alarms <= 70, "paired: {paired}: {alarms} of 1000");
        }
    }
}

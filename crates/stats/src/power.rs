//! The required number of runs: planned from a pilot's scatter before the study, so that a study is not stopped when
//! its result happens to look good.
//!
//! All values are logarithms, as in [`crate::compare`]. The power is that of the noncentral t and not of the normal
//! approximation 15.7·(CV/δ)², which is too optimistic for small numbers: at six runs per side it is a run or two short
//! (Cohen, Statistical Power Analysis for the Behavioral Sciences, 1988, section 2.4).

use crate::noncentral::{self, mean_over_scale};
use crate::normal;
use crate::student::quantile;

/// The default power: an effect is found in nine of ten studies. The usual 0.8 loses every fifth study, after all of
/// its runs were made.
pub const POWER: f64 = 0.9;

/// Runs a side below which nothing is judged: the exact p of three against three is 0.1 at best, whatever they show.
pub const FEWEST: usize = 4;

/// The largest effect that is considered.
const LARGEST: f64 = 10.0;

/// The maximum number of runs.
const MOST: u32 = 1_000_000;

/// Runs on each side of a comparison of independent runs, so that a relative change by `effect` (0.03 or −0.03 = 3 %)
/// is found with probability `power` by the two-sided t test at 1 − `confidence`, when the runs of either side scatter
/// with the coefficient of variation `cv` (0.01 = 1 %; of logarithms the deviation is √ln(1 + CV²)). At least four, as
/// fewer are not judged. None when the effect is 0 or not above −100 %, the power or the confidence is not within (0, 1),
/// the scatter is below 0, or a million runs do not suffice.
pub fn runs_a_side(cv: f64, effect: f64, power: f64, confidence: f64) -> Option<u32> {
    fewest(power, |n| detection_power(n, cv, effect, confidence))
}

/// Pairs (blocks with one run of each side), likewise, when the logarithms of the pairs' ratios have the standard
/// deviation `sd_of_log_ratio`.
pub fn pairs(sd_of_log_ratio: f64, effect: f64, power: f64, confidence: f64) -> Option<u32> {
    fewest(power, |n| paired_detection_power(n, sd_of_log_ratio, effect, confidence))
}

/// The probability that [`runs_a_side`]'s test finds the effect with `n` runs per side, n at least 2.
pub fn detection_power(n: u32, cv: f64, effect: f64, confidence: f64) -> Option<f64> {
    let sd = (cv.powi(2).ln_1p()).sqrt();
    found(effect, sd * (2.0 / f64::from(n)).sqrt(), 2.0 * f64::from(n) - 2.0, confidence)
        .filter(|_| cv >= 0.0)
}

/// The probability that [`pairs`]' test finds the effect with `n` pairs, n at least 2.
pub fn paired_detection_power(n: u32, sd_of_log_ratio: f64, effect: f64, confidence: f64) -> Option<f64> {
    found(effect, sd_of_log_ratio / f64::from(n).sqrt(), f64::from(n) - 1.0, confidence)
}

/// [`pairs`], so that the verdict is "changed": the test finds the effect, and the estimate is beyond the `noise`, too
/// ([`crate::compare::compare`]). A change equal to the noise gets this verdict in half of the studies however many pairs
/// there are, and a smaller one in fewer: `None` for an effect that is not larger than the noise.
pub fn pairs_beyond(
    sd_of_log_ratio: f64,
    effect: f64,
    noise: f64,
    power: f64,
    confidence: f64,
) -> Option<u32> {
    (effect.ln_1p().abs() > noise.ln_1p()).then_some(())?;
    fewest(power, |n| paired_verdict_power(n, sd_of_log_ratio, effect, noise, confidence))
}

/// The probability that the verdict on the effect is "changed" with `n` pairs, n at least 2.
pub fn paired_verdict_power(
    n: u32,
    sd_of_log_ratio: f64,
    effect: f64,
    noise: f64,
    confidence: f64,
) -> Option<f64> {
    changed(effect, sd_of_log_ratio / f64::from(n).sqrt(), f64::from(n) - 1.0, noise, confidence)
}

/// The probability that the verdict on the effect is "changed" by a comparison of any design, when the difference of
/// logarithms that it estimates has the standard error `error`, with `df` degrees of freedom.
pub fn verdict_power_with_error(
    error: f64,
    df: f64,
    effect: f64,
    noise: f64,
    confidence: f64,
) -> Option<f64> {
    changed(effect, error, df, noise, confidence)
}

/// The first number from `least` on for which `found` gives a probability of at least `power`, where more find more. None
/// when the power is not within (0, 1), `found` gives none, or a million do not suffice.
pub fn fewest_from(least: u32, power: f64, found: impl Fn(u32) -> Option<f64>) -> Option<u32> {
    if !(power > 0.0 && power < 1.0) {
        return None;
    }
    first(least, |n| found(n).map(|found| found >= power))
}

/// The smallest effect, to a thousandth of itself, for which `found` gives a probability of at least `power`, where larger
/// ones are found more often. None when not even a tenfold increase is.
pub fn smallest_effect(power: f64, found: impl Fn(f64) -> Option<f64>) -> Option<f64> {
    let enough = |effect: f64| found(effect).is_some_and(|probability| probability >= power);
    let (mut low, mut high) = (1e-6, LARGEST);
    if !enough(high) {
        return None;
    }
    while high / low > 1.001 {
        let middle = (low * high).sqrt();
        if enough(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(high)
}

/// Runs after which the interval of their mean is expected to be at most `half_width` of the mean to either side
/// (0.01 = 1 %), when they scatter with the coefficient of variation `cv`: the first n with t·CV/√n ≤ w. At least two.
/// None when the width is not above 0, the scatter is below 0, the confidence is not within (0, 1), or a million runs do
/// not suffice.
pub fn runs_for_interval(cv: f64, half_width: f64, confidence: f64) -> Option<u32> {
    if !(half_width > 0.0 && cv >= 0.0 && confidence > 0.0) {
        return None;
    }
    let half = |n: u32| {
        let t = quantile(f64::midpoint(1.0, confidence), f64::from(n) - 1.0)?;
        Some(t * cv / f64::from(n).sqrt())
    };
    first(2, |n| half(n).map(|half| half <= half_width))
}

fn fewest(power: f64, found: impl Fn(u32) -> Option<f64>) -> Option<u32> {
    fewest_from(FEWEST as u32, power, found)
}

/// The first number from `least` on for which a monotonic condition holds.
fn first(least: u32, holds: impl Fn(u32) -> Option<bool>) -> Option<u32> {
    let mut high = least;
    while !holds(high)? {
        if high >= MOST {
            return None;
        }
        high = (high * 2).min(MOST);
    }
    let mut low = least;
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle)? {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Some(low)
}

/// P(|T| > t), T being noncentral by the effect over its standard error.
fn found(effect: f64, error: f64, df: f64, confidence: f64) -> Option<f64> {
    let shift = effect.ln_1p().abs();
    if !(shift > 0.0 && shift.is_finite() && error >= 0.0 && confidence > 0.0 && df >= 1.0) {
        return None;
    }
    let critical = quantile(f64::midpoint(1.0, confidence), df)?;
    let shift = shift / error;
    // Beyond this it is certain to the last digit, and the integration would only be slow.
    if shift > critical + 40.0 && df > 3.0 || shift.is_infinite() {
        return Some(1.0);
    }
    Some(1.0 - noncentral::below(critical, df, shift)? + noncentral::below(-critical, df, shift)?)
}

/// P(|T| > t and the estimate beyond the noise): with the observed scatter, S times the true one, the estimate must
/// exceed the larger of t·S and the noise, in true standard errors.
fn changed(effect: f64, error: f64, df: f64, noise: f64, confidence: f64) -> Option<f64> {
    let shift = effect.ln_1p().abs();
    let planned = shift.is_finite() && error > 0.0 && error.is_finite() && noise >= 0.0 && noise.is_finite();
    if !(planned && confidence > 0.0 && df >= 1.0) {
        // Without any scatter the estimate is the truth.
        let certain = error == 0.0 && shift.is_finite() && noise >= 0.0;
        return certain.then(|| f64::from(u8::from(shift > noise.ln_1p())));
    }
    let critical = quantile(f64::midpoint(1.0, confidence), df)?;
    let (shift, noise) = (shift / error, noise.ln_1p() / error);
    mean_over_scale(df, critical, |scale| {
        let bound = (critical * scale).max(noise);
        normal::above(bound - shift) + normal::above(bound + shift)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bootstrap::Resampler;
    use crate::compare::{ChangeVerdict, ComparedSamples, compare};

    #[test]
    fn cohens_tables() {
        // Cohen 1988, table 2.4.1: two-sided 5 %, power 0.8: 26 a side for d = 0.8, 64 for 0.5, 393.4 for 0.2.
        for (d, n) in [(0.8, 26), (0.5, 64), (0.2, 394)] {
            // The effect and the scatter in logarithms are in the ratio d.
            let cv = 0.01;
            let effect = (d * f64::sqrt(f64::ln_1p(cv * cv))).exp_m1();
            assert_eq!(runs_a_side(cv, effect, 0.8, 0.95), Some(n));
        }
        // One sample of d = 0.5, two-sided 5 %, power 0.8: 34 (G*Power 3, t tests, matched pairs).
        assert_eq!(pairs(0.02, f64::exp_m1(0.01), 0.8, 0.95), Some(34));
    }

    #[test]
    fn the_rule_of_thumb_is_a_little_short() {
        // 15.7·(CV/δ)² = 7 runs; in truth nine.
        let thumb = (15.7_f64 * (0.02_f64 / 0.03).powi(2)).ceil();
        let planned = runs_a_side(0.02, 0.03, 0.8, 0.95).unwrap();
        assert_eq!((thumb, planned), (7.0, 9));
    }

    #[test]
    fn what_is_planned_is_found_as_often_as_planned() {
        // Few enough runs that the p of compare is exact and not sampled, which would take most of the time.
        let (sd, effect) = (0.018, 0.03);
        let mut random = Resampler::new(31);
        let (n, blocks) =
            (runs_a_side(sd, effect, 0.9, 0.95).unwrap(), pairs(sd, effect, 0.9, 0.95).unwrap());
        let mut times_found = [0; 2];
        for _ in 0..1000 {
            let mut draw = |n: u32, at: f64, sd: f64| -> Vec<f64> {
                (0..n).map(|_| at * (sd * random.normal()).exp()).collect()
            };
            let (a, b) = (draw(n, 1.0, sd), draw(n, 1.0 + effect, sd));
            // In pairs the scatter is that of the ratio: half its variance on each side.
            let each = sd / 2_f64.sqrt();
            let (c, d) = (draw(blocks, 1.0, each), draw(blocks, 1.0 + effect, each));
            for (i, sides) in
                [ComparedSamples::Independent { a: &a, b: &b }, ComparedSamples::Paired { a: &c, b: &d }]
                    .into_iter()
                    .enumerate()
            {
                times_found[i] +=
                    u32::from(compare(sides, 0.0, 0.95).unwrap().verdict == ChangeVerdict::Changed);
            }
        }
        let expected = [
            detection_power(n, sd, effect, 0.95).unwrap(),
            paired_detection_power(blocks, sd, effect, 0.95).unwrap(),
        ];
        for (found, expected) in times_found.into_iter().zip(expected) {
            assert!(
                expected >= 0.9 && (f64::from(found) / 1000.0 - expected).abs() < 0.03,
                "{found} {expected}"
            );
        }
    }

    #[test]
    fn more_scatter_and_smaller_effects_take_more_runs() {
        let n = |cv: f64, effect: f64| runs_a_side(cv, effect, 0.9, 0.95).unwrap();
        assert!(n(0.01, 0.03) < n(0.02, 0.03) && n(0.02, 0.03) < n(0.02, 0.02));
        assert_eq!((n(0.0, 0.01), n(1e-6, 0.01)), (4, 4));
        assert_eq!(runs_a_side(0.02, 1.03_f64.recip() - 1.0, 0.9, 0.95), Some(n(0.02, 0.03)));
        // 0.5 %: t(0.975, 17)·0.01/√18 = 0.00497.
        assert_eq!(runs_for_interval(0.01, 0.005, 0.95), Some(18));
        assert_eq!(runs_for_interval(0.0, 0.005, 0.95), Some(2));
    }

    #[test]
    fn a_verdict_beyond_the_noise_takes_more_pairs() {
        // Without noise it is the power of the test itself.
        for (n, sd, effect) in [(4, 0.01, 0.03), (6, 0.02, -0.03), (11, 0.02, 0.03)] {
            let (changed, found) = (
                paired_verdict_power(n, sd, effect, 0.0, 0.95).unwrap(),
                paired_detection_power(n, sd, effect, 0.95).unwrap(),
            );
            assert!((changed - found).abs() < 1e-8, "{changed} {found}");
        }
        // At the noise itself it is one half, and more pairs do not help.
        assert!((paired_verdict_power(2000, 0.01, 0.01, 0.01, 0.95).unwrap() - 0.5).abs() < 1e-3);
        assert_eq!(pairs_beyond(0.01, 0.01, 0.01, 0.9, 0.95), None);
        assert_eq!(pairs_beyond(0.01, -0.005, 0.01, 0.9, 0.95), None);
        assert_eq!(pairs_beyond(0.02, 0.03, 0.0, 0.9, 0.95), pairs(0.02, 0.03, 0.9, 0.95));
        // As docs/statistics.md says.
        assert_eq!(
            (pairs(0.02, 0.03, 0.9, 0.95), pairs_beyond(0.02, 0.03, 0.02, 0.9, 0.95)),
            (Some(8), Some(9))
        );
        // As compare judges.
        let mut random = Resampler::new(6);
        let changed = (0..2000)
            .filter(|_| {
                let mut side =
                    |at: f64| -> Vec<f64> { (0..6).map(|_| at * (0.015 * random.normal()).exp()).collect() };
                let (a, b) = (side(1.0), side(0.97));
                compare(ComparedSamples::Independent { a: &a, b: &b }, 0.02, 0.95).unwrap().verdict
                    == ChangeVerdict::Changed
            })
            .count() as f64
            / 2000.0;
        let error = 0.015 * (2.0_f64 / 6.0).sqrt();
        let expected = verdict_power_with_error(error, 10.0, -0.03, 0.02, 0.95).unwrap();
        assert!((changed - expected).abs() < 0.03, "{changed} {expected}");
    }

    #[test]
    fn the_smallest_effect_is_the_one_that_so_many_pairs_are_planned_for() {
        for noise in [0.0, 0.01] {
            let smallest = smallest_effect(POWER, |e| paired_verdict_power(9, 0.02, e, noise, 0.95)).unwrap();
            assert!(smallest > noise);
            assert_eq!(pairs_beyond(0.02, 1.002 * smallest, noise, POWER, 0.95), Some(9));
            assert!(pairs_beyond(0.02, smallest / 1.002, noise, POWER, 0.95) > Some(9));
        }
        // Without scatter it is the smallest effect that matters; with too few pairs there is none.
        let known = smallest_effect(POWER, |e| paired_verdict_power(6, 0.0, e, 0.01, 0.95)).unwrap();
        assert!((known - 0.01).abs() < 1e-4, "{known}");
        assert_eq!(smallest_effect(POWER, |_| None), None);
        assert_eq!(
            verdict_power_with_error(0.01, 8.0, 0.03, 0.01, 0.95),
            paired_verdict_power(9, 0.03, 0.03, 0.01, 0.95)
        );
    }

    #[test]
    fn without_scatter_the_truth_is_judged() {
        assert_eq!(paired_verdict_power(4, 0.0, 0.03, 0.01, 0.95), Some(1.0));
        assert_eq!(paired_verdict_power(4, 0.0, 0.005, 0.01, 0.95), Some(0.0));
        assert_eq!(
            (
                paired_verdict_power(4, -1.0, 0.03, 0.01, 0.95),
                paired_verdict_power(4, 0.01, 0.03, -0.01, 0.95)
            ),
            (None, None)
        );
    }

    #[test]
    fn what_cannot_be_planned_is_not() {
        for (cv, effect, power, confidence) in [
            (0.01, 0.0, 0.9, 0.95),
            (0.01, -1.0, 0.9, 0.95),
            (0.01, 0.03, 1.0, 0.95),
            (0.01, 0.03, 0.9, 1.0),
            (-0.01, 0.03, 0.9, 0.95),
            (f64::NAN, 0.03, 0.9, 0.95),
            (10.0, 1e-5, 0.9, 0.95),
        ] {
            assert_eq!(
                runs_a_side(cv, effect, power, confidence),
                None,
                "{cv} {effect} {power} {confidence}"
            );
        }
        assert_eq!(pairs(f64::INFINITY, 0.03, 0.9, 0.95), None);
        assert_eq!((runs_for_interval(0.01, 0.0, 0.95), runs_for_interval(0.01, 0.01, 1.0)), (None, None));
    }
}

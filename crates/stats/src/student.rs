//! Student's t: quantiles, and the interval of a mean.

use statrs::distribution::{Continuous, ContinuousCDF, StudentsT};

/// Steps of the search for a quantile. It takes five or so; from the middle of a Cauchy's tail to its end, twenty.
const MOST_STEPS: usize = 200;

/// The probability of a value at least as far from 0 as `t`, at `freedom` degrees of freedom; none when `t`
/// is not a number or there are no degrees of freedom.
pub fn two_sided(t: f64, freedom: f64) -> Option<f64> {
    // statrs panics at what is no number, which sums beyond the range of numbers lead to.
    if t.is_nan() { None } else { Some(2.0 * StudentsT::new(0.0, 1.0, freedom).ok()?.sf(t.abs())) }
}

/// The quantile `t` with P(T ≤ t) = `p` at `df` degrees of freedom (need not be whole), to 9 digits, to 5 where `df` is in
/// the thousands or more. None when `df` is not positive or finite, `p` is not within (0, 1), or the quantile is beyond 10¹⁴⁷, whose
/// square is none.
pub fn quantile(p: f64, df: f64) -> Option<f64> {
    if !(p > 0.0 && p < 1.0 && df.is_finite()) {
        return None;
    }
    let student = StudentsT::new(0.0, 1.0, df).ok()?;
    let tail = p.min(1.0 - p);
    let t = if tail > 0.1 { central(&student, tail) } else { far_out(&student, tail)? };
    Some(if p < 0.5 { -t } else { t })
}

/// The t ≥ 0 with P(T > t) = `tail`, from 0.1 to 0.5: there P is convex, so that Newton's steps from 0 never go too far.
fn central(student: &StudentsT, tail: f64) -> f64 {
    if 0.5 - tail < 1e-4 {
        // P is a straight line here, and statrs's of many degrees of freedom a step.
        return (0.5 - tail) / student.pdf(0.0);
    }
    let mut t: f64 = 0.0;
    for _ in 0..MOST_STEPS {
        let step = (student.sf(t) - tail) / student.pdf(t);
        t += step;
        if step.abs() <= 1e-14 * t.abs() {
            break;
        }
    }
    t.max(0.0)
}

/// The same further out: ln P over ln t becomes ever steeper, so that Newton's steps come from above, after the first.
/// (statrs's own inverse panics or does not terminate there.)
fn far_out(student: &StudentsT, tail: f64) -> Option<f64> {
    let goal = tail.ln();
    let mut log = crate::normal::upper_quantile(tail).ln();
    let mut before = f64::INFINITY;
    for _ in 0..MOST_STEPS {
        let t = log.exp();
        let above = student.sf(t);
        if above <= 0.0 {
            // Beyond the range of the floating-point type: halfway back towards 1.
            log /= 2.0;
            continue;
        }
        let step = (above.ln() - goal) / (student.ln_pdf(t) + log - above.ln()).exp();
        log += step;
        if log.is_nan() || log > 340.0 {
            return None;
        }
        // With very many degrees of freedom P has nine digits; then the steps no longer shrink.
        let size = step.abs();
        if size <= 1e-14 * log.abs().max(1.0) || size < 1e-7 && size >= before {
            return Some(log.exp());
        }
        before = size;
    }
    None
}

/// Mean, sample standard deviation (n − 1) and count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Number of values.
    pub n: usize,
    /// Mean.
    pub mean: f64,
    /// Standard deviation with n − 1 in the divisor; none for fewer than two values.
    pub sd: Option<f64>,
}

/// Describes `values`; none when there are none.
pub fn describe(values: &[f64]) -> Option<Sample> {
    let n = values.len();
    if n == 0 {
        return None;
    }
    let mean = match values {
        // A sum of equal values is rounded, and differently for another number of them: constant values would seem to
        // vary.
        [first, rest @ ..] if rest.iter().all(|value| value == first) => *first,
        _ => values.iter().sum::<f64>() / n as f64,
    };
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    Some(Sample { n, mean, sd: (n > 1).then(|| (squares / (n - 1) as f64).sqrt()) })
}

/// The interval of the mean of independent values at `confidence`: x̄ ± t·s/√n (Student, Biometrika 6, 1908). None for
/// fewer than two values, one that is not finite, or a confidence outside (0, 1).
pub fn mean_interval(values: &[f64], confidence: f64) -> Option<(f64, f64)> {
    let Sample { n, mean, sd } = describe(values)?;
    let half = quantile(f64::midpoint(1.0, confidence), n as f64 - 1.0)? * sd? / (n as f64).sqrt();
    (half.is_finite() && confidence > 0.0).then_some((mean - half, mean + half))
}

/// Welch's comparison of two means, here of logarithms: B/A as a ratio with its interval at `confidence`
/// (Welch, Biometrika 34, 1947; degrees of freedom after Satterthwaite), of width 0 where neither side varies. None with fewer than two values on a
/// side, or with a value that is not positive.
pub fn welch_ratio(a: &[f64], b: &[f64], confidence: f64) -> Option<Ratio> {
    if a.iter().chain(b).any(|v| v.is_nan() || *v <= 0.0) {
        return None;
    }
    let ln = |values: &[f64]| values.iter().map(|v| v.ln()).collect::<Vec<_>>();
    let (a, b) = (describe(&ln(a))?, describe(&ln(b))?);
    let (va, vb) = (a.sd?.powi(2) / a.n as f64, b.sd?.powi(2) / b.n as f64);
    let difference = b.mean - a.mean;
    let error = (va + vb).sqrt();
    if error == 0.0 {
        // Constant values, such as counts of instructions may be, differ with certainty or not at all.
        let ratio = difference.exp();
        return Some(Ratio { ratio, low: ratio, high: ratio });
    }
    let df = (va + vb).powi(2) / (va.powi(2) / (a.n - 1) as f64 + vb.powi(2) / (b.n - 1) as f64);
    let half = quantile(f64::midpoint(1.0, confidence), df)? * error;
    Some(Ratio { ratio: difference.exp(), low: (difference - half).exp(), high: (difference + half).exp() })
}

/// The comparison of pairs, by logarithms: B/A as a ratio with its interval at `confidence`, from the t distribution of
/// the pairs' ratios. `None` with fewer than two pairs, sides of unequal length, or a value that is not positive.
pub fn paired_ratio(a: &[f64], b: &[f64], confidence: f64) -> Option<Ratio> {
    if a.len() != b.len() || a.iter().chain(b).any(|v| v.is_nan() || *v <= 0.0) {
        return None;
    }
    let ratios: Vec<f64> = a.iter().zip(b).map(|(a, b)| (b / a).ln()).collect();
    let Sample { n, mean, sd } = describe(&ratios)?;
    let half = quantile(f64::midpoint(1.0, confidence), (n - 1) as f64)? * sd? / (n as f64).sqrt();
    Some(Ratio { ratio: mean.exp(), low: (mean - half).exp(), high: (mean + half).exp() })
}

/// The two-sided p of the t test that [`paired_ratio`]'s interval turns round: below 1 − `confidence` when that interval
/// does not hold 1. None as there.
pub fn paired_p(a: &[f64], b: &[f64]) -> Option<f64> {
    paired_ratio(a, b, 0.95)?;
    let ratios: Vec<f64> = a.iter().zip(b).map(|(a, b)| (b / a).ln()).collect();
    let Sample { n, mean, sd } = describe(&ratios)?;
    let error = sd? / (n as f64).sqrt();
    if error == 0.0 {
        Some(f64::from(u8::from(mean == 0.0)))
    } else {
        two_sided(mean / error, (n - 1) as f64)
    }
}

/// A ratio with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// The estimate.
    pub ratio: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_cancel_what_both_sides_share() {
        // ln ratios 0.1, 0.1, 0.4: mean 0.2, sd 0.1732, t(0.975, 2) = 4.3027: half 0.4303.
        let (a, drift): (Vec<f64>, [f64; 3]) = (vec![1.0, 50.0, 2000.0], [0.1, 0.1, 0.4]);
        let b: Vec<f64> = a.iter().zip(drift).map(|(a, d)| a * f64::exp(d)).collect();
        let found = paired_ratio(&a, &b, 0.95).unwrap();
        let logs = [found.ratio.ln(), found.low.ln(), found.high.ln()];
        for (log, expected) in logs.into_iter().zip([0.2, 0.2 - 0.4303, 0.2 + 0.4303]) {
            assert!((log - expected).abs() < 1e-3, "{logs:?}");
        }
        // t = 0.2/(0.1732/√3) = 2 at 2 degrees of freedom.
        assert!((paired_p(&a, &b).unwrap() - 0.183_503).abs() < 1e-6);
        assert_eq!((paired_p(&a, &a), paired_p(&a, &b[1..])), (Some(1.0), None));
        assert_eq!(paired_ratio(&a, &b[1..], 0.95), None);
        assert_eq!(paired_ratio(&a[..1], &b[..1], 0.95), None);
        assert_eq!(paired_ratio(&[1.0, 0.0], &[1.0, 1.0], 0.95), None);
    }

    #[test]
    fn quantiles_are_those_of_the_tables() {
        // NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2.
        for (p, df, t) in [
            (0.975, 1.0, 12.706),
            (0.975, 2.0, 4.303),
            (0.975, 5.0, 2.571),
            (0.95, 10.0, 1.812),
            (0.975, 100.0, 1.984),
        ] {
            assert!((quantile(p, df).unwrap() - t).abs() < 6e-4, "{p} {df}");
        }
        assert_eq!((quantile(0.975, 0.0), quantile(1.0, 3.0), quantile(f64::NAN, 3.0)), (None, None, None));
        assert_eq!((quantile(0.975, f64::INFINITY), quantile(1e-163, 0.5)), (None, None));
    }

    #[test]
    fn trial_a9_every_quantile_ends_and_is_the_inverse() {
        let mut random = crate::bootstrap::Resampler::new(31);
        for _ in 0..2000 {
            let (df, p) =
                (10_f64.powf(6.5 * random.unit() - 0.5), 10_f64.powf(-250.0 * random.unit().powi(4)) / 2.0);
            // The quantile of so few degrees of freedom is beyond any number.
            let beyond = -p.log10() > 100.0 * df;
            let Some(t) = quantile(p, df) else {
                assert!(beyond, "{p:e} {df}");
                continue;
            };
            let back = StudentsT::new(0.0, 1.0, df).unwrap().cdf(t);
            // Near the middle, of many degrees, statrs has five digits.
            assert!((back / p - 1.0).abs() < 3e-5, "{p:e} {df}: {t:e} {back:e}");
            // 1 − p has only the remaining digits of p.
            let mirrored = quantile(1.0 - (1.0 - p), df).zip(quantile(1.0 - p, df));
            assert!(mirrored.is_none_or(|(low, high)| low == -high), "{p:e} {df}");
        }
    }

    #[test]
    fn a_sample_is_described_with_n_minus_one() {
        let sample = describe(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert_eq!(sample.mean, 5.0);
        assert!((sample.sd.unwrap() - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12);
        assert_eq!(describe(&[1.0]).unwrap().sd, None);
    }

    #[test]
    fn trial_a9_equal_constants_in_groups_of_unequal_size_do_not_differ() {
        let mut random = crate::bootstrap::Resampler::new(91);
        for _ in 0..300 {
            let value = 1e5 * random.unit();
            let (n, m) = (2 + random.below(12), 2 + random.below(12));
            let found = welch_ratio(&vec![value; n], &vec![value; m], 0.95).unwrap();
            assert_eq!(found, Ratio { ratio: 1.0, low: 1.0, high: 1.0 }, "{value} {n} {m}");
        }
        assert_eq!(describe(&[0.1; 3]), Some(Sample { n: 3, mean: 0.1, sd: Some(0.0) }));
    }

    #[test]
    fn the_interval_of_a_mean_covers_as_often_as_it_says() {
        // 1, 2, 3: s = 1, t(0.975, 2) = 4.3027: 2 ± 2.4841.
        let (low, high) = mean_interval(&[1.0, 2.0, 3.0], 0.95).unwrap();
        assert!((low + 0.4841).abs() < 1e-4 && (high - 4.4841).abs() < 1e-4);
        assert_eq!((mean_interval(&[1.0], 0.95), mean_interval(&[], 0.95)), (None, None));
        assert_eq!((mean_interval(&[1.0, f64::NAN], 0.95), mean_interval(&[1.0, 2.0], 1.0)), (None, None));
        let mut random = crate::bootstrap::Resampler::new(12);
        let covered = (0..4000)
            .filter(|_| {
                let values: Vec<f64> = (0..5).map(|_| 7.0 + random.normal()).collect();
                let (low, high) = mean_interval(&values, 0.9).unwrap();
                low <= 7.0 && 7.0 <= high
            })
            .count();
        // 3600 ± 19.
        assert!((3543..=3657).contains(&covered), "{covered} of 4000");
    }

    #[test]
    fn welch_gives_the_interval_worked_by_hand() {
        // Logarithms 0, 1, 2 against 1, 2, 3:
        // difference 1, s² = 1 on both sides, error √(2/3), df 4, t 2.7764.
        let a: Vec<f64> = [0.0_f64, 1.0, 2.0].iter().map(|v| v.exp()).collect();
        let b: Vec<f64> = [1.0_f64, 2.0, 3.0].iter().map(|v| v.exp()).collect();
        let found = welch_ratio(&a, &b, 0.95).unwrap();
        assert!((found.ratio.ln() - 1.0).abs() < 1e-9);
        assert!((found.high.ln() - (1.0 + 2.776_445 * (2.0_f64 / 3.0).sqrt())).abs() < 1e-5);
        assert!(welch_ratio(&[1.0], &b, 0.95).is_none());
        assert!(welch_ratio(&[1.0, 0.0], &b, 0.95).is_none());
        assert_eq!(welch_ratio(&[2.0; 3], &[2.0; 2], 0.95), Some(Ratio { ratio: 1.0, low: 1.0, high: 1.0 }));
    }
}

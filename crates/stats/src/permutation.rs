//! Permutation tests: how often chance alone, by relabelling the measurements, gives a difference as large.
//!
//! They assume no distribution, only that under "no difference" each relabelling was as likely as the actual one
//! (Fisher, The Design of Experiments, 1935, section 21; Pitman, Supplement to the Journal of the Royal Statistical
//! Society 4, 1937). A randomised design ensures that, whatever disturbs the runs: sign flips are exact if each block
//! was randomised independently, as in `kelvin ab` and studies of one factor; divisions of two samples only if the
//! order of all runs was random. They are *not* exact for two groups that were measured one after the other
//! ([`crate::autoregression`]), or if positions are balanced over several blocks. The smallest p is limited by the
//! number of relabellings: six pairs give 2/2⁶ = 0.031 at best, three runs against three 2/20 = 0.1.

use crate::bootstrap::Resampler;

/// Pairs up to which every sign is tried; that is 2³⁰ of them, by way of two lists of 2¹⁵.
const MOST_EXACT_PAIRS: usize = 30;

/// Maximum number of divisions of two samples that are enumerated.
const MOST_EXACT_DIVISIONS: f64 = 200_000.0;

/// Relabellings drawn where there are too many to try all.
const DRAWN: u32 = 49_999;

/// A fixed seed: the same values always give the same p.
const SEED: u64 = 0x6b65_6c76_696e;

/// Sums that differ by less than this part of the largest possible sum are equal: they differ by rounding.
const ROUNDING: f64 = 1e-12;

/// The two-sided p of "the differences are centred at 0", by flipping their signs: the share of all 2ⁿ choices of signs
/// for which the sum is at least as far from 0 as the measured one. Exact for up to 30 differences, beyond that from
/// 49,999 choices drawn with a fixed seed, including the measured one (Davison and Hinkley, Bootstrap Methods and their
/// Application, 1997, chapter 4). `None` without differences, or with one that is not finite.
///
/// ```
/// // All six of one sign: only 2 of the 64 choices are as extreme.
/// assert_eq!(kelvin_stats::permutation::sign_flip(&[1.0, 2.0, 0.5, 3.0, 1.5, 0.1]), Some(2.0 / 64.0));
/// ```
pub fn sign_flip(differences: &[f64]) -> Option<f64> {
    let n = differences.len();
    if n == 0 || differences.iter().any(|d| !d.is_finite()) {
        return None;
    }
    let differences = &scaled(differences);
    let measured = differences.iter().sum::<f64>().abs();
    let extreme = measured - ROUNDING * differences.iter().map(|d| d.abs()).sum::<f64>();
    if extreme <= 0.0 {
        return Some(1.0);
    }
    if n <= MOST_EXACT_PAIRS {
        let (left, right) = differences.split_at(n / 2);
        let (left, mut right) = (signed_sums(left), signed_sums(right));
        right.sort_unstable_by(f64::total_cmp);
        let count: usize = left
            .iter()
            .map(|l| {
                let below = right.partition_point(|r| l + r <= -extreme);
                let above = right.len() - right.partition_point(|r| l + r < extreme);
                below + above
            })
            .sum();
        return Some(count as f64 / 2_f64.powi(n as i32));
    }
    let mut random = Resampler::new(SEED);
    let count = (0..DRAWN)
        .filter(|_| {
            let signed = differences.chunks(64).map(|chunk| {
                let bits = random.bits();
                let sign = |i: usize| if bits >> i & 1 == 0 { 1.0 } else { -1.0 };
                chunk.iter().enumerate().map(|(i, d)| sign(i) * d).sum::<f64>()
            });
            signed.sum::<f64>().abs() >= extreme
        })
        .count();
    Some(drawn_p(count))
}

/// The values divided by the largest of them: no sum of those overflows.
fn scaled(values: &[f64]) -> Vec<f64> {
    let largest = values.iter().map(|v| v.abs()).fold(0.0, f64::max);
    values.iter().map(|v| if largest > 0.0 { v / largest } else { *v }).collect()
}

/// The sums of `values` with every choice of signs; a single 0 for no values.
fn signed_sums(values: &[f64]) -> Vec<f64> {
    let mut sums = vec![0.0];
    for value in values {
        sums = sums.iter().flat_map(|sum| [sum + value, sum - value]).collect();
    }
    sums
}

/// The two-sided p of "both samples are of one distribution", by the difference of the means: the share of all
/// divisions of the values into samples of these sizes whose means differ at least as much as those measured. Exact for
/// up to 200,000 divisions (ten against ten), beyond that from 49,999 drawn with a fixed seed, including the measured
/// one. `None` when a sample is empty or a value is not finite.
pub fn two_samples(a: &[f64], b: &[f64]) -> Option<f64> {
    let (n, m) = (a.len(), b.len());
    if n == 0 || m == 0 || a.iter().chain(b).any(|v| !v.is_finite()) {
        return None;
    }
    let mut all = scaled(&[a, b].concat());
    let mean = all.iter().sum::<f64>() / (n + m) as f64;
    // Around the common mean the sums of both samples are each other's negative, so one of them is sufficient.
    for value in &mut all {
        *value -= mean;
    }
    let measured = all[..n].iter().sum::<f64>().abs();
    // The mean itself is rounded, by a part of the values (of 1) and not of their distances from it.
    let rounding = ROUNDING * all.iter().map(|v| v.abs()).sum::<f64>() + 4.0 * f64::EPSILON * n as f64;
    let extreme = measured - rounding;
    if extreme <= 0.0 {
        return Some(1.0);
    }
    let smaller = n.min(m);
    let divisions = divisions(n + m, smaller);
    if divisions <= MOST_EXACT_DIVISIONS {
        return Some(f64::from(count_extreme(&all, smaller, 0.0, extreme)) / divisions);
    }
    let mut random = Resampler::new(SEED);
    let count = (0..DRAWN)
        .filter(|_| {
            let mut sum = 0.0;
            for i in 0..smaller {
                let drawn = i + random.below(all.len() - i);
                all.swap(i, drawn);
                sum += all[i];
            }
            sum.abs() >= extreme
        })
        .count();
    Some(drawn_p(count))
}

/// The number of ways of choosing `left` more of `values` for which the sum reaches `extreme`, on either side of 0.
fn count_extreme(values: &[f64], left: usize, sum: f64, extreme: f64) -> u32 {
    if left == 0 {
        return u32::from(sum.abs() >= extreme);
    }
    (0..=values.len() - left)
        .map(|i| count_extreme(&values[i + 1..], left - 1, sum + values[i], extreme))
        .sum()
}

/// The binomial coefficient n over k, in floating point: exact in the range used for counting.
fn divisions(n: usize, k: usize) -> f64 {
    (0..k).fold(1.0, |product, i| (product * (n - i) as f64 / (i + 1) as f64).round())
}

fn drawn_p(count: usize) -> f64 {
    (count as f64 + 1.0) / (f64::from(DRAWN) + 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn darwins_plants() {
        // Fisher, The Design of Experiments, section 21: Darwin's 15 pairs of maize, in eighths of an inch. Of the 2¹⁵
        // choices of signs 863 have a sum at least as large as 314, on one side; 1726/32768 = 0.0527 on both.
        let pairs =
            [49.0, -67.0, 8.0, 16.0, 6.0, 23.0, 28.0, 41.0, 14.0, 29.0, 56.0, 24.0, 75.0, 60.0, -48.0];
        assert_eq!(pairs.iter().sum::<f64>(), 314.0);
        assert_eq!(sign_flip(&pairs), Some(1726.0 / 32768.0));
    }

    #[test]
    fn no_p_is_smaller_than_the_relabellings_allow() {
        for n in 1..=8 {
            assert_eq!(sign_flip(&vec![1.0; n]), Some(2.0 / 2_f64.powi(n as i32)));
        }
        for (n, p) in [(3, 2.0 / 20.0), (4, 2.0 / 70.0), (5, 2.0 / 252.0), (6, 2.0 / 924.0)] {
            let a: Vec<f64> = (0..n).map(f64::from).collect();
            let b: Vec<f64> = (0..n).map(|v| f64::from(v) + 100.0).collect();
            assert_eq!(two_samples(&a, &b), Some(p));
        }
    }

    #[test]
    fn what_differs_by_rounding_alone_is_a_tie() {
        // 0.1 + 0.2 is not 0.3 in floating point; both choices of signs are as extreme as the one measured.
        assert_eq!(sign_flip(&[0.1, 0.2, -0.3]), Some(1.0));
        assert_eq!(two_samples(&[0.1, 0.2], &[0.3, 0.0]), Some(1.0));
        // {0.1, 0.4} and {0.2, 0.3} are one sum: of six divisions, four are as extreme as {0.1, 0.2}'s … none less.
        assert_eq!(two_samples(&[1e9 + 0.1, 1e9 + 0.2], &[1e9 + 0.3, 1e9 + 0.4]), Some(2.0 / 6.0));
        assert_eq!(two_samples(&[5.0; 4], &[5.0; 4]), Some(1.0));
        assert_eq!(sign_flip(&[0.0; 6]), Some(1.0));
    }

    #[test]
    fn drawing_agrees_with_counting() {
        let mut random = Resampler::new(3);
        let values: Vec<f64> = (0..31).map(|_| 0.35 + random.normal()).collect();
        let exact = sign_flip(&values[..30]).unwrap();
        // 31 are sampled: the last is so small that it changes nothing.
        let drawn = sign_flip(&[&values[..30], &[1e-9]].concat()).unwrap();
        assert!((exact - drawn).abs() < 5.0 * (exact / f64::from(DRAWN)).sqrt() + 1e-4, "{exact} {drawn}");
        let (a, b) = (&values[..10], &values[10..21]);
        let p = two_samples(a, b).unwrap();
        let all: Vec<f64> = values[..21].to_vec();
        let mean = all.iter().sum::<f64>() / 21.0;
        let centred: Vec<f64> = all.iter().map(|v| v - mean).collect();
        let extreme = centred[..10].iter().sum::<f64>().abs() - 1e-9;
        let counted = f64::from(count_extreme(&centred, 10, 0.0, extreme)) / divisions(21, 10);
        assert!((p - counted).abs() < 0.012, "{p} {counted}");
    }

    #[test]
    fn order_and_sides_do_not_matter() {
        let (a, b) = ([5.0, 1.0, 3.0, 9.0], [2.0, 8.0, 7.0, 6.0, 4.5]);
        let p = two_samples(&a, &b);
        assert_eq!(p, two_samples(&b, &a));
        assert_eq!(p, two_samples(&[9.0, 3.0, 5.0, 1.0], &b));
        assert_eq!((two_samples(&[], &b), two_samples(&a, &[f64::NAN]), sign_flip(&[])), (None, None, None));
        assert_eq!(sign_flip(&[f64::INFINITY]), None);
    }
}

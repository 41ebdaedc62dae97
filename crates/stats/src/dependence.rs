//! Whether values in time order resemble their neighbours, and their effective number if they do.
//!
//! The model is the autoregressive process of first order, AR(1): each value's deviation from the mean is φ times the
//! previous one, plus an innovation. φ = 0 is white noise: the independence that Student's t and every permutation of
//! runs assume.

use crate::bootstrap::Resampler;

/// Values up to which every order is tried: 9! = 362,880.
const MOST_EXACT: usize = 9;

/// Orders drawn where there are too many to try all.
const DRAWN: u32 = 9_999;

/// A fixed seed: the same values always give the same p.
const SEED: u64 = 0x6b65_6c76_696e;

/// Statistics that differ by less than this differ by rounding.
const ROUNDING: f64 = 1e-9;

/// φ is limited to this distance from ±1, where a process has no mean.
const MOST_PHI: f64 = 0.99;

/// The autocorrelation at lag 1, Σ(xₜ − x̄)(xₜ₊₁ − x̄)/Σ(xₜ − x̄)². For few values it is far too low on average
/// ([`corrected_phi`]). `None` for fewer than three values, one that is not finite, or values that do not vary.
///
/// ```
/// // Distances from the mean: −1.5, −0.5, 0.5, 1.5; (0.75 − 0.25 + 0.75)/5.
/// assert_eq!(kelvin_stats::dependence::lag1(&[1.0, 2.0, 3.0, 4.0]), Some(0.25));
/// ```
pub fn lag1(values: &[f64]) -> Option<f64> {
    let centred = centred(values)?;
    Some(products(&centred) / squares(&centred))
}

/// Von Neumann's ratio, Σ(xₜ₊₁ − xₜ)²/Σ(xₜ − x̄)²: 2 on average of independent values, less where neighbours are alike
/// (Annals of Mathematical Statistics 12, 1941, without its factor n/(n − 1)). None as for [`lag1`].
pub fn von_neumann(values: &[f64]) -> Option<f64> {
    let centred = centred(values)?;
    Some(differences(&centred) / squares(&centred))
}

/// The independence of values as shown by their order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Independence {
    /// Autocorrelation at lag 1.
    pub lag1: f64,
    /// Von Neumann's ratio.
    pub von_neumann: f64,
    /// The share of all orders of these values whose lag-1 autocorrelation is at least as large. At least two orders,
    /// since a reversed order has the same one.
    pub p_lag1: f64,
    /// The share of all orders whose von Neumann ratio is at least as small.
    pub p_von_neumann: f64,
}

/// Tests whether adjacent values are more alike than a random order would make them, by all orders (Wald and Wolfowitz,
/// Annals of Mathematical Statistics 14, 1943). Exact for up to nine values, beyond that from 9,999 orders drawn with a
/// fixed seed, including the measured one. `None` for fewer than four values, or as for [`lag1`]. With six values of an
/// AR(1) with φ = 0.5 it has little power: a p that is not small does not show independence.
pub fn independence(values: &[f64]) -> Option<Independence> {
    let mut centred = centred(values)?;
    let n = centred.len();
    if n < 4 {
        return None;
    }
    let squares = squares(&centred);
    let (lag1, von_neumann) = (products(&centred) / squares, differences(&centred) / squares);
    let extreme = |order: &[f64]| {
        (
            u32::from(products(order) / squares >= lag1 - ROUNDING),
            u32::from(differences(order) / squares <= von_neumann + ROUNDING),
        )
    };
    let mut counts = (0, 0);
    let mut count = |order: &[f64]| {
        let found = extreme(order);
        counts = (counts.0 + found.0, counts.1 + found.1);
    };
    let orders = if n <= MOST_EXACT {
        every_order(&mut centred, &mut count)
    } else {
        count(&centred);
        let mut random = Resampler::new(SEED);
        for _ in 0..DRAWN {
            shuffle(&mut centred, &mut random);
            count(&centred);
        }
        DRAWN + 1
    };
    let part = |count: u32| f64::from(count) / f64::from(orders);
    Some(Independence { lag1, von_neumann, p_lag1: part(counts.0), p_von_neumann: part(counts.1) })
}

/// φ of an AR(1) from the lag-1 autocorrelation `lag1` of `n` values around their own mean, which is (1 + 4φ)/n too low on
/// average (Marriott and Pope, Biometrika 41, 1954; Kendall, ibid.). Kept within ±0.99. None for fewer than five values,
/// which say nothing about φ. Its own standard error is about √((1 − φ²)/n), and more for few values.
pub fn corrected_phi(lag1: f64, n: usize) -> Option<f64> {
    let n = n as f64;
    let phi = (n * lag1 + 1.0) / (n - 4.0);
    (n > 4.0 && phi.is_finite()).then(|| phi.clamp(-MOST_PHI, MOST_PHI))
}

/// So many independent values have a mean as precise as that of `n` values of an AR(1) with `phi`: n/(1 + 2Σ(1 − k/n)φᵏ),
/// about n(1 − φ)/(1 + φ) of many. More than n for a negative φ; 1 for φ ≥ 1.
///
/// ```
/// // Two values of correlation φ: 2/(1 + φ).
/// assert_eq!(kelvin_stats::dependence::effective_count(2, 0.6), 1.25);
/// ```
pub fn effective_count(n: usize, phi: f64) -> f64 {
    let count = n as f64;
    if n < 2 || phi >= 1.0 {
        return count.min(1.0);
    }
    // Σ(n − k)φᵏ for k from 1 to n − 1, closed.
    let power = phi.powi(i32::try_from(n).unwrap_or(i32::MAX));
    let sum = phi * (count * (1.0 - phi) - 1.0 + power) / (1.0 - phi).powi(2);
    count / (1.0 + 2.0 * sum / count)
}

/// The factor for the textbook error of a mean, s/√n, when the `n` values are an AR(1) with `phi`. There are two
/// errors: the mean has only [`effective_count`] effective values, and s² around that mean is too small, by (n −
/// n/n′)/(n − 1). 1 for φ = 0; `None` for fewer than two values or φ outside (−1, 1).
pub fn widening(n: usize, phi: f64) -> Option<f64> {
    if n < 2 || !(phi > -1.0 && phi < 1.0) {
        return None;
    }
    let (count, effective) = (n as f64, effective_count(n, phi));
    let kept = (count - count / effective) / (count - 1.0);
    (kept > 0.0).then(|| (count / effective / kept).sqrt())
}

/// `count` values of a stationary AR(1) with mean 0, variance 1 and |`phi`| < 1.
pub fn autoregressive(count: usize, phi: f64, random: &mut Resampler) -> Vec<f64> {
    let innovation = (1.0 - phi * phi).sqrt();
    let mut state = random.normal();
    (0..count)
        .map(|_| {
            let value = state;
            state = phi * state + innovation * random.normal();
            value
        })
        .collect()
}

/// The deviations from the mean, divided by the largest of them; `None` where the values do not vary.
fn centred(values: &[f64]) -> Option<Vec<f64>> {
    if values.len() < 3 || values.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let largest = values.iter().map(|v| (v - mean).abs()).fold(0.0, f64::max);
    // The remainder of equal values is the rounding error of their mean.
    if !(largest > 4.0 * f64::EPSILON * mean.abs() && largest.is_finite()) {
        return None;
    }
    Some(values.iter().map(|v| (v - mean) / largest).collect())
}

fn squares(values: &[f64]) -> f64 {
    values.iter().map(|v| v * v).sum()
}

fn products(values: &[f64]) -> f64 {
    values.windows(2).map(|pair| pair[0] * pair[1]).sum()
}

fn differences(values: &[f64]) -> f64 {
    values.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).sum()
}

fn shuffle(values: &mut [f64], random: &mut Resampler) {
    for i in (1..values.len()).rev() {
        values.swap(i, random.below(i + 1));
    }
}

/// Calls `count` with every order of `values` (Heap, Computer Journal 6, 1963) and returns how many there are.
fn every_order(values: &mut [f64], count: &mut impl FnMut(&[f64])) -> u32 {
    let mut turns = vec![0; values.len()];
    let (mut at, mut orders) = (1, 1);
    count(values);
    while at < values.len() {
        if turns[at] < at {
            values.swap(if at.is_multiple_of(2) { 0 } else { turns[at] }, at);
            count(values);
            orders += 1;
            turns[at] += 1;
            at = 1;
        } else {
            turns[at] = 0;
            at += 1;
        }
    }
    orders
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: Option<f64>, expected: f64) -> bool {
        found.is_some_and(|found| (found - expected).abs() < 1e-9)
    }

    #[test]
    fn the_statistics_are_those_worked_by_hand() {
        // Distances −2, −1, 1, 2: products 2 − 1 + 2 = 3, differences 1 + 4 + 1 = 6, squares 10.
        let values = [1.0, 2.0, 4.0, 5.0];
        assert!(close(lag1(&values), 0.3) && close(von_neumann(&values), 0.6));
        // Of the 24 orders only this one and its reverse are ascending: 2/24 have a ratio of 0.6.
        let found = independence(&values).unwrap();
        assert!((found.p_von_neumann - 2.0 / 24.0).abs() < 1e-12, "{found:?}");
        for none in [&[][..], &[1.0, 2.0], &[3.0; 6], &[0.1; 7], &[1.0, f64::NAN, 2.0]] {
            assert_eq!((lag1(none), von_neumann(none), independence(none)), (None, None, None));
        }
        assert_eq!(independence(&[1.0, 2.0, 4.0]), None);
        // Neither the unit nor the zero of the scale matters.
        let large: Vec<f64> = values.iter().map(|v| 1e300 * v).collect();
        assert!(close(lag1(&large), 0.3));
    }

    #[test]
    fn trial_a4_every_order_is_tried_once_and_drawing_agrees_with_it() {
        for n in 1..=6_u32 {
            let mut values: Vec<f64> = (0..n).map(f64::from).collect();
            let mut seen = std::collections::BTreeSet::new();
            let orders = every_order(&mut values, &mut |order: &[f64]| {
                seen.insert(order.iter().map(|v| *v as u8).collect::<Vec<_>>());
            });
            assert_eq!((orders, seen.len()), ((1..=n).product(), orders as usize), "{n}");
        }
        // Nine values are exact, ten are sampled; the added one is in the middle and changes little.
        let nine = [3.0, 1.0, 2.0, 5.0, 4.0, 7.0, 9.0, 6.0, 8.0];
        let exact = independence(&nine).unwrap();
        let mut random = Resampler::new(2);
        let mut order = nine;
        let drawn = (0..20_000)
            .filter(|_| {
                shuffle(&mut order, &mut random);
                lag1(&order).unwrap() >= exact.lag1 - ROUNDING
            })
            .count();
        assert!((drawn as f64 / 20_000.0 - exact.p_lag1).abs() < 0.004, "{drawn} {exact:?}");
    }

    #[test]
    fn trial_a4_independent_values_are_called_alike_as_often_as_asked() {
        let mut random = Resampler::new(21);
        for (n, studies) in [(6, 1000), (20, 100)] {
            let mut alike = (0, 0);
            for _ in 0..studies {
                let found = independence(&autoregressive(n, 0.0, &mut random)).unwrap();
                alike.0 += u32::from(found.p_lag1 <= 0.1);
                alike.1 += u32::from(found.p_von_neumann <= 0.1);
            }
            let (low, high) = (studies * 6 / 100, studies * 16 / 100);
            assert!((low..=high).contains(&alike.0) && (low..=high).contains(&alike.1), "{n}: {alike:?}");
        }
        let mut random = Resampler::new(22);
        let shown = (0..50)
            .filter(|_| independence(&autoregressive(30, 0.7, &mut random)).unwrap().p_lag1 < 0.05)
            .count();
        assert!(shown >= 45, "{shown} of 50");
    }

    #[test]
    fn trial_a4_phi_is_found_without_the_bias_of_its_estimate() {
        let mut random = Resampler::new(23);
        for (phi, n) in [(0.0, 12), (0.5, 20), (0.8, 40)] {
            let studies = 2000;
            let (mut raw, mut corrected) = (0.0, 0.0);
            for _ in 0..studies {
                let found = lag1(&autoregressive(n, phi, &mut random)).unwrap();
                raw += found / f64::from(studies);
                corrected += corrected_phi(found, n).unwrap() / f64::from(studies);
            }
            assert!((corrected - phi).abs() < 0.04 && raw < phi - 0.06, "{phi}: {raw} {corrected}");
        }
        assert_eq!((corrected_phi(0.5, 4), corrected_phi(f64::NAN, 9)), (None, None));
        assert_eq!((corrected_phi(0.9, 6), corrected_phi(-0.9, 6)), (Some(0.99), Some(-0.99)));
    }

    #[test]
    fn trial_a4_the_mean_of_dependent_values_is_worth_what_is_said() {
        // The sum term by term.
        for (n, phi) in [(1, 0.5), (2, 0.6), (7, 0.8), (7, -0.5), (8, -0.5), (100, 0.5), (30, 0.0)] {
            let sum: f64 = (1..n).map(|k| (1.0 - k as f64 / n as f64) * f64::powi(phi, k)).sum();
            let expected = f64::from(n) / (1.0 + 2.0 * sum);
            assert!((effective_count(n as usize, phi) - expected).abs() < 1e-9, "{n} {phi}");
        }
        assert_eq!((effective_count(0, 0.5), effective_count(9, 1.0)), (0.0, 1.0));
        assert_eq!((widening(6, 0.0), widening(1, 0.5), widening(6, 1.0)), (Some(1.0), None, None));
        // s/√n, widened, is the true error of the mean: both squared, over many studies.
        let mut random = Resampler::new(24);
        let (n, phi, studies) = (6, 0.5, 20_000);
        let (mut of_mean, mut said) = (0.0, 0.0);
        for _ in 0..studies {
            let sample = crate::student::describe(&autoregressive(n, phi, &mut random)).unwrap();
            of_mean += sample.mean.powi(2);
            said += (sample.sd.unwrap() * widening(n, phi).unwrap()).powi(2) / n as f64;
        }
        assert!((said / of_mean - 1.0).abs() < 0.04, "{said} {of_mean}");
    }
}

//! Proportions.

use statrs::distribution::{Binomial, DiscreteCDF};

/// The counts of `n` independent trials that are no evidence against a true proportion between `low` and `high`:
/// the smallest and the largest k for which both P(X ≤ k | low) and P(X ≥ k | high) are at least `tail`. Exact
/// tails of the binomial distribution, so that it holds for rare events and few trials too, where the normal
/// approximation does not. Everything is accepted for `n` = 0.
///
/// ```
/// // A fair coin of 100 throws, 2.5 % in each tail: 40 to 60 heads.
/// assert_eq!(kelvin_stats::proportion::accepted_counts(100, 0.5, 0.5, 0.025), (40, 60));
/// ```
pub fn accepted_counts(n: u64, low: f64, high: f64, tail: f64) -> (u64, u64) {
    let (Ok(at_low), Ok(at_high)) = (Binomial::new(low, n), Binomial::new(high, n)) else { return (0, n) };
    let smallest = first(n, |k| at_low.cdf(k) >= tail);
    // P(X ≥ k) falls with k: the first count that is too rare, less one.
    let too_many = first(n, |k| k > 0 && at_high.sf(k - 1) < tail);
    let largest = if n > 0 && at_high.sf(n - 1) >= tail { n } else { too_many.saturating_sub(1) };
    (smallest, largest)
}

/// The interval of the true proportion after `k` of `n` independent trials, by the exact tails of the binomial distribution
/// (Clopper and Pearson, Biometrika 26, 1934): it covers the truth at least as often as `confidence` says. From 0 to 1 for `n` = 0.
///
/// ```
/// // R: binom.test(36, 40)$conf.int is 0.7634 to 0.9721.
/// let (low, high) = kelvin_stats::proportion::interval(36, 40, 0.95);
/// assert!((low - 0.7634).abs() < 1e-4 && (high - 0.9721).abs() < 1e-4);
/// ```
pub fn interval(k: u64, n: u64, confidence: f64) -> (f64, f64) {
    debug_assert!(k <= n, "{k} of {n}");
    let tail = (1.0 - confidence) / 2.0;
    // P(X >= k | p) grows with p, P(X <= k | p) falls.
    let low = if k == 0 { 0.0 } else { bisect(|p| at_least(k, n, p) < tail) };
    let high = if k >= n { 1.0 } else { bisect(|p| at_least(k + 1, n, p) < 1.0 - tail) };
    (low, high)
}

/// P(X >= k) of `n` trials.
fn at_least(k: u64, n: u64, p: f64) -> f64 {
    Binomial::new(p, n).map_or(1.0, |of| if k == 0 { 1.0 } else { of.sf(k - 1) })
}

/// Where a condition that holds for small proportions ceases to hold.
fn bisect(holds: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if holds(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

/// The smallest k of 0..=n for which a condition that stays true once it is true holds; n when none does.
fn first(n: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, n);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bounds_are_the_binomials_own_quantiles() {
        // R: qbinom(c(.025, .975), 100, .5) is 40 60.
        assert_eq!(accepted_counts(100, 0.5, 0.5, 0.025), (40, 60));
        // P(X >= 1 | n = 5, p = 0.011) = 0.0538, P(X >= 2) = 0.0012, P(X >= 3) = 1.3e-5.
        assert_eq!(accepted_counts(5, 0.009, 0.011, 0.0005), (0, 2));
    }

    #[test]
    fn the_interval_is_clopper_and_pearsons() {
        let close = |found: (f64, f64), low: f64, high: f64| {
            assert!((found.0 - low).abs() < 1e-4 && (found.1 - high).abs() < 1e-4, "{found:?}");
        };
        // The one-sided ends are 1 - 0.025^(1/60) and its mirror image.
        close(interval(0, 60, 0.95), 0.0, 0.0596);
        close(interval(60, 60, 0.95), 0.9404, 1.0);
        // R: binom.test(1, 2)$conf.int.
        close(interval(1, 2, 0.95), 0.0126, 0.9874);
        close(interval(0, 0, 0.95), 0.0, 1.0);
    }

    #[test]
    fn certainty_and_no_trials_have_no_room() {
        assert_eq!(accepted_counts(1000, 0.0, 0.0, 0.0005), (0, 0));
        assert_eq!(accepted_counts(1000, 1.0, 1.0, 0.0005), (1000, 1000));
        assert_eq!(accepted_counts(0, 0.3, 0.4, 0.0005), (0, 0));
    }

    #[test]
    fn many_trials_narrow_to_the_range_itself() {
        let (low, high) = accepted_counts(100_000_000, 0.009, 0.011, 0.0005);
        assert!((896_000_f64..898_000.0).contains(&(low as f64)), "{low}");
        assert!((1_102_000_f64..1_104_000.0).contains(&(high as f64)), "{high}");
    }
}

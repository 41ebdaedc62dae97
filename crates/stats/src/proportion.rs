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

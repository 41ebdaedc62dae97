//! Waits that changed between the sides of a comparison: did they limit the throughput?
//!
//! A share of the transactions' time is no limit by itself: what waits at one place may only be queued there for another. If a wait
//! takes away the share d of the time of side A, and the time elsewhere stayed as it is, a closed loop would complete 1 / (1 − d) as
//! many transactions. How much of that came is the elasticity e = ln(throughput B/A) / ln(1 / (1 − d)): 1 for a limit, 0 where the
//! sessions only wait elsewhere instead. The bounds are those of a squeeze. Of a wait whose share stayed, or of more throughput than the
//! prediction, nothing follows: something else changed.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::noise::WANTED;

/// Whole intervals above this are called a limit, whole ones below the other are not.
const LIMITS: f64 = 0.5;
const DOES_NOT: f64 = 0.3;
/// Whole intervals above this have another cause, too: what a limit gives when it goes is 1.
const BEYOND: f64 = 1.5;

/// What a comparison says of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WaitLimit {
    /// The throughput followed it.
    Limit,
    /// The throughput did not follow it.
    NotALimit,
    /// Neither is certain.
    Undecided,
}

/// A class of waits of which side B has much more or much less than side A.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct WaitChange {
    /// The class as text: "log", "row locks", …
    pub class: String,
    /// Its share of the sessions' time in A.
    pub before: f64,
    /// The same in B.
    pub after: f64,
    /// B over A of the throughput if the time elsewhere had stayed as it was.
    pub predicted: f64,
    /// How much of it came, and its interval.
    pub elasticity: [f64; 3],
    /// What follows.
    pub limit: WaitLimit,
}

/// The classes that changed by 10 % of A's time or more. `ratio` is the throughput of B over A with its interval.
pub fn wait_changes(
    before: &BTreeMap<String, f64>,
    after: &BTreeMap<String, f64>,
    [ratio, low, high]: [f64; 3],
) -> Vec<WaitChange> {
    // Work is no wait, and neither is the way to the client and back.
    let is_wait = |class: &&String| !matches!(class.as_str(), "CPU" | "load generator" | "network");
    let mut classes: Vec<&String> = before.keys().chain(after.keys()).filter(is_wait).collect();
    classes.sort_unstable();
    classes.dedup();
    let share = |of: &BTreeMap<String, f64>, class: &str| of.get(class).copied().unwrap_or(0.0);
    let changed = |class: &String| {
        let (was, is) = (share(before, class), share(after, class));
        // In parts of the time of a transaction of A, of which one of B takes 1 / ratio.
        let taken = |ratio: f64| was - is / ratio;
        let known = low > 0.0 && high.is_finite();
        // All transactions faster or slower alike change what each waits, and not the share.
        let differs =
            (was - is).abs() >= WANTED && taken(ratio).abs() >= WANTED && taken(low) * taken(high) > 0.0;
        if !known || !differs || [low, ratio, high].into_iter().any(|ratio| taken(ratio) >= 1.0) {
            return None;
        }
        let predicted = |ratio: f64| 1.0 / (1.0 - taken(ratio));
        let of = |ratio: f64| ratio.ln() / predicted(ratio).ln();
        let (one, other) = (of(low), of(high));
        let elasticity = [of(ratio), one.min(other), one.max(other)];
        let predicted = predicted(ratio);
        let limit = match elasticity {
            [_, low, _] if low > BEYOND => WaitLimit::Undecided,
            [_, low, _] if low > LIMITS => WaitLimit::Limit,
            [_, _, high] if high < DOES_NOT => WaitLimit::NotALimit,
            _ => WaitLimit::Undecided,
        };
        Some(WaitChange { class: class.clone(), before: was, after: is, predicted, elasticity, limit })
    };
    classes.into_iter().filter_map(changed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(class: &str, before: f64, after: f64, ratio: [f64; 3]) -> Vec<WaitLimit> {
        let of = |share: f64| BTreeMap::from([(class.to_owned(), share), ("CPU".into(), 1.0 - share)]);
        wait_changes(&of(before), &of(after), ratio).iter().map(|one| one.limit).collect()
    }

    /// The tuning study of the field: log waits fell from 20 % to 1 %, then parallelism waits from 40 % to nothing, and
    /// the throughput stayed.
    #[test]
    fn waits_that_go_without_a_gain_were_no_limit() {
        assert_eq!(limits("log", 0.20, 0.01, [0.97, 0.94, 1.00]), [WaitLimit::NotALimit]);
        assert_eq!(limits("other", 0.40, 0.01, [1.02, 0.99, 1.06]), [WaitLimit::NotALimit]);
        // More of them, and nothing lost.
        assert_eq!(limits("latches", 0.05, 0.50, [1.0, 0.98, 1.02]), [WaitLimit::NotALimit]);
    }

    #[test]
    fn waits_that_the_throughput_follows_are_a_limit() {
        assert_eq!(limits("data reads", 0.60, 0.05, [2.3, 2.1, 2.5]), [WaitLimit::Limit]);
        assert_eq!(limits("log", 0.05, 0.60, [0.42, 0.40, 0.45]), [WaitLimit::Limit]);
    }

    /// Twice as many transactions for another reason, such as a faster CPU, and the other way round.
    #[test]
    fn another_cause_makes_no_wait_a_limit() {
        assert!(limits("log", 0.40, 0.40, [2.0, 1.9, 2.1]).is_empty());
        assert!(limits("log", 0.20, 0.20, [0.5, 0.48, 0.52]).is_empty());
        // It took a part of the time away, but not half of it.
        assert_eq!(limits("log", 0.40, 0.25, [2.0, 1.9, 2.1]), [WaitLimit::Undecided]);
        // Less or more of it per transaction: which is not known.
        assert!(limits("log", 0.20, 0.40, [1.0, 0.7, 2.5]).is_empty());
    }

    #[test]
    fn what_is_small_unclear_or_work_is_not_called_either() {
        assert_eq!(limits("log", 0.40, 0.0, [1.25, 0.9, 1.7]), [WaitLimit::Undecided]);
        assert!(limits("log", 0.20, 0.15, [1.0, 0.99, 1.01]).is_empty());
        assert!(limits("network", 0.80, 0.10, [1.0, 0.99, 1.01]).is_empty());
        assert!(limits("log", 0.80, 0.10, [1.0, 0.0, f64::INFINITY]).is_empty());
    }
}

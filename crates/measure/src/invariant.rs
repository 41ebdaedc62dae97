//! What must hold in every run, checked in release builds too: a wrong number is worse than a crash.

use serde::{Deserialize, Serialize};

/// The name of the load generator's check of itself, by which others find it in a run.
pub const LOAD_GENERATOR: &str = "the load generator was not the bottleneck";

/// One invariant, as checked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Invariant {
    /// What must hold, in words.
    pub name: String,
    /// Whether it held.
    pub holds: bool,
    /// The figures on both sides.
    pub evidence: String,
}

/// Little's law: the mean number of users at work, N, equals throughput × mean time in the
/// system, N = X·R (Little 1961). `busy` is the part of the window that the users did not spend waiting (for
/// keying, thinking, a new connection, or a transaction that failed); `in_system` is the sum of all
/// latencies, cut at the window's edges, in seconds, so that X·R = in_system / window. Holds within 5 %
/// of the users at work, and a little more where hardly any are.
pub fn littles_law(users: u32, busy: f64, in_system: f64, window: f64) -> Invariant {
    let expected = f64::from(users) * busy;
    let found = if window > 0.0 { in_system / window } else { 0.0 };
    Invariant {
        name: "Little's law: users at work = throughput × mean latency".into(),
        holds: (found - expected).abs() <= 0.05 * expected + 0.02 * f64::from(users).sqrt(),
        evidence: format!("{expected:.3} users at work, {found:.3} by throughput × latency"),
    }
}

/// Two counts of the same thing agree within `tolerance`.
pub fn counts_agree(name: &str, left: (&str, u64), right: (&str, u64), tolerance: u64) -> Invariant {
    let within = if tolerance == 0 { String::new() } else { format!(", {tolerance} allowed") };
    Invariant {
        name: name.into(),
        holds: left.1.abs_diff(right.1) <= tolerance,
        evidence: format!("{} {}, {} {}{within}", left.1, left.0, right.1, right.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn littles_law_finds_lost_transactions() {
        // 4 users, 10 ms each, 10 s: 4000 transactions.
        assert!(littles_law(4, 1.0, 4000.0 * 0.010, 10.0).holds);
        assert!(!littles_law(4, 1.0, 3600.0 * 0.010, 10.0).holds, "a tenth of the transactions is missing");
        assert!(littles_law(4, 0.5, 2000.0 * 0.010, 10.0).holds);
        assert!(
            !littles_law(64, 1.0 / 64.0, 0.0, 10.0).holds,
            "also where hardly any of many users is at work"
        );
    }

    #[test]
    fn counts_agree_only_within_their_tolerance() {
        assert!(counts_agree("x", ("a", 10), ("b", 12), 2).holds);
        assert!(!counts_agree("x", ("a", 10), ("b", 13), 2).holds);
    }
}

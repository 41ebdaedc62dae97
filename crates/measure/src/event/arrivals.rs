//! Arrivals of an open loop, and what became of them.

use serde::{Deserialize, Serialize};

use crate::json::number;

/// Arrivals of an open loop in one second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Arrivals {
    /// Which point of the run.
    pub point: u32,
    /// Seconds since the measured window opened; negative in the ramp-up.
    pub second: i64,
    /// Transactions that were to start in it.
    pub due: u64,
    /// Those of them that were refused, because the queue was full.
    pub refused: u64,
    /// Transactions that waited for a free user at the second's end; none in an event that adds to a second
    /// that was reported before.
    pub waiting: Option<u64>,
}

/// What became of the arrivals of an open loop over the measured window.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct ArrivalSchedule {
    /// Arrivals asked for, a second.
    #[serde(deserialize_with = "number")]
    pub rate: f64,
    /// Arrivals intended within the window.
    pub due: u64,
    /// Those of them that were refused, because the queue was full.
    pub refused: u64,
    /// Arrivals that still waited for a free user when the load ended, which was after the window closed if some waited
    /// then: they are given time to begin.
    pub waiting: u64,
    /// Arrivals that waited for a free user when the window closed; none in runs of before 2026-11-22, which ended then.
    #[serde(default)]
    pub waiting_at_close: Option<u64>,
    /// Arrivals that a user had taken and that came to no end before the run was over, because they were to start at the
    /// very moment of the load's end or could not be repeated any more: nobody's failure, at most one a user.
    #[serde(default)]
    pub cut_off: u64,
    /// The longest queue that a user found.
    pub longest: u64,
}

impl ArrivalSchedule {
    /// Two parts of a load together, each of which has its share of the rate and its own queue.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        let at_close = self.waiting_at_close.zip(other.waiting_at_close);
        Self {
            rate: self.rate + other.rate,
            due: self.due.saturating_add(other.due),
            refused: self.refused.saturating_add(other.refused),
            waiting: self.waiting.saturating_add(other.waiting),
            waiting_at_close: at_close.map(|(a, b)| a.saturating_add(b)),
            cut_off: self.cut_off.saturating_add(other.cut_off),
            longest: self.longest.max(other.longest),
        }
    }

    /// Arrivals that never began.
    pub fn never_begun(&self) -> u64 {
        self.refused.saturating_add(self.waiting).saturating_add(self.cut_off)
    }

    /// Whether the schedule could not be kept: transactions were refused, or more than 1 % of those due waited when the
    /// window closed, which is a queue that was growing and not just what had arrived a moment ago.
    pub fn overloaded(&self) -> bool {
        let waited = self.waited();
        self.refused > 0 || waited > self.due / 100 && waited > 1
    }

    /// Arrivals that waited when the window closed.
    pub fn waited(&self) -> u64 {
        self.waiting_at_close.unwrap_or(self.waiting)
    }
}

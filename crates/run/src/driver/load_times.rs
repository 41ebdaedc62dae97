//! The start and end of a load on one host's clock.

use kelvin_measure::Nanos;
use serde::{Deserialize, Serialize};

/// When the load starts and is measured, on one host's clock; the same moments for all generators of a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadTimes {
    /// The users begin their first transactions.
    pub begin: Nanos,
    /// The window opens.
    pub open: Nanos,
    /// The window closes; `u64::MAX` when it ends by count.
    pub close: Nanos,
    /// Users begin no more transactions from here on: with the window's end, or in an open loop later.
    pub end: Nanos,
}

impl LoadTimes {
    /// The same times on a clock that is `by` nanoseconds ahead; an unknown end stays unknown.
    #[must_use]
    pub fn shifted(self, by: i128) -> Self {
        let end = |at: Nanos| if at == Nanos::MAX { at } else { shifted(at, by) };
        Self {
            begin: shifted(self.begin, by),
            open: shifted(self.open, by),
            close: end(self.close),
            end: end(self.end),
        }
    }
}

/// A point in time on a clock that is `by` nanoseconds ahead.
pub(super) fn shifted(at: Nanos, by: i128) -> Nanos {
    (i128::from(at) + by).clamp(0, i128::from(Nanos::MAX)) as Nanos
}

//! fio's classes of completion times, and percentiles.

use crate::{BinSums, middle};

/// Upper ends of the classes, in nanoseconds, microseconds and milliseconds each.
pub(super) const SHORT: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];
/// Those of milliseconds go further; the last class is what is longer.
pub(super) const LONG: [u64; 11] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000, 2000];

/// The share of I/Os in each class, percent.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Classes {
    pub(super) nano: [f64; 10],
    pub(super) micro: [f64; 10],
    pub(super) milli: [f64; 12],
}

impl Classes {
    /// Of bins. A bin that reaches over the end of a class is where its middle is: bins are less than 1 % wide.
    pub(super) fn from_bins(bins: &BinSums) -> Self {
        let mut classes = Self::default();
        let all = bins.count() as f64;
        for (bin, count) in bins.filled() {
            let nanos = middle(bin);
            let share = count as f64 / all * 100.0;
            let class = |ends: &[u64], value: u64| ends.iter().take_while(|end| value >= **end).count();
            let slot = if nanos < 1_000 {
                classes.nano.get_mut(class(&SHORT, nanos))
            } else if nanos < 1_000_000 {
                classes.micro.get_mut(class(&SHORT, nanos / 1_000))
            } else {
                classes.milli.get_mut(class(&LONG, nanos / 1_000_000))
            };
            if let Some(slot) = slot {
                *slot += share;
            }
        }
        for share in classes.nano.iter_mut().chain(&mut classes.micro).chain(&mut classes.milli) {
            *share = visible(*share, 0.01);
        }
        classes
    }
}

/// fio shows what is there: less than the last decimal is the last decimal.
pub(super) fn visible(share: f64, least: f64) -> f64 {
    if share > 0.0 { share.max(least) } else { 0.0 }
}

/// Percent of a whole by class, for depths; what is there is at least 0.1.
pub(super) fn shares(counts: &[u64; 7]) -> [f64; 7] {
    let all: u64 = counts.iter().sum();
    counts.map(|count| if all == 0 { 0.0 } else { visible(count as f64 / all as f64 * 100.0, 0.1) })
}

/// Whether enough I/Os lie beyond a percentile for it to be more than a few I/Os' chance: at least ten.
pub(super) fn is_known(count: u64, percent: f64) -> bool {
    // Rounding: 1 - 0.999 is a little less than 0.001.
    count as f64 * (100.0 - percent) / 100.0 >= 10.0 - 1e-9 || (percent >= 100.0 && count > 0)
}

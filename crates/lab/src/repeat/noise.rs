//! The price of foreign CPU for the runs of a group.

use serde::Serialize;

use super::GroupRun;

/// What other processes and the hypervisor explain of the figures of the runs that count, as shares of them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct RunNoise {
    /// Of the run that paid most, at most.
    pub high: f64,
    /// The likely price of a run, on average.
    pub estimate: f64,
    /// Whether the runs' specification takes noise for good.
    pub accepted: bool,
    /// Runs of which the price is known.
    pub runs: usize,
}

impl RunNoise {
    /// Of these runs; none where of none the price is known.
    pub(crate) fn of(rows: &[GroupRun]) -> Option<Self> {
        let prices: Vec<_> = rows.iter().filter(|row| row.counts()).filter_map(|row| row.noise).collect();
        let runs = prices.len();
        (runs > 0).then(|| Self {
            high: prices.iter().map(|price| price.high).fold(0.0, f64::max),
            estimate: prices.iter().map(|price| price.estimate).sum::<f64>() / runs as f64,
            accepted: prices.iter().any(|price| price.accepted),
            runs,
        })
    }
}

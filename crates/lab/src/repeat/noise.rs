//! The cost of foreign CPU use for the runs of a group.

use serde::Serialize;

use super::GroupRun;

/// The share of the counted runs' figures that other processes and the hypervisor explain.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct RunNoise {
    /// The upper bound for the run that was affected most.
    pub high: f64,
    /// The estimate, averaged over the runs.
    pub estimate: f64,
    /// Whether the runs' specification accepts noise.
    pub accepted: bool,
    /// Number of runs for which it is known.
    pub runs: usize,
}

impl RunNoise {
    /// The cost for these runs; none where it is known for no run.
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

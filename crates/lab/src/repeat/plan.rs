//! The plan of repeats.

use kelvin_stats::autoregression::PhiDistribution;
use serde::{Deserialize, Serialize};

use super::spread::logarithms;
use kelvin_run::Spec;

/// The plan of repeated runs. It is stored in their group and contains, with the runs, everything that the summary
/// needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RepeatPlan {
    /// The specification, as TOML.
    pub spec: String,
    /// Minimum number of counted runs.
    pub runs: u32,
    /// Maximum number of counted runs; equal to `runs` where the number is fixed.
    pub most: u32,
    /// The half-width of the interval at [`RepeatPlan::confidence`], as a share of the mean, at which the precision
    /// suffices.
    pub precision: f64,
    /// Whether reaching the precision ends the repetitions.
    pub until: bool,
    /// Maximum number of void runs that are replaced.
    pub replace: u32,
    /// The metric that is judged; `None` for the first of the key metrics.
    pub figure: Option<String>,
    /// The metric in earlier groups of the same specification, each in the order of its runs. They show whether runs
    /// depend on the preceding ones, which so few runs cannot show.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<Vec<f64>>,
}

impl RepeatPlan {
    /// Minimum number of runs for a positive answer: with five, the widest order-statistic interval of the median
    /// covers 93.75 %, with six 96.9 %.
    pub const FEWEST: u32 = 6;
    /// The default maximum number of runs, where an interval ends the repetitions.
    pub const MOST: u32 = 30;
    /// The default precision: the value usual in field reports.
    pub const PRECISION: f64 = 0.02;

    /// A plan with a fixed number of runs.
    pub fn fixed(spec: &Spec, runs: u32) -> Self {
        Self {
            spec: spec.to_toml(),
            runs,
            most: runs,
            precision: Self::PRECISION,
            until: false,
            replace: Self::replacements(runs),
            figure: judged(spec),
            earlier: Vec::new(),
        }
    }

    /// The assumed dependence of these runs before they are made: the prior, and the evidence of earlier groups.
    pub(crate) fn belief(&self) -> PhiDistribution {
        let known = self.earlier.iter().filter_map(|series| logarithms(series));
        known.fold(PhiDistribution::default(), |belief, series| belief.updated_with(&series))
    }

    /// A plan that runs until the precision is reached, with `runs` to `most` runs.
    pub fn until(spec: &Spec, runs: u32, most: u32, precision: f64) -> Self {
        Self {
            runs,
            most: most.max(runs),
            precision,
            until: true,
            replace: Self::replacements(most),
            ..Self::fixed(spec, runs)
        }
    }

    /// The confidence of the interval that is judged. An interval that is examined after every run, and ends the
    /// repetitions when it happens to be narrow, covers the truth less often than its nominal confidence: 93 % for 95 %
    /// with the scatter twice the bound. One of 97 % covers it in 95 % then (`a_stopped_interval_covers_what_it_says`
    /// counts it).
    pub fn confidence(&self) -> f64 {
        if self.until { 0.97 } else { 0.95 }
    }

    /// One third of the runs, but at least one.
    pub fn replacements(runs: u32) -> u32 {
        runs.div_ceil(3)
    }
}

/// The metric by which runs are judged by default: the throughput of a closed loop; for an open loop, whose throughput
/// is fixed, the 99th percentile of the response times.
pub(crate) fn judged(spec: &Spec) -> Option<String> {
    spec.is_open_loop().then(|| "p99".to_owned())
}

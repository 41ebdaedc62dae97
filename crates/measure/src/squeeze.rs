//! What came of a squeeze: a run in which one resource at a time was cut.

use serde::{Deserialize, Serialize};

use crate::json::number;
use crate::observation::UnavailableMetrics;

/// How the throughput answered to less of one resource.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Elasticity {
    /// "server CPU", "client CPU" or "server I/O".
    pub resource: String,
    /// What was cut, and of how much.
    pub how: String,
    /// By what means: "control group", "CPU affinity" or "rate cap"; empty in runs from before there were several.
    #[serde(default)]
    pub means: String,
    /// The share that was taken away of this resource, where the means allowed no other; none where it was the squeeze's.
    #[serde(default)]
    pub cut: Option<f64>,
    /// Slices with the cut that had one without beside them.
    pub pairs: u32,
    /// Δln(throughput) / Δln(resource): 1 where the work waits for it, 0 where it does not.
    #[serde(deserialize_with = "number")]
    pub elasticity: f64,
    /// Lower end of its interval at 95 %.
    #[serde(deserialize_with = "number")]
    pub low: f64,
    /// Upper end.
    #[serde(deserialize_with = "number")]
    pub high: f64,
    /// Geometric mean of throughput with the cut through that without.
    #[serde(deserialize_with = "number")]
    pub throughput_ratio: f64,
    /// As text.
    pub verdict: String,
}

/// A stretch of a squeezed window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SqueezeSlice {
    /// First second since the window opened.
    pub from: i64,
    /// One past the last.
    pub to: i64,
    /// What was cut; none where nothing was.
    pub resource: Option<String>,
    /// The bound that held, as text.
    pub bound: Option<String>,
    /// Good transactions a second, over the seconds that count.
    #[serde(deserialize_with = "number")]
    pub rate: f64,
}

/// The result of a squeeze: resources reduced in turn within the window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Squeeze {
    /// Share that was taken away each time.
    pub cut: f64,
    /// Seconds at the beginning of each slice that do not count.
    pub settle: u64,
    /// The resources.
    pub resources: Vec<Elasticity>,
    /// What was not cut, and why.
    pub not_cut: Vec<UnavailableMetrics>,
    /// The slices in their order.
    pub slices: Vec<SqueezeSlice>,
}

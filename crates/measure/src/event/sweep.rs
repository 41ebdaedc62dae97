//! What the points of a run show together: how throughput grows with users, and the highest rate that holds.

use serde::{Deserialize, Serialize};

use crate::json::number;

/// A fitted coefficient with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The value that fits best.
    #[serde(deserialize_with = "number")]
    pub value: f64,
    /// Lower end of the interval; none when it could not be had.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
}

/// The Universal Scalability Law fitted to the points of a sweep over users (Gunther, "Guerrilla Capacity
/// Planning", 2007): X(n) = λ·n / (1 + σ·(n − 1) + κ·n·(n − 1)).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scalability {
    /// Transactions per second of one user alone.
    pub lambda: Estimate,
    /// Contention: the share of the work that cannot be done side by side.
    pub sigma: Estimate,
    /// Coherency: what each pair of users costs.
    pub kappa: Estimate,
    /// Users with the highest fitted throughput; none if it lies outside the range of the fit.
    pub peak_users: Option<f64>,
    /// Without a peak: whether it lies below the smallest number measured, and not beyond twice the largest.
    #[serde(default)]
    pub peak_below: bool,
    /// Share of the variance of the throughput that the fit explains, at most 1; none when the throughput does
    /// not vary.
    pub r_squared: Option<f64>,
    /// The points that were fitted.
    pub points: Vec<ScalabilityPoint>,
}

impl Scalability {
    /// The fitted throughput of a number of users, in transactions per second.
    pub fn fitted(&self, users: f64) -> f64 {
        let (sigma, kappa) = (self.sigma.value, self.kappa.value);
        self.lambda.value * users / (1.0 + sigma * (users - 1.0) + kappa * users * (users - 1.0))
    }
}

/// One number of users of a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ScalabilityPoint {
    /// Virtual users.
    pub users: u32,
    /// Good transactions per second as measured.
    #[serde(deserialize_with = "number")]
    pub throughput: f64,
}

/// The outcome of a search for the highest rate that meets a service level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MaximumRate {
    /// The highest rate that held, in transactions per second; none when no trial held.
    pub held: Option<f64>,
    /// The lowest rate that failed above it; none when no trial failed.
    pub failed: Option<f64>,
    /// The service level as it was asked for, such as "p99<20ms,errors<0.1%".
    pub slo: String,
    /// The trials in their order.
    pub trials: Vec<RateTrial>,
}

impl MaximumRate {
    /// The point of the rate that was found: the last trial of it that held. A higher one may have held once and
    /// failed when it was repeated.
    pub fn highest_held(&self) -> Option<u32> {
        let found = self.held?;
        // A rate is carried through a file as text, which may cost it its last digit.
        let of_it = |rate: f64| (rate - found).abs() <= found.abs() * 1e-9;
        self.trials.iter().rev().find(|t| t.holds && of_it(t.rate)).map(|t| t.point)
    }
}

/// One rate that was tried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RateTrial {
    /// The point of the run that it was.
    pub point: u32,
    /// Transactions per second asked for.
    #[serde(deserialize_with = "number")]
    pub rate: f64,
    /// Good transactions per second achieved.
    #[serde(deserialize_with = "number")]
    pub achieved: f64,
    /// Whether the service level held.
    pub holds: bool,
    /// What of the point did not hold and makes it void, by name: then the limit may not be the database's.
    #[serde(default)]
    pub void: Vec<String>,
    /// Each term of the service level with the figure found, such as "p99 12.3 ms, allowed 20 ms".
    pub verdicts: Vec<String>,
}

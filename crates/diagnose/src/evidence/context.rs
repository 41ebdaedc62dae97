//! What is known about a run before its first event.

use kelvin_measure::event::{RatePeriod, Series};
use kelvin_store::{NewRun, RunId};

/// Workload, specification and environment of a run.
#[derive(Debug, Clone, Default)]
pub struct Context {
    /// The run's number in its store; none before it has one.
    pub run: Option<RunId>,
    /// The workload's name, such as "tproc-c".
    pub workload: String,
    /// What was measured, without a password.
    pub target: String,
    /// Name of the headline figure.
    pub headline: String,
    /// The time that it counts over.
    pub per: RatePeriod,
    /// Transaction types and the other series, in the order of a second's counts.
    pub series: Vec<Series>,
    /// Sentences that belong to the result.
    pub notes: Vec<String>,
    spec: serde_json::Value,
    environment: serde_json::Value,
}

impl Context {
    /// From what the store keeps of a run.
    pub fn from_stored_run(run: RunId, info: &NewRun) -> Self {
        let spec: Option<serde_json::Value> = toml::from_str(&info.spec_toml).ok();
        Self {
            run: Some(run),
            workload: info.workload.clone(),
            target: info.target.clone(),
            headline: info.headline.clone(),
            per: info.headline_per,
            series: info.kinds.clone(),
            notes: info.notes.clone(),
            spec: spec.unwrap_or_default(),
            environment: info.environment.clone(),
        }
    }

    /// With this specification and this environment; for tests and what has no store.
    #[must_use]
    pub fn with_environment(mut self, spec: serde_json::Value, environment: serde_json::Value) -> Self {
        (self.spec, self.environment) = (spec, environment);
        self
    }

    /// A value of the specification by its path, such as "/tproc-c/warehouses".
    pub fn spec(&self, pointer: &str) -> Option<&serde_json::Value> {
        self.spec.pointer(pointer)
    }

    /// A value of the environment by its path, such as "/client_host/cpu/model".
    pub fn environment(&self, pointer: &str) -> Option<&serde_json::Value> {
        self.environment.pointer(pointer)
    }
}

//! The properties of a run that are known before it starts.

use kelvin_database::Engine;
use kelvin_measure::event::{RatePeriod, Series};
use kelvin_run::{Environment, Spec};
use kelvin_store::NewRun;
use kelvin_workload::Workload;

/// The properties of a run of a workload on a database. `command` and `notes` are left empty for the caller.
///
/// # Errors
/// When the environment cannot be serialized as JSON.
pub fn new_run(
    spec: &Spec,
    engine: &dyn Engine,
    workload: &dyn Workload,
    environment: &Environment,
) -> serde_json::Result<NewRun> {
    let kinds = kelvin_run::series(workload.kinds(), spec.load.is_open_loop());
    Ok(NewRun {
        workload: workload.name().into(),
        target: engine.describe(),
        headline: workload.headline().into(),
        headline_per: workload.headline_per(),
        counter_names: workload.counters().iter().map(|&name| name.into()).collect(),
        ..from_spec(spec, kinds, environment)?
    })
}

/// The properties of a run of I/O jobs on `target` with the series `kinds`. `counter_names` is also left empty for
/// the caller.
///
/// # Errors
/// When the environment cannot be serialized as JSON.
pub fn new_run_of_jobs(
    spec: &Spec,
    target: String,
    kinds: Vec<Series>,
    environment: &Environment,
) -> serde_json::Result<NewRun> {
    Ok(NewRun {
        target,
        headline: "IOPS".into(),
        headline_per: RatePeriod::Second,
        ..from_spec(spec, kinds, environment)?
    })
}

/// The properties from the specification, and those that all runs have in common.
fn from_spec(spec: &Spec, kinds: Vec<Series>, environment: &Environment) -> serde_json::Result<NewRun> {
    Ok(NewRun {
        workload: spec.workload().as_str().into(),
        target: String::new(),
        label: spec.label.clone(),
        spec_toml: spec.to_toml(),
        command: String::new(),
        seed: spec.load.seed,
        random_algorithm: kelvin_measure::RANDOM_ALGORITHM.into(),
        kelvin_version: env!("CARGO_PKG_VERSION").into(),
        kinds,
        headline: String::new(),
        headline_per: RatePeriod::default(),
        counter_names: Vec::new(),
        notes: Vec::new(),
        environment: serde_json::to_value(environment)?,
        started: jiff::Timestamp::now(),
    })
}

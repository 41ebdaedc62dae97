//! What comes before the clock: databases with their data, files, and the steps that make them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kelvin_database::Engine;
use kelvin_lab::store_bench::{PreparedTenant, StoreBench, StoreBenchError, Unseen, io_run};
use kelvin_measure::event::Series;
use kelvin_run::fleet::{Fleet, FleetPoint, RemoteGenerators};
use kelvin_run::io::{FleetIoRun, IoRun};
use kelvin_run::spec::Work;
use kelvin_run::{Environment, RunError, Spec};
use kelvin_workload::Stop;

use super::command;
use crate::scenario::Scenario;
use crate::step::Action;

type Result<T, E = StoreBenchError> = std::result::Result<T, E>;

/// A tenant's load, ready to be armed.
pub(super) enum PreparedLoad {
    /// On a database, with what the specification took from it.
    Database(Box<(Spec, PreparedTenant)>),
    /// Jobs on files and devices.
    Io(IoFacts),
}

/// What is known of I/O jobs before they begin.
pub(super) struct IoFacts {
    series: Vec<Series>,
    counters: Vec<String>,
    target: String,
    path: Option<PathBuf>,
    paths: Vec<PathBuf>,
    notes: Vec<String>,
}

impl IoFacts {
    pub(super) fn of_run(run: &IoRun) -> Self {
        Self {
            series: run.series(),
            counters: run.counters(),
            target: run.target(),
            path: run.filesystem_path(),
            paths: run.paths().into_iter().collect(),
            notes: run.notes(),
        }
    }

    /// Of jobs that an agent runs on files and devices of its own, which it lays out.
    fn on_agent(spec: &Spec, agent: &str) -> Result<Self> {
        let agent = AgentName(agent.to_owned());
        let run =
            FleetIoRun::new(spec, &agent).map_err(|error| StoreBenchError::Refused(error.to_string()))?;
        Ok(Self {
            series: run.series(),
            counters: run.counters(),
            target: run.target(),
            path: None,
            paths: Vec::new(),
            notes: Vec::new(),
        })
    }
}

/// An agent's name, where nothing more is asked of it.
struct AgentName(String);

impl Fleet for AgentName {
    fn hosts(&self) -> Vec<String> {
        vec![self.0.clone()]
    }

    fn arm<'a>(
        &'a self,
        _point: &FleetPoint<'_>,
        _connected: &mut dyn FnMut(u64) -> Result<(), RunError>,
    ) -> Result<Box<dyn RemoteGenerators + 'a>, RunError> {
        Err(RunError::Start(format!("nothing is asked of agent {} yet", self.0)))
    }
}

impl PreparedLoad {
    pub(super) fn series(&self) -> Vec<Series> {
        match self {
            Self::Database(load) => kelvin_run::series(load.1.workload.kinds(), load.0.is_open_loop()),
            Self::Io(facts) => facts.series.clone(),
        }
    }

    pub(super) fn counters(&self) -> Vec<String> {
        match self {
            Self::Database(load) => load.1.workload.counters().iter().map(|&name| name.into()).collect(),
            Self::Io(facts) => facts.counters.clone(),
        }
    }

    pub(super) fn target(&self) -> String {
        match self {
            Self::Database(load) => load.1.engine().describe(),
            Self::Io(facts) => facts.target.clone(),
        }
    }

    /// Its database.
    pub(super) fn engine(&self) -> Option<&Arc<dyn Engine>> {
        if let Self::Database(load) = self { Some(load.1.engine()) } else { None }
    }

    /// The files and devices that its own process reads and writes.
    pub(super) fn paths(&self, spec: &Spec) -> Vec<PathBuf> {
        match self {
            Self::Database(_) => spec.target.file().into_iter().collect(),
            Self::Io(facts) => facts.paths.clone(),
        }
    }

    /// Sentences that belong to the result.
    pub(super) fn notes(&self) -> Vec<String> {
        match self {
            Self::Database(load) => {
                let version = load.1.environment.database.as_ref().map(|database| database.version.clone());
                version.into_iter().chain(load.1.notes.iter().cloned()).collect()
            }
            Self::Io(facts) => facts.notes.clone(),
        }
    }
}

/// The environment of the whole: of the host, and of the database where there is one only.
pub(super) fn environment(loads: &[PreparedLoad]) -> Environment {
    let targets: Vec<String> = loads.iter().map(PreparedLoad::target).collect();
    let path = loads
        .iter()
        .find_map(|load| if let PreparedLoad::Io(facts) = load { facts.path.clone() } else { None });
    Environment::for_files(targets.join(", "), path.as_deref())
}

/// Does the steps before the first start, and makes what they left out.
pub(super) fn prepare(
    scenario: &Scenario,
    bench: &mut StoreBench<'_>,
    stop: &Stop,
    devices: &[PathBuf],
) -> Result<Vec<PreparedLoad>> {
    let mut loads: Vec<Option<PreparedLoad>> = scenario.tenants.iter().map(|_| None).collect();
    let before = scenario.steps.iter().take_while(|step| !matches!(step.action, Action::Start { .. }));
    for step in before {
        match &step.action {
            Action::Prepare(tenants) => {
                for &tenant in tenants {
                    take(scenario, tenant, false, bench, stop, devices, &mut loads)?;
                }
            }
            Action::Fill(tenants) => {
                for &tenant in tenants {
                    take(scenario, tenant, true, bench, stop, devices, &mut loads)?;
                }
            }
            Action::Run { command, timeout, may_fail } => {
                bench.message(&format!("running: {command}"));
                let done = command::run(command, &scenario.directory, timeout.duration(), stop);
                match done {
                    Ok(()) => {}
                    Err(why) if *may_fail => bench.message(&format!("warning: {command}: {why}")),
                    Err(why) => return Err(StoreBenchError::Refused(format!("step \"{command}\": {why}"))),
                }
            }
            Action::Wait(span) => pause(span.duration(), stop),
            _ => {}
        }
        if stop.requested() {
            return Err(StoreBenchError::Stopped("interrupted before the first start".into()));
        }
    }
    for tenant in 0..loads.len() {
        if loads[tenant].is_none() {
            take(scenario, tenant, false, bench, stop, devices, &mut loads)?;
        }
    }
    Ok(loads.into_iter().flatten().collect())
}

fn pause(length: Duration, stop: &Stop) {
    let until = std::time::Instant::now() + length;
    while !stop.requested() && std::time::Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Prepares one tenant.
fn take(
    scenario: &Scenario,
    tenant: usize,
    fill: bool,
    bench: &mut StoreBench<'_>,
    stop: &Stop,
    devices: &[PathBuf],
    loads: &mut [Option<PreparedLoad>],
) -> Result<()> {
    let of = &scenario.tenants[tenant];
    let mut spec = of.spec.clone();
    let load = if let (Some(host), true) = (&of.host, spec.is_io()) {
        PreparedLoad::Io(IoFacts::on_agent(&spec, host)?)
    } else if let Work::Io(io) = &mut spec.work {
        io.prepare |= fill;
        let doing = if fill { "filling the files of" } else { "laying out the files of" };
        bench.message(&format!("{doing} {}", of.name));
        io_run(&spec, devices, None)?.lay_out(stop, &mut Unseen)?;
        let run = io_run(&of.spec, devices, None)?;
        PreparedLoad::Io(IoFacts::of_run(&run))
    } else {
        let prepared = bench.prepare_tenant(&mut spec)?;
        PreparedLoad::Database(Box::new((spec, prepared)))
    };
    if stop.requested() {
        return Err(StoreBenchError::Stopped(format!("interrupted while {} was prepared", of.name)));
    }
    loads[tenant] = Some(load);
    Ok(())
}

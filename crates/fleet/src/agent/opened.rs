//! The opened target of a run: a database with its data, or the files and devices of I/O jobs.

use std::sync::Arc;

use kelvin_database::Engine;
use kelvin_lab::store_bench::{PreparedTenant, new_run, new_run_of_jobs, reopen_tenant};
use kelvin_measure::Clock;
use kelvin_run::driver::{GeneratorReport, generate};
use kelvin_run::fleet::{ControllerLink, EndOrder, GeneratorAssignment};
use kelvin_run::io::{self, IoRun};
use kelvin_run::{Environment, RunError, Spec};
use kelvin_store::{NewRun, SHARE_NOTE};
use kelvin_workload::{Stop, Workload};

use crate::error::{FleetError, causes};
use crate::subject::Name;

type Result<T> = std::result::Result<T, FleetError>;

/// The opened target.
pub(super) enum OpenedLoad {
    /// A database.
    Users(Box<PreparedTenant>),
    /// Files and devices; `None` once the jobs have started.
    Jobs(Option<Box<IoRun>>),
}

/// The load of one point.
pub(super) enum PointWork {
    /// Users of a database.
    Users(Arc<dyn Engine>, Arc<dyn Workload>),
    /// I/O jobs.
    Jobs(Box<IoRun>, Box<Spec>),
}

impl OpenedLoad {
    /// Opens the database of a specification, or takes these jobs.
    pub(super) fn open(spec: &mut Spec, jobs: Option<IoRun>, stop: &Stop) -> Result<Self> {
        if let Some(jobs) = jobs {
            return Ok(Self::Jobs(Some(Box::new(jobs))));
        }
        let prepared = reopen_tenant(spec, stop).map_err(|error| FleetError::Refused(causes(&error)))?;
        Ok(Self::Users(Box::new(prepared)))
    }

    /// Takes the load of the next point.
    pub(super) fn take_load(&mut self, spec: &Spec) -> Result<PointWork> {
        match self {
            Self::Users(prepared) => {
                Ok(PointWork::Users(Arc::clone(prepared.engine()), Arc::clone(&prepared.workload)))
            }
            Self::Jobs(jobs) => {
                let jobs = jobs.take();
                let jobs = jobs.ok_or_else(|| FleetError::Refused("its jobs have already started".into()))?;
                Ok(PointWork::Jobs(jobs, Box::new(spec.clone())))
            }
        }
    }

    /// The description of the run in the agent's own store.
    pub(super) fn describe(&self, run: &Name, agent: &Name, spec: &Spec) -> Result<NewRun> {
        let message = |error: serde_json::Error| FleetError::Message(error.to_string());
        let mut info = match self {
            Self::Users(prepared) => {
                let (engine, workload) = (&**prepared.engine(), &*prepared.workload);
                let info = new_run(spec, engine, workload, &prepared.environment).map_err(message)?;
                NewRun { notes: prepared.notes.clone(), ..info }
            }
            Self::Jobs(jobs) => {
                let jobs =
                    jobs.as_ref().ok_or_else(|| FleetError::Refused("its jobs have started".into()))?;
                let environment = Environment::of_files(jobs.target(), jobs.filesystem_path().as_deref());
                let info =
                    new_run_of_jobs(spec, jobs.target(), jobs.series(), &environment).map_err(message)?;
                NewRun { counter_names: jobs.counters(), notes: jobs.notes(), ..info }
            }
        };
        info.label = Some(run.to_string());
        info.notes.push(format!(
            "{SHARE_NOTE}{agent} in the fleet's run {run}; the controller has the complete run"
        ));
        Ok(info)
    }
}

impl PointWork {
    /// Prepares the load, waits for the order to start, and executes it.
    pub(super) fn generate(
        self,
        assignment: &GeneratorAssignment,
        (clock, stop): (&Clock, &Stop),
        order: &EndOrder,
        link: &mut dyn ControllerLink,
    ) -> std::result::Result<GeneratorReport, RunError> {
        match self {
            Self::Users(engine, workload) => {
                generate(assignment, &engine, &workload, clock, stop, order, link)
            }
            Self::Jobs(jobs, spec) => io::generate(*jobs, &spec, assignment, (clock, stop), order, link),
        }
    }
}

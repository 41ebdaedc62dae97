//! The workload that a specification names, on an opened database.

use std::sync::Arc;

use anyhow::{Result, bail};
use kelvin_database::Engine;
use kelvin_lab::Spec;
use kelvin_lab::spec::WorkloadName;
use kelvin_observe::host::Host;
use kelvin_workload::Workload;
use kelvin_workload::pgbench::Pgbench;
use kelvin_workload::tproc_c::TprocC;

/// A workload, and what only its own kind can tell.
#[derive(Debug)]
pub(crate) enum Chosen {
    TprocC(TprocC),
    Pgbench(Pgbench),
}

impl Chosen {
    fn new(spec: &Spec) -> Result<Self> {
        Ok(match spec.workload {
            WorkloadName::TprocC => Self::TprocC(TprocC::new(spec.tproc_c.clone())?),
            WorkloadName::Pgbench => Self::Pgbench(Pgbench::new(spec.pgbench.clone())?),
            WorkloadName::Script => Self::Pgbench(Pgbench::script(spec.script.clone().into())?),
            WorkloadName::Io => bail!("I/O jobs run on files and devices, not on a database"),
        })
    }

    /// The workload, when this engine can carry it. A scale factor that nobody gave becomes the one that the
    /// database holds, and stands in `spec` from then on.
    pub(crate) fn on(engine: &dyn Engine, spec: &mut Spec) -> Result<Self> {
        let chosen = Self::new(spec)?;
        chosen.get().suits(engine)?;
        if spec.workload == WorkloadName::Pgbench && spec.pgbench.scale.is_none() {
            spec.pgbench.scale = Some(Pgbench::scale_in(engine)?.unwrap_or(1));
            return Self::new(spec);
        }
        Ok(chosen)
    }

    /// As every command sees it.
    pub(crate) fn get(&self) -> &dyn Workload {
        match self {
            Self::TprocC(workload) => workload,
            Self::Pgbench(workload) => workload,
        }
    }

    /// Looks at the data; see [`Workload::inspect`].
    pub(crate) fn inspect(&mut self, engine: &dyn Engine) -> Result<Vec<String>> {
        Ok(match self {
            Self::TprocC(workload) => workload.inspect(engine)?,
            Self::Pgbench(workload) => workload.inspect(engine)?,
        })
    }

    /// For the driver.
    pub(crate) fn shared(self) -> Arc<dyn Workload> {
        match self {
            Self::TprocC(workload) => Arc::new(workload),
            Self::Pgbench(workload) => Arc::new(workload),
        }
    }

    /// The size of the data against the server's cache and memory, for workloads whose reader thinks in them.
    pub(crate) fn working_set(&self, engine: &dyn Engine) -> Result<Option<String>> {
        let Self::Pgbench(pgbench) = self else { return Ok(None) };
        if !pgbench.uses_tables() {
            return Ok(None);
        }
        let mut session = engine.connect()?;
        // Our memory is the server's only on the same host.
        let local = engine.data_directory(session.as_mut()).is_some();
        let memory = local.then(|| Host::read().memory.total_bytes);
        Ok(Some(pgbench.working_set(session.as_mut(), memory)?))
    }

    /// What is left after an interrupted build.
    pub(crate) fn unfinished(&self) -> &'static str {
        match self {
            Self::TprocC(_) => {
                "the warehouses that are complete stay, and the same command goes on from there"
            }
            Self::Pgbench(_) => "the tables are not complete, and the same command makes them anew",
        }
    }
}

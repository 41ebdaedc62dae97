//! The workload that a specification names, on an opened database.

use std::sync::Arc;

use kelvin_database::{Engine, Error, ErrorClass};
use kelvin_observe::host::Host;
use kelvin_run::Spec;
use kelvin_run::spec::Work;
use kelvin_workload::Workload;
use kelvin_workload::pgbench::{self, Pgbench};
use kelvin_workload::scan::Scan;
use kelvin_workload::tproc_c::TprocC;
use kelvin_workload::tproc_h::TprocH;

use crate::error::StoreBenchError;

type Result<T> = std::result::Result<T, StoreBenchError>;

/// Adds the operation to a database error. Errors in the user's input explain themselves.
pub(crate) fn while_doing(what: &'static str) -> impl Fn(Error) -> Error {
    move |error| if error.class() == ErrorClass::Usage { error } else { error.context(what) }
}

/// A workload, and the properties that only its kind has.
#[derive(Debug)]
pub enum SelectedWorkload {
    /// TPROC-C.
    TprocC(TprocC),
    /// TPROC-H.
    TprocH(TprocH),
    /// pgbench, and user scripts in its language.
    Pgbench(Pgbench),
    /// Scans of the TPROC-C tables.
    Scan(Scan),
}

impl SelectedWorkload {
    fn new(spec: &Spec) -> Result<Self> {
        Ok(match &spec.work {
            Work::TprocC(options) => Self::TprocC(TprocC::new(options.clone())?),
            Work::TprocH(options) => Self::TprocH(TprocH::new(options.clone())?),
            Work::Pgbench(options) => Self::Pgbench(Pgbench::new(options.clone())?),
            Work::Script(options) => Self::Pgbench(Pgbench::script(options.clone().into())?),
            Work::Scan(options) => Self::Scan(Scan::new(options.clone())?),
            Work::Io(_) => {
                let why = "I/O jobs run on files and devices, not on a database";
                return Err(StoreBenchError::Refused(why.into()));
            }
        })
    }

    /// The workload, if this engine supports it. Properties of pgbench's tables that the specification leaves out
    /// (scale factor, fillfactor, foreign keys, unlogged tables) are read from the database and written into `spec`.
    pub fn for_engine(engine: &dyn Engine, spec: &mut Spec) -> Result<Self> {
        let chosen = Self::new(spec)?;
        chosen.get().check_engine(engine)?;
        if let Work::Pgbench(options) = &mut spec.work {
            if let Some(shape) =
                Pgbench::shape_in(engine).map_err(while_doing("looking for the workload's tables"))?
            {
                options.scale = options.scale.or(Some(shape.scale));
                if options.fillfactor == pgbench::Options::default().fillfactor {
                    options.fillfactor = shape.fillfactor;
                }
                options.foreign_keys |= shape.foreign_keys;
                options.unlogged_tables |= shape.unlogged_tables;
                if options.partitions == 0 {
                    (options.partitions, options.partition_method) =
                        (shape.partitions, shape.partition_method);
                }
            }
            options.scale = options.scale.or(Some(1));
            return Self::new(spec);
        }
        if let Work::TprocH(options) = &mut spec.work {
            let there = TprocH::scale_in(engine).map_err(while_doing("looking for the workload's tables"))?;
            options.scale = Some(options.scale.or(there).unwrap_or_default());
            spec.arrange_streams();
            return Self::new(spec);
        }
        Ok(chosen)
    }

    /// The workload as a trait object, for code that is independent of its kind.
    pub fn get(&self) -> &dyn Workload {
        match self {
            Self::TprocC(workload) => workload,
            Self::TprocH(workload) => workload,
            Self::Pgbench(workload) => workload,
            Self::Scan(workload) => workload,
        }
    }

    /// Inspects the data; see [`Workload::inspect`].
    pub fn inspect(&mut self, engine: &dyn Engine) -> Result<Vec<String>> {
        let notes = match self {
            Self::TprocC(workload) => workload.inspect(engine),
            Self::TprocH(workload) => workload.inspect(engine),
            Self::Pgbench(workload) => workload.inspect(engine),
            Self::Scan(workload) => workload.inspect(engine),
        };
        Ok(notes.map_err(while_doing("checking the workload's data"))?)
    }

    /// The workload for the driver.
    pub fn shared(self) -> Arc<dyn Workload> {
        match self {
            Self::TprocC(workload) => Arc::new(workload),
            Self::TprocH(workload) => Arc::new(workload),
            Self::Pgbench(workload) => Arc::new(workload),
            Self::Scan(workload) => Arc::new(workload),
        }
    }

    /// The size of the data compared with the server's cache and memory, for workloads where that is customary.
    pub fn working_set(&self, engine: &dyn Engine) -> Result<Option<String>> {
        let Self::Pgbench(pgbench) = self else { return Ok(None) };
        if !pgbench.uses_tables() {
            return Ok(None);
        }
        let mut session = engine.connect()?;
        // This host's memory is the server's only if the server runs here.
        let local = engine.data_directory(session.as_mut()).is_some();
        let memory = local.then(|| Host::read().memory.total_bytes);
        Ok(Some(pgbench.working_set(session.as_mut(), memory)?))
    }

    /// The approximate number of bytes that a build loads.
    pub(crate) fn bytes_to_build(&self) -> u64 {
        let (number, bytes_each) = match self {
            Self::TprocC(workload) => (workload.options().warehouses, 100_000_000),
            Self::TprocH(workload) => {
                return (workload.options().scale_to_build().factor() * 1_800_000_000.0) as u64;
            }
            Self::Scan(workload) => (workload.options().warehouses, 100_000_000),
            Self::Pgbench(workload) => (workload.options().scale, 15_000_000),
        };
        u64::from(number.unwrap_or(1)) * bytes_each
    }

    /// The state after an interrupted build, as text.
    pub fn unfinished(&self) -> &'static str {
        match self {
            Self::TprocC(_) | Self::Scan(_) => {
                "complete warehouses are kept, and the same command builds the rest"
            }
            Self::TprocH(_) => "complete parts are kept, and the same command builds the rest",
            Self::Pgbench(_) => "the tables are incomplete; the same command creates them again",
        }
    }
}

/// Refuses a database without the complete data of the workload.
pub fn must_be_built(workload: &dyn Workload, engine: &dyn Engine) -> Result<()> {
    if !workload.is_built(engine)? {
        let (target, name) = (engine.describe(), workload.name());
        return Err(StoreBenchError::Refused(format!(
            "{target} does not contain complete {name} data; create the data with `kelvin build`, or omit \
             --no-build"
        )));
    }
    Ok(())
}

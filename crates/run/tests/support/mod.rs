//! A small TPROC-C database in a file, and a sink that stores its events.

use std::sync::Arc;

use kelvin_database::Engine;
use kelvin_database::sqlite::SqliteEngine;
use kelvin_measure::{Clock, Event, Sink, SinkError, SourceId};
use kelvin_run::spec::WorkloadName;
use kelvin_run::{Run, RunOutcome, Spec};
use kelvin_workload::progress::Quiet;
use kelvin_workload::tproc_c::{Options, TprocC};
use kelvin_workload::{Stop, Workload};

/// Stores every event; can be made to fail.
#[derive(Default)]
pub(crate) struct Kept {
    pub(crate) events: Vec<Event>,
    pub(crate) fail_after: Option<usize>,
    /// Requests a stop after this many measured seconds.
    pub(crate) stop_after_seconds: Option<(i64, Stop)>,
}

impl Sink for Kept {
    fn event_from(&mut self, _source: SourceId, event: &Event) -> Result<(), SinkError> {
        if self.fail_after.is_some_and(|limit| self.events.len() >= limit) {
            return Err("no space left on device".into());
        }
        if let (Event::Second(second), Some((last, stop))) = (event, &self.stop_after_seconds)
            && second.second + 1 >= *last
            && !stop.requested()
        {
            stop.request();
        }
        self.events.push(event.clone());
        Ok(())
    }
}

pub(crate) struct Loaded {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) workload: Arc<dyn Workload>,
    pub(crate) _directory: tempfile::TempDir,
}

pub(crate) fn loaded() -> Loaded {
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let engine: Arc<dyn Engine> = Arc::new(SqliteEngine::open(directory.path().join("tpcc.db")).unwrap());
    let mut workload = TprocC::new(Options::default()).unwrap();
    Workload::build(&workload, &*engine, &Quiet, &Stop::new()).unwrap();
    workload.inspect(&*engine).unwrap();
    Loaded { engine, workload: Arc::new(workload), _directory: directory }
}

pub(crate) fn spec(users: &str, ramp_up: &str, duration: &str) -> Spec {
    let mut spec = Spec::new(WorkloadName::TprocC);
    spec.load.users = users.parse().unwrap();
    spec.load.ramp_up = ramp_up.parse().unwrap();
    spec.load.duration = duration.parse().unwrap();
    spec
}

pub(crate) fn run(
    loaded: &Loaded,
    spec: &Spec,
    stop: &Stop,
    sink: &mut Kept,
) -> Result<RunOutcome, kelvin_run::RunError> {
    let (engine, workload) = (Arc::clone(&loaded.engine), Arc::clone(&loaded.workload));
    Run { engine, workload, spec, clock: Clock::real(), stop: stop.clone(), fleet: None }.execute(sink)
}

#[track_caller]
pub(crate) fn assert_invariants(outcome: &RunOutcome) {
    for point in &outcome.points {
        assert!(!point.invariants.is_empty());
        for invariant in &point.invariants {
            // Whether the generator got its CPUs depends on the machine.
            let generator = invariant.name.contains("load generator");
            assert!(invariant.holds || generator, "{invariant:?}");
        }
    }
}

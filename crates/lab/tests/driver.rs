//! The driver on a real SQLite database: windows, counts, invariants, stopping.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use kelvin_database::Engine;
use kelvin_database::sqlite::SqliteEngine;
use kelvin_lab::spec::WorkloadName;
use kelvin_lab::{Outcome, Run, Sink, SinkError, Spec};
use kelvin_measure::event::{KindCounts, Part, Phase, Status};
use kelvin_measure::{Clock, Event};
use kelvin_workload::progress::Quiet;
use kelvin_workload::tproc_c::TprocC;
use kelvin_workload::{Stop, Workload};

/// Keeps every event; may fail on purpose.
#[derive(Default)]
struct Kept {
    events: Vec<Event>,
    fail_after: Option<usize>,
    /// Asks to stop once this many measured seconds were seen.
    stop_after_seconds: Option<(i64, Stop)>,
}

impl Sink for Kept {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
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

struct Loaded {
    engine: Arc<dyn Engine>,
    workload: Arc<dyn Workload>,
    _directory: tempfile::TempDir,
}

fn loaded() -> Loaded {
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let engine: Arc<dyn Engine> = Arc::new(SqliteEngine::open(directory.path().join("tpcc.db")).unwrap());
    let mut workload = TprocC::new(Spec::new(WorkloadName::TprocC).tproc_c).unwrap();
    Workload::build(&workload, &*engine, &Quiet, &Stop::new()).unwrap();
    workload.inspect(&*engine).unwrap();
    Loaded { engine, workload: Arc::new(workload), _directory: directory }
}

fn spec(users: &str, ramp_up: &str, duration: &str) -> Spec {
    let mut spec = Spec::new(WorkloadName::TprocC);
    spec.load.users = users.parse().unwrap();
    spec.load.ramp_up = ramp_up.parse().unwrap();
    spec.load.duration = duration.parse().unwrap();
    spec
}

fn run(loaded: &Loaded, spec: &Spec, stop: &Stop, sink: &mut Kept) -> Result<Outcome, kelvin_lab::RunError> {
    let (engine, workload) = (Arc::clone(&loaded.engine), Arc::clone(&loaded.workload));
    Run { engine, workload, spec, clock: Clock::real(), stop: stop.clone() }.execute(sink)
}

#[track_caller]
fn assert_invariants(outcome: &Outcome) {
    for point in &outcome.points {
        assert!(!point.invariants.is_empty());
        for invariant in &point.invariants {
            assert!(invariant.holds, "{invariant:?}");
        }
    }
}

#[test]
fn a_timed_window_counts_only_what_ended_in_it() {
    let loaded = loaded();
    let mut sink = Kept::default();
    let outcome = run(&loaded, &spec("3,1", "1s", "2s"), &Stop::new(), &mut sink).unwrap();
    assert_eq!(outcome.status, Status::Complete);
    assert_eq!(outcome.points.len(), 2);
    assert_invariants(&outcome);
    for (index, point) in outcome.points.iter().enumerate() {
        assert_eq!(point.window.elapsed, 2_000_000_000);
        assert_eq!(point.errors, 0);
        let seconds: Vec<_> = sink
            .events
            .iter()
            .filter_map(|event| match event {
                Event::Second(second) if second.point == index as u32 => Some(second),
                _ => None,
            })
            .collect();
        let measured: u64 = seconds
            .iter()
            .filter(|s| s.part == Part::Measured)
            .flat_map(|s| &s.kinds)
            .map(KindCounts::good)
            .sum();
        let total: u64 = point.totals.measured.iter().map(KindCounts::good).sum();
        assert_eq!(measured, total, "the events hold every counted transaction");
        assert!(seconds.iter().any(|s| s.part == Part::RampUp && s.second == -1));
        assert!(seconds.iter().filter(|s| s.part == Part::Measured).all(|s| (0..2).contains(&s.second)));
    }
    let phases: Vec<Phase> = sink
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Phase { phase, .. } => Some(*phase),
            _ => None,
        })
        .collect();
    assert_eq!(phases, [Phase::Connect, Phase::RampUp, Phase::Measure, Phase::Stop].repeat(2));
    assert!(matches!(sink.events.last(), Some(Event::Finished { status: Status::Complete, error: None })));
}

#[test]
fn a_count_ends_the_run_and_the_window_is_as_long_as_it_took() {
    let loaded = loaded();
    let mut spec = spec("2", "5s", "20s");
    spec.load.transactions = std::num::NonZeroU64::new(150);
    spec.check = true;
    let outcome = run(&loaded, &spec, &Stop::new(), &mut Kept::default()).unwrap();
    let point = &outcome.points[0];
    assert_eq!(point.totals.measured.iter().map(|k| k.good() + k.failed).sum::<u64>(), 300);
    assert_invariants(&outcome);
    assert_eq!(outcome.checks.len(), 12);
    assert!(outcome.checks.iter().all(|check| check.holds), "{:?}", outcome.checks);
}

#[test]
fn a_stop_closes_the_window_where_it_came() {
    let loaded = loaded();
    let stop = Stop::new();
    let mut sink = Kept { stop_after_seconds: Some((2, stop.clone())), ..Kept::default() };
    let outcome = run(&loaded, &spec("2", "500ms", "10m"), &stop, &mut sink).unwrap();
    assert_eq!(outcome.status, Status::Interrupted);
    let elapsed = outcome.points[0].window.elapsed;
    assert!((2_000_000_000..60_000_000_000).contains(&elapsed), "{elapsed}");
    assert_invariants(&outcome);
}

#[test]
fn keying_and_thinking_leave_littles_law_intact() {
    let loaded = loaded();
    let mut options = Spec::new(WorkloadName::TprocC).tproc_c;
    options.keying_and_thinking = true;
    let mut workload = TprocC::new(options).unwrap();
    workload.inspect(&*loaded.engine).unwrap();
    let loaded = Loaded { workload: Arc::new(workload), ..loaded };
    let outcome = run(&loaded, &spec("40", "0s", "4s"), &Stop::new(), &mut Kept::default()).unwrap();
    assert_invariants(&outcome);
    assert!(outcome.points[0].window.idle > 100_000_000_000, "40 users keyed for most of 4 s");
}

#[test]
fn a_sink_that_cannot_keep_events_ends_the_run_with_its_reason() {
    let loaded = loaded();
    let mut sink = Kept { fail_after: Some(8), ..Kept::default() };
    let error = run(&loaded, &spec("2", "0s", "60s"), &Stop::new(), &mut sink).unwrap_err();
    assert!(error.to_string().contains("no space left"), "{error}");
}

#[test]
fn users_who_cannot_prepare_their_statements_stop_the_run_before_it_starts() {
    let loaded = loaded();
    loaded.engine.connect().unwrap().run("alter table stock rename to gone").unwrap();
    let error = run(&loaded, &spec("2", "0s", "30s"), &Stop::new(), &mut Kept::default()).unwrap_err();
    assert!(error.to_string().contains("stock"), "{error}");
}

#[test]
fn users_of_whom_nothing_succeeds_give_up_and_say_why() {
    let loaded = loaded();
    let refuse = "create trigger refuse before update on district begin select raise(abort, 'no more'); end";
    loaded.engine.connect().unwrap().run(refuse).unwrap();
    let mut spec = spec("2", "0s", "10m");
    // Only transactions that update a district.
    spec.tproc_c.mix = "1/1/0/0/0".parse().unwrap();
    let mut workload = TprocC::new(spec.tproc_c.clone()).unwrap();
    workload.inspect(&*loaded.engine).unwrap();
    let loaded = Loaded { workload: Arc::new(workload), ..loaded };
    let outcome = run(&loaded, &spec, &Stop::new(), &mut Kept::default()).unwrap();
    assert_eq!(outcome.status, Status::Failed);
    assert!(outcome.error.unwrap().contains("no more"));
    let point = &outcome.points[0];
    assert_eq!(point.totals.all.iter().map(|k| k.failed).sum::<u64>(), 200, "a hundred each");
}

#[test]
fn a_short_run_by_count_holds_every_invariant() {
    let loaded = loaded();
    let mut spec = spec("3", "0s", "1s");
    for transactions in [1, 3, 10] {
        spec.load.transactions = std::num::NonZeroU64::new(transactions);
        for _ in 0..5 {
            assert_invariants(&run(&loaded, &spec, &Stop::new(), &mut Kept::default()).unwrap());
        }
    }
}

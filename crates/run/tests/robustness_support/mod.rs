//! A loaded server, a run on it, and faults during the run.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "each test file uses a part"
)]

pub mod disk;
pub mod pooler;
pub mod proxy;
#[path = "../../../database/tests/support/mod.rs"]
pub mod server;

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use kelvin_database::mysql::MysqlEngine;
use kelvin_database::postgres::PostgresEngine;
use kelvin_database::{Engine, ErrorClass, mysql, postgres};
use kelvin_measure::event::{ErrorCount, KindCounts, Phase, Status};
use kelvin_measure::invariant::{GENERATOR_RAN, Invariant, LOAD_GENERATOR};
use kelvin_measure::{Clock, Event, Nanos, Sink, SinkError, SourceId, second_from};
use kelvin_run::spec::{Work, WorkloadName};
use kelvin_run::{Run, RunError, RunOutcome, Spec};
use kelvin_workload::progress::Quiet;
use kelvin_workload::tproc_c::{Options, TprocC};
use kelvin_workload::{Stop, Workload};
use proxy::{Garble, Proxy};

/// The window of [`spec`], plus the time for connecting and the last count.
pub const LIMIT: Duration = Duration::from_secs(2 + 5);

/// How long a load may take to recover after a fault. Long, since a stalling machine is only slow, but a
/// defect takes forever.
const PATIENCE: &str = "2m";

/// Stores the events, reports when the window opens, and stops a run that waits for its recovery.
struct Watch {
    events: Vec<Event>,
    opened: Option<mpsc::Sender<Nanos>>,
    /// The first second after the fault; `i64::MAX` before that is known.
    recovery: Arc<AtomicI64>,
    stop: Stop,
}

impl Sink for Watch {
    fn event_from(&mut self, _source: SourceId, event: &Event) -> Result<(), SinkError> {
        if let Event::Phase { phase: Phase::Measure, at, .. } = event {
            // In a run without faults there is no receiver.
            let _ = self.opened.take().map(|opened| opened.send(*at));
        }
        if let Event::Second(second) = event
            && second.second >= self.recovery.load(Ordering::Acquire)
            && second.kinds.iter().any(|kind| kind.good() > 0)
            && !self.stop.requested()
        {
            self.stop.request();
        }
        self.events.push(event.clone());
        Ok(())
    }
}

/// The connection settings of a server.
pub trait Config {
    fn engine(&self) -> Arc<dyn Engine>;
}

impl Config for postgres::Config {
    fn engine(&self) -> Arc<dyn Engine> {
        Arc::new(PostgresEngine::new(self.clone()))
    }
}

impl Config for mysql::Config {
    fn engine(&self) -> Arc<dyn Engine> {
        Arc::new(MysqlEngine::new(self.clone()))
    }
}

/// The outcome of a run.
pub struct Ended {
    pub outcome: RunOutcome,
    pub events: Vec<Event>,
    pub wall: Duration,
}

/// Builds one warehouse of TPROC-C on the server of `config`.
pub fn load(config: &impl Config) {
    let workload = workload(&spec());
    Workload::build(&workload, &*config.engine(), &Quiet, &Stop::new()).unwrap();
}

/// Checks the consistency conditions after all faults.
#[track_caller]
pub fn assert_consistent(config: &impl Config) {
    let engine = &*config.engine();
    let mut workload = workload(&spec());
    workload.inspect(engine).unwrap();
    let mut lines = Vec::new();
    workload.check(engine, &Quiet, &Stop::new(), &mut |line| lines.push(line)).unwrap();
    assert!(lines.len() == 12 && lines.iter().all(|line| line.holds), "{lines:?}");
}

/// 1.5 measured seconds of four users with functions, without ramp-up. The time limit of a statement is half
/// a second.
pub fn spec() -> Spec {
    let mut spec = Spec::new(WorkloadName::TprocC);
    spec.load.users = "4".parse().unwrap();
    spec.load.users_on = kelvin_run::spec::Threading::Threads;
    spec.load.ramp_up = "0s".parse().unwrap();
    spec.load.duration = "1500ms".parse().unwrap();
    spec.load.timeout = "500ms".parse().unwrap();
    spec.work = Work::TprocC(Options { warehouses: Some(1), ..Options::default() });
    spec
}

/// [`spec`] with another way of calling, and with event loops.
pub fn calling(calls: kelvin_workload::tproc_c::Calls) -> Spec {
    let mut spec = spec();
    spec.load.users_on = kelvin_run::spec::Threading::Loops;
    spec.work = Work::TprocC(Options { warehouses: Some(1), calls: Some(calls), ..Options::default() });
    spec
}

pub fn workload(spec: &Spec) -> TprocC {
    let Work::TprocC(options) = &spec.work else { panic!("{spec:?}") };
    TprocC::new(options.clone()).unwrap()
}

/// Runs `spec` on the server of `config`. `fault` is called when the window opens.
pub fn run(config: &impl Config, spec: &Spec, mut fault: impl FnMut() + Send) -> Ended {
    on_time(|| try_run(config, spec, &mut fault))
}

/// As [`run`], with a window that stays open until the load has recovered from the fault.
#[track_caller]
pub fn run_until_recovered(config: &impl Config, spec: &Spec, mut fault: impl FnMut() + Send) -> Ended {
    let mut spec = spec.clone();
    spec.load.duration = PATIENCE.parse().unwrap();
    let ended = on_time(|| {
        let engine = config.engine();
        let mut workload = workload(&spec);
        workload.inspect(&*engine)?;
        execute(engine, Arc::new(workload), &spec, true, &mut fault)
    });
    assert_eq!(ended.outcome.status, Status::Interrupted, "no recovery: {}", ended.told());
    ended
}

/// Repeats a run that timed out before its window, since the machine may stall.
fn on_time(mut begin: impl FnMut() -> Result<Ended, RunError>) -> Ended {
    for _ in 0..10 {
        match begin() {
            Err(RunError::Database(error)) if error.class() == ErrorClass::Timeout => {}
            ended => return ended.unwrap(),
        }
    }
    panic!("each of ten runs timed out before its window");
}

/// Runs eight users while one of twenty answers is garbled, in each way in turn. Errors occur, and the load
/// recovers.
#[track_caller]
pub fn run_garbled(config: &impl Config, proxy: &Proxy, calls: kelvin_workload::tproc_c::Calls) -> Ended {
    let mut spec = calling(calls);
    spec.load.users = "8".parse().unwrap();
    spec.load.timeout = "200ms".parse().unwrap();
    let mut garbled = Vec::new();
    let ended = run_until_recovered(config, &spec, || {
        for garble in [Garble::Change, Garble::Flip, Garble::Truncate, Garble::Insert] {
            let before = proxy.garbled();
            proxy.garble(garble, 20);
            let began = Instant::now();
            pause(450);
            while proxy.garbled() < before + 10 && began.elapsed() < Duration::from_mins(1) {
                pause(10);
            }
            garbled.push((garble, proxy.garbled() - before));
        }
        proxy.be_honest();
    })
    .show("garbled");
    assert!(garbled.iter().all(|&(_, answers)| answers > 0), "{garbled:?} {}", ended.told());
    ended.assert_error("protocol", "").assert_error("time-out", "");
    ended
}

pub fn try_run(config: &impl Config, spec: &Spec, fault: impl FnOnce() + Send) -> Result<Ended, RunError> {
    let engine = config.engine();
    let mut workload = workload(spec);
    workload.inspect(&*engine)?;
    run_workload(engine, Arc::new(workload), spec, fault)
}

pub fn run_workload(
    engine: Arc<dyn Engine>,
    workload: Arc<dyn Workload>,
    spec: &Spec,
    fault: impl FnOnce() + Send,
) -> Result<Ended, RunError> {
    execute(engine, workload, spec, false, fault)
}

fn execute(
    engine: Arc<dyn Engine>,
    workload: Arc<dyn Workload>,
    spec: &Spec,
    until_recovered: bool,
    fault: impl FnOnce() + Send,
) -> Result<Ended, RunError> {
    let (opened, open) = mpsc::channel();
    let began = Instant::now();
    let (clock, stop) = (Clock::real(), Stop::new());
    let recovery = Arc::new(AtomicI64::new(i64::MAX));
    std::thread::scope(|scope| {
        let (of_fault, behind) = (clock.clone(), Arc::clone(&recovery));
        scope.spawn(move || {
            if let Ok(opened) = open.recv() {
                fault();
                if until_recovered {
                    behind.store(second_from(opened, of_fault.now()) + 1, Ordering::Release);
                }
            }
        });
        // Dropped here even when the run panics, so that the fault's thread ends.
        let mut watch = Watch { events: Vec::new(), opened: Some(opened), recovery, stop: stop.clone() };
        let run = Run { engine, workload, spec, clock, stop, fleet: None };
        let outcome = run.execute(&mut watch)?;
        Ok(Ended { outcome, events: watch.events, wall: began.elapsed() })
    })
}

impl Ended {
    pub fn errors(&self) -> impl Iterator<Item = &ErrorCount> {
        self.events.iter().filter_map(|event| match event {
            Event::Errors(errors) => Some(errors),
            _ => None,
        })
    }

    /// The number of errors of a class, and of a code if it is not empty.
    pub fn count(&self, class: &str, code: &str) -> u64 {
        let wanted = |e: &&ErrorCount| e.class == class && (code.is_empty() || e.code == code);
        self.errors().filter(wanted).map(|e| e.count).sum()
    }

    /// Good transactions by second.
    pub fn good(&self) -> Vec<(i64, u64)> {
        let mut seconds = std::collections::BTreeMap::new();
        for event in &self.events {
            if let Event::Second(second) = event {
                *seconds.entry(second.second).or_insert(0) +=
                    second.kinds.iter().map(KindCounts::good).sum::<u64>();
            }
        }
        seconds.into_iter().collect()
    }

    /// Prints the outcome if the environment variable KELVIN_SHOW is set.
    pub fn show(self, what: &str) -> Self {
        if std::env::var_os("KELVIN_SHOW").is_some() {
            eprintln!("== {what}: {}", self.told());
        }
        self
    }

    pub fn told(&self) -> String {
        let errors: Vec<String> = self
            .errors()
            .map(|e| {
                format!(
                    "{:>3} s  {:>5} {} {} retried={} {:?}",
                    e.second, e.count, e.class, e.code, e.retried, e.message
                )
            })
            .collect();
        let broken: Vec<String> = self
            .outcome
            .points
            .iter()
            .flat_map(|p| &p.invariants)
            .filter(|i| !i.holds)
            .map(|i| format!("{i:?}"))
            .chain(self.outcome.checks.iter().filter(|c| !c.holds).map(|c| format!("{c:?}")))
            .collect();
        format!(
            "wall {:?}, {:?} {:?}\ngood {:?}\n{}\nbroken: {}",
            self.wall,
            self.outcome.status,
            self.outcome.error,
            self.good(),
            errors.join("\n"),
            broken.join("\n")
        )
    }

    /// Asserts that all counts agree.
    #[track_caller]
    pub fn assert_true(&self) -> &Self {
        for point in &self.outcome.points {
            let whole = point.invariants.iter().any(|i| i.name.contains("whole load"));
            assert!(whole, "the server's count was not compared: {:?}", point.invariants);
            // Whether the generator got its CPUs depends on the machine.
            let agrees = |i: &Invariant| i.holds || [LOAD_GENERATOR, GENERATOR_RAN].contains(&&*i.name);
            assert!(point.invariants.iter().all(agrees), "{}", self.told());
        }
        self
    }

    /// Asserts that errors of this class and code were counted.
    #[track_caller]
    pub fn assert_error(&self, class: &str, code: &str) -> &Self {
        assert!(self.count(class, code) > 0, "no {class} {code} among the errors: {}", self.told());
        self
    }

    #[track_caller]
    pub fn assert_no_error(&self) -> &Self {
        assert_eq!(self.outcome.errors(), 0, "{}", self.told());
        self
    }

    /// Asserts that the server's count could not be read, and that the run does not claim agreement.
    #[track_caller]
    pub fn assert_uncounted(&self) {
        let whole = self.outcome.points[0].invariants.iter().find(|i| i.name.contains("whole load")).unwrap();
        assert!(!whole.holds && whole.evidence.contains("failed"), "{whole:?}");
    }

    /// Asserts that the run ended within `limit`, with a tolerance.
    #[track_caller]
    pub fn assert_within(&self, limit: Duration) -> &Self {
        // A run that hangs takes forever; on a busy machine a run takes some seconds longer.
        assert!(self.wall < limit + Duration::from_secs(30), "too long: {}", self.told());
        self
    }
}

pub fn pause(milliseconds: u64) {
    std::thread::sleep(Duration::from_millis(milliseconds));
}

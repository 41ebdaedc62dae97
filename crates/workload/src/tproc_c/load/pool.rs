//! Work distributed over connections, with one thread each: takes tasks in order, reports progress, and stops
//! on request.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use kelvin_database::{Engine, Error, ErrorClass, Result, Session};

use crate::{BuildProgress, Stop};

/// Interval between progress reports.
const REPORT_INTERVAL: Duration = Duration::from_millis(200);
/// Running statements are cancelled when the work is to end, and again after this interval: the first request
/// may fall between two statements.
const CANCEL: Duration = Duration::from_millis(300);

/// State shared by the tasks of a pool.
pub(crate) struct Shared<'a> {
    stop: &'a Stop,
    failed: AtomicBool,
    rows: AtomicU64,
    done: AtomicU64,
}

impl Shared<'_> {
    /// Returns an error if the work is to end: a stop was requested, or another task failed.
    pub(crate) fn go_on(&self) -> Result<()> {
        if self.halted() { Err(stopped()) } else { Ok(()) }
    }

    /// The same for a task that checks for a stop request itself, at a suitable point (see
    /// [`Shared::asked_to_end`]).
    pub(crate) fn go_on_to_the_end(&self) -> Result<()> {
        if self.halted_at_once() { Err(stopped()) } else { Ok(()) }
    }

    /// Whether a stop has been requested.
    pub(crate) fn asked_to_end(&self) -> bool {
        self.stop.requested()
    }

    /// Counts rows for the progress.
    pub(crate) fn add_rows(&self, rows: u64) {
        self.rows.fetch_add(rows, Ordering::Relaxed);
    }

    fn halted(&self) -> bool {
        self.failed.load(Ordering::Acquire) || self.stop.requested()
    }

    fn halted_at_once(&self) -> bool {
        self.failed.load(Ordering::Acquire) || self.stop.is_immediate()
    }
}

/// The error of work that a stop request has ended.
pub(crate) fn stopped() -> Error {
    Error::new(ErrorClass::Timeout, "stopped on request")
}

/// Unit of the progress.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Tasks. Their statements are cancelled on a stop request.
    Task,
    /// This many rows in this many parts, whatever the number of tasks. On a stop request tasks end at a
    /// suitable point; a second request cancels their statements.
    Rows { rows: u64, parts: u64 },
}

/// The work, as reported to the progress.
#[derive(Clone, Copy)]
pub(crate) struct Job<'a> {
    /// Such as "warehouses loaded".
    pub(crate) what: &'a str,
    /// Tasks that were done earlier.
    pub(crate) before: u64,
    pub(crate) unit: Unit,
    pub(crate) progress: &'a dyn BuildProgress,
    pub(crate) stop: &'a Stop,
}

/// Prepares a connection.
pub(crate) type Setup<'a> = dyn Fn(&mut dyn Session) -> Result<()> + Sync + 'a;

/// Executes `work` for every task over at most `connections` connections. The first error is returned; it
/// ends the other tasks within a second.
pub(crate) fn run<T: Sync>(
    engine: &dyn Engine,
    connections: usize,
    setup: &Setup<'_>,
    job: Job<'_>,
    tasks: &[T],
    work: &(dyn Fn(&mut dyn Session, &T, &Shared<'_>) -> Result<()> + Sync),
) -> Result<()> {
    run_each(engine, (connections, setup), job, tasks, work, &mut |_, ()| ())
}

/// The same; `each` is called in this thread with the number and the result of every task, in the order in
/// which the tasks end.
pub(crate) fn run_each<T: Sync, R: Send>(
    engine: &dyn Engine,
    (connections, setup): (usize, &Setup<'_>),
    job: Job<'_>,
    tasks: &[T],
    work: &(dyn Fn(&mut dyn Session, &T, &Shared<'_>) -> Result<R> + Sync),
    each: &mut dyn FnMut(usize, R),
) -> Result<()> {
    if tasks.is_empty() {
        return Ok(());
    }
    let shared = Shared {
        stop: job.stop,
        failed: AtomicBool::new(false),
        rows: AtomicU64::new(0),
        done: AtomicU64::new(job.before),
    };
    shared.go_on()?;
    let report = || {
        let (done, rows) = (shared.done.load(Ordering::Acquire), shared.rows.load(Ordering::Relaxed));
        let (done, total) = match job.unit {
            Unit::Task => (done, job.before + tasks.len() as u64),
            Unit::Rows { rows: all, parts } => ((rows * parts / all.max(1)).min(parts), parts),
        };
        job.progress.update(job.what, done, total, rows);
    };
    report();

    let mut sessions = Vec::new();
    for _ in 0..connections.clamp(1, tasks.len()) {
        let mut session = engine.connect()?;
        setup(session.as_mut())?;
        sessions.push(session);
    }
    let cancels: Vec<_> = sessions.iter().map(|session| session.cancel()).collect();
    let next = AtomicUsize::new(0);

    let outcome = std::thread::scope(|scope| {
        let (sender, receiver) = channel();
        for mut session in sessions {
            let (sender, shared, next) = (sender.clone(), &shared, &next);
            scope.spawn(move || {
                // The receiver lives until all senders are dropped.
                let done = |task, result| drop(sender.send(Ok((task, result))));
                if let Err(error) = take_tasks(session.as_mut(), tasks, next, shared, work, &done) {
                    // A task that ended on a stop request does not cancel the others.
                    if !shared.asked_to_end() {
                        shared.failed.store(true, Ordering::Release);
                    }
                    drop(sender.send(Err(error)));
                }
            });
        }
        drop(sender);

        let mut first = None;
        let (mut reported, mut cancelled) = (Instant::now(), None::<Instant>);
        loop {
            match receiver.recv_timeout(Duration::from_millis(50)) {
                Ok(Ok((task, result))) => each(task, result),
                Ok(Err(error)) => {
                    first.get_or_insert(error);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            let halted = if job.unit == Unit::Task { shared.halted() } else { shared.halted_at_once() };
            if halted && cancelled.is_none_or(|at| at.elapsed() >= CANCEL) {
                // Best effort: a lost connection needs no cancel, and its own error is more specific.
                for cancel in &cancels {
                    let _ = cancel.cancel();
                }
                cancelled = Some(Instant::now());
            }
            if reported.elapsed() >= REPORT_INTERVAL {
                report();
                reported = Instant::now();
            }
        }
        first.map_or(Ok(()), Err)
    });
    report();
    match outcome {
        // Cancelled statements fail in many ways; only the stop request is reported.
        Err(_) if job.stop.requested() => Err(stopped()),
        other => other,
    }
}

fn take_tasks<T, R>(
    session: &mut dyn Session,
    tasks: &[T],
    next: &AtomicUsize,
    shared: &Shared<'_>,
    work: &(dyn Fn(&mut dyn Session, &T, &Shared<'_>) -> Result<R> + Sync),
    done: &dyn Fn(usize, R),
) -> Result<()> {
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let Some(task) = tasks.get(number) else { return Ok(()) };
        shared.go_on()?;
        let result = work(session, task, shared)?;
        shared.done.fetch_add(1, Ordering::AcqRel);
        done(number, result);
    }
}

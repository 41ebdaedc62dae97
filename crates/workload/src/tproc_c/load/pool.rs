//! Work spread over connections: one thread each, tasks taken in order, progress and stop in one place.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use kelvin_database::{Engine, Error, ErrorClass, Result, Session};

use crate::{BuildProgress, Stop};

/// Progress is reported this often.
const TELL: Duration = Duration::from_millis(200);
/// A statement that runs when the work is to end is interrupted, and again after this long: the first
/// request may fall between two statements.
const CANCEL: Duration = Duration::from_millis(300);

/// What the tasks of a pool share.
pub(crate) struct Shared<'a> {
    stop: &'a Stop,
    failed: AtomicBool,
    rows: AtomicU64,
    done: AtomicU64,
}

impl Shared<'_> {
    /// An error when the work is to end: somebody asked, or another task failed.
    pub(crate) fn go_on(&self) -> Result<()> {
        if self.halted() { Err(stopped()) } else { Ok(()) }
    }

    /// The same for a task that ends by itself, at a place of its own, when somebody asks ([`Shared::asked_to_end`]).
    pub(crate) fn go_on_to_the_end(&self) -> Result<()> {
        if self.halted_at_once() { Err(stopped()) } else { Ok(()) }
    }

    /// Whether somebody has asked to end.
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

/// The error of work that ended because it was asked to.
pub(crate) fn stopped() -> Error {
    Error::new(ErrorClass::Timeout, "stopped on request")
}

/// What the progress counts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Tasks. Their statements are interrupted when somebody asks to end.
    Task,
    /// So many rows, in so many parts, whatever the number of tasks. When somebody asks to end, tasks do so by themselves;
    /// their statements are interrupted when he asks again.
    Rows { rows: u64, parts: u64 },
}

/// What is being done, for the progress.
#[derive(Clone, Copy)]
pub(crate) struct Job<'a> {
    /// Such as "warehouses loaded".
    pub(crate) what: &'a str,
    /// Tasks that were done before.
    pub(crate) before: u64,
    pub(crate) unit: Unit,
    pub(crate) progress: &'a dyn BuildProgress,
    pub(crate) stop: &'a Stop,
}

/// Prepares a connection.
pub(crate) type Setup<'a> = dyn Fn(&mut dyn Session) -> Result<()> + Sync + 'a;

/// Runs `work` for every task over at most `connections` connections of their own. The first error ends the
/// others within a second and is returned.
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

/// The same; `each` gets the number and the result of every task in this thread, in the order in which they end.
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
    let tell = || {
        let (done, rows) = (shared.done.load(Ordering::Acquire), shared.rows.load(Ordering::Relaxed));
        let (done, total) = match job.unit {
            Unit::Task => (done, job.before + tasks.len() as u64),
            Unit::Rows { rows: all, parts } => ((rows * parts / all.max(1)).min(parts), parts),
        };
        job.progress.update(job.what, done, total, rows);
    };
    tell();

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
                // The receiver lives until all senders are gone.
                let done = |task, result| drop(sender.send(Ok((task, result))));
                if let Err(error) = take_tasks(session.as_mut(), tasks, next, shared, work, &done) {
                    // One that ended because somebody asked is no reason for the others to leave what they are in.
                    if !shared.asked_to_end() {
                        shared.failed.store(true, Ordering::Release);
                    }
                    drop(sender.send(Err(error)));
                }
            });
        }
        drop(sender);

        let mut first = None;
        let (mut told, mut cancelled) = (Instant::now(), None::<Instant>);
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
                // Best effort: a connection that is gone needs no cancel, and its own error tells more.
                for cancel in &cancels {
                    let _ = cancel.cancel();
                }
                cancelled = Some(Instant::now());
            }
            if told.elapsed() >= TELL {
                tell();
                told = Instant::now();
            }
        }
        first.map_or(Ok(()), Err)
    });
    tell();
    match outcome {
        // Interrupted statements fail in many ways; that it was asked for is what matters.
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

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

    /// Counts rows for the progress.
    pub(crate) fn add_rows(&self, rows: u64) {
        self.rows.fetch_add(rows, Ordering::Relaxed);
    }

    fn halted(&self) -> bool {
        self.failed.load(Ordering::Acquire) || self.stop.requested()
    }
}

/// The error of work that ended because it was asked to.
pub(crate) fn stopped() -> Error {
    Error::new(ErrorClass::Timeout, "stopped on request")
}

/// What is being done, for the progress.
#[derive(Clone, Copy)]
pub(crate) struct Job<'a> {
    /// Such as "warehouses loaded".
    pub(crate) what: &'a str,
    /// Tasks that were done before.
    pub(crate) before: u64,
    pub(crate) progress: &'a dyn BuildProgress,
    pub(crate) stop: &'a Stop,
}

/// Prepares a connection.
pub(crate) type Setup = dyn Fn(&mut dyn Session) -> Result<()> + Sync;

/// Runs `work` for every task over at most `connections` connections of their own. The first error ends the
/// others within a second and is returned.
pub(crate) fn run<T: Sync>(
    engine: &dyn Engine,
    connections: usize,
    setup: &Setup,
    job: Job<'_>,
    tasks: &[T],
    work: &(dyn Fn(&mut dyn Session, &T, &Shared<'_>) -> Result<()> + Sync),
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
    let total = job.before + tasks.len() as u64;
    let tell = || {
        let (done, rows) = (shared.done.load(Ordering::Acquire), shared.rows.load(Ordering::Relaxed));
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
                let outcome = take_tasks(session.as_mut(), tasks, next, shared, work);
                if outcome.is_err() {
                    shared.failed.store(true, Ordering::Release);
                }
                // The receiver lives until all senders are gone.
                let _ = sender.send(outcome);
            });
        }
        drop(sender);

        let mut first = None;
        let (mut told, mut cancelled) = (Instant::now(), None::<Instant>);
        loop {
            match receiver.recv_timeout(Duration::from_millis(50)) {
                Ok(Err(error)) => {
                    first.get_or_insert(error);
                }
                Ok(Ok(())) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if shared.halted() && cancelled.is_none_or(|at| at.elapsed() >= CANCEL) {
                // Best effort: a connection that is gone needs no cancel, and its own error says more.
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

fn take_tasks<T>(
    session: &mut dyn Session,
    tasks: &[T],
    next: &AtomicUsize,
    shared: &Shared<'_>,
    work: &(dyn Fn(&mut dyn Session, &T, &Shared<'_>) -> Result<()> + Sync),
) -> Result<()> {
    while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
        shared.go_on()?;
        work(session, task, shared)?;
        shared.done.fetch_add(1, Ordering::AcqRel);
    }
    Ok(())
}

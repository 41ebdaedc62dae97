//! Build steps that the servers have in common.

use std::time::{Duration, Instant};

use kelvin_database::{Engine, Error, ErrorClass, Result, Session};

use super::pool::Job;
use super::stopped;
use crate::Stop;
use crate::tproc_c::Options;
use crate::tproc_c::schema::Name;

/// Maximum number of connections unless the user sets one: more would only queue for the server's disks.
const MAX_LOADERS: usize = 8;

/// Large tables first, so that the connections end at about the same time.
pub(super) const BY_SIZE: [Name; 9] = [
    Name::OrderLine,
    Name::Stock,
    Name::Customer,
    Name::Orders,
    Name::History,
    Name::Item,
    Name::NewOrder,
    Name::District,
    Name::Warehouse,
];

/// The number of connections that load.
pub(super) fn loaders(options: &Options) -> usize {
    options.loaders.map_or_else(connections_of_the_host, |loaders| loaders as usize)
}

/// The default number of connections to a server: one per CPU, up to [`MAX_LOADERS`].
pub(crate) fn connections_of_the_host() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(MAX_LOADERS)
}

/// Prevents a second build in the database: repeats `free`, a query that takes a session lock, until it
/// returns 1. A killed build may hold the lock until the server notices, so this waits 20 s.
pub(super) fn lock(session: &mut dyn Session, free: &str, stop: &Stop) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(20);
    while session.query(free)?.int(0, 0)? != 1 {
        if stop.requested() {
            return Err(stopped());
        }
        if Instant::now() >= deadline {
            return Err(Error::new(
                ErrorClass::LockNotAvailable,
                "another build is running in this database",
            )
            .with_help("wait for it to finish, or end it"));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

/// Executes `work`, and cancels its statement when a stop is requested.
pub(crate) fn interruptible<T>(
    session: &mut dyn Session,
    stop: &Stop,
    work: impl FnOnce(&mut dyn Session) -> Result<T>,
) -> Result<T> {
    let cancel = session.cancel();
    let (ended, wait) = std::sync::mpsc::channel::<()>();
    let outcome = std::thread::scope(|scope| {
        scope.spawn(move || {
            while wait.recv_timeout(Duration::from_millis(200))
                == Err(std::sync::mpsc::RecvTimeoutError::Timeout)
            {
                if stop.requested() {
                    // Best effort; repeated until the work has ended.
                    let _ = cancel.cancel();
                }
            }
        });
        let outcome = work(session);
        drop(ended);
        outcome
    });
    match outcome {
        Err(_) if stop.requested() => Err(stopped()),
        other => other,
    }
}

/// Requests a checkpoint. An error for which `refused` is true is ignored: managed databases often do not
/// permit checkpoints.
pub(crate) fn checkpoint(
    engine: &dyn Engine,
    session: &mut dyn Session,
    refused: impl Fn(&Error) -> bool,
    job: Job<'_>,
) -> Result<()> {
    job.progress.update(job.what, 0, 1, 0);
    match interruptible(session, job.stop, |session| engine.checkpoint(session)) {
        Err(error) if refused(&error) => {}
        other => other?,
    }
    job.progress.update(job.what, 1, 1, 0);
    Ok(())
}

//! Runs jobs: decides which workers begin and when, starts their threads, receives their messages and sums them up.
//!
//! [`prepare`] examines and refuses, [`lay_out`] makes files, [`run`] does both and then the I/O. One thread (the
//! caller's) schedules and collects; workers never wait for it.

mod account;
mod check;
mod collect;
mod disks;
mod iologs;
mod lay_out;
mod prepared;
mod run;
mod samples;
mod schedule;
mod scheduler;
mod steady;
mod thread;

pub use lay_out::lay_out;
pub use prepared::{PlannedWorker, Prepared, RunOptions, prepare};
pub use run::run_with;

pub use crate::worker::RateChanges;

use std::sync::Arc;

use kelvin_measure::Stop;

use crate::Result;
use crate::event::IoWatcher;
use crate::message::WorkerEnd;
use crate::result::JobsOutcome;
use crate::worker::{self, Shared, WorkerPlan};

/// Does a worker's I/O.
pub trait WorkerIo: Send + Sync {
    /// Runs on the calling thread until the worker ends. Sends all messages to `shared.messages`, with
    /// [`crate::message::Message::End`] as the last, and returns the same end.
    fn run(&self, plan: WorkerPlan, shared: &Shared) -> WorkerEnd;
}

/// The workers that read and write.
struct Engines;

impl WorkerIo for Engines {
    fn run(&self, plan: WorkerPlan, shared: &Shared) -> WorkerEnd {
        worker::run(plan, shared)
    }
}

/// Runs prepared jobs. Returns when all workers have ended. After a stop request, returns the results up to then;
/// after a second one, does not wait for I/O that does not complete.
///
/// # Errors
/// Files that cannot be laid out, log files that cannot be written, and counts that do not agree. Errors of a worker
/// are in its outcome.
pub fn run(
    prepared: Prepared,
    options: &RunOptions,
    stop: &Stop,
    watcher: &mut dyn IoWatcher,
) -> Result<JobsOutcome> {
    run_with(Arc::new(Engines), prepared, options, stop, watcher)
}

/// The exit code of a run as in fio: 0 on success, 128 if the run was stopped, else the number of workers that ended
/// with an error. A process can return only the low 8 bits of that number; if these are 0, the exit code is 255,
/// since 0 would mean success.
pub fn exit_code(outcome: &JobsOutcome) -> u8 {
    if outcome.interrupted {
        return 128;
    }
    let failed = outcome.workers.iter().filter(|worker| worker.error.is_some()).count();
    match (failed, failed % 256) {
        (0, _) => 0,
        (_, 0) => 255,
        (_, low) => low as u8,
    }
}

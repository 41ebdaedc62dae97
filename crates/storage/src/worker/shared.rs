//! What the workers of a run share, and the plan that a worker receives.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};

use kelvin_measure::{Clock, Nanos, Stop};

use super::flow::FlowGroups;
use super::pace::RateChanges;
use crate::job::{Flow, Job};
use crate::message::Message;
use crate::tick::Tick;
use crate::{Direction, Io, Target};

/// One worker: a clone of a job with its files.
#[derive(Debug, Clone)]
pub struct WorkerPlan {
    /// Its number among all workers, from 0.
    pub number: u32,
    /// What it does.
    pub job: Arc<Job>,
    /// The number of the clone of the job, from 0.
    pub clone: u32,
    /// Its group, from 0.
    pub group: u32,
    /// Its files and devices, already laid out.
    pub targets: Vec<Target>,
    /// The seed of its random numbers.
    pub seed: u64,
    /// Its CPU under `cpus_allowed_policy=split`; `None` for those of the job.
    pub pinned: Option<u32>,
    /// The directory of the state and the dumps of `verify` (`--aux-path`); the working directory by default.
    pub aux_directory: Option<PathBuf>,
}

/// State shared by all workers of a run.
#[derive(Debug)]
pub struct Shared {
    /// The run's clock. All times are relative to its origin.
    pub clock: Clock,
    /// Stop requests: after the first, I/Os in flight complete; after the second, they are not waited for.
    pub stop: Stop,
    /// The channel for messages.
    pub messages: Sender<Message>,
    /// By worker: whether it must end as if its time were over (`exitall`, steady state).
    pub end: Vec<AtomicBool>,
    /// Ratios between jobs by `flow=`.
    pub flow: FlowGroups,
    /// Ticks that were read, for reuse.
    pub spare: Spare,
    /// By worker: the call that it is in, if any.
    pub under_way: Vec<UnderWay>,
    /// Changes of the workers' rates.
    pub rates: Arc<RateChanges>,
}

impl Shared {
    /// For workers whose jobs have these `flow=` options, in the order of their numbers.
    pub fn new(clock: Clock, stop: Stop, messages: Sender<Message>, flows: &[Option<Flow>]) -> Self {
        Self {
            clock,
            stop,
            messages,
            end: flows.iter().map(|_| AtomicBool::new(false)).collect(),
            flow: FlowGroups::new(flows),
            spare: Spare::default(),
            under_way: flows.iter().map(|_| UnderWay::default()).collect(),
            rates: Arc::default(),
        }
    }

    /// Asks a worker to end as if its time were over.
    pub fn end_worker(&self, worker: u32) {
        if let Some(end) = self.end.get(worker as usize) {
            end.store(true, Ordering::Release);
        }
    }

    pub(crate) fn is_to_end(&self, worker: u32) -> bool {
        self.end.get(worker as usize).is_some_and(|end| end.load(Ordering::Acquire))
    }
}

/// Ticks for reuse, so that a run allocates no memory while it measures.
#[derive(Debug, Default)]
#[allow(clippy::vec_box, reason = "the boxes themselves are sent on in messages")]
pub struct Spare(Mutex<Vec<Box<Tick>>>);

impl Spare {
    /// Maximum number; a few per worker are sufficient.
    const MOST: usize = 64;

    /// Returns a tick that was read.
    pub fn give(&self, tick: Box<Tick>) {
        if let Ok(mut all) = self.0.try_lock()
            && all.len() < Self::MOST
        {
            all.push(tick);
        }
    }

    pub(crate) fn take(&self) -> Option<Box<Tick>> {
        self.0.try_lock().ok()?.pop()
    }
}

/// The call that a worker is in. It is recorded before calls that may never return, so that others can see the last
/// request to a hung device.
#[derive(Debug, Default)]
pub struct UnderWay {
    /// Its start time plus one; 0 for no call.
    since: AtomicU64,
    /// The target in the upper half, direction and length in the lower: see `pack`.
    what: AtomicU64,
    offset: AtomicU64,
}

impl UnderWay {
    #[inline]
    pub(crate) fn enter(&self, at: Nanos, io: &Io) {
        let what = (u64::from(io.target) << 34) | ((io.direction as u64) << 32) | u64::from(io.length);
        self.what.store(what, Ordering::Relaxed);
        self.offset.store(io.offset, Ordering::Relaxed);
        self.since.store(at + 1, Ordering::Release);
    }

    #[inline]
    pub(crate) fn leave(&self) {
        self.since.store(0, Ordering::Release);
    }

    /// The call that the worker is in: its start time on the run's clock, and the I/O.
    pub fn current_call(&self) -> Option<(Nanos, Io)> {
        let since = self.since.load(Ordering::Acquire).checked_sub(1)?;
        let what = self.what.load(Ordering::Relaxed);
        let direction = match (what >> 32) & 3 {
            0 => Direction::Read,
            1 => Direction::Write,
            _ => Direction::Trim,
        };
        let offset = self.offset.load(Ordering::Relaxed);
        Some((since, Io { direction, target: (what >> 34) as u32, offset, length: what as u32 }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn io_in_flight_is_visible_to_other_threads() {
        let under_way = UnderWay::default();
        assert_eq!(under_way.current_call(), None);
        let io = Io { direction: Direction::Trim, target: 3, offset: 1 << 40, length: u32::MAX };
        under_way.enter(17, &io);
        assert_eq!(under_way.current_call(), Some((17, io)));
        under_way.leave();
        assert_eq!(under_way.current_call(), None);
    }
}

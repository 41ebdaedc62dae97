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
    /// Its place among all workers, from 0.
    pub number: u32,
    /// What it does.
    pub job: Arc<Job>,
    /// Which clone of the job, from 0.
    pub clone: u32,
    /// Its group, from 0.
    pub group: u32,
    /// Its files and devices, laid out.
    pub targets: Vec<Target>,
    /// What its random numbers are drawn from.
    pub seed: u64,
    /// The CPU that it is to run on (`cpus_allowed_policy=split`); none for those of the job.
    pub pinned: Option<u32>,
    /// Where the state and the dumps of `verify` are (`--aux-path`); the working directory when none.
    pub aux_directory: Option<PathBuf>,
}

/// What all workers of a run see.
#[derive(Debug)]
pub struct Shared {
    /// The run's clock, whose origin all times count from.
    pub clock: Clock,
    /// Somebody asks all to stop: once for "end what is in flight", twice for "wait no longer".
    pub stop: Stop,
    /// Where messages go.
    pub messages: Sender<Message>,
    /// By worker: it is to end as if its time were over (`exitall`, steady state).
    pub end: Vec<AtomicBool>,
    /// Coupling of jobs by `flow=`.
    pub flow: FlowGroups,
    /// Ticks that were read and can be filled again.
    pub spare: Spare,
    /// By worker: the call that it is held up in, if any.
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

/// Ticks that can be filled again, so that a run allocates no memory while it measures.
#[derive(Debug, Default)]
#[allow(clippy::vec_box, reason = "the boxes themselves are sent on in messages")]
pub struct Spare(Mutex<Vec<Box<Tick>>>);

impl Spare {
    /// More than a few a worker are of no use.
    const MOST: usize = 64;

    /// Takes back a tick that was read.
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

/// The call that a worker is in, written down before calls that may never return, so that others can see what a
/// hung device was asked.
#[derive(Debug, Default)]
pub struct UnderWay {
    /// When it began plus one; 0 for no call.
    since: AtomicU64,
    /// Target in the upper half, direction and length in the lower: see `pack`.
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

    /// The call that the worker is in: since when on the run's clock, and what it asked for.
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

//! Actions that follow writes: syncs after a number of writes, trims of some written blocks.

use std::collections::VecDeque;

use kelvin_measure::Random;

use crate::job::Job;
use crate::{Direction, Io, NextIo, SyncCall};

/// Counts writes, and determines what follows them.
#[derive(Debug, Clone)]
pub(crate) struct After {
    fsync: u64,
    fdatasync: u64,
    range: Option<(u32, u64)>,
    barrier: u64,
    writes: u64,
    trims: Option<Backlog>,
}

/// Written blocks that will be trimmed.
#[derive(Debug, Clone)]
struct Backlog {
    /// The probability that a written block is trimmed.
    share: f64,
    every: u64,
    batch: usize,
    waiting: VecDeque<Io>,
}

impl After {
    /// By the job's options; `None` if nothing follows its writes.
    pub(crate) fn new(job: &Job) -> Option<Self> {
        let (sync, trims) = (&job.sync, &job.trims);
        let backlog = (trims.percentage > 0.0).then(|| {
            let every = trims.backlog.unwrap_or(1).max(1);
            let batch = trims.backlog_batch.filter(|batch| *batch > 0).unwrap_or(every) as usize;
            Backlog { share: trims.percentage / 100.0, every, batch, waiting: VecDeque::new() }
        });
        let range = sync.range.filter(|range| range.1 > 0).map(|(flags, every)| (flags, u64::from(every)));
        let [fsync, fdatasync, barrier] = [sync.fsync, sync.fdatasync, sync.write_barrier].map(u64::from);
        let any = fsync > 0 || fdatasync > 0 || barrier > 0 || range.is_some() || backlog.is_some();
        any.then_some(Self { fsync, fdatasync, range, barrier, writes: 0, trims: backlog })
    }

    /// Resets the counts.
    pub(crate) fn restart(&mut self) {
        self.writes = 0;
        if let Some(trims) = &mut self.trims {
            trims.waiting.clear();
        }
    }

    /// Whether nothing may be in flight before the next write.
    pub(crate) fn barrier_due(&self) -> bool {
        self.barrier > 0 && (self.writes + 1).is_multiple_of(self.barrier)
    }

    /// Adds what follows a write to the queue, in order.
    pub(crate) fn written(&mut self, io: &Io, random: &mut Random, queue: &mut VecDeque<NextIo>) {
        let was_barrier = self.barrier_due();
        self.writes += 1;
        if was_barrier {
            queue.push_back(NextIo::Drain);
        }
        let due = |every: u64| every > 0 && self.writes.is_multiple_of(every);
        let how = if due(self.fsync) {
            Some(SyncCall::Fsync)
        } else if due(self.fdatasync) {
            Some(SyncCall::Fdatasync)
        } else {
            self.range.filter(|range| due(range.1)).map(|range| SyncCall::Range(range.0))
        };
        if let Some(how) = how {
            queue.push_back(NextIo::Sync { target: io.target, how });
        }
        let writes = self.writes;
        let Some(trims) = &mut self.trims else { return };
        if random.unit() < trims.share {
            trims.waiting.push_back(Io { direction: Direction::Trim, ..*io });
        }
        if writes.is_multiple_of(trims.every) && !trims.waiting.is_empty() {
            // A trim that overtook the write would leave data where none is expected.
            queue.push_back(NextIo::Drain);
            let count = trims.batch.min(trims.waiting.len());
            queue.extend(trims.waiting.drain(..count).map(NextIo::Io));
        }
    }
}

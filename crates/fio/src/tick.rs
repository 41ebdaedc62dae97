//! Partial results that a worker sends while it works. Their sums are the result: there is no second count.

use kelvin_measure::Nanos;
use kelvin_measure::event::LoadPart;

use crate::{Bins, Direction, Moments, PerDirection};

/// The longest time between two ticks of a worker that does I/O.
pub const TICK: Nanos = 500_000_000;

/// Completed I/Os of one direction: counts and times, with bins `B`, and bins `O` where they may be missing.
#[derive(Debug, Clone, Default)]
pub struct IoSums<B, O> {
    /// I/Os that ended, short ones included.
    pub ios: u64,
    /// Bytes that they moved.
    pub bytes: u64,
    /// I/Os that moved less than requested; the rest was issued again.
    pub short: u64,
    /// I/Os that moved nothing and were abandoned.
    pub dropped: u64,
    /// I/Os that ended with an error; excluded from all times.
    pub failed: u64,
    /// From the beginning of handing over to its end.
    pub submission: Moments,
    /// From the end of handing over to the completion.
    pub completion: Moments,
    /// From the beginning of handing over to the completion.
    pub total: Moments,
    /// Completion times by bin.
    pub completion_bins: B,
    /// Total times by bin, where requested.
    pub total_bins: O,
    /// Submission times by bin, where requested.
    pub submission_bins: O,
    /// With a rate: from the intended start to the completion (which includes coordinated omission).
    pub response_bins: O,
    /// Moments of the same.
    pub response: Moments,
    /// For jobs whose I/Os have individual priorities: the times of each priority.
    pub priorities: Vec<PriorityTimes<B>>,
}

/// Completed I/Os of one direction on one target during a tick.
pub type Tally = IoSums<Bins, Option<Bins>>;

/// Times of the I/Os of one priority.
#[derive(Debug, Clone)]
pub struct PriorityTimes<B> {
    /// As `ioprio_set` takes it: the class above bit 13, the level below bit 3.
    pub priority: u16,
    /// Completion times; with `lat_percentiles` total times, as fio has it.
    pub times: Moments,
    /// The same by bin.
    pub bins: B,
}

impl<B, O> IoSums<B, O> {
    /// Adds another's counts and moments, which have no bins.
    pub(crate) fn add_moments<C, P>(&mut self, other: &IoSums<C, P>) {
        self.ios += other.ios;
        self.bytes += other.bytes;
        self.short += other.short;
        self.dropped += other.dropped;
        self.failed += other.failed;
        self.submission.merge(&other.submission);
        self.completion.merge(&other.completion);
        self.total.merge(&other.total);
        self.response.merge(&other.response);
    }
}

/// Queue depth. The classes are fio's: 1, 2, 4, 8, 16, 32, 64 and above, rounded up to a power of two for `at`; 0, 1–4,
/// 5–8, 9–16, 17–32, 33–64, above for `submitted` and `completed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DepthCounts {
    /// I/Os by the number in flight when each was issued, itself included.
    pub at: [u64; 7],
    /// Calls of handing over by how many they handed over.
    pub submitted: [u64; 7],
    /// Calls of reaping by how many they brought.
    pub completed: [u64; 7],
    /// The sum over I/Os of the number in flight when each was issued.
    pub sum: u64,
}

impl DepthCounts {
    /// Adds the counts of another.
    #[inline]
    pub fn merge(&mut self, other: &Self) {
        let pairs = [
            (&mut self.at, &other.at),
            (&mut self.submitted, &other.submitted),
            (&mut self.completed, &other.completed),
        ];
        for (mine, theirs) in pairs {
            for (sum, more) in mine.iter_mut().zip(theirs) {
                *sum += more;
            }
        }
        self.sum += other.sum;
    }
}

/// Errors of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failures {
    /// The target.
    pub target: u32,
    /// The direction; `None` for a sync.
    pub direction: Option<Direction>,
    /// The kernel's error number; `EILSEQ` for data that differ from the data written.
    pub number: i32,
    /// Their number.
    pub count: u64,
    /// Offset and length of the first of them, in bytes.
    pub first: (u64, u32),
    /// The first message.
    pub message: String,
}

/// The work of a worker between two moments. Ticks of a worker follow each other without a gap; none lasts much longer
/// than [`TICK`], except while the worker is blocked in a call. A tick does not extend beyond the end of the ramp-up.
#[derive(Debug, Clone)]
pub struct Tick {
    /// The worker, by its index in the plan.
    pub worker: u32,
    /// From this time on the run's clock.
    pub from: Nanos,
    /// Up to this.
    pub to: Nanos,
    /// Ramp-up or measured.
    pub part: LoadPart,
    /// By target and direction; `None` where there was no I/O.
    pub targets: Vec<PerDirection<Option<Box<Tally>>>>,
    /// Syncs that ended, and how long they took.
    pub syncs: Moments,
    /// The same by bin.
    pub sync_bins: Option<Bins>,
    /// Queue depth.
    pub depth: DepthCounts,
    /// Errors.
    pub failures: Vec<Failures>,
}

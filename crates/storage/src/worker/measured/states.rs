//! The next step of a worker, and the reasons for which it waits.

use kelvin_measure::Nanos;
use kelvin_measure::event::LoadPart;

use super::super::depth_search::Search;
use super::super::flow::Share;
use super::super::halt::Halt;
use super::super::lock::Locks;
use super::super::pace::{Minimum, Pacer};
use super::super::ticker::Ticker;
use super::super::usage::Usage;
use crate::job::Thinking;
use crate::result::Verified;
use crate::stream::Quota;
use crate::{Io, SyncCall};

/// Work done by a separate call after the preceding batch was submitted: I/Os in flight continue meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    /// A trim, and when it should have started.
    Trim(Io, Nanos),
    /// A sync of a target. Engines that support it take it with the batch.
    Sync(u32, SyncCall),
}

/// The reason why no I/O is issued at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Blocked {
    /// Issuing is not blocked.
    No,
    /// Not before this time.
    Until(Nanos),
    /// Until one I/O in flight has ended.
    One,
    /// Until all I/Os in flight have ended; then the given step follows.
    Drain(AfterDrain),
}

/// The step when no I/O is in flight any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterDrain {
    GoOn,
    Think,
    NextPass,
    Verify,
    End,
}

/// The source of I/Os.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WorkOrigin {
    /// The job's stream.
    Work,
    /// The verifier, until it has no more; then the stream again.
    Backlog,
    /// The verifier, at the end of the run.
    Verify,
}

/// The special options in use. The hot path checks only two flags.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Wanted {
    /// Checks are needed before an I/O is issued.
    pub(super) gate: bool,
    /// Each write needs preparation.
    pub(super) fill: bool,
    /// Each completed I/O needs additional work.
    pub(super) extras: bool,
}

/// Pauses.
#[derive(Debug, Clone, Copy)]
pub(super) struct Thinker {
    pub(super) rule: Thinking,
    /// I/Os since the last pause, and the end of that pause.
    pub(super) count: u64,
    pub(super) since: Nanos,
}

/// The worker's times.
pub(super) struct Timeline {
    pub(super) ticker: Ticker,
    /// The last clock reading.
    pub(super) now: Nanos,
    /// When housekeeping is due.
    pub(super) due: Nanos,
    pub(super) begun: Nanos,
    pub(super) part: LoadPart,
    pub(super) measured_from: Nanos,
    /// The thread's usage before the measured part; afterwards, its usage in it.
    pub(super) before: Usage,
    /// When the current verifying pass began.
    pub(super) looking_since: Nanos,
}

impl Timeline {
    pub(super) fn new(ticker: Ticker, now: Nanos, part: LoadPart) -> Self {
        let before = Usage::now();
        Self { ticker, now, due: now, begun: now, part, measured_from: now, before, looking_since: now }
    }
}

/// The next I/O, and the reason why it is not issued yet.
pub(super) struct Supply {
    pub(super) source: WorkOrigin,
    pub(super) blocked: Blocked,
    /// An I/O that was drawn and may not be issued yet.
    pub(super) held: Option<Io>,
    /// Waits for the preceding batch to be submitted.
    pub(super) call: Option<Call>,
    /// When the last I/O of a trace was due, or 0.
    pub(super) not_before: Nanos,
    pub(super) quota: Quota,
    pub(super) pass_ios: u64,
    pub(super) retries: u32,
}

impl Supply {
    pub(super) fn new(quota: Quota) -> Self {
        let (source, blocked) = (WorkOrigin::Work, Blocked::No);
        Self { source, blocked, held: None, call: None, not_before: 0, quota, pass_ios: 0, retries: 0 }
    }
}

/// Limits on the rate of a worker; most jobs have none of them.
pub(super) struct Pacing {
    pub(super) pacer: Option<Pacer>,
    pub(super) minimum: Option<Minimum>,
    pub(super) thinker: Option<Thinker>,
    pub(super) share: Option<Share>,
    pub(super) locks: Option<Locks>,
    pub(super) search: Option<Search>,
}

/// Ranges that were written and not synced yet.
pub(super) struct Unsynced {
    pub(super) writes: bool,
    /// By target: the range written since the last sync, begin and end.
    pub(super) dirty: Vec<(u64, u64)>,
}

/// The progress of the end.
#[allow(clippy::struct_field_names, reason = "the flag is what the type is about")]
#[derive(Debug, Default)]
pub(super) struct Ending {
    pub(super) ending: bool,
    pub(super) waiting_reported: bool,
    pub(super) gave_up: bool,
}

/// The worker's results so far, in addition to its counters.
#[derive(Default)]
pub(super) struct WorkerResults {
    pub(super) halt: Option<Halt>,
    pub(super) verified: Option<Box<Verified>>,
    pub(super) notes: Vec<String>,
    pub(super) issued: u64,
    pub(super) dropped_as_error: u64,
    /// Reported errors that did not end the worker.
    pub(super) dumped: u32,
    pub(super) apart: u64,
}

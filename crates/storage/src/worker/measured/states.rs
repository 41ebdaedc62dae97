//! What a worker is about to do, and what keeps it from that.

use kelvin_measure::Nanos;

use crate::job::Thinking;
use crate::{Io, SyncCall};

/// What is done by a separate call when the batch before it has gone: what is in flight continues meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    /// A trim, and when it should have started.
    Trim(Io, Nanos),
    /// A sync of a target. Engines that can carry it along take it with the batch.
    Sync(u32, SyncCall),
}

/// Why nothing more is issued at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Blocked {
    /// It is.
    No,
    /// Not before this time.
    Until(Nanos),
    /// Not before one that is in flight has ended.
    One,
    /// Not before all that is in flight has ended; then what is named.
    Drain(AfterDrain),
}

/// What comes when nothing is in flight any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterDrain {
    GoOn,
    Think,
    NextPass,
    Verify,
    End,
}

/// Where I/Os come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WorkOrigin {
    /// The job's stream.
    Work,
    /// The verifier, until it has no more; then the stream again.
    Backlog,
    /// The verifier, at the end.
    Verify,
}

/// Which of the things that most jobs do not want is wanted: the hot path asks for two flags and no more.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Wanted {
    /// Before an I/O is issued there is something to look at.
    pub(super) gate: bool,
    /// There is something to do for each write.
    pub(super) fill: bool,
    /// There is something to do for each I/O that has ended.
    pub(super) extras: bool,
}

/// Pauses.
#[derive(Debug, Clone, Copy)]
pub(super) struct Thinker {
    pub(super) rule: Thinking,
    /// I/Os since the last pause, and when it was.
    pub(super) count: u64,
    pub(super) since: Nanos,
}

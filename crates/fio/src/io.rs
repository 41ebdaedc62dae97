//! One I/O, and the next step of a job.

use kelvin_measure::Nanos;

use crate::Direction;

/// One I/O as a job requests it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Io {
    /// Its direction.
    pub direction: Direction,
    /// The job's target, by its index among the worker's files.
    pub target: u32,
    /// Its offset in the target, in bytes.
    pub offset: u64,
    /// Its length in bytes.
    pub length: u32,
}

/// The next step of a source of I/Os.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextIo {
    /// An I/O.
    Io(Io),
    /// Sync the written data to a target's medium.
    Sync {
        /// The target.
        target: u32,
        /// The call.
        how: SyncCall,
    },
    /// No I/O before this time, counted from the start of the job (replay with the trace's gaps).
    NotBefore(Nanos),
    /// Nothing before all that is in flight has ended (end of a pass, a barrier of a replay).
    Drain,
    /// Nothing more.
    End,
}

/// The calls that bring data to the medium.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncCall {
    /// Data and all metadata.
    Fsync,
    /// Data and the metadata needed to read it again.
    Fdatasync,
    /// `sync_file_range` with these flags, over the range written since the last one.
    Range(u32),
}

//! One I/O, and what comes next in a job.

use kelvin_measure::Nanos;

use crate::Direction;

/// One I/O as a job asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Io {
    /// What it does.
    pub direction: Direction,
    /// Which of the job's targets, by its place among the worker's files.
    pub target: u32,
    /// Where it begins in the target, in bytes.
    pub offset: u64,
    /// Its length in bytes.
    pub length: u32,
}

/// What a source of I/Os says when it is asked for the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextIo {
    /// An I/O.
    Io(Io),
    /// Bring what was written to a target's medium.
    Sync {
        /// The target.
        target: u32,
        /// How.
        how: SyncCall,
    },
    /// Nothing before this time, counted from the start of the job (replay with its own gaps).
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
    /// Data and what is needed to read it again.
    Fdatasync,
    /// `sync_file_range` with these flags, over what was written since the last.
    Range(u32),
}

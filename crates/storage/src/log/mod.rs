//! fio's log files: rows are made in the worker, carried in chunks, and written by the thread that runs the jobs.
//!
//! With `log_avg_msec` the worker adds up a window and hands over its rows; without it hands over what it knows of
//! each I/O, 64 bytes, from which the writer makes the rows of every log that was asked for.

mod aggregate;
mod file;
mod form;
mod recorder;
mod summed;
mod writer;

pub use aggregate::BandwidthLog;
pub use form::{inflate, inflate_at_most};
pub use recorder::LogRecorder;
pub use writer::LogWriter;

use crate::Direction;
use kelvin_measure::Nanos;

/// Which log a row belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LogKind {
    /// KiB a second.
    Bandwidth,
    /// I/Os a second.
    Iops,
    /// Submission times in ns.
    Submission,
    /// Completion times in ns.
    Completion,
    /// Total times in ns.
    Total,
}

impl LogKind {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Bandwidth, Self::Iops, Self::Submission, Self::Completion, Self::Total];

    /// As it is in the name of a log file.
    pub fn word(self) -> &'static str {
        match self {
            Self::Bandwidth => "bw",
            Self::Iops => "iops",
            Self::Submission => "slat",
            Self::Completion => "clat",
            Self::Total => "lat",
        }
    }
}

/// An I/O that has ended, as the worker reports it to its recorder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompletedIo {
    /// When it ended, on the run's clock.
    pub at: Nanos,
    /// When it was issued, on the run's clock.
    pub issued: Nanos,
    /// From the beginning of handing over to its end; 0 where it is not taken.
    pub submission: Nanos,
    /// From the end of handing over to the completion.
    pub completion: Nanos,
    /// From the beginning of handing over to the completion.
    pub total: Nanos,
    /// Where it was, in bytes.
    pub offset: u64,
    /// Its length in bytes.
    pub length: u32,
    /// Its I/O priority.
    pub priority: u16,
    /// Direction.
    pub direction: Direction,
}

/// A row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogRow {
    /// Which log.
    pub kind: LogKind,
    /// When, on the run's clock.
    pub at: Nanos,
    /// The value, in the unit of its kind; of a window the mean.
    pub value: f64,
    /// The greatest of the window, where it was asked for.
    pub greatest: Option<u64>,
    /// Direction.
    pub direction: Direction,
    /// Length of the I/O in bytes; 0 for a window.
    pub length: u32,
    /// Where it was, in bytes.
    pub offset: u64,
    /// Its I/O priority.
    pub priority: u16,
    /// When it was issued, on the run's clock.
    pub issued: Nanos,
    /// How many I/Os are in it, and over how long in nanoseconds: 1 and 0 for a single I/O.
    pub weight: (u64, Nanos),
}

/// A row of a histogram log: what ended in a window, by bin.
#[derive(Debug, Clone, PartialEq)]
pub struct HistogramRow {
    /// The window's end, on the run's clock.
    pub at: Nanos,
    /// Direction.
    pub direction: Direction,
    /// Length of the I/Os in bytes.
    pub length: u32,
    /// Counts of the window by bin.
    pub bins: Box<crate::Bins>,
}

/// Rows on their way, in the order of their times.
#[derive(Debug, Clone, Default)]
pub struct Chunk {
    /// When the worker began, on the run's clock: the zero of its files' times.
    pub begin: Nanos,
    /// Up to when everything is in this chunk or was in one before.
    pub until: Nanos,
    /// Whether it is the worker's last.
    pub last: bool,
    /// Rows of all logs with windows.
    pub rows: Vec<LogRow>,
    /// Without windows: every I/O.
    pub done: Vec<CompletedIo>,
    /// Rows of the histogram log.
    pub histograms: Vec<HistogramRow>,
    /// What was issued, in its order, for `write_iolog`: when, what.
    pub issued: Vec<(Nanos, Issued)>,
}

/// What a worker asked of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Issued {
    /// An I/O.
    Io(crate::Io),
    /// To bring what was written to a target's medium.
    Sync {
        /// The target.
        target: u32,
        /// How.
        how: crate::SyncCall,
    },
}

impl Chunk {
    /// Whether there is nothing to write in it.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.done.is_empty() && self.histograms.is_empty() && self.issued.is_empty()
    }
}

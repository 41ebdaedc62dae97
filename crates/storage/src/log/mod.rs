//! fio's log files: rows are made in the worker, carried in chunks, and written by the thread that runs the jobs.
//!
//! With `log_avg_msec` the worker sums up a window and hands over its rows. Without it, the worker hands over 64 bytes
//! for each I/O, from which the writer makes the rows of all requested logs.

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

/// The log that a row belongs to.
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

    /// Its part of a log file's name.
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

/// A completed I/O, as the worker reports it to its recorder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompletedIo {
    /// When it ended, on the run's clock.
    pub at: Nanos,
    /// When it was issued, on the run's clock.
    pub issued: Nanos,
    /// From the beginning of submission to its end; 0 if not recorded.
    pub submission: Nanos,
    /// From the end of submission to completion.
    pub completion: Nanos,
    /// From the beginning of submission to completion.
    pub total: Nanos,
    /// Its offset in bytes.
    pub offset: u64,
    /// Its length in bytes.
    pub length: u32,
    /// Its I/O priority.
    pub priority: u16,
    /// Direction.
    pub direction: Direction,
}

/// A row of a log.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogRow {
    /// The log.
    pub kind: LogKind,
    /// Its time on the run's clock.
    pub at: Nanos,
    /// The value, in the unit of its kind; of a window the mean.
    pub value: f64,
    /// The maximum of the window, if requested.
    pub greatest: Option<u64>,
    /// Direction.
    pub direction: Direction,
    /// Length of the I/O in bytes; 0 for a window.
    pub length: u32,
    /// Its offset in bytes.
    pub offset: u64,
    /// Its I/O priority.
    pub priority: u16,
    /// When it was issued, on the run's clock.
    pub issued: Nanos,
    /// The number of I/Os in it, and the time that they cover in nanoseconds: 1 and 0 for a single I/O.
    pub weight: (u64, Nanos),
}

/// A row of a histogram log: the I/Os that ended in a window, by bin.
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

/// Rows on their way to the writer, in order of time.
#[derive(Debug, Clone, Default)]
pub struct Chunk {
    /// When the worker began, on the run's clock: the zero of its files' times.
    pub begin: Nanos,
    /// The time up to which all rows are in this chunk or an earlier one.
    pub until: Nanos,
    /// Whether it is the worker's last.
    pub last: bool,
    /// Rows of all logs with windows.
    pub rows: Vec<LogRow>,
    /// Without windows: every I/O.
    pub done: Vec<CompletedIo>,
    /// Rows of the histogram log.
    pub histograms: Vec<HistogramRow>,
    /// Issued I/Os and syncs in order, with their times, for `write_iolog`.
    pub issued: Vec<(Nanos, Issued)>,
}

/// A worker's request to a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Issued {
    /// An I/O.
    Io(crate::Io),
    /// A sync of a target.
    Sync {
        /// The target.
        target: u32,
        /// The call.
        how: crate::SyncCall,
    },
}

impl Chunk {
    /// Whether it contains nothing to write.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.done.is_empty() && self.histograms.is_empty() && self.issued.is_empty()
    }
}

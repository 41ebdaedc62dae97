//! fio's log files: rows are made in the worker, carried in chunks, and written by the thread that runs the jobs.

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

/// A row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
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
    /// Rows of all logs.
    pub rows: Vec<Row>,
    /// Rows of the histogram log.
    pub histograms: Vec<HistogramRow>,
    /// I/Os in the order of their issue, for `write_iolog`: when, what.
    pub issued: Vec<(Nanos, crate::Io)>,
}

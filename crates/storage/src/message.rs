//! Messages of a worker.

use kelvin_measure::Nanos;

use crate::event::WorkerState;
use crate::tick::Tick;

/// A message from a worker's thread. Everything a worker knows goes through one channel, in order.
#[derive(Debug)]
pub enum Message {
    /// It does something else from now on.
    State(u32, WorkerState),
    /// What it counted.
    Tick(Box<Tick>),
    /// Rows for its log files.
    Log(u32, crate::log::Chunk),
    /// Something for the reader.
    Note(u32, String),
    /// How far its layout is.
    Layout {
        /// Which worker.
        worker: u32,
        /// What, with the file's name.
        what: String,
        /// Bytes done.
        done: u64,
        /// Bytes in all.
        total: u64,
    },
    /// It has ended. Nothing comes after this.
    End(Box<WorkerEnd>),
}

/// What a worker knows of itself at its end, beside the ticks.
#[derive(Debug, Clone, Default)]
pub struct WorkerEnd {
    /// Which worker.
    pub worker: u32,
    /// Its thread's number at the kernel.
    pub thread: i32,
    /// When it began its first I/O and when it ended, on the run's clock.
    pub course: (Nanos, Nanos),
    /// CPU time, user and system, of the measured part.
    pub cpu: (Nanos, Nanos),
    /// Time ready to run without a CPU.
    pub run_delay: Option<Nanos>,
    /// Over how long these were counted.
    pub counted: Nanos,
    /// Context switches, voluntary and not.
    pub switches: (u64, u64),
    /// Page faults, major and minor.
    pub faults: (u64, u64),
    /// What ended it early: the kernel's error number and message.
    pub error: Option<(i32, String)>,
    /// The depth that a latency target led to.
    pub latency_depth: Option<u32>,
    /// What a reader should know.
    pub notes: Vec<String>,
    /// What verifying passes read, where there were any.
    pub verified: Option<crate::result::Verified>,
}

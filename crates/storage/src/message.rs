//! Messages of a worker.

use kelvin_measure::Nanos;

use crate::event::WorkerState;
use crate::tick::Tick;

/// A message from a worker's thread. All messages of a worker go through one channel, in order.
#[derive(Debug)]
pub enum Message {
    /// The worker changes its state.
    State(u32, WorkerState),
    /// Its counts.
    Tick(Box<Tick>),
    /// Rows for its log files.
    Log(u32, crate::log::Chunk),
    /// A note for the user.
    Note(u32, String),
    /// Progress of its layout.
    Layout {
        /// The worker.
        worker: u32,
        /// The step, with the file's name.
        what: String,
        /// Bytes done.
        done: u64,
        /// Bytes in total.
        total: u64,
    },
    /// It has ended. No message follows.
    End(Box<WorkerEnd>),
}

/// A worker's results at its end, in addition to its ticks.
#[derive(Debug, Clone, Default)]
pub struct WorkerEnd {
    /// The worker.
    pub worker: u32,
    /// Its thread ID.
    pub thread: i32,
    /// When it began its first I/O and when it ended, on the run's clock.
    pub course: (Nanos, Nanos),
    /// CPU time, user and system, of the measured part.
    pub cpu: (Nanos, Nanos),
    /// Time ready to run without a CPU.
    pub run_delay: Option<Nanos>,
    /// The time over which these were counted.
    pub counted: Nanos,
    /// Context switches, voluntary and not.
    pub switches: (u64, u64),
    /// Page faults, major and minor.
    pub faults: (u64, u64),
    /// The error that ended it early: the kernel's error number and a message.
    pub error: Option<(i32, String)>,
    /// The depth found by a latency target.
    pub latency_depth: Option<u32>,
    /// Notes for the user.
    pub notes: Vec<String>,
    /// What verifying passes read, if there were any.
    pub verified: Option<crate::result::Verified>,
}

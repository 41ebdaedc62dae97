//! Classes of a session's activity, for the time model, the live view and the report.

use kelvin_measure::observation::{WaitGroup, WaitKind};

/// The activities of a transaction in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// On a CPU, or waiting for one.
    Cpu,
    /// Reading data files, directly or waiting for another session that does.
    DataReads,
    /// Writing data files, for itself or as part of a checkpoint.
    DataWrites,
    /// Writing the log, or waiting for another session that does.
    Log,
    /// Waiting for a row or another lock that a transaction holds to its end.
    Locks,
    /// Waiting for a turn to write in a database with one writer at a time.
    Writer,
    /// Waiting for a short lock within the server, or for a page pinned by another session.
    Latch,
    /// Waiting for memory to be granted.
    Memory,
    /// In the load generator, where that has a separate host.
    Client,
    /// Between client and server: round trips, and unobserved time of the load generator.
    Network,
    /// Waiting for a standby.
    Replication,
    /// All else.
    Other,
}

impl Class {
    /// Its name for people.
    pub fn label(self) -> &'static str {
        match self {
            Self::Cpu => "CPU",
            Self::DataReads => "data reads",
            Self::DataWrites => "data writes",
            Self::Log => "log",
            Self::Locks => "row locks",
            Self::Writer => "single writer",
            Self::Latch => "latches",
            Self::Memory => "memory grants",
            Self::Client => "load generator",
            Self::Network => "network",
            Self::Replication => "replication",
            Self::Other => "other",
        }
    }

    /// The class of a session's sampled state; `None` if it waited for its client, whose share is derived from the
    /// transactions' times, or for its own parallel workers, which are sessions themselves.
    pub fn from_wait_group(group: &WaitGroup) -> Option<Self> {
        Some(match group.kind {
            WaitKind::Client | WaitKind::IdleInTransaction | WaitKind::Workers => return None,
            WaitKind::Cpu => Self::Cpu,
            WaitKind::DataRead => Self::DataReads,
            WaitKind::DataWrite => Self::DataWrites,
            WaitKind::Log | WaitKind::LogFlush => Self::Log,
            WaitKind::RowLock | WaitKind::Lock => Self::Locks,
            WaitKind::Page | WaitKind::Latch => Self::Latch,
            WaitKind::Memory => Self::Memory,
            WaitKind::Replication => Self::Replication,
            WaitKind::Other => Self::Other,
        })
    }
}

/// Whether a session works for a client, itself or as a parallel worker, and not for the database.
pub fn is_client(group: &WaitGroup) -> bool {
    matches!(group.backend.as_str(), "client backend" | "parallel worker")
}

//! What a session was doing, as the time model, the live view and the report tell it apart: from the names that
//! PostgreSQL 10 to 19 give to waits.

use kelvin_measure::observation::WaitGroup;

/// What a transaction under way can be doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// On a CPU, or waiting for one.
    Cpu,
    /// Reading data files, for itself or through one who does.
    DataReads,
    /// Writing data files, for itself or as part of a checkpoint.
    DataWrites,
    /// Writing the log, or waiting for one who does.
    Log,
    /// Waiting for a row or another lock that a transaction holds to its end.
    Locks,
    /// Waiting for a short lock within the server, or for a page that another one has pinned.
    Latch,
    /// In the load generator, where that has a host of its own.
    Client,
    /// Between client and server: round trips, and what the load generator could not be seen doing.
    Network,
    /// Waiting for a standby.
    Replication,
    /// All else.
    Other,
}

impl Class {
    /// Its name for people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Cpu => "CPU",
            Self::DataReads => "data reads",
            Self::DataWrites => "data writes",
            Self::Log => "log",
            Self::Locks => "row locks",
            Self::Latch => "latches",
            Self::Client => "load generator",
            Self::Network => "network",
            Self::Replication => "replication",
            Self::Other => "other",
        }
    }

    /// The class of a state in which the database saw a session; none where it waited for its client, whose share is
    /// told from the transactions' times, or for its own parallel workers, which are sessions themselves.
    pub fn of(group: &WaitGroup) -> Option<Self> {
        let event = group.event.as_str();
        Some(match group.class.as_str() {
            "CPU" => Self::Cpu,
            "Idle in transaction" | "Client" => return None,
            "IPC" if matches!(event, "ExecuteGather" | "ParallelFinish") => return None,
            "Lock" => Self::Locks,
            // Before PostgreSQL 13 they were WALWriteLock and wal_insert; since 17 files' are WalSync, WalWrite.
            "IO" | "LWLock" if ["WAL", "Wal", "wal_"].iter().any(|log| event.starts_with(log)) => Self::Log,
            "IO" | "IPC" | "LWLock" if is_buffer_io(event) => Self::DataReads,
            "IO" => of_file(event),
            // "BufferPin" is "Buffer" since PostgreSQL 19, where pages' contents are with it.
            "Buffer" | "BufferPin" | "LWLock" => Self::Latch,
            "IPC" if event == "SyncRep" => Self::Replication,
            "IPC" if event.ends_with("GroupUpdate") => Self::Latch,
            "Timeout" if event == "SpinDelay" => Self::Latch,
            _ => Self::Other,
        })
    }
}

fn of_file(event: &str) -> Class {
    if event.ends_with("Read") || event.ends_with("Prefetch") {
        return Class::DataReads;
    }
    let writes = ["Write", "Extend", "Sync", "Flush", "Truncate", "Allocate"];
    if writes.iter().any(|word| event.contains(word)) { Class::DataWrites } else { Class::Other }
}

/// Whether it is the wait for a page that another process, or the kernel, is bringing in. PostgreSQL 18 reads
/// asynchronously, and writes not yet.
pub(crate) fn is_buffer_io(event: &str) -> bool {
    matches!(event, "BufferIO" | "BufferIo" | "buffer_io" | "AioUringCompletion")
        || event.starts_with("AioIo")
}

/// Whether a session works for a client, itself or as a parallel worker of one that does, and not for the database.
pub fn is_client(group: &WaitGroup) -> bool {
    matches!(group.backend.as_str(), "client backend" | "parallel worker")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_have_their_classes() {
        let of = |class: &str, event: &str| {
            let (class, event) = (class.into(), event.into());
            Class::of(&WaitGroup { backend: "client backend".into(), class, event, query: None })
        };
        for (class, event, expected) in [
            ("CPU", "", Class::Cpu),
            ("IO", "DataFileRead", Class::DataReads),
            ("IO", "DataFilePrefetch", Class::DataReads),
            ("IO", "AioIoCompletion", Class::DataReads),
            ("IO", "AioIoUringSubmit", Class::DataReads),
            ("IO", "AioIoUringExecution", Class::DataReads),
            ("LWLock", "AioUringCompletion", Class::DataReads),
            ("IPC", "BufferIO", Class::DataReads),
            ("IPC", "BufferIo", Class::DataReads),
            ("LWLock", "buffer_io", Class::DataReads),
            ("IO", "DataFileExtend", Class::DataWrites),
            ("IO", "DataFileImmediateSync", Class::DataWrites),
            ("IO", "SlruFlushSync", Class::DataWrites),
            ("IO", "NobodyKnows", Class::Other),
            ("IO", "WALSync", Class::Log),
            ("IO", "WalSync", Class::Log),
            ("LWLock", "WALInsert", Class::Log),
            ("LWLock", "wal_insert", Class::Log),
            ("LWLock", "BufferContent", Class::Latch),
            ("LWLock", "BufferMapping", Class::Latch),
            ("Buffer", "BufferExclusive", Class::Latch),
            ("BufferPin", "BufferPin", Class::Latch),
            ("Lock", "transactionid", Class::Locks),
            ("IPC", "SyncRep", Class::Replication),
            ("IPC", "ProcArrayGroupUpdate", Class::Latch),
            ("Timeout", "PgSleep", Class::Other),
        ] {
            assert_eq!(of(class, event), Some(expected), "{class} {event}");
        }
        for (class, event) in
            [("Client", "ClientRead"), ("Idle in transaction", "ClientRead"), ("IPC", "ExecuteGather")]
        {
            assert_eq!(of(class, event), None, "{class} {event}");
        }
    }
}

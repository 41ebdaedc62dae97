//! What PostgreSQL's wait events are for, by the names that versions 10 to 19 give them.

use kelvin_measure::observation::{WaitGroup, WaitKind};

/// A state of a session. `class` is "CPU" where it waits for nothing.
pub fn wait_group(backend: &str, class: &str, event: &str, query: Option<i64>) -> WaitGroup {
    WaitGroup {
        backend: backend.into(),
        kind: wait_kind(class, event),
        class: class.into(),
        event: event.into(),
        query,
        object: None,
    }
}

fn wait_kind(class: &str, event: &str) -> WaitKind {
    match class {
        "CPU" => WaitKind::Cpu,
        "Idle in transaction" => WaitKind::IdleInTransaction,
        "Client" => WaitKind::Client,
        "IPC" if matches!(event, "ExecuteGather" | "ParallelFinish") => WaitKind::Workers,
        "Lock" if matches!(event, "transactionid" | "tuple") => WaitKind::RowLock,
        "Lock" => WaitKind::Lock,
        // Before PostgreSQL 13 they were WALWriteLock and wal_insert; since 17 files' are WalSync, WalWrite.
        "IO" if matches!(event, "WALSync" | "WalSync") => WaitKind::LogFlush,
        "IO" | "LWLock" if ["WAL", "Wal", "wal_"].iter().any(|log| event.starts_with(log)) => WaitKind::Log,
        "IO" | "IPC" | "LWLock" if is_page_on_its_way(event) => WaitKind::DataRead,
        "IO" => of_file(event),
        // "buffer_content" up to 12; "BufferPin" is "Buffer" since PostgreSQL 19, where pages' contents are with it.
        "Buffer" | "BufferPin" => WaitKind::Page,
        "LWLock" if matches!(event, "BufferContent" | "buffer_content") => WaitKind::Page,
        "LWLock" => WaitKind::Latch,
        "IPC" if event == "SyncRep" => WaitKind::Replication,
        "IPC" if event.ends_with("GroupUpdate") => WaitKind::Latch,
        "Timeout" if event == "SpinDelay" => WaitKind::Latch,
        _ => WaitKind::Other,
    }
}

/// A page that another process, or the kernel, is bringing in. PostgreSQL 18 reads asynchronously, and writes not yet.
fn is_page_on_its_way(event: &str) -> bool {
    matches!(event, "BufferIO" | "BufferIo" | "buffer_io" | "AioUringCompletion")
        || event.starts_with("AioIo")
}

fn of_file(event: &str) -> WaitKind {
    if event.ends_with("Read") || event.ends_with("Prefetch") {
        return WaitKind::DataRead;
    }
    let writes = ["Write", "Extend", "Sync", "Flush", "Truncate", "Allocate"];
    if writes.iter().any(|word| event.contains(word)) { WaitKind::DataWrite } else { WaitKind::Other }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_their_kinds() {
        for (class, event, expected) in [
            ("CPU", "", WaitKind::Cpu),
            ("IO", "DataFileRead", WaitKind::DataRead),
            ("IO", "DataFilePrefetch", WaitKind::DataRead),
            ("IO", "AioIoCompletion", WaitKind::DataRead),
            ("IO", "AioIoUringSubmit", WaitKind::DataRead),
            ("IO", "AioIoUringExecution", WaitKind::DataRead),
            ("LWLock", "AioUringCompletion", WaitKind::DataRead),
            ("IPC", "BufferIO", WaitKind::DataRead),
            ("IPC", "BufferIo", WaitKind::DataRead),
            ("LWLock", "buffer_io", WaitKind::DataRead),
            ("IO", "DataFileExtend", WaitKind::DataWrite),
            ("IO", "DataFileImmediateSync", WaitKind::DataWrite),
            ("IO", "SlruFlushSync", WaitKind::DataWrite),
            ("IO", "NobodyKnows", WaitKind::Other),
            ("IO", "WALSync", WaitKind::LogFlush),
            ("IO", "WalSync", WaitKind::LogFlush),
            ("IO", "WALWrite", WaitKind::Log),
            ("LWLock", "WALInsert", WaitKind::Log),
            ("LWLock", "wal_insert", WaitKind::Log),
            ("LWLock", "BufferContent", WaitKind::Page),
            ("LWLock", "BufferMapping", WaitKind::Latch),
            ("Buffer", "BufferExclusive", WaitKind::Page),
            ("BufferPin", "BufferPin", WaitKind::Page),
            ("Lock", "transactionid", WaitKind::RowLock),
            ("Lock", "relation", WaitKind::Lock),
            ("IPC", "SyncRep", WaitKind::Replication),
            ("IPC", "ProcArrayGroupUpdate", WaitKind::Latch),
            ("IPC", "ExecuteGather", WaitKind::Workers),
            ("Client", "ClientRead", WaitKind::Client),
            ("Idle in transaction", "ClientRead", WaitKind::IdleInTransaction),
            ("Timeout", "PgSleep", WaitKind::Other),
        ] {
            assert_eq!(wait_kind(class, event), expected, "{class} {event}");
        }
    }
}

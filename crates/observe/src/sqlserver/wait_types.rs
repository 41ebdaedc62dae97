//! What SQL Server's wait types are for.
//!
//! The types with their categories (those of `sys.query_store_wait_stats`), and which of them are how a background task rests, are
//! a table in `wait_types.tsv`: name, category, 1 for a rest. Types that newer servers have are known by how their names begin.

use std::collections::HashMap;
use std::sync::LazyLock;

use kelvin_measure::observation::WaitKind;

/// What is known of a wait type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WaitType {
    /// "Lock", "Buffer Latch", "Tran Log IO".
    pub(super) category: &'static str,
    /// Whether it is how a background task rests: it grows with the time and not with the load.
    pub(super) rests: bool,
    pub(super) kind: WaitKind,
}

static KNOWN: LazyLock<HashMap<&'static str, (&'static str, bool)>> = LazyLock::new(|| {
    let line = |line: &'static str| {
        let mut fields = line.split('\t');
        Some((fields.next()?, (fields.next()?, fields.next()? == "1")))
    };
    include_str!("wait_types.tsv").lines().filter_map(line).collect()
});

/// Beginnings of names for what the table does not have, with their categories.
const BEGINNINGS: &[(&str, &str)] = &[
    ("LCK_M_", "Lock"),
    ("PAGELATCH_", "Buffer Latch"),
    ("PAGEIOLATCH_", "Buffer IO"),
    ("LATCH_", "Latch"),
    ("PREEMPTIVE_", "Preemptive"),
    ("HADR_", "Replication"),
    ("SE_REPL_", "Replication"),
    ("QDS_", "Query Store"),
    // A hash join or an aggregation in batch mode, whose threads wait for one another.
    ("HTBUILD", "Parallelism"),
    ("HTDELETE", "Parallelism"),
    ("HTMEMO", "Parallelism"),
    ("HTREINIT", "Parallelism"),
    ("HTREPARTITION", "Parallelism"),
    ("BMPBUILD", "Parallelism"),
    ("EXECSYNC", "Parallelism"),
    ("CXSYNC_", "Parallelism"),
];

/// Lock modes that are of tables and of definitions only; the others are mostly of rows.
const TABLE_LOCKS: &[&str] = &["IS", "IU", "IX", "SIU", "SIX", "UIX", "BU", "SCH_S", "SCH_M"];

/// What a wait is for, by its type.
pub(super) fn wait_type(name: &str) -> WaitType {
    let beginning =
        || BEGINNINGS.iter().find(|(start, _)| name.starts_with(start)).map(|(_, of)| (*of, false));
    let (category, rests) = KNOWN.get(name).copied().or_else(beginning).unwrap_or(("Unknown", false));
    WaitType { category, rests, kind: kind(category, name) }
}

fn kind(category: &str, name: &str) -> WaitKind {
    match (category, name) {
        ("CPU", _) => WaitKind::Cpu,
        ("Lock", _) => {
            let mode = name.strip_prefix("LCK_M_").unwrap_or(name);
            let mode = mode.strip_suffix("_LOW_PRIORITY").unwrap_or(mode);
            let mode = mode.strip_suffix("_ABORT_BLOCKERS").unwrap_or(mode);
            if TABLE_LOCKS.contains(&mode) { WaitKind::Lock } else { WaitKind::RowLock }
        }
        ("Buffer Latch", _) => WaitKind::Page,
        ("Latch", _) | ("Memory", "CMEMTHREAD" | "CMEMPARTITIONED" | "EE_PMOLOCK") => WaitKind::Latch,
        ("Buffer IO", _) | ("Other Disk IO", "IO_COMPLETION" | "IO_QUEUE_LIMIT" | "IO_RETRY") => {
            WaitKind::DataRead
        }
        ("Other Disk IO", "WRITE_COMPLETION" | "ASYNC_IO_COMPLETION") => WaitKind::DataWrite,
        ("Tran Log IO", "WRITELOG") => WaitKind::LogFlush,
        // At the start of the server only.
        ("Tran Log IO", "CHKPT") => WaitKind::Other,
        ("Tran Log IO" | "Log Rate Governor", _) => WaitKind::Log,
        ("Compilation", _) | ("Memory", "RESOURCE_SEMAPHORE") => WaitKind::Memory,
        ("Parallelism", _) => WaitKind::Workers,
        ("Network IO", _) => WaitKind::Client,
        ("Replication" | "Mirroring", _) => WaitKind::Replication,
        ("Transaction", _) if !name.starts_with("DTC") => WaitKind::Lock,
        _ => WaitKind::Other,
    }
}

/// Types that are a sign of a shortage, of a limit or of a fault however short they are, and of what.
const POISON: &[(&str, &str)] = &[
    (
        "THREADPOOL",
        "all worker threads were in use: requests and even logins waited for one (long blocking, too many parallel \
         statements, or max worker threads too low)",
    ),
    ("RESOURCE_SEMAPHORE", "statements waited for memory to sort or hash before they could begin"),
    (
        "RESOURCE_SEMAPHORE_QUERY_COMPILE",
        "statements waited for memory to be compiled: too many large compilations at the same time",
    ),
    ("IO_QUEUE_LIMIT", "the service tier limits the I/O of the database"),
    ("IO_RETRY", "an I/O failed and was repeated: look at the disks and at the server's error log"),
    ("LOG_RATE_GOVERNOR", "the service tier limits the rate at which the log may grow"),
    ("POOL_LOG_RATE_GOVERNOR", "the service tier limits the rate at which the log may grow"),
    ("INSTANCE_LOG_RATE_GOVERNOR", "the service tier limits the rate at which the log may grow"),
    ("HADR_THROTTLE_LOG_RATE_GOVERNOR", "the log was slowed down because a replica could not keep up"),
    ("RESMGR_THROTTLED", "Resource Governor limits this group of sessions"),
    ("SE_REPL_CATCHUP_THROTTLE", "the log was slowed down because a replica could not keep up"),
    ("SE_REPL_COMMIT_ACK", "commits waited for replicas"),
    ("PREEMPTIVE_DEBUG", "a debugger is attached to the server"),
];

/// What a type is a sign of that a healthy server does not have.
pub(super) fn poison(name: &str) -> Option<&'static str> {
    POISON.iter().find(|(of, _)| *of == name).map(|(_, sign)| *sign)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_the_kinds_that_the_findings_ask_for() {
        for (name, expected) in [
            ("SOS_SCHEDULER_YIELD", WaitKind::Cpu),
            ("LCK_M_X", WaitKind::RowLock),
            ("LCK_M_RX_X_LOW_PRIORITY", WaitKind::RowLock),
            ("LCK_M_IX", WaitKind::Lock),
            ("LCK_M_SCH_M_LOW_PRIORITY", WaitKind::Lock),
            ("LCK_M_S_XACT_READ", WaitKind::RowLock),
            ("PAGELATCH_EX", WaitKind::Page),
            ("PAGEIOLATCH_SH", WaitKind::DataRead),
            ("IO_COMPLETION", WaitKind::DataRead),
            ("ASYNC_IO_COMPLETION", WaitKind::DataWrite),
            ("LATCH_EX", WaitKind::Latch),
            ("CMEMTHREAD", WaitKind::Latch),
            ("WRITELOG", WaitKind::LogFlush),
            ("LOGBUFFER", WaitKind::Log),
            ("INSTANCE_LOG_RATE_GOVERNOR", WaitKind::Log),
            ("CXPACKET", WaitKind::Workers),
            ("CXCONSUMER", WaitKind::Workers),
            ("CXSYNC_PORT", WaitKind::Workers),
            ("HTREPARTITION", WaitKind::Workers),
            ("RESOURCE_SEMAPHORE", WaitKind::Memory),
            ("RESOURCE_SEMAPHORE_QUERY_COMPILE", WaitKind::Memory),
            ("ASYNC_NETWORK_IO", WaitKind::Client),
            ("HADR_SYNC_COMMIT", WaitKind::Replication),
            ("TRANSACTION_MUTEX", WaitKind::Lock),
            ("DTC_STATE", WaitKind::Other),
            ("THREADPOOL", WaitKind::Other),
            ("PREEMPTIVE_OS_WRITEFILE", WaitKind::Other),
            ("QDS_STMT", WaitKind::Other),
            ("NOBODY_KNOWS", WaitKind::Other),
        ] {
            assert_eq!(wait_type(name).kind, expected, "{name}");
        }
        assert_eq!(wait_type("QDS_STMT").category, "Query Store");
    }

    #[test]
    fn the_table_is_whole_and_rests_are_no_waits() {
        assert_eq!(KNOWN.len(), 528);
        assert_eq!(KNOWN.values().filter(|(_, rests)| *rests).count(), 57);
        for name in ["LAZYWRITER_SLEEP", "CHECKPOINT_QUEUE", "DIRTY_PAGE_POLL", "LOGMGR_QUEUE"] {
            assert!(wait_type(name).rests, "{name}");
        }
        assert!(!wait_type("WRITELOG").rests);
        for (name, _) in POISON {
            assert!(!wait_type(name).rests, "{name}");
        }
    }
}

//! Latches and spinlocks by class, as the server counts them (`sys.dm_os_latch_stats`, `sys.dm_os_spinlock_stats`): the classes
//! that a run has metrics of, and all of them for `kelvin waits`.

use kelvin_database::{Result, Rows, Session};
use kelvin_measure::observation::UnavailableMetrics;

use super::counters::Table;
use super::link::Server;
use super::sql;
use crate::activity::{LatchKind, LatchSums};

/// The classes that have metrics of their own, with what they protect; all others are added up as "other". A fixed list, so that
/// runs have the same metrics.
pub(super) const LATCHES: &[(&str, &str)] = &[
    ("BUFFER", "pages in the buffer pool"),
    ("ACCESS_METHODS_DATASET_PARENT", "the common part of a parallel scan"),
    ("ACCESS_METHODS_SCAN_RANGE_GENERATOR", "the ranges of a parallel scan"),
    ("ACCESS_METHODS_HOBT_VIRTUAL_ROOT", "the root of an index"),
    ("ACCESS_METHODS_HOBT_COUNT", "row counts of tables and indexes"),
    ("FGCB_ADD_REMOVE", "the files of a filegroup, while one grows or is added"),
    ("LOG_MANAGER", "the log, while it grows"),
    ("NESTING_TRANSACTION_FULL", "transactions of parallel statements that write"),
    (OTHER, "all else"),
];
/// Likewise.
pub(super) const SPINLOCKS: &[(&str, &str)] = &[
    ("LOCK_HASH", "the table of locks"),
    ("LOGCACHE_ACCESS", "the log's buffer"),
    ("LOGFLUSHQ", "the queue of log flushes"),
    ("SOS_CACHESTORE", "caches of plans and others"),
    ("SOS_SCHEDULER", "the schedulers"),
    ("XDESMGR", "the list of transactions"),
    ("OPT_IDX_STATS", "the use of indexes"),
    ("MUTEX", "permissions and tokens"),
    ("SECURITY_CACHE", "the cache of permissions"),
    ("DP_LIST", "the list of dirty pages"),
    (OTHER, "all else"),
];

const OTHER: &str = "other";

/// View, statement, and how the classes are called in the table.
const SOURCES: [(LatchKind, &str, &str); 2] = [
    (LatchKind::Latch, sql::LATCH_STATS, sql::LATCHES),
    (LatchKind::Spinlock, sql::SPINLOCK_STATS, sql::SPINLOCKS),
];

/// All that were waited for since the server started.
pub(super) fn read(session: &mut dyn Session, server: &Server) -> Result<Vec<LatchSums>> {
    let mut found = Vec::new();
    for (kind, _, statement) in SOURCES.into_iter().filter(|(_, view, _)| server.has(view)) {
        let rows = session.query(statement)?;
        for row in 0..rows.len() {
            found.push(LatchSums {
                kind,
                name: rows.text(row, 0)?.trim().to_owned(),
                count: rows.float(row, 1)?,
                ms: rows.float(row, 2)?,
                spins: rows.optional(row, 3, Rows::float)?,
                backoffs: rows.optional(row, 4, Rows::float)?,
            });
        }
    }
    Ok(found)
}

/// What of them cannot be seen.
pub(super) fn absent(server: &Server) -> impl Iterator<Item = UnavailableMetrics> {
    SOURCES.into_iter().filter(|(_, view, _)| !server.has(view)).map(|(kind, view, _)| UnavailableMetrics {
        what: format!("{} by class", kind.plural()),
        why: server.why_not(view),
    })
}

/// Adds them to the table, each as the class that has metrics. A view without a class in use has its keys, too.
pub(super) fn add(table: &mut Table, server: &Server, all: &[LatchSums]) {
    for (kind, view, _) in SOURCES {
        if server.has(view) {
            table.entry(key(kind, OTHER, "ms")).or_default();
        }
    }
    for one in all {
        let classes = if one.kind == LatchKind::Latch { LATCHES } else { SPINLOCKS };
        let class = classes.iter().find(|(class, _)| *class == one.name).map_or(OTHER, |(class, _)| class);
        let values = [("ms", Some(one.ms)), ("spins", one.spins), ("backoffs", one.backoffs)];
        for (what, value) in values {
            if let Some(value) = value {
                *table.entry(key(one.kind, class, what)).or_default() += value;
            }
        }
    }
}

/// Whether the table has those of a kind.
pub(super) fn has(table: &Table, kind: LatchKind) -> bool {
    table.contains_key(&key(kind, OTHER, "ms"))
}

/// The name of a value in the table.
pub(super) fn key(kind: LatchKind, class: &str, what: &str) -> String {
    format!("{}.{class}.{what}", kind.word())
}

#[cfg(test)]
mod tests {
    use super::super::link::example;
    use super::*;

    #[test]
    fn classes_without_metrics_are_added_up_and_no_view_leaves_no_key() {
        let latch = |name: &str, ms| LatchSums { name: name.into(), ms, ..LatchSums::default() };
        let spinlock = LatchSums {
            kind: LatchKind::Spinlock,
            name: "LOCK_HASH".into(),
            spins: Some(900.0),
            backoffs: Some(3.0),
            ..LatchSums::default()
        };
        let mut table = Table::new();
        let all = [latch("BUFFER", 7.0), latch("TRACE_ID", 1.0), latch("SERVICE_BROKER_MAP", 2.0), spinlock];
        add(&mut table, &example(), &all);
        assert_eq!((table["latch.BUFFER.ms"], table["latch.other.ms"]), (7.0, 3.0));
        assert_eq!((table["spinlock.LOCK_HASH.spins"], table["spinlock.other.ms"]), (900.0, 0.0));
        assert!(has(&table, LatchKind::Spinlock) && !has(&Table::new(), LatchKind::Latch));
        assert_eq!(absent(&example()).count(), 0);
    }
}

//! The server's counters: their metric names, and how they are read.
//!
//! All go into one table by name ([`Table`]): performance counters as the server names them, sums of files behind "file.", of NUMA
//! nodes behind "node.", of waits behind "load." (Kelvin's own sessions) and "server." (all of it).

use kelvin_database::{Result, Session};
use kelvin_measure::observation::WaitKind;

use super::link::Server;
use super::pages::TEMPDB;
use super::wait_types::wait_type;
use super::{latches, sql};
use crate::activity::{CountedWait, FileSums, IoSums};
use crate::metric;
use crate::server::counters::{Counter, Kind, gauge, rate};
pub(super) use crate::server::counters::{Counters, Table};

/// All that are known.
const COUNTERS: &[Counter] = &[
    rate(
        metric::COMMITS[2],
        "1/s",
        &["Write Transactions/sec"],
        "transactions that wrote to the database and committed",
    ),
    rate("sqlserver.transactions", "1/s", &["Transactions/sec"], "transactions begun in the database"),
    rate(
        metric::BATCH_REQUESTS,
        "1/s",
        &["Batch Requests/sec"],
        "batches and calls of all clients, the observers' included; HammerDB's TPM is this number per \
         minute, not a number of transactions",
    ),
    rate("sqlserver.compilations", "1/s", &["SQL Compilations/sec"], "compilations of statements"),
    rate("sqlserver.recompilations", "1/s", &["SQL Re-Compilations/sec"], "recompilations of statements"),
    rate("sqlserver.deadlocks", "1/s", &["Number of Deadlocks/sec"], "deadlocks found"),
    rate("sqlserver.lock_timeouts", "1/s", &["Lock Timeouts/sec"], "lock waits that timed out"),
    rate("sqlserver.lock_waits", "1/s", &["Lock Waits/sec"], "lock waits"),
    rate("sqlserver.latch_waits", "1/s", &["Latch Waits/sec"], "latch waits"),
    rate(metric::LOG_BYTES[2], "B/s", &["file.log.write_bytes"], "bytes written to the log of the database"),
    rate(metric::LOG_SYNCS[2], "1/s", &["file.log.writes"], "synchronous writes of the log"),
    rate(metric::LOG_SYNC_MS[2], "ms/s", &["file.log.write_ms"], "time spent writing the log"),
    rate("sqlserver.log.flushes", "1/s", &["Log Flushes/sec"], "log blocks flushed"),
    rate("sqlserver.log.flush_waits", "1/s", &["Log Flush Waits/sec"], "commits that waited for a log flush"),
    Counter {
        name: metric::BUFFER_HITS[2],
        unit: "1/s",
        help: "pages found in the buffer pool",
        plus: &["Page lookups/sec"],
        minus: &["Page reads/sec"],
        kind: Kind::Rate,
    },
    rate(
        metric::BUFFER_READS[2],
        "1/s",
        &["Page reads/sec"],
        "pages read into the buffer pool, read-ahead included",
    ),
    rate(metric::CHECKPOINT_PAGES, "1/s", &["Checkpoint pages/sec"], "pages written by checkpoints"),
    rate(
        "sqlserver.buffer.background_pages",
        "1/s",
        &["Background writer pages/sec"],
        "pages written to keep to the recovery target (indirect checkpoints)",
    ),
    rate(
        "sqlserver.buffer.lazy_pages",
        "1/s",
        &["Lazy writes/sec"],
        "pages written to make room in the buffer pool",
    ),
    rate(
        "sqlserver.buffer.free_stalls",
        "1/s",
        &["Free list stalls/sec"],
        "waits for a free page in the buffer pool",
    ),
    gauge(
        "sqlserver.buffer.life_expectancy",
        "s",
        &["Page life expectancy"],
        "time that a page stays in the buffer pool",
    ),
    gauge(metric::VERSION_STORE, "kB", &["Version Store Size (KB)"], "size of tempdb's version store"),
    rate("sqlserver.full_scans", "1/s", &["Full Scans/sec"], "scans of a whole table or index"),
    rate("sqlserver.page_splits", "1/s", &["Page Splits/sec"], "page splits"),
    rate(metric::WORK_TABLES, "1/s", &["Worktables Created/sec"], "work tables created in tempdb"),
    rate("sqlserver.temp.workfiles", "1/s", &["Workfiles Created/sec"], "work files created in tempdb"),
    rate(metric::TEMPORARY_TABLES, "1/s", &["Temp Tables Creation Rate"], "temporary tables created"),
    gauge(metric::GRANTS_PENDING, "1", &["Memory Grants Pending"], "statements that wait for a memory grant"),
    gauge("sqlserver.memory.grants", "1", &["Memory Grants Outstanding"], "statements with a memory grant"),
    gauge(
        "sqlserver.memory.granted",
        "kB",
        &["Granted Workspace Memory (KB)"],
        "memory granted to statements",
    ),
    gauge(metric::SERVER_MEMORY, "kB", &["Total Server Memory (KB)"], "memory that the server uses"),
    gauge("sqlserver.memory.target", "kB", &["Target Server Memory (KB)"], "memory that the server may use"),
    rate(metric::NEW_SESSIONS[2], "1/s", &["Logins/sec"], "logins, without reuse of pooled connections"),
    gauge("sqlserver.connections", "1", &["User Connections"], "connections"),
    rate("sqlserver.file.data.reads", "1/s", &["file.data.reads"], "reads of data files"),
    rate("sqlserver.file.data.read_bytes", "B/s", &["file.data.read_bytes"], "bytes read from data files"),
    rate(metric::DATA_READ_MS, "ms/s", &["file.data.read_ms"], "time spent reading data files"),
    rate("sqlserver.file.data.writes", "1/s", &["file.data.writes"], "writes of data files"),
    rate(metric::DATA_WRITE_BYTES, "B/s", &["file.data.write_bytes"], "bytes written to data files"),
    rate(metric::DATA_WRITE_MS, "ms/s", &["file.data.write_ms"], "time spent writing data files"),
    rate("sqlserver.file.tempdb.reads", "1/s", &["file.tempdb.reads"], "reads of tempdb's files"),
    rate(
        "sqlserver.file.tempdb.read_ms",
        "ms/s",
        &["file.tempdb.read_ms"],
        "time spent reading tempdb's files",
    ),
    rate("sqlserver.file.tempdb.writes", "1/s", &["file.tempdb.writes"], "writes of tempdb's files"),
    rate(
        "sqlserver.file.tempdb.write_ms",
        "ms/s",
        &["file.tempdb.write_ms"],
        "time spent writing tempdb's files",
    ),
    Counter {
        name: metric::SCHEDULER_CPU,
        unit: "s/s",
        help: "CPUs used by the server's schedulers",
        plus: &["node.cpu_s"],
        minus: &[],
        kind: Kind::Rate,
    },
    gauge(metric::SCHEDULERS, "1", &["node.schedulers"], "schedulers, one for each CPU that the server uses"),
    gauge("sqlserver.schedulers.runnable", "1", &["node.runnable"], "tasks that wait for a CPU"),
    gauge(metric::WORKERS, "1", &["node.workers"], "worker threads"),
    gauge(metric::WORK_QUEUE, "1", &["node.work_queue"], "requests that wait for a worker thread"),
];

/// Those for which a first reading has values.
pub(super) fn known(table: &Table) -> Counters {
    Counters::present_in(COUNTERS, table)
}

/// Reads them all; the sessions of this list are the observers'.
pub(super) fn read(session: &mut dyn Session, server: &Server, observers: &str) -> Result<Table> {
    let mut table = Table::new();
    let rows = session.query(&sql::counters(&names()))?;
    for row in 0..rows.len() {
        table.insert(rows.text(row, 0)?.to_owned(), rows.float(row, 1)?);
    }
    for (of, file) in files(session, server)? {
        let Some(of) = of else { continue };
        for (what, io) in [("read", file.reads), ("write", file.writes)] {
            for (unit, value) in [("s", io.count), ("_bytes", io.bytes), ("_ms", io.ms)] {
                *table.entry(format!("file.{of}.{what}{unit}")).or_default() += value.unwrap_or(0.0);
            }
        }
    }
    nodes(session, observers, &mut table)?;
    latches::add(&mut table, server, &latches::read(session, server)?);
    for one in waits(session, &sql::load_waits(observers))? {
        add(&mut table, "load", &one);
    }
    for one in waits(session, &sql::waits(server))? {
        add(&mut table, "server", &one);
    }
    Ok(table)
}

/// What a wait is added up as: its kind, and by name what a finding asks for.
pub(super) fn group(kind: WaitKind, event: &str) -> &'static str {
    match kind {
        _ if event == "THREADPOOL" => "worker_thread",
        _ if event.starts_with("QDS_") => "query_store",
        WaitKind::Cpu => "cpu",
        WaitKind::DataRead => "data_read",
        WaitKind::DataWrite => "data_write",
        WaitKind::Log | WaitKind::LogFlush => "log",
        WaitKind::RowLock | WaitKind::Lock => "lock",
        WaitKind::Page => "page",
        WaitKind::Latch => "latch",
        WaitKind::Memory => "memory",
        WaitKind::Replication => "replication",
        WaitKind::Client => "client",
        WaitKind::Workers => "parallel",
        WaitKind::IdleInTransaction | WaitKind::Other => "other",
    }
}

/// All of them, with what they are.
pub(super) const GROUPS: &[(&str, &str)] = &[
    ("cpu", "yielding the CPU"),
    ("data_read", "data reads"),
    ("data_write", "data writes"),
    ("log", "the log"),
    ("lock", "locks"),
    ("page", "pages that other sessions use"),
    ("latch", "latches"),
    ("memory", "memory grants"),
    ("replication", "replicas"),
    ("client", "their clients"),
    ("parallel", "other threads of their statement"),
    ("worker_thread", "a worker thread"),
    ("query_store", "Query Store"),
    ("other", "other things"),
    ("signal", "a CPU, after the end of a wait"),
];

fn add(table: &mut Table, of: &str, wait: &CountedWait) {
    let (ms, signal) = (wait.total_ms.unwrap_or(0.0), wait.signal_ms.unwrap_or(0.0));
    *table.entry(format!("{of}.{}", group(wait.kind, &wait.event))).or_default() += ms;
    *table.entry(format!("{of}.signal")).or_default() += signal;
}

/// Waits, but those in which background tasks rest.
pub(super) fn waits(session: &mut dyn Session, sql: &str) -> Result<Vec<CountedWait>> {
    let rows = session.query(sql)?;
    let mut found = Vec::new();
    for row in 0..rows.len() {
        let event = rows.text(row, 0)?;
        let known = wait_type(event);
        // A client that has nothing to ask is none.
        if known.rests {
            continue;
        }
        found.push(CountedWait {
            kind: known.kind,
            class: known.category.into(),
            event: event.into(),
            count: rows.float(row, 1)?,
            total_ms: Some(rows.float(row, 2)?),
            signal_ms: Some(rows.float(row, 3)?),
        });
    }
    Ok(found)
}

/// Every file, with what it is for a run: "data" and "log" of this database, "tempdb"; none for those of others.
pub(super) fn files(
    session: &mut dyn Session,
    server: &Server,
) -> Result<Vec<(Option<&'static str>, FileSums)>> {
    let rows = session.query(&sql::files(server))?;
    let one = |row| {
        let (database, kind) = (rows.int(row, 1)?, rows.int(row, 2)?);
        let of = match (database, kind) {
            (TEMPDB, _) => Some("tempdb"),
            (database, 0) if database == server.database => Some("data"),
            (database, 1) if database == server.database => Some("log"),
            _ => None,
        };
        let what = match kind {
            0 => "data",
            1 => "log",
            _ => "other",
        };
        let value = |column| rows.float(row, column).map(Some);
        let name = rows.optional(row, 0, kelvin_database::Rows::text)?.unwrap_or("?");
        Ok((
            of,
            FileSums {
                name: format!("{name} {what} {}", rows.text(row, 3)?),
                reads: IoSums { count: value(4)?, bytes: value(5)?, ms: value(6)? },
                writes: IoSums { count: value(7)?, bytes: value(8)?, ms: value(9)? },
                syncs: IoSums::default(),
            },
        ))
    };
    (0..rows.len()).map(one).collect()
}

/// By NUMA node and in all.
fn nodes(session: &mut dyn Session, observers: &str, table: &mut Table) -> Result<()> {
    let rows = session.query(sql::SCHEDULERS)?;
    for row in 0..rows.len() {
        let node = rows.int(row, 0)?;
        let columns =
            [("schedulers", 1.0), ("runnable", 1.0), ("workers", 1.0), ("work_queue", 1.0), ("cpu_s", 1e-3)];
        for (column, (what, scale)) in columns.into_iter().enumerate() {
            let Some(value) = rows.optional(row, column + 1, kelvin_database::Rows::float)? else { continue };
            *table.entry(format!("node.{what}")).or_default() += value * scale;
            table.insert(format!("node.{node}.{what}"), value * scale);
        }
    }
    let rows = session.query(&sql::connections(observers))?;
    for row in 0..rows.len() {
        table.insert(format!("node.{}.connections", rows.int(row, 0)?), rows.float(row, 1)?);
    }
    Ok(())
}

/// The performance counters that are asked for.
fn names() -> String {
    let of = |counter: &Counter| counter.plus.iter().chain(counter.minus).copied();
    let names: std::collections::BTreeSet<&str> =
        COUNTERS.iter().flat_map(of).filter(|name| !name.contains('.')).collect();
    names.into_iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_group_of_waits_is_known_and_names_are_asked_for_once() {
        for (kind, event) in
            [(WaitKind::Page, "PAGELATCH_EX"), (WaitKind::Other, "THREADPOOL"), (WaitKind::Other, "QDS_STMT")]
        {
            let group = group(kind, event);
            assert!(GROUPS.iter().any(|(name, _)| *name == group), "{group}");
        }
        let names = names();
        assert_eq!(names.matches("'Page reads/sec'").count(), 1);
        assert!(!names.contains("file.") && names.contains("'Batch Requests/sec'"));
    }
}

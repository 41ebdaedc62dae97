//! The server's counters: their metric names, and the rates made from their differences.
//!
//! Both products keep most of them as status variables, a few only in InnoDB's metrics, and times of files only in
//! `performance_schema`. All go into one table by name ([`Table`]: status variables in small letters, InnoDB's metrics behind
//! "innodb.", files behind "file."); a counter whose names are not all in it is not there.

use kelvin_database::{Result, Session};

use super::link::Server;
use super::{files, flushing, sql};
use crate::metric;
use crate::server::counters::{Counter, Kind, gauge, rate};
pub(super) use crate::server::counters::{Counters, Table};

/// All that are known. Of several with one name the first that the server has is the one.
const COUNTERS: &[Counter] = &[
    rate(
        metric::COMMITS[1],
        "1/s",
        &["com_commit"],
        "COMMIT statements of all clients; autocommitted statements are not included",
    ),
    rate("mysql.transactions.rollback", "1/s", &["com_rollback"], "ROLLBACK statements"),
    rate(
        "mysql.statements",
        "1/s",
        &["questions"],
        "statements sent by clients (including about a dozen per second by the observers)",
    ),
    rate("mysql.deadlocks", "1/s", &["innodb.lock_deadlocks"], "deadlocks found"),
    rate(
        "mysql.lock_timeouts",
        "1/s",
        &["innodb.lock_timeouts"],
        "lock waits that exceeded innodb_lock_wait_timeout",
    ),
    rate(metric::LOG_BYTES[1], "B/s", &["innodb_lsn_current"], "redo log generated"),
    rate(metric::LOG_BYTES[1], "B/s", &["innodb_redo_log_current_lsn"], "redo log generated"),
    rate(
        metric::LOG_BYTES[1],
        "B/s",
        &["innodb_os_log_written"],
        "bytes written to the redo log; each write rewrites the last block",
    ),
    rate("mysql.redo.writes", "1/s", &["innodb_log_writes"], "writes of the redo log"),
    rate(metric::LOG_SYNCS[1], "1/s", &["innodb_os_log_fsyncs"], "syncs of the redo log"),
    rate(
        metric::LOG_SYNCS[1],
        "1/s",
        &[SYNCED_WRITES],
        "writes of the redo log; MariaDB syncs each one if innodb_flush_log_at_trx_commit is 1 or 3",
    ),
    rate(
        metric::LOG_SYNC_MS[1],
        "ms/s",
        &["file.innodb_log_file.misc_ms"],
        "time spent syncing the redo log, including opening its files",
    ),
    rate(
        "mysql.redo.write_ms",
        "ms/s",
        &["file.innodb_log_file.write_ms"],
        "time spent writing the redo log",
    ),
    rate("mysql.redo.waits", "1/s", &["innodb_log_waits"], "waits for space in the log buffer"),
    gauge(metric::CHECKPOINT_AGE, "B", &["innodb_checkpoint_age"], "redo log since the last checkpoint"),
    Counter {
        name: metric::CHECKPOINT_AGE,
        unit: "B",
        help: "redo log since the last checkpoint",
        plus: &["innodb_redo_log_current_lsn"],
        minus: &["innodb_redo_log_checkpoint_lsn"],
        kind: Kind::Gauge,
    },
    gauge(
        metric::CHECKPOINT_AGE_SHARE,
        "ratio",
        &[AGE_SHARE],
        "checkpoint age as a share of the age at which InnoDB starts furious flushing",
    ),
    rate(metric::BINLOG_BYTES, "B/s", &["binlog_bytes_written"], "bytes written to the binary log"),
    rate(metric::BINLOG_BYTES, "B/s", &["file.binlog.write_bytes"], "bytes written to the binary log"),
    rate("mysql.binlog.commits", "1/s", &["binlog_commits"], "transactions written to the binary log"),
    rate("mysql.binlog.groups", "1/s", &["binlog_group_commits"], "group commits to the binary log"),
    rate(
        metric::BINLOG_SYNCS,
        "1/s",
        &["file.binlog.misc"],
        "syncs of the binary log, including opening its files",
    ),
    rate(metric::BINLOG_SYNC_MS, "ms/s", &["file.binlog.misc_ms"], "time spent syncing the binary log"),
    Counter {
        name: metric::BUFFER_HITS[1],
        unit: "1/s",
        help: "pages found in the buffer pool",
        plus: &["innodb_buffer_pool_read_requests"],
        minus: &["innodb_buffer_pool_reads"],
        kind: Kind::Rate,
    },
    rate(
        metric::BUFFER_READS[1],
        "1/s",
        &["innodb_buffer_pool_reads"],
        "pages that sessions read into the buffer pool",
    ),
    rate(
        metric::BUFFER_WAITS,
        "1/s",
        &["innodb_buffer_pool_wait_free"],
        "waits for a free page in the buffer pool",
    ),
    rate(
        "mysql.buffer.pages_written",
        "1/s",
        &["innodb_buffer_pool_pages_flushed"],
        "pages flushed from the buffer pool",
    ),
    gauge("mysql.buffer.dirty", "1", &["innodb_buffer_pool_pages_dirty"], "dirty pages in the buffer pool"),
    gauge("mysql.buffer.free", "1", &["innodb_buffer_pool_pages_free"], "free pages in the buffer pool"),
    gauge("mysql.buffer.pages", "1", &["innodb_buffer_pool_pages_total"], "size of the buffer pool in pages"),
    rate(
        "mysql.doublewrite.pages",
        "1/s",
        &["innodb_dblwr_pages_written"],
        "pages written to the doublewrite buffer",
    ),
    gauge(
        metric::HISTORY_LENGTH,
        "1",
        &["innodb.trx_rseg_history_len"],
        "transactions with undo records not yet purged",
    ),
    rate("mysql.row_locks.waits", "1/s", &["innodb_row_lock_waits"], "row lock waits"),
    rate("mysql.row_locks.wait_ms", "ms/s", &["innodb_row_lock_time"], "time spent waiting for row locks"),
    gauge(
        "mysql.row_locks.waiting",
        "1",
        &["innodb_row_lock_current_waits"],
        "sessions waiting for a row lock now",
    ),
    rate("mysql.data.reads", "1/s", &["innodb_data_reads"], "reads of data files"),
    rate("mysql.data.writes", "1/s", &["innodb_data_writes"], "writes of data files"),
    rate("mysql.data.syncs", "1/s", &["innodb_data_fsyncs"], "fsync calls of InnoDB"),
    rate("mysql.data.read_bytes", "B/s", &["innodb_data_read"], "bytes read from data files"),
    rate("mysql.data.write_bytes", "B/s", &["innodb_data_written"], "bytes written to data files"),
    rate("mysql.data.read_ms", "ms/s", &["file.innodb_data_file.read_ms"], "time spent reading data files"),
    rate("mysql.data.write_ms", "ms/s", &["file.innodb_data_file.write_ms"], "time spent writing data files"),
    rate(
        "mysql.data.sync_ms",
        "ms/s",
        &["file.innodb_data_file.misc_ms"],
        "time spent syncing data files, including opening them",
    ),
    rate(metric::ROWS_SCANNED[1], "1/s", &["handler_read_rnd_next"], "rows read by full table scans"),
    rate("mysql.rows.read_next", "1/s", &["handler_read_next"], "rows read in index order"),
    rate("mysql.rows.read_key", "1/s", &["handler_read_key"], "rows read by key"),
    rate("mysql.rows.written", "1/s", &["handler_write"], "rows inserted, including into temporary tables"),
    rate("mysql.rows.updated", "1/s", &["handler_update"], "rows updated"),
    rate("mysql.rows.deleted", "1/s", &["handler_delete"], "rows deleted"),
    rate(
        "mysql.temp.tables",
        "1/s",
        &["created_tmp_tables"],
        "internal temporary tables created (including for the observers)",
    ),
    rate(
        "mysql.temp.disk_tables",
        "1/s",
        &["created_tmp_disk_tables"],
        "internal temporary tables created on disk (on MariaDB including one for each sample of the \
        sessions)",
    ),
    rate(
        metric::MERGE_PASSES,
        "1/s",
        &["sort_merge_passes"],
        "merges of parts of sorts that did not fit into the sort buffer",
    ),
    rate(
        metric::NEW_SESSIONS[1],
        "1/s",
        &["connections"],
        "attempts to connect by all clients, failed ones included",
    ),
    rate(metric::FAILED_CONNECTIONS, "1/s", &["aborted_connects"], "attempts to connect that failed"),
    rate(
        metric::THREADS_CREATED,
        "1/s",
        &["threads_created"],
        "threads created for connections because the thread cache had none",
    ),
    gauge("mysql.connections", "1", &["threads_connected"], "connections"),
    gauge("mysql.threads.running", "1", &["threads_running"], "connections running a statement"),
];

/// Names of the table that are made of others.
const SYNCED_WRITES: &str = "synced writes";
const AGE_SHARE: &str = "age share";

/// Status variables that are asked for beside those of the counters.
const ALSO: &[&str] = &["innodb_checkpoint_max_age", "innodb_redo_log_capacity_resized"];

/// Files whose times are reported, by the ends of their events' names.
const FILES: &[&str] = &["innodb/innodb_data_file", "innodb/innodb_log_file", "sql/binlog"];

const METRICS: &[&str] = &["lock_deadlocks", "lock_timeouts", "trx_rseg_history_len"];

/// Those for which a first reading has values.
pub(super) fn known(table: &Table) -> Counters {
    Counters::present_in(COUNTERS, table)
}

/// Reads them all.
pub(super) fn read(session: &mut dyn Session, server: &Server) -> Result<Table> {
    let mut table = Table::new();
    let rows = session.query(&status())?;
    for row in 0..rows.len() {
        // Words among them are not asked for.
        if let Ok(value) = rows.text(row, 1)?.parse() {
            table.insert(rows.text(row, 0)?.to_lowercase(), value);
        }
    }
    if server.transactions {
        let rows = session.query(&metrics(server))?;
        for row in 0..rows.len() {
            table.insert(format!("innodb.{}", rows.text(row, 0)?), rows.float(row, 1)?);
        }
    }
    if server.performance_schema {
        for file in files::by_event(session, FILES)? {
            let name = file.name.rsplit('/').next().unwrap_or(&file.name);
            for (what, value) in [
                ("read_ms", file.reads.ms),
                ("write_bytes", file.writes.bytes),
                ("write_ms", file.writes.ms),
                ("misc", file.syncs.count),
                ("misc_ms", file.syncs.ms),
            ] {
                table.extend(value.map(|value| (format!("file.{name}.{what}"), value)));
            }
        }
    }
    derive(&mut table, server);
    Ok(table)
}

/// What is made of several values.
fn derive(table: &mut Table, server: &Server) {
    let limit = limit(table, server);
    let mysql = table.get("innodb_redo_log_current_lsn").zip(table.get("innodb_redo_log_checkpoint_lsn"));
    let age = table.get("innodb_checkpoint_age").copied().or(mysql.map(|(now, then)| now - then));
    if let (Some(age), Some(limit)) = (age, limit) {
        table.insert(AGE_SHARE.into(), age / limit);
    }
    if server.mariadb
        && !table.contains_key("innodb_os_log_fsyncs")
        && let Some(writes) = table.get("innodb_log_writes").copied()
    {
        table.insert(SYNCED_WRITES.into(), writes);
    }
}

/// Bytes of redo log since the last checkpoint from which on pages are written as fast as can be.
pub(super) fn limit(table: &Table, server: &Server) -> Option<f64> {
    let capacity =
        if server.mariadb { "innodb_checkpoint_max_age" } else { "innodb_redo_log_capacity_resized" };
    flushing::limit(server.mariadb, table.get(capacity).copied())
}

/// Leaves out the counters that mean something else with these settings.
pub(super) fn settle(counters: &mut Counters, flushes_each_commit: bool) {
    counters.counters.retain(|counter| flushes_each_commit || counter.plus != [SYNCED_WRITES]);
}

fn status() -> String {
    let made = [SYNCED_WRITES, AGE_SHARE];
    let of = |counter: &Counter| counter.plus.iter().chain(counter.minus).copied();
    let names = COUNTERS.iter().flat_map(of).chain(ALSO.iter().copied());
    let names: std::collections::BTreeSet<&str> =
        names.filter(|name| !name.contains('.') && !made.contains(name)).collect();
    format!("SHOW GLOBAL STATUS WHERE Variable_name IN ({})", quoted(names))
}

fn metrics(server: &Server) -> String {
    let enabled = if server.mariadb { "ENABLED = 1" } else { "STATUS = 'enabled'" };
    format!(
        "SELECT NAME, COUNT + 0e0 FROM information_schema.INNODB_METRICS WHERE {enabled} AND NAME IN ({})",
        quoted(METRICS.iter().copied())
    )
}

fn quoted<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ")
}

/// What [`super::relations`] has of `performance_schema`.
pub(super) const USES: &str = "uses of indexes, rows written by table";

/// What cannot be seen of the counters.
pub(super) fn absent(counters: &Counters, server: &Server) -> Vec<(&'static str, String)> {
    let has = |name: &str| counters.counters.iter().any(|counter| counter.name == name);
    let mut absent = Vec::new();
    if !server.performance_schema {
        let why = if server.mariadb {
            "performance_schema is off (MariaDB's default); start the server with performance_schema=ON"
        } else {
            "performance_schema is off, or the account cannot read it"
        };
        absent.push(("times of reads, writes and syncs of files, statements by text", why.to_owned()));
        absent.push((USES, why.to_owned()));
    }
    if !has(metric::CHECKPOINT_AGE) {
        let since = sql::REDO_STATUS;
        let why = format!(
            "MySQL reports redo log positions since {}.{}.{}",
            since / 10_000,
            since / 100 % 100,
            since % 100
        );
        absent.push(("age of the checkpoint, whether the redo log was full", why));
    }
    if !has(metric::LOG_SYNCS[1]) {
        absent.push(("syncs of the redo log", "the server does not count them separately".into()));
    }
    absent
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(values: &[(&str, f64)]) -> Table {
        values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
    }

    #[test]
    fn a_counter_is_there_when_the_server_has_all_of_it_and_once() {
        let counters = known(&table(&[
            ("innodb_lsn_current", 1.0),
            ("innodb_os_log_written", 1.0),
            ("innodb_buffer_pool_read_requests", 10.0),
        ]));
        let names: Vec<_> = counters.counters.iter().map(|counter| counter.name).collect();
        assert_eq!(names, ["mysql.redo.bytes"]);
        assert_eq!(counters.counters[0].plus, ["innodb_lsn_current"]);
    }

    #[test]
    fn rates_and_gauges_and_what_steps_back() {
        let before = table(&[
            ("innodb_buffer_pool_read_requests", 1000.0),
            ("innodb_buffer_pool_reads", 100.0),
            ("threads_connected", 3.0),
            ("com_commit", 50.0),
        ]);
        let after = table(&[
            ("innodb_buffer_pool_read_requests", 3000.0),
            ("innodb_buffer_pool_reads", 300.0),
            ("threads_connected", 7.0),
            ("com_commit", 40.0),
        ]);
        let counters = known(&before);
        let values = counters.values(&before, &after, 2.0);
        let of = |name: &str| values[counters.counters.iter().position(|c| c.name == name).unwrap()];
        assert_eq!((of("mysql.buffer.hits"), of("mysql.buffer.reads")), (900.0, 100.0));
        assert_eq!(of("mysql.connections"), 7.0);
        assert!(of("mysql.transactions.commit").is_nan());
        assert!(counters.values(&before, &Table::new(), 1.0).iter().all(|value| value.is_nan()));
    }

    #[test]
    fn the_age_is_a_share_of_what_the_product_says() {
        let mut maria = table(&[
            ("innodb_checkpoint_age", 35.0),
            ("innodb_checkpoint_max_age", 80.0),
            ("innodb_log_writes", 5.0),
        ]);
        derive(&mut maria, &Server::staged(true, 80_031));
        assert_eq!((maria[AGE_SHARE], maria[SYNCED_WRITES]), (0.5, 5.0));
        let mut mysql = table(&[
            ("innodb_redo_log_current_lsn", 173.0),
            ("innodb_redo_log_checkpoint_lsn", 100.0),
            ("innodb_redo_log_capacity_resized", 100.0),
            ("innodb_os_log_fsyncs", 1.0),
            ("innodb_log_writes", 5.0),
        ]);
        derive(&mut mysql, &Server::staged(false, 80_031));
        assert_eq!(mysql[AGE_SHARE], 1.0);
        assert!(!mysql.contains_key(SYNCED_WRITES));
        let mut lazy = known(&maria);
        settle(&mut lazy, false);
        assert!(lazy.counters.iter().all(|counter| counter.name != metric::LOG_SYNCS[1]));
    }

    #[test]
    fn names_are_each_asked_for_once() {
        let sql = status();
        assert!(
            sql.contains("'innodb_checkpoint_max_age'") && !sql.contains("file.") && !sql.contains("share")
        );
        assert_eq!(sql.matches("'innodb_buffer_pool_reads'").count(), 1);
    }
}

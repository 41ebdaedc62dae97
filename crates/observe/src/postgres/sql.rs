//! What is asked, by the server's version: the one place that knows how the views differ (13 to 18).
//!
//! Every text bears the mark that distinguishes our statements from the load's in `pg_stat_statements`. Commands such as BEGIN
//! and SET are not used: since 16 one with our mark and one of the load's are the same statement to it.

use kelvin_database::postgres::MARK;

use super::APPLICATION_NAME;
use crate::server::figures::LONGEST_TEXT;

pub(super) const V14: i64 = 140_000;
pub(super) const V16: i64 = 160_000;
pub(super) const V17: i64 = 170_000;
pub(super) const V18: i64 = 180_000;

/// Version, rights, and which life of the server it is.
pub(super) const WHO: &str = "SELECT /* kelvin observer */ current_setting('server_version_num')::int8, \
     pg_has_role(current_user, 'pg_read_all_stats', 'USAGE'), \
     pg_has_role(current_user, 'pg_read_all_settings', 'USAGE'), \
     extract(epoch FROM pg_postmaster_start_time())::float8, \
     (SELECT min(pid)::int8 FROM pg_stat_get_activity(NULL::int4) WHERE backend_type = 'checkpointer')";

/// Sessions that do something: pid, kind of process, state, class and event of the wait, query, text and start of what
/// an autovacuum worker does, name of a client's application. The view's joins are left out by the planner where nothing of theirs is asked for; measured
/// (15, 16 users) it is no dearer than the function below it: 0.10 against 0.13 ms a look.
/// With `texts`, the clients' statements come with it, cut after so many characters.
pub(super) fn sessions(version: i64, texts: bool) -> String {
    let query = if version >= V14 { "query_id" } else { "NULL::int8" };
    let text = if texts {
        format!("CASE WHEN backend_type = 'client backend' THEN left(query, {LONGEST_TEXT}) END")
    } else {
        "NULL::text".into()
    };
    format!(
        "SELECT {MARK} pid, backend_type, state, wait_event_type, wait_event, {query}, \
         CASE WHEN backend_type = 'autovacuum worker' THEN query END, \
         CASE WHEN backend_type = 'autovacuum worker' THEN extract(epoch FROM query_start)::float8 END, \
         CASE WHEN backend_type = 'client backend' THEN application_name END, {text} \
         FROM pg_stat_activity WHERE backend_type IS NOT NULL AND application_name <> '{APPLICATION_NAME}' \
         AND state IS DISTINCT FROM 'idle' AND state IS DISTINCT FROM 'disabled' \
         AND wait_event_type IS DISTINCT FROM 'Activity'"
    )
}

/// How many sessions wait for rows of which relation: those that say so, and those that the lock table has in its queues. (A
/// session that has got its lock and not yet a processor is in no queue any more.) A session waits for the transaction that holds the row, or behind
/// another one that does. The relation is that of its own tuple lock, which most hold or wait for; who has followed the
/// row to a newer version holds none, and is placed by its statement's text, by the only table that its transaction has
/// written to, or by others who wait for the same transaction.
pub(super) fn row_waiters() -> String {
    format!(
        "WITH {MARK} held AS MATERIALIZED (SELECT locktype, database, relation, transactionid::text AS xact, pid, mode, granted \
          FROM pg_lock_status()), \
         waiting AS (SELECT pid, max(xact) AS xact, max(query) AS query FROM ( \
          SELECT pid, NULL AS xact, CASE WHEN datid = {HERE} THEN query END AS query FROM pg_stat_activity \
           WHERE wait_event_type = 'Lock' AND wait_event IN ('transactionid', 'tuple') \
          UNION ALL SELECT pid, xact, NULL FROM held WHERE NOT granted AND locktype IN ('transactionid', 'tuple')) AS any_of \
          GROUP BY pid), \
         placed AS (SELECT pid, xact, coalesce( \
          (SELECT min(relation) FROM held WHERE held.pid = waiting.pid AND locktype = 'tuple' AND database = {HERE}), \
          (SELECT min(found.oid) FROM pg_class AS found JOIN pg_namespace AS home ON home.oid = relnamespace, \
           regexp_match(query, '^\\s*(?:update|delete\\s+from|insert\\s+into)\\s+(?:only\\s+)?(?:(\\w+)\\.)?(\\w+)', 'i') AS named \
           WHERE relname = lower(named[2]) AND relkind IN ('r', 'p') \
           AND CASE WHEN named[1] IS NULL THEN pg_table_is_visible(found.oid) ELSE nspname = lower(named[1]) END), \
          (SELECT CASE WHEN count(DISTINCT relation) = 1 THEN min(relation) END FROM held JOIN pg_class ON pg_class.oid = relation \
           WHERE held.pid = waiting.pid AND locktype = 'relation' AND database = {HERE} AND relkind = 'r' \
           AND mode IN ('RowExclusiveLock', 'RowShareLock'))) AS relation FROM waiting), \
         named AS (SELECT coalesce(relation, (SELECT CASE WHEN count(DISTINCT other.relation) = 1 THEN min(other.relation) END \
          FROM placed AS other WHERE other.xact = placed.xact)) AS relation FROM placed) \
         SELECT coalesce(nspname || '.' || relname, 'unknown relation'), count(*) FROM named \
         LEFT JOIN pg_class ON pg_class.oid = named.relation LEFT JOIN pg_namespace ON pg_namespace.oid = relnamespace \
         GROUP BY 1"
    )
}

/// Who holds the locks that sessions wait for and waits for none, the three for whom most wait, whether at once or behind another one
/// who waits for them: process, application, age of the transaction in milliseconds, what it does itself, who waits and how many; what is held, the
/// statement, and of the one that has waited longest the milliseconds (since 14) and the statement. Asked only where somebody waits. Rows
/// are taken from the lock table as [`row_waiters`] takes them: `pg_blocking_pids` would lock it anew for each who waits, and is asked
/// only of sixteen who wait for another lock (a table, an advisory lock, a file's extension), where the modes decide.
pub(super) fn blockers(version: i64) -> String {
    let since = if version >= V14 { "waitstart" } else { "NULL::timestamptz" };
    let row = "('transactionid', 'tuple')";
    format!(
        "WITH {MARK} RECURSIVE held AS MATERIALIZED (SELECT locktype, database, relation, page, tuple, transactionid::text AS xact, \
          pid, mode, granted, {since} AS since FROM pg_lock_status()), \
         queued AS MATERIALIZED (SELECT * FROM held WHERE NOT granted), \
         pairs AS MATERIALIZED (\
          SELECT holder.pid AS holder, queued.pid AS waiter FROM queued JOIN held AS holder ON holder.xact = queued.xact \
           WHERE queued.locktype = 'transactionid' AND holder.locktype = 'transactionid' AND holder.granted \
          UNION SELECT holder.pid, queued.pid FROM queued JOIN held AS holder ON holder.database = queued.database \
           AND holder.relation = queued.relation AND holder.page = queued.page AND holder.tuple = queued.tuple \
           WHERE queued.locktype = 'tuple' AND holder.locktype = 'tuple' AND holder.granted \
          UNION SELECT unnest(pg_blocking_pids(other.pid)), other.pid FROM \
           (SELECT pid FROM queued WHERE locktype NOT IN {row} ORDER BY pid LIMIT 16) AS other), \
         reach AS (SELECT holder, waiter FROM pairs \
          UNION SELECT reach.holder, pairs.waiter FROM reach JOIN pairs ON pairs.holder = reach.waiter), \
         blocking AS (SELECT holder AS pid, string_agg(waiter::text, ' ' ORDER BY waiter) AS waiting, count(*) AS many FROM reach \
          WHERE holder <> waiter AND holder NOT IN (SELECT waiter FROM pairs) GROUP BY 1 ORDER BY 3 DESC, 1 LIMIT 3), \
         longest AS (SELECT DISTINCT ON (pairs.holder) pairs.holder, queued.pid, queued.since, locktype, mode, \
          coalesce(queued.relation, (SELECT min(own.relation::int8)::oid FROM held AS own \
           WHERE own.pid = queued.pid AND own.locktype = 'tuple')) AS relation \
          FROM pairs JOIN queued ON queued.pid = pairs.waiter WHERE pairs.holder IN (SELECT pid FROM blocking) \
          ORDER BY pairs.holder, queued.since, queued.pid) \
         SELECT blocking.pid::int8, coalesce(a.application_name, ''), \
          (extract(epoch FROM clock_timestamp() - a.xact_start) * 1000)::float8, \
          CASE WHEN a.state LIKE 'idle in transaction%' THEN 'Idle in transaction' \
           WHEN a.wait_event_type IS NOT NULL THEN a.wait_event_type || ' ' || a.wait_event \
           WHEN a.state = 'active' THEN 'CPU' ELSE '' END, waiting, many::int8, \
          CASE WHEN locktype IN {row} THEN 'row' WHEN locktype = 'relation' THEN 'table' WHEN locktype = 'extend' THEN 'extension' \
           WHEN locktype = 'advisory' THEN 'advisory lock' ELSE locktype END \
           || coalesce((SELECT CASE WHEN locktype = 'relation' THEN ' ' ELSE ' of ' END || nspname || '.' || relname FROM pg_class AS c \
            JOIN pg_namespace AS n ON n.oid = relnamespace WHERE c.oid = longest.relation), '') \
           || CASE WHEN locktype = 'relation' THEN ' (for ' || mode || ')' ELSE '' END, \
          left(a.query, {LONGEST_TEXT}), (extract(epoch FROM clock_timestamp() - longest.since) * 1000)::float8, \
          left(w.query, {LONGEST_TEXT}) \
         FROM blocking LEFT JOIN longest ON longest.holder = blocking.pid LEFT JOIN pg_stat_activity AS a ON a.pid = blocking.pid \
         LEFT JOIN pg_stat_activity AS w ON w.pid = longest.pid ORDER BY many DESC, 1"
    )
}

/// Sessions that wait for a heavyweight lock, each with every session that it waits for: process, application, kind of the lock,
/// relation, waiting since when in milliseconds (since 14; before, how long its statement takes), statement; process, application,
/// state and wait, age of the transaction, and statement of the other. `pg_blocking_pids` locks the lock table for each who waits:
/// this is asked once a second by who looks at a server, not beside a load.
pub(super) fn blocked(version: i64) -> String {
    let since = if version >= V14 { "coalesce(asked.waitstart, w.query_start)" } else { "w.query_start" };
    let ago = |since: &str| format!("(extract(epoch FROM clock_timestamp() - {since}) * 1000)::float8");
    format!(
        "SELECT {MARK} w.pid::int8, coalesce(w.application_name, ''), w.wait_event, \
         coalesce((SELECT nspname || '.' || relname FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace \
          WHERE c.oid = coalesce(asked.relation, held.relation)), ''), {}, left(w.query, {LONGEST_TEXT}), \
         other.pid::int8, coalesce(b.application_name, ''), \
         CASE WHEN b.state LIKE 'idle in transaction%' THEN 'idle in transaction' \
          WHEN b.wait_event_type IS NOT NULL THEN b.wait_event_type || ' ' || b.wait_event \
          WHEN b.state = 'active' THEN 'CPU' ELSE coalesce(b.state, '') END, {}, left(b.query, {LONGEST_TEXT}) \
         FROM pg_stat_activity w CROSS JOIN LATERAL (SELECT DISTINCT unnest(pg_blocking_pids(w.pid)) AS pid) AS other \
         LEFT JOIN pg_stat_activity b ON b.pid = other.pid \
         LEFT JOIN LATERAL (SELECT * FROM pg_locks WHERE pg_locks.pid = w.pid AND NOT granted LIMIT 1) AS asked ON true \
         LEFT JOIN LATERAL (SELECT relation FROM pg_locks WHERE pg_locks.pid = w.pid AND locktype = 'tuple' AND database = {HERE} \
          LIMIT 1) AS held ON true \
         WHERE w.wait_event_type = 'Lock' ORDER BY 1, 7 LIMIT 1000",
        ago(since),
        ago("b.xact_start")
    )
}

/// Files by class: name; reads, their bytes and milliseconds; writes with extends, likewise; syncs and their milliseconds. What is not
/// counted, or not timed by the settings, is NULL. Until 15 only each database's reads are counted, since 16 `pg_stat_io` has kinds of
/// process, object and use, since 18 with the log.
pub(super) fn files(version: i64) -> String {
    let io_time =
        |column: &str| format!("CASE WHEN current_setting('track_io_timing')::bool THEN {column} END");
    let wal_time =
        |column: &str| format!("CASE WHEN current_setting('track_wal_io_timing')::bool THEN {column} END");
    let mut parts = Vec::new();
    if version >= V16 {
        let bytes = |column: &str| match column {
            _ if version < V18 => format!("{column}s * op_bytes"),
            _ => format!("{column}_bytes"),
        };
        let time = |column: &str| {
            if version < V18 {
                io_time(column)
            } else {
                format!("CASE WHEN object = 'wal' THEN {} ELSE {} END", wal_time(column), io_time(column))
            }
        };
        parts.push(format!(
            "SELECT object || ', ' || context || ', ' || backend_type, reads::float8, ({})::float8, {}, \
             (coalesce(writes, 0) + coalesce(extends, 0))::float8, (coalesce({}, 0) + coalesce({}, 0))::float8, {}, \
             fsyncs::float8, {} FROM pg_stat_io \
             WHERE coalesce(reads, 0) + coalesce(writes, 0) + coalesce(extends, 0) + coalesce(fsyncs, 0) > 0",
            bytes("read"),
            time("read_time"),
            bytes("write"),
            bytes("extend"),
            time("coalesce(write_time, 0) + coalesce(extend_time, 0)"),
            time("fsync_time")
        ));
    } else {
        parts.push(format!(
            "SELECT 'relation, database ' || datname, blks_read::float8, blks_read * current_setting('block_size')::float8, {}, \
             NULL::float8, NULL::float8, NULL::float8, NULL::float8, NULL::float8 FROM pg_stat_database \
             WHERE datname IS NOT NULL AND blks_read > 0",
            io_time("blk_read_time")
        ));
    }
    if (V14..V18).contains(&version) {
        parts.push(format!(
            "SELECT 'wal', NULL, NULL, NULL, wal_write::float8, NULL, {}, wal_sync::float8, {} FROM pg_stat_wal",
            wal_time("wal_write_time"),
            wal_time("wal_sync_time")
        ));
    }
    let all = parts.join(" UNION ALL ");
    format!("SELECT {MARK} * FROM ({all}) AS files")
}

/// Who keeps row versions, of each kind the oldest: kind, identity, name, more of it, seconds (NULL where the server does not know), and how
/// many transactions have begun since. Of clients' sessions and prepared transactions those that have lasted five seconds; the load's own are as
/// short as the load's transactions. A snapshot keeps versions of its own database only; a transaction that has written is in every
/// database's snapshots. A slot's `xmin` is held for standbys; the `catalog_xmin` of one that is read advances by itself.
pub(super) fn horizon() -> String {
    let here = "datname = current_database()";
    let slot = |kind: &str, column: &str, which: &str| {
        format!(
            "SELECT '{kind}', {column}::text, slot_name::text, slot_type || CASE WHEN active THEN ', active' ELSE ', inactive' END, \
             NULL::float8, age({column})::float8 AS behind FROM pg_get_replication_slots() \
             WHERE {column} IS NOT NULL {which} ORDER BY behind DESC, 3 LIMIT 1"
        )
    };
    format!(
        "SELECT {MARK} * FROM ((SELECT 'session', pid::text, coalesce(application_name, ''), coalesce(state, ''), \
         extract(epoch FROM clock_timestamp() - xact_start)::float8, \
         greatest(CASE WHEN {here} THEN coalesce(age(backend_xmin), 0) ELSE 0 END, coalesce(age(backend_xid), 0))::float8 AS behind \
         FROM pg_stat_activity WHERE backend_type = 'client backend' AND application_name <> '{APPLICATION_NAME}' \
         AND (backend_xmin IS NOT NULL AND {here} OR backend_xid IS NOT NULL) AND xact_start < clock_timestamp() - interval '5 s' \
         ORDER BY behind DESC, xact_start, pid LIMIT 1) UNION ALL \
         (SELECT 'prepared', transaction::text, gid, 'database ' || coalesce((SELECT datname FROM pg_database WHERE oid = dbid), ''), \
         extract(epoch FROM clock_timestamp() - prepared)::float8, age(transaction)::float8 AS behind \
         FROM pg_prepared_xact() WHERE prepared < clock_timestamp() - interval '5 s' ORDER BY behind DESC, gid LIMIT 1) UNION ALL \
         ({}) UNION ALL ({})) AS holders",
        slot("slot", "xmin", ""),
        slot("catalogs", "catalog_xmin", "AND NOT active")
    )
}

const HERE: &str = "(SELECT oid FROM pg_database WHERE datname = current_database())";

/// The server's time, the last checkpoint by the control file (its place in the log, and when it began) and the
/// checkpointer's counters: timed, requested, buffers, write and sync time in milliseconds.
pub(super) fn checkpoints(version: i64) -> String {
    let (columns, view) = if version >= V17 {
        ("num_timed, num_requested, buffers_written, write_time, sync_time", "pg_stat_checkpointer")
    } else {
        (
            "checkpoints_timed, checkpoints_req, buffers_checkpoint, checkpoint_write_time, checkpoint_sync_time",
            "pg_stat_bgwriter",
        )
    };
    format!(
        "SELECT {MARK} extract(epoch FROM clock_timestamp())::float8, \
         pg_wal_lsn_diff(checkpoint_lsn, '0/0')::int8, extract(epoch FROM checkpoint_time)::float8, {columns} \
         FROM pg_control_checkpoint(), {view}"
    )
}

/// How often and when autovacuum was done with each table: name, vacuums, analyzes, seconds since 1970 of the last each.
pub(super) fn vacuums() -> String {
    format!(
        "SELECT {MARK} schemaname || '.' || relname, autovacuum_count, autoanalyze_count, \
         extract(epoch FROM last_autovacuum)::float8, extract(epoch FROM last_autoanalyze)::float8 \
         FROM pg_stat_user_tables WHERE autovacuum_count + autoanalyze_count > 0"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_version_does_not_have_is_not_asked_of_it() {
        assert!(!sessions(130_000, true).contains("query_id") && sessions(V14, true).contains("query_id"));
        assert!(
            checkpoints(V16).contains("pg_stat_bgwriter")
                && !checkpoints(V16).contains("pg_stat_checkpointer")
        );
        assert!(checkpoints(V17).contains("num_requested") && !checkpoints(V17).contains("pg_stat_bgwriter"));
        assert!(files(V16).contains("op_bytes") && files(V16).contains("pg_stat_wal"));
        assert!(!files(V18).contains("op_bytes") && !files(V18).contains("pg_stat_wal"));
        assert!(!files(130_000).contains("pg_stat_io") && !files(130_000).contains("pg_stat_wal"));
        assert!(!blocked(130_000).contains("waitstart") && !blockers(130_000).contains("waitstart"));
    }

    #[test]
    fn every_statement_bears_the_mark() {
        for text in [
            WHO.to_owned(),
            sessions(V14, false),
            row_waiters(),
            blockers(V14),
            horizon(),
            checkpoints(V17),
            vacuums(),
            blocked(V14),
            files(V18),
        ] {
            assert_eq!(text.split_once(' ').unwrap().1.find(MARK), Some(0), "{text}");
        }
    }
}

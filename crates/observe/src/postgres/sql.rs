//! What is asked, by the server's version: the one place that knows how the views differ (13 to 18).
//!
//! Every text begins with a comment that distinguishes our statements from the load's in `pg_stat_statements`.

use super::APPLICATION_NAME;

/// Begins every statement of the observers.
pub(super) const MARK: &str = "/* kelvin observer */";

pub(super) const V14: i64 = 140_000;
pub(super) const V16: i64 = 160_000;
pub(super) const V17: i64 = 170_000;
pub(super) const V18: i64 = 180_000;

/// Version, rights, and which life of the server it is.
pub(super) const WHO: &str = "/* kelvin observer */ SELECT current_setting('server_version_num')::int8, \
     pg_has_role(current_user, 'pg_read_all_stats', 'USAGE'), \
     pg_has_role(current_user, 'pg_read_all_settings', 'USAGE'), \
     extract(epoch FROM pg_postmaster_start_time())::float8, \
     (SELECT min(pid)::int8 FROM pg_stat_get_activity(NULL::int4) WHERE backend_type = 'checkpointer')";

/// Sessions that do something: pid, kind of process, state, class and event of the wait, query, text and start of what
/// an autovacuum worker does, name of a client's application. The view's joins are left out by the planner where nothing of theirs is asked for; measured
/// (15, 16 users) it is no dearer than the function below it: 0.10 against 0.13 ms a look.
pub(super) fn sessions(version: i64) -> String {
    let query = if version >= V14 { "query_id" } else { "NULL::int8" };
    format!(
        "{MARK} SELECT pid, backend_type, state, wait_event_type, wait_event, {query}, \
         CASE WHEN backend_type = 'autovacuum worker' THEN query END, \
         CASE WHEN backend_type = 'autovacuum worker' THEN extract(epoch FROM query_start)::float8 END, \
         CASE WHEN backend_type = 'client backend' THEN application_name END \
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
        "{MARK} WITH held AS MATERIALIZED (SELECT locktype, database, relation, transactionid::text AS xact, pid, mode, granted \
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

/// Who holds the transactions that sessions wait for, the three for whom most wait: process, application, age of the
/// transaction in milliseconds, what it does itself, and those who wait. Asked only where somebody waits, of the lock table as
/// [`row_waiters`] asks it: `pg_blocking_pids` would lock it anew for each who waits.
pub(super) fn blockers() -> String {
    format!(
        "{MARK} WITH held AS MATERIALIZED (SELECT transactionid::text AS xact, pid, granted FROM pg_lock_status() \
          WHERE locktype = 'transactionid'), \
         blocking AS (SELECT holder.pid, string_agg(DISTINCT waiter.pid::text, ' ') AS waiting, \
          count(DISTINCT waiter.pid) AS many FROM held AS waiter JOIN held AS holder ON holder.xact = waiter.xact \
          AND holder.granted AND NOT waiter.granted AND holder.pid <> waiter.pid GROUP BY 1 ORDER BY 3 DESC, 1 LIMIT 3) \
         SELECT blocking.pid::int8, coalesce(application_name, ''), \
          (extract(epoch FROM clock_timestamp() - xact_start) * 1000)::float8, \
          CASE WHEN state LIKE 'idle in transaction%' THEN 'Idle in transaction' \
           WHEN wait_event_type IS NOT NULL THEN wait_event_type || ' ' || wait_event \
           WHEN state = 'active' THEN 'CPU' ELSE '' END, waiting \
         FROM blocking LEFT JOIN pg_stat_activity AS a ON a.pid = blocking.pid ORDER BY many DESC, 1"
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
        "{MARK} SELECT extract(epoch FROM clock_timestamp())::float8, \
         pg_wal_lsn_diff(checkpoint_lsn, '0/0')::int8, extract(epoch FROM checkpoint_time)::float8, {columns} \
         FROM pg_control_checkpoint(), {view}"
    )
}

/// How often and when autovacuum was done with each table: name, vacuums, analyzes, seconds since 1970 of the last each.
pub(super) fn vacuums() -> String {
    format!(
        "{MARK} SELECT schemaname || '.' || relname, autovacuum_count, autoanalyze_count, \
         extract(epoch FROM last_autovacuum)::float8, extract(epoch FROM last_autoanalyze)::float8 \
         FROM pg_stat_user_tables WHERE autovacuum_count + autoanalyze_count > 0"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_version_does_not_have_is_not_asked_of_it() {
        assert!(!sessions(130_000).contains("query_id") && sessions(V14).contains("query_id"));
        assert!(
            checkpoints(V16).contains("pg_stat_bgwriter")
                && !checkpoints(V16).contains("pg_stat_checkpointer")
        );
        assert!(checkpoints(V17).contains("num_requested") && !checkpoints(V17).contains("pg_stat_bgwriter"));
    }

    #[test]
    fn every_statement_bears_the_mark() {
        for text in [WHO.to_owned(), sessions(V14), row_waiters(), blockers(), checkpoints(V17), vacuums()] {
            assert!(text.starts_with(MARK), "{text}");
        }
    }
}

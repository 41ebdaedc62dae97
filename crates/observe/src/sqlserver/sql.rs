//! What is asked. Each statement begins with a comment that names it: by this name a server's administrator knows them, what is
//! counted by statement leaves them out, and recorded answers are found.
//!
//! Views and columns are those that Microsoft's reference describes; none was tried on a SQL Server by us.

use super::link::Server;

/// What the text of each of our statements begins with.
pub(super) const MARK: &str = "/* kelvin ";

/// Number, version, edition, whether it is Babelfish, our program, database, whether we may see the server's state, whether Query
/// Store is on. A permission that a version does not know is NULL.
pub(super) const SERVER: &str = "/* kelvin server */ SELECT CAST(@@SPID AS int), \
     CAST(SERVERPROPERTY('ProductVersion') AS nvarchar(60)), \
     CAST(SERVERPROPERTY('EngineEdition') AS int), COALESCE(CAST(SERVERPROPERTY('babelfish') AS int), 0), \
     APP_NAME(), CAST(DB_ID() AS int), \
     CASE WHEN HAS_PERMS_BY_NAME(NULL, NULL, 'VIEW SERVER STATE') = 1 \
     OR HAS_PERMS_BY_NAME(NULL, NULL, 'VIEW SERVER PERFORMANCE STATE') = 1 \
     OR CAST(SERVERPROPERTY('EngineEdition') AS int) = 5 AND HAS_PERMS_BY_NAME(DB_NAME(), 'DATABASE', 'VIEW DATABASE STATE') = 1 \
     THEN 1 ELSE 0 END, \
     (SELECT CAST(is_query_store_on AS int) FROM sys.databases WHERE database_id = DB_ID())";

pub(super) const STARTED: &str =
    "/* kelvin started */ SELECT CONVERT(nvarchar(30), sqlserver_start_time, 126) FROM sys.dm_os_sys_info";

pub(super) const PAGE_INFO: &str = "dm_db_page_info";
pub(super) const VERSION_HOLDERS: &str = "dm_tran_active_snapshot_database_transactions";
pub(super) const LATCH_STATS: &str = "dm_os_latch_stats";
pub(super) const SPINLOCK_STATS: &str = "dm_os_spinlock_stats";
/// A column, which is asked for as if it were a view: since 2016 SP2 and 2017 CU3.
pub(super) const SPILLS: &str = "dm_exec_query_stats.total_spills";

/// The views that are read.
pub(super) const VIEWS: &[&str] = &[
    "dm_db_index_usage_stats",
    PAGE_INFO,
    "dm_db_wait_stats",
    "dm_exec_procedure_stats",
    "dm_exec_query_stats",
    "dm_exec_session_wait_stats",
    "dm_io_virtual_file_stats",
    LATCH_STATS,
    "dm_os_performance_counters",
    "dm_os_schedulers",
    SPINLOCK_STATS,
    "dm_os_sys_info",
    "dm_os_tasks",
    "dm_os_wait_stats",
    "dm_os_waiting_tasks",
    VERSION_HOLDERS,
    "dm_tran_active_transactions",
    "query_store_runtime_stats",
];

pub(super) fn views() -> String {
    let names: Vec<String> = VIEWS.iter().map(|view| format!("'{view}'")).collect();
    format!(
        "/* kelvin views */ SELECT name FROM sys.all_objects WHERE schema_id = SCHEMA_ID('sys') AND name IN ({}) \
         UNION ALL SELECT '{SPILLS}' FROM sys.all_columns \
         WHERE object_id = OBJECT_ID('sys.dm_exec_query_stats') AND name = 'total_spills'",
        names.join(", ")
    )
}

/// Tasks of sessions, and sessions that hold a transaction open without one: session, program, login, whether it is a user's, thread
/// within a parallel statement, state, wait, what it waits for, whom, milliseconds, command, statement; with `texts` its text.
/// A task that waits for several others has several rows.
pub(super) fn sessions(observers: &str, texts: bool) -> String {
    let (text, join) = if texts {
        (format!(", {}", statement_text("x", "r")), "OUTER APPLY sys.dm_exec_sql_text(r.sql_handle) AS x ")
    } else {
        (String::new(), "")
    };
    format!(
        "/* kelvin sessions */ SELECT CAST(s.session_id AS int), s.program_name, s.login_name, \
         CAST(s.is_user_process AS int), CAST(t.exec_context_id AS int), t.task_state, w.wait_type, \
         w.resource_description, CAST(w.blocking_session_id AS int), CAST(w.wait_duration_ms AS bigint), r.command, \
         CAST(r.query_hash AS bigint){text} \
         FROM sys.dm_exec_sessions AS s \
         LEFT JOIN sys.dm_os_tasks AS t ON t.session_id = s.session_id \
         LEFT JOIN sys.dm_os_waiting_tasks AS w ON w.waiting_task_address = t.task_address \
         LEFT JOIN sys.dm_exec_requests AS r ON r.session_id = t.session_id AND r.request_id = t.request_id \
         {join}WHERE s.session_id NOT IN ({observers}) \
         AND (t.session_id IS NOT NULL OR s.open_transaction_count > 0)"
    )
}

/// The statement that a request or a cached plan is in, out of its batch or procedure.
fn statement_text(text: &str, of: &str) -> String {
    format!(
        "SUBSTRING({text}.text, {of}.statement_start_offset / 2 + 1, \
         (CASE WHEN {of}.statement_end_offset IN (-1, 0) THEN 8000 \
         ELSE ({of}.statement_end_offset - {of}.statement_start_offset) / 2 + 1 END))"
    )
}

/// Pages by database, file and number: the schema, table and index that they are of.
pub(super) fn pages(pages: &[(i64, i64, i64)]) -> String {
    let list: Vec<String> = pages.iter().map(|(d, f, p)| format!("({d}, {f}, {p})")).collect();
    format!(
        "/* kelvin pages */ SELECT v.d, v.f, v.p, OBJECT_SCHEMA_NAME(i.object_id, v.d), OBJECT_NAME(i.object_id, v.d), x.name \
         FROM (VALUES {}) AS v(d, f, p) CROSS APPLY sys.dm_db_page_info(v.d, v.f, v.p, 'LIMITED') AS i \
         LEFT JOIN sys.indexes AS x ON x.object_id = i.object_id AND x.index_id = i.index_id AND v.d = DB_ID()",
        list.join(", ")
    )
}

/// What the numbers in locks' descriptions are: of rows and pages that of a part of a table, of tables their own.
pub(super) const OBJECTS: &str = "/* kelvin objects */ \
     SELECT p.hobt_id, SCHEMA_NAME(t.schema_id) + '.' + t.name FROM sys.partitions AS p \
     JOIN sys.tables AS t ON t.object_id = p.object_id \
     UNION ALL SELECT CAST(t.object_id AS bigint), SCHEMA_NAME(t.schema_id) + '.' + t.name FROM sys.tables AS t";

/// What a session does: a wait, "running" or "runnable", or that its transaction waits for its client.
const DOING: &str =
    "CASE WHEN r.session_id IS NULL THEN 'idle in transaction' ELSE COALESCE(r.wait_type, r.status) END";

/// Milliseconds since its transaction began.
const AGE: &str = "(SELECT MAX(DATEDIFF_BIG(millisecond, a.transaction_begin_time, GETDATE())) \
     FROM sys.dm_tran_session_transactions AS st \
     JOIN sys.dm_tran_active_transactions AS a ON a.transaction_id = st.transaction_id \
     WHERE st.session_id = s.session_id)";

/// Sessions: program, milliseconds since the transaction began, what it does, statement.
pub(super) fn holders(sessions: &str) -> String {
    format!(
        "/* kelvin holders */ SELECT CAST(s.session_id AS int), s.program_name, {AGE}, {DOING}, {} \
         FROM sys.dm_exec_sessions AS s LEFT JOIN sys.dm_exec_requests AS r ON r.session_id = s.session_id \
         OUTER APPLY sys.dm_exec_sql_text(r.sql_handle) AS x WHERE s.session_id IN ({sessions})",
        statement_text("x", "r")
    )
}

/// Sessions that wait for a lock, with those that they wait for: session, program, what it waits for, milliseconds, statement;
/// session, program, what it does, milliseconds since its transaction began, statement (of one without a request the last).
pub(super) fn blocked() -> String {
    format!(
        "/* kelvin blocked */ SELECT CAST(w.session_id AS int), ws.program_name, w.resource_description, \
         CAST(w.wait_duration_ms AS bigint), {}, CAST(s.session_id AS int), s.program_name, {DOING}, {AGE}, \
         CASE WHEN r.session_id IS NULL THEN x.text ELSE {} END \
         FROM sys.dm_os_waiting_tasks AS w \
         JOIN sys.dm_exec_sessions AS ws ON ws.session_id = w.session_id \
         JOIN sys.dm_exec_sessions AS s ON s.session_id = w.blocking_session_id \
         LEFT JOIN sys.dm_exec_requests AS wr ON wr.session_id = w.session_id \
         LEFT JOIN sys.dm_exec_requests AS r ON r.session_id = s.session_id \
         LEFT JOIN sys.dm_exec_connections AS c ON c.session_id = s.session_id AND c.parent_connection_id IS NULL \
         OUTER APPLY sys.dm_exec_sql_text(wr.sql_handle) AS wx \
         OUTER APPLY sys.dm_exec_sql_text(COALESCE(r.sql_handle, c.most_recent_sql_handle)) AS x \
         WHERE w.wait_type LIKE 'LCK[_]M[_]%' AND w.blocking_session_id <> w.session_id",
        statement_text("wx", "wr"),
        statement_text("x", "r")
    )
}

/// Waits of the sessions that call themselves as ours do, but the observers': type, number, milliseconds, the part of them that was
/// spent waiting for a CPU afterwards.
pub(super) fn load_waits(observers: &str) -> String {
    format!(
        "/* kelvin load waits */ SELECT w.wait_type, SUM(CAST(w.waiting_tasks_count AS bigint)), \
         SUM(CAST(w.wait_time_ms AS bigint)), SUM(CAST(w.signal_wait_time_ms AS bigint)) \
         FROM sys.dm_exec_session_wait_stats AS w JOIN sys.dm_exec_sessions AS s ON s.session_id = w.session_id \
         WHERE s.program_name = APP_NAME() AND s.session_id NOT IN ({observers}) GROUP BY w.wait_type"
    )
}

/// The same of the whole server, since it started.
pub(super) fn waits(server: &Server) -> String {
    let view = if server.azure_database { "dm_db_wait_stats" } else { "dm_os_wait_stats" };
    format!(
        "/* kelvin waits */ SELECT wait_type, CAST(waiting_tasks_count AS bigint), CAST(wait_time_ms AS bigint), \
         CAST(signal_wait_time_ms AS bigint) FROM sys.{view} WHERE waiting_tasks_count > 0"
    )
}

/// Latches by class, since the server started: number of waits, milliseconds, and nothing where spinlocks have more.
pub(super) const LATCHES: &str = "/* kelvin latches */ SELECT latch_class, waiting_requests_count, wait_time_ms, \
     CAST(NULL AS bigint), CAST(NULL AS bigint) FROM sys.dm_os_latch_stats WHERE waiting_requests_count > 0";

/// Spinlocks by name: collisions, milliseconds asleep, spins, backoffs.
pub(super) const SPINLOCKS: &str = "/* kelvin spinlocks */ SELECT name, CAST(collisions AS bigint), \
     CAST(sleep_time AS bigint), CAST(spins AS bigint), CAST(backoffs AS bigint) \
     FROM sys.dm_os_spinlock_stats WHERE collisions > 0";

/// Files: database and its number, kind (0 data, 1 log), name; reads, bytes, milliseconds; writes, bytes, milliseconds.
pub(super) fn files(server: &Server) -> String {
    let (of, join) = if server.azure_database {
        ("DB_ID()", "sys.database_files AS m ON m.file_id = f.file_id")
    } else {
        ("NULL", "sys.master_files AS m ON m.database_id = f.database_id AND m.file_id = f.file_id")
    };
    format!(
        "/* kelvin files */ SELECT DB_NAME(f.database_id), CAST(f.database_id AS int), CAST(m.type AS int), m.name, \
         f.num_of_reads, f.num_of_bytes_read, f.io_stall_read_ms, \
         f.num_of_writes, f.num_of_bytes_written, f.io_stall_write_ms \
         FROM sys.dm_io_virtual_file_stats({of}, NULL) AS f JOIN {join}"
    )
}

/// Counters by name, of the server or of this database.
pub(super) fn counters(names: &str) -> String {
    format!(
        "/* kelvin counters */ SELECT RTRIM(counter_name), CAST(SUM(cntr_value) AS bigint) \
         FROM sys.dm_os_performance_counters WHERE RTRIM(counter_name) IN ({names}) \
         AND (instance_name = '' OR instance_name = DB_NAME() \
         OR instance_name = '_Total' AND object_name LIKE '%:Locks%') GROUP BY RTRIM(counter_name)"
    )
}

/// The oldest transaction of five seconds and more that holds row versions (all databases share tempdb's version store): what it is,
/// session, program, state, seconds, transactions that were given a number since.
pub(super) fn versions(observers: &str) -> String {
    format!(
        "/* kelvin versions */ SELECT TOP (1) 'versions', CAST(t.session_id AS nvarchar(20)), \
         COALESCE(NULLIF(s.program_name, N''), N'a session'), COALESCE(r.status, N'idle in transaction'), \
         CAST(t.elapsed_time_seconds AS float), CAST(c.last_transaction_sequence_num - t.transaction_sequence_num AS float) \
         FROM sys.{VERSION_HOLDERS} AS t CROSS JOIN sys.dm_tran_current_transaction AS c \
         LEFT JOIN sys.dm_exec_sessions AS s ON s.session_id = t.session_id \
         LEFT JOIN sys.dm_exec_requests AS r ON r.session_id = t.session_id \
         WHERE t.commit_sequence_num IS NULL AND t.elapsed_time_seconds >= 5 AND t.session_id NOT IN ({observers}) \
         ORDER BY t.transaction_sequence_num"
    )
}

/// By NUMA node: schedulers, tasks that wait for a CPU, workers, requests that wait for a worker, milliseconds of CPU.
pub(super) const SCHEDULERS: &str = "/* kelvin schedulers */ SELECT CAST(parent_node_id AS int), COUNT(*), \
     SUM(runnable_tasks_count), SUM(current_workers_count), SUM(CAST(work_queue_count AS bigint)), \
     SUM(CAST(total_cpu_usage_ms AS bigint)) \
     FROM sys.dm_os_schedulers WHERE status = 'VISIBLE ONLINE' GROUP BY parent_node_id ORDER BY 1";

/// By NUMA node: the load's connections.
pub(super) fn connections(observers: &str) -> String {
    format!(
        "/* kelvin connections */ SELECT CAST(c.node_affinity AS int), COUNT(*) FROM sys.dm_exec_connections AS c \
         JOIN sys.dm_exec_sessions AS s ON s.session_id = c.session_id \
         WHERE s.program_name = APP_NAME() AND s.session_id NOT IN ({observers}) GROUP BY c.node_affinity"
    )
}

/// Statements of this database but ours by their hash: executions, milliseconds, milliseconds of CPU, rows, pages read from the
/// buffers, pages read from files, pages written, pages spilled to tempdb.
pub(super) fn statements(spills: bool) -> String {
    let spilled = if spills { "SUM(q.total_spills)" } else { "CAST(NULL AS bigint)" };
    format!(
        "/* kelvin statements */ SELECT CAST(q.query_hash AS bigint), SUM(q.execution_count), \
         SUM(q.total_elapsed_time) / 1e3, SUM(q.total_worker_time) / 1e3, SUM(q.total_rows), \
         SUM(q.total_logical_reads), SUM(q.total_physical_reads), SUM(q.total_logical_writes), {spilled} \
         FROM sys.dm_exec_query_stats AS q CROSS APPLY sys.dm_exec_plan_attributes(q.plan_handle) AS a \
         OUTER APPLY sys.dm_exec_sql_text(q.sql_handle) AS x \
         WHERE a.attribute = 'dbid' AND CAST(a.value AS int) = DB_ID() AND q.query_hash <> 0x0000000000000000 \
         AND COALESCE(x.text, N'') NOT LIKE N'{MARK}%' GROUP BY q.query_hash"
    )
}

/// Procedures of this database by name: the same but the rows.
pub(super) const PROCEDURES: &str = "/* kelvin procedures */ \
     SELECT OBJECT_SCHEMA_NAME(p.object_id) + '.' + OBJECT_NAME(p.object_id), SUM(p.execution_count), \
     SUM(p.total_elapsed_time) / 1e3, SUM(p.total_worker_time) / 1e3, \
     SUM(p.total_logical_reads), SUM(p.total_physical_reads), SUM(p.total_logical_writes) \
     FROM sys.dm_exec_procedure_stats AS p WHERE p.database_id = DB_ID() AND OBJECT_NAME(p.object_id) IS NOT NULL \
     GROUP BY p.object_id";

/// When the oldest of the counted plans was made.
pub(super) const COUNTED_SINCE: &str = "/* kelvin counted since */ \
     SELECT CONVERT(nvarchar(19), MIN(creation_time), 120) FROM sys.dm_exec_query_stats";

/// The newest plan of each of these statements: hash, text, the procedure that it is in; with `plan` the plan as XML.
pub(super) fn texts(queries: &[i64], plan: bool) -> String {
    let list: Vec<String> = queries.iter().map(|query| format!("0x{query:016X}")).collect();
    let (name, column, join) = if plan {
        (
            "plan",
            ", p.query_plan",
            "OUTER APPLY sys.dm_exec_text_query_plan(q.plan_handle, q.statement_start_offset, q.statement_end_offset) AS p ",
        )
    } else {
        ("texts", "", "")
    };
    format!(
        "/* kelvin {name} */ SELECT CAST(q.query_hash AS bigint), {}, OBJECT_NAME(x.objectid, x.dbid){column} \
         FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY query_hash ORDER BY last_execution_time DESC) AS age \
         FROM sys.dm_exec_query_stats WHERE query_hash IN ({})) AS q \
         OUTER APPLY sys.dm_exec_sql_text(q.sql_handle) AS x {join}WHERE q.age = 1",
        statement_text("x", "q"),
        list.join(", ")
    )
}

/// What Query Store kept of these statements by plan: statement, plan, level of compatibility, executions, mean milliseconds, when it
/// was last executed.
pub(super) fn query_store(queries: &[i64]) -> String {
    let list: Vec<String> = queries.iter().map(|query| format!("0x{query:016X}")).collect();
    format!(
        "/* kelvin query store */ SELECT CAST(q.query_hash AS bigint), CAST(p.query_plan_hash AS bigint), \
         CAST(MAX(p.compatibility_level) AS int), SUM(r.count_executions), \
         SUM(r.avg_duration * r.count_executions) / NULLIF(SUM(r.count_executions), 0) / 1e3, \
         CONVERT(nvarchar(19), MAX(r.last_execution_time), 120) \
         FROM sys.query_store_query AS q JOIN sys.query_store_plan AS p ON p.query_id = q.query_id \
         JOIN sys.query_store_runtime_stats AS r ON r.plan_id = p.plan_id AND r.execution_type = 0 \
         WHERE q.query_hash IN ({}) GROUP BY q.query_hash, p.query_plan_hash",
        list.join(", ")
    )
}

/// Tables and indexes, the 200 largest: name, table of an index, bytes, rows, scans of all of it, lookups.
pub(super) fn relations(usage: bool) -> String {
    let (columns, join) = if usage {
        (
            "COALESCE(MAX(u.user_scans), 0), COALESCE(MAX(u.user_seeks + u.user_lookups), 0)",
            "LEFT JOIN sys.dm_db_index_usage_stats AS u ON u.database_id = DB_ID() AND u.object_id = i.object_id \
             AND u.index_id = i.index_id ",
        )
    } else {
        ("NULL, NULL", "")
    };
    format!(
        "/* kelvin relations */ SELECT TOP (200) SCHEMA_NAME(t.schema_id) + '.' + t.name, i.name, \
         CAST(i.index_id AS int), SUM(a.used_page_count) * 8192, SUM(a.row_count), {columns} \
         FROM sys.tables AS t JOIN sys.indexes AS i ON i.object_id = t.object_id \
         JOIN sys.dm_db_partition_stats AS a ON a.object_id = i.object_id AND a.index_id = i.index_id \
         {join}WHERE t.is_ms_shipped = 0 \
         GROUP BY t.schema_id, t.name, i.name, i.index_id ORDER BY 4 DESC, 1, 3"
    )
}

/// Columns of the indexes in their order: table, index and its number, whether it is a B-tree that can be dropped and made again from
/// what is read here, whether it is unique, its filter (some text too if that is
/// hidden from the login, or the index disabled or no B-tree: then it supports no foreign key), its options, its filegroup; column, its place in the key (0 for an included
/// one), whether it descends.
pub(super) const INDEXES: &str = "/* kelvin indexes */ SELECT SCHEMA_NAME(t.schema_id) + '.' + t.name, i.name, \
     CAST(i.index_id AS int), CAST(CASE WHEN i.type = 2 AND i.is_disabled = 0 AND d.type = 'FG' \
     AND t.is_memory_optimized = 0 AND (i.has_filter = 0 OR i.filter_definition IS NOT NULL) THEN 1 ELSE 0 END AS int), \
     CAST(i.is_unique AS int), \
     CASE WHEN i.has_filter = 1 OR i.is_disabled = 1 OR i.type > 2 THEN COALESCE(i.filter_definition, N'not known') END, \
     CONCAT(CASE WHEN i.fill_factor > 0 THEN CONCAT('FILLFACTOR = ', i.fill_factor, ', ') END, \
     CASE WHEN i.is_padded = 1 THEN 'PAD_INDEX = ON, ' END, \
     CASE WHEN i.allow_row_locks = 0 THEN 'ALLOW_ROW_LOCKS = OFF, ' END, \
     CASE WHEN i.allow_page_locks = 0 THEN 'ALLOW_PAGE_LOCKS = OFF, ' END, \
     CASE WHEN s.no_recompute = 1 THEN 'STATISTICS_NORECOMPUTE = ON, ' END, \
     CASE WHEN p.data_compression > 0 THEN CONCAT('DATA_COMPRESSION = ', p.data_compression_desc, ', ') END), \
     d.name, c.name, CAST(k.key_ordinal AS int), CAST(k.is_descending_key AS int) \
     FROM sys.tables AS t JOIN sys.indexes AS i ON i.object_id = t.object_id \
     JOIN sys.index_columns AS k ON k.object_id = i.object_id AND k.index_id = i.index_id \
     JOIN sys.columns AS c ON c.object_id = k.object_id AND c.column_id = k.column_id \
     LEFT JOIN sys.data_spaces AS d ON d.data_space_id = i.data_space_id \
     LEFT JOIN sys.partitions AS p ON p.object_id = i.object_id AND p.index_id = i.index_id AND p.partition_number = 1 \
     LEFT JOIN sys.stats AS s ON s.object_id = i.object_id AND s.stats_id = i.index_id \
     WHERE t.is_ms_shipped = 0 AND i.is_hypothetical = 0 \
     ORDER BY 1, i.index_id, k.is_included_column, k.key_ordinal, c.name";

/// Columns of foreign keys: table, number of the constraint, column.
pub(super) const FOREIGN_KEYS: &str = "/* kelvin foreign keys */ SELECT SCHEMA_NAME(t.schema_id) + '.' + t.name, \
     CAST(f.constraint_object_id AS int), c.name FROM sys.foreign_key_columns AS f \
     JOIN sys.tables AS t ON t.object_id = f.parent_object_id \
     JOIN sys.columns AS c ON c.object_id = f.parent_object_id AND c.column_id = f.parent_column_id ORDER BY 1, 2";

/// Rows and entries of tables and indexes that were inserted and updated: table, number of the index, both. `user_updates` of
/// `dm_db_index_usage_stats` counts statements.
pub(super) const WRITES: &str = "/* kelvin writes */ SELECT SCHEMA_NAME(t.schema_id) + '.' + t.name, \
     CAST(o.index_id AS int), SUM(o.leaf_insert_count), SUM(o.leaf_update_count) \
     FROM sys.dm_db_index_operational_stats(DB_ID(), NULL, NULL, NULL) AS o \
     JOIN sys.tables AS t ON t.object_id = o.object_id GROUP BY t.schema_id, t.name, o.index_id";

/// Statistics by table: how many were filled, changes of the one with the most since then, and the seconds since then.
pub(super) const STATISTICS: &str = "/* kelvin statistics */ SELECT r.name, r.filled, r.changed, \
     DATEDIFF_BIG(second, r.last_updated, SYSDATETIME()) FROM ( \
     SELECT SCHEMA_NAME(t.schema_id) + '.' + t.name AS name, \
     COUNT(p.last_updated) OVER (PARTITION BY t.object_id) AS filled, p.modification_counter AS changed, p.last_updated, \
     ROW_NUMBER() OVER (PARTITION BY t.object_id ORDER BY p.modification_counter DESC) AS place \
     FROM sys.tables AS t JOIN sys.stats AS s ON s.object_id = t.object_id \
     CROSS APPLY sys.dm_db_stats_properties(s.object_id, s.stats_id) AS p WHERE t.is_ms_shipped = 0) AS r WHERE r.place = 1";

/// Bytes of the database's files.
pub(super) const SIZE: &str =
    "/* kelvin size */ SELECT SUM(CAST(size AS bigint)) * 8192 FROM sys.database_files";

/// Settings of the database and of the server, by name; with what the server runs on.
pub(super) const SETTINGS: &str = "/* kelvin settings */ SELECT v.name, v.value FROM sys.databases AS d CROSS APPLY (VALUES \
     ('compatibility_level', CAST(d.compatibility_level AS nvarchar(100))), \
     ('delayed_durability_desc', d.delayed_durability_desc), \
     ('is_auto_create_stats_on', CAST(d.is_auto_create_stats_on AS nvarchar(100))), \
     ('is_auto_update_stats_on', CAST(d.is_auto_update_stats_on AS nvarchar(100))), \
     ('is_query_store_on', CAST(d.is_query_store_on AS nvarchar(100))), \
     ('is_read_committed_snapshot_on', CAST(d.is_read_committed_snapshot_on AS nvarchar(100))), \
     ('recovery_model_desc', d.recovery_model_desc), \
     ('target_recovery_time_in_seconds', CAST(d.target_recovery_time_in_seconds AS nvarchar(100)))) AS v(name, value) \
     WHERE d.database_id = DB_ID() \
     UNION ALL SELECT name, CAST(value_in_use AS nvarchar(100)) FROM sys.configurations \
     WHERE name IN ('max degree of parallelism', 'cost threshold for parallelism', 'max worker threads', \
     'max server memory (MB)', 'recovery interval (min)') \
     UNION ALL SELECT name, CAST(value AS nvarchar(100)) FROM sys.database_scoped_configurations \
     WHERE name IN ('MAXDOP', 'LEGACY_CARDINALITY_ESTIMATION') \
     UNION ALL SELECT 'platform', CASE WHEN CAST(SERVERPROPERTY('EngineEdition') AS int) IN (5, 8, 12) THEN 'Azure' \
     WHEN @@VERSION LIKE '% on Linux %' THEN 'Linux' WHEN @@VERSION LIKE '% on Windows %' THEN 'Windows' END";

/// Worker threads that the server may have, and files of tempdb.
pub(super) const LIMITS: &str = "/* kelvin limits */ SELECT CAST(max_workers_count AS int), \
     CAST((SELECT COUNT(*) FROM tempdb.sys.database_files WHERE type = 0) AS int) FROM sys.dm_os_sys_info";

/// How the server allocates its memory (2016 SP1 and later), and kilobytes of it in large pages.
pub(super) const MEMORY: &str = "/* kelvin memory */ SELECT i.sql_memory_model_desc, m.large_page_allocations_kb \
     FROM sys.dm_os_sys_info AS i CROSS JOIN sys.dm_os_process_memory AS m";

#[cfg(test)]
mod tests {
    use super::super::link::example;
    use super::*;

    #[test]
    fn every_statement_has_a_name_of_its_own() {
        let server = example();
        let all = [
            SERVER.to_owned(),
            STARTED.into(),
            views(),
            sessions("51, 52", true),
            pages(&[(5, 1, 104)]),
            OBJECTS.into(),
            holders("61"),
            blocked(),
            load_waits("51, 52"),
            waits(&server),
            files(&server),
            counters("'Batch Requests/sec'"),
            SCHEDULERS.into(),
            versions("51, 52"),
            connections("51, 52"),
            statements(true),
            PROCEDURES.into(),
            COUNTED_SINCE.into(),
            texts(&[-1], false),
            texts(&[-1], true),
            query_store(&[1]),
            relations(true),
            INDEXES.into(),
            FOREIGN_KEYS.into(),
            WRITES.into(),
            STATISTICS.into(),
            SIZE.into(),
            SETTINGS.into(),
            LIMITS.into(),
            MEMORY.into(),
        ];
        let name = |sql: &String| Some(sql.strip_prefix(MARK)?.split_once(" */")?.0.to_owned());
        let names: std::collections::BTreeSet<String> = all.iter().map(|sql| name(sql).unwrap()).collect();
        assert_eq!(names.len(), all.len());
        assert!(statements(true).contains("total_spills") && !statements(false).contains("total_spills"));
        assert!(
            texts(&[-1], false).contains("0xFFFFFFFFFFFFFFFF") && !texts(&[1], false).contains("query_plan")
        );
    }

    #[test]
    fn a_database_of_azure_is_asked_for_its_own() {
        let mut server = example();
        server.azure_database = true;
        assert!(waits(&server).contains("dm_db_wait_stats") && files(&server).contains("sys.database_files"));
        assert!(!files(&server).contains("master_files"));
        assert!(!sessions("1", false).contains("sql_text") && !relations(false).contains("usage_stats"));
    }
}

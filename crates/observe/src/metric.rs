//! Names of metrics that several engines have each under a separate name, for those who ask without knowing the engine.
//!
//! A run has those of one engine, so that the first that is known is the one.

/// Transactions committed a second, by the server's own count.
pub const COMMITS: &[&str] =
    &["postgres.transactions.commit", "mysql.transactions.commit", "sqlserver.transactions.write"];

/// Bytes a second by which the log grew.
pub const LOG_BYTES: &[&str] = &["postgres.wal.bytes", "mysql.redo.bytes", "sqlserver.log.bytes"];

/// Times a second that the log was brought to its device.
pub const LOG_SYNCS: &[&str] = &["postgres.wal.syncs", "mysql.redo.syncs", "sqlserver.log.writes"];

/// Milliseconds a second that bringing the log to its device took, by the server's own clock.
pub const LOG_SYNC_MS: &[&str] = &["postgres.wal.sync_ms", "mysql.redo.sync_ms", "sqlserver.log.write_ms"];

/// Sessions opened a second; in MySQL and MariaDB attempts to.
pub const NEW_SESSIONS: &[&str] = &["postgres.connections.new", "mysql.connections.new"];

/// Attempts a second to connect to MySQL or MariaDB that failed.
pub const FAILED_CONNECTIONS: &str = "mysql.connections.failed";

/// Threads a second that MySQL or MariaDB created for connections, as its thread cache had none.
pub const THREADS_CREATED: &str = "mysql.threads.created";

/// Merges a second of the parts of sorts that did not fit into MySQL's sort buffer.
pub const MERGE_PASSES: &str = "mysql.sort.merge_passes";

/// Pages a second found in the server's own buffers.
pub const BUFFER_HITS: &[&str] = &["postgres.blocks.hit", "mysql.buffer.hits", "sqlserver.buffer.hits"];

/// Pages a second that were not.
pub const BUFFER_READS: &[&str] = &["postgres.blocks.read", "mysql.buffer.reads", "sqlserver.buffer.reads"];

/// Age of the last checkpoint of InnoDB's redo log in bytes.
pub const CHECKPOINT_AGE: &str = "mysql.redo.checkpoint_age";

/// That age as a share of the one from which on InnoDB writes pages as fast as it can; from 1 on it does.
pub const CHECKPOINT_AGE_SHARE: &str = "mysql.redo.checkpoint_age_share";

/// Transactions whose undo records InnoDB has not purged yet.
pub const HISTORY_LENGTH: &str = "mysql.undo.history";

/// Times a second that a session had to wait for a free page in the buffer pool.
pub const BUFFER_WAITS: &str = "mysql.buffer.wait_free";

/// Milliseconds a second that syncing the binary log took, by the server's own clock.
pub const BINLOG_SYNC_MS: &str = "mysql.binlog.sync_ms";

/// Syncs of the binary log a second.
pub const BINLOG_SYNCS: &str = "mysql.binlog.syncs";

/// Rows a second that scans without an index read.
pub const ROWS_SCANNED: &[&str] = &["postgres.tuples.returned", "mysql.rows.scanned"];

/// Bytes a second by which PostgreSQL's log grew.
pub const WAL_BYTES: &str = LOG_BYTES[0];

/// Log records a second, PostgreSQL's.
pub const WAL_RECORDS: &str = "postgres.wal.records";

/// Full-page images a second in PostgreSQL's log.
pub const FULL_PAGE_IMAGES: &str = "postgres.wal.full_page_images";

/// Checkpoints a second that PostgreSQL began for its log's size or by request.
pub const REQUESTED_CHECKPOINTS: &str = "postgres.checkpoints.requested";

/// Pages a second that PostgreSQL's backends had to write or add themselves.
pub const BACKEND_WRITES: &str = "postgres.backend.writes";

/// Bytes a second written to SQLite's log, which other engines' rates of growth ([`LOG_BYTES`]) stand beside.
pub const EMBEDDED_LOG_BYTES: &str = "sqlite.wal.written";

/// Seconds a second that writers of an embedded database queued for their turn.
pub const WRITER_QUEUE: &str = "sqlite.busy";

/// Batches and calls a second that SQL Server took, which HammerDB shows as TPM.
pub const BATCH_REQUESTS: &str = "sqlserver.batch_requests";

/// Pages a second that SQL Server's checkpoints wrote.
pub const CHECKPOINT_PAGES: &str = "sqlserver.checkpoint.pages";

/// Bytes a second written to data files, by the server's own count.
pub const DATA_WRITE_BYTES: &str = "sqlserver.file.data.write_bytes";

/// CPUs that the server uses, by its own count, and CPUs that it may use.
pub const SCHEDULER_CPU: &str = "sqlserver.schedulers.cpu";
/// The latter.
pub const SCHEDULERS: &str = "sqlserver.schedulers";

/// Requests that wait for a worker thread.
pub const WORK_QUEUE: &str = "sqlserver.schedulers.work_queue";

/// Statements that wait for a memory grant.
pub const GRANTS_PENDING: &str = "sqlserver.memory.grants_pending";

/// What the names of the times begin with that the load's sessions waited, a second, by class.
pub const LOAD_WAITS: &str = "sqlserver.load_waits.";

/// The same of all tasks of the server, less what they wait when it is idle.
pub const SERVER_WAITS: &str = "sqlserver.server_waits.";

/// What the names of the times begin with that all tasks of SQL Server waited for latches, a second, by class.
pub const LATCH_WAITS: &str = "sqlserver.latch.";

/// The same of the spins and backoffs on spinlocks.
pub const SPINLOCKS: &str = "sqlserver.spinlock.";

/// What the names of the metrics of a NUMA node begin with, by the server's own count.
pub const NUMA: &str = "sqlserver.numa.";

/// What the names of what the storage gets by stream begin with, while a run's requests are recorded: then come the class of
/// files or the device, and one of [`STREAM_REQUESTS`], [`STREAM_BYTES`], [`STREAM_SEQUENTIAL`] and [`STREAM_DEPTH`].
pub const STREAMS: &str = "host.trace.";

/// Requests a second of a stream, flushes and discards included.
pub const STREAM_REQUESTS: &str = "requests";

/// Bytes a second that a stream reads and writes.
pub const STREAM_BYTES: &str = "bytes";

/// The share of a stream's bytes that are in sequential runs, of 1.
pub const STREAM_SEQUENTIAL: &str = "sequential";

/// Requests that each request of a stream finds in flight on its device, on average.
pub const STREAM_DEPTH: &str = "depth";

/// Events that the recording of requests has lost so far.
pub const TRACE_LOST: &str = "host.trace.lost";

/// What the names of all that was seen of sessions begin with.
pub const SESSIONS: &[&str] = &["postgres.sessions", "mysql.sessions", "sqlserver.sessions"];

/// What the name of every metric begins with; that of another host's has the host's address and "/" before it.
pub const SOURCES: &[&str] = &["host.", "mysql.", "postgres.", "sqlite.", "sqlserver."];

/// Whether a server publishes a metric up to a second late, and all at once when a load ends.
pub fn is_late(name: &str) -> bool {
    name.starts_with("postgres.")
}

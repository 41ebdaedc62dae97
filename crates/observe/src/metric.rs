//! Names of metrics, for those who ask for them.
//!
//! A list has the names under which several engines have the same metric: a run has those of one engine, so that the first
//! that is known is the one.

use std::fmt::Display;

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
pub const NEW_SESSIONS: &[&str] =
    &["postgres.connections.new", "mysql.connections.new", "sqlserver.connections.new"];

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

/// Kilobytes of row versions in SQL Server's tempdb.
pub const VERSION_STORE: &str = "sqlserver.version_store";

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

/// Memory that SQL Server uses, in kilobytes.
pub const SERVER_MEMORY: &str = "sqlserver.memory.server";

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

/// Milliseconds a second that PostgreSQL's reads took.
pub const BLOCK_READ_MS: &str = "postgres.blocks.read_ms";

/// What the names of the metrics of PostgreSQL's checkpoints begin with.
pub const CHECKPOINTS: &str = "postgres.checkpoints";

/// The same of its log.
pub const WAL: &str = "postgres.wal";

/// The same of the I/O of its kinds of processes.
pub const BACKEND_IO: &str = "postgres.io";

/// Parallel workers a second that PostgreSQL's plans asked for.
pub const PLANNED_WORKERS: &str = "postgres.parallel_workers.planned";

/// Those that it started.
pub const LAUNCHED_WORKERS: &str = "postgres.parallel_workers.launched";

/// Bytes a second that PostgreSQL wrote to temporary files.
pub const TEMPORARY_BYTES: &str = "postgres.temp.bytes";

/// Bytes a second by which the binary log grew.
pub const BINLOG_BYTES: &str = "mysql.binlog.bytes";

/// Worker threads of SQL Server.
pub const WORKERS: &str = "sqlserver.schedulers.workers";

/// Milliseconds a second that SQL Server's reads of data files took, by its own clock.
pub const DATA_READ_MS: &str = "sqlserver.file.data.read_ms";

/// The same of writes.
pub const DATA_WRITE_MS: &str = "sqlserver.file.data.write_ms";

/// Temporary tables that SQL Server created a second.
pub const TEMPORARY_TABLES: &str = "sqlserver.temp.tables";

/// Its work tables for sorts and hashes that were created a second.
pub const WORK_TABLES: &str = "sqlserver.temp.worktables";

/// What the names of the shares of CPU time begin with: then come the CPU or "total", and the mode; see [`cpu`].
pub const CPU: &str = "host.cpu";

/// Share of the time of all CPUs that was neither idle nor waiting for devices.
pub const CPU_BUSY: &str = "host.cpu.total.busy";

/// Share of the time of all CPUs in user mode.
pub const CPU_USER: &str = "host.cpu.total.user";

/// Share of the time of all CPUs that the hypervisor gave to others.
pub const CPU_STEAL: &str = "host.cpu.total.steal";

/// Mean frequency of the CPUs in MHz.
pub const CPU_FREQUENCY: &str = "host.cpu.total.frequency";

/// Times a second that a CPU was slowed down.
pub const CPU_THROTTLED: &str = "host.cpu.total.throttled";

/// Context switches a second.
pub const CONTEXT_SWITCHES: &str = "host.context_switches";

/// What the names of the times begin with that tasks waited for a CPU.
pub const RUN_QUEUE: &str = "host.run_queue";

/// Tasks that waited for a CPU, on average.
pub const RUN_QUEUE_DELAY: &str = "host.run_queue.total.delay";

/// The share of their runnable time that tasks waited for a CPU.
pub const RUN_QUEUE_DELAY_SHARE: &str = "host.run_queue.total.delay_share";

/// What the names of the shares of time begin with that tasks waited for a resource; see [`pressure`].
pub const PRESSURE: &str = "host.pressure";

/// Share of the time that some task waited for a CPU.
pub const CPU_PRESSURE: &str = "host.pressure.cpu.some";

/// Share of the time that some task waited for a device.
pub const IO_PRESSURE: &str = "host.pressure.io.some";

/// What the name of the time begins with that interrupts took.
pub const INTERRUPT_PRESSURE: &str = "host.pressure.irq";

/// Share of the time that some task waited for memory.
pub const MEMORY_PRESSURE: &str = "host.pressure.memory.some";

/// Share of the time that all tasks waited for memory.
pub const FULL_MEMORY_PRESSURE: &str = "host.pressure.memory.full";

/// Bytes of memory.
pub const MEMORY_TOTAL: &str = "host.memory.total";

/// Bytes of memory that programs can get.
pub const MEMORY_AVAILABLE: &str = "host.memory.available";

/// Bytes of files in memory.
pub const MEMORY_CACHED: &str = "host.memory.cached";

/// Bytes of page tables.
pub const PAGE_TABLES: &str = "host.memory.page_tables";

/// Reserved huge pages.
pub const HUGE_PAGES_TOTAL: &str = "host.memory.huge_pages.total";

/// Those that nobody uses.
pub const HUGE_PAGES_FREE: &str = "host.memory.huge_pages.free";

/// Free ones that are promised to a process.
pub const HUGE_PAGES_RESERVED: &str = "host.memory.huge_pages.reserved";

/// Bytes of a huge page.
pub const HUGE_PAGE_SIZE: &str = "host.memory.huge_pages.size";

/// Pages a second read from swap.
pub const SWAP_IN: &str = "host.pages.swap_in";

/// Pages a second written to swap.
pub const SWAP_OUT: &str = "host.pages.swap_out";

/// Pages a second scanned in direct reclaim.
pub const DIRECT_SCANS: &str = "host.pages.scan_direct";

/// Allocations a second that were stalled by direct reclaim.
pub const ALLOCATION_STALLS: &str = "host.pages.allocation_stalls";

/// File pages a second that were read again soon after their eviction.
pub const REFAULTS: &str = "host.pages.refaults";

/// What the names of the metrics of the host's memory nodes begin with.
pub const HOST_NUMA: &str = "host.numa";

/// The same of one node's: then come its number and what was seen.
pub const NODES: &str = "host.numa.";

/// Share of allocations that were not of the CPU's own node.
pub const REMOTE_MEMORY: &str = "host.numa.total.remote_ratio";

/// What the names of the metrics of block devices begin with; see [`disk`].
pub const DISK: &str = "host.disk";

/// The same of network interfaces; see [`network`].
pub const NETWORK: &str = "host.network";

/// The same of TCP; see [`tcp`].
pub const TCP: &str = "host.tcp";

/// The same of control groups; see [`cgroup`].
pub const CGROUP: &str = "host.cgroup";

/// The same of hardware counters.
pub const HARDWARE: &str = "host.hardware";

/// Misses of the data TLB a second.
pub const TLB_MISSES: &str = "host.hardware.dtlb_misses";

/// What the names of the bytes a second begin with that go between CPUs and memory.
pub const MEMORY_BANDWIDTH: &str = "host.memory_bandwidth";

/// What the names of the metrics of observed processes begin with; see [`process`].
pub const PROCESSES: &str = "host.process";

/// The same of the database's.
pub const SERVER_PROCESS: &str = "host.process.server";

/// The server's threads that waited for a CPU, on average.
pub const SERVER_RUN_DELAY: &str = "host.process.server.run_delay";

/// The same of the load generator's.
pub const CLIENT_RUN_DELAY: &str = "host.process.client.run_delay";

/// Instructions a second of the server.
pub const SERVER_INSTRUCTIONS: &str = "host.process.server.hardware.instructions";

/// Instructions per cycle of the server.
pub const SERVER_IPC: &str = "host.process.server.hardware.ipc";

/// What the names of the shares of the server's memory begin with that are on a memory node, whose number follows.
pub const SERVER_NODES: &str = "host.process.server.numa.";

/// Misses of the data TLB a second in the server.
pub const SERVER_TLB_MISSES: &str = "host.process.server.hardware.dtlb_misses";

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

/// The share of the time of all CPUs in a mode.
pub fn cpu(mode: impl Display) -> String {
    format!("{CPU}.total.{mode}")
}

/// The share of the time that `kind` ("some" or "full") of the tasks waited for a resource.
pub fn pressure(resource: impl Display, kind: impl Display) -> String {
    format!("{PRESSURE}.{resource}.{kind}")
}

/// What was seen of a block device.
pub fn disk(device: impl Display, column: impl Display) -> String {
    format!("{DISK}.{device}.{column}")
}

/// What is before [`DISK`] in a name, another host's address and "/" or nothing, and what is behind it.
pub fn split_disk(name: &str) -> Option<(&str, &str)> {
    let (host, device) = name.split_once(DISK)?;
    Some((host, device.strip_prefix('.')?))
}

/// What was seen of a network interface.
pub fn network(interface: impl Display, column: impl Display) -> String {
    format!("{NETWORK}.{interface}.{column}")
}

/// What was seen of all TCP connections.
pub fn tcp(column: impl Display) -> String {
    format!("{TCP}.{column}")
}

/// What was seen of an observed process, such as "server" or "client".
pub fn process(name: impl Display, column: impl Display) -> String {
    format!("{PROCESSES}.{name}.{column}")
}

/// What was seen of the control group of an observed process, or of this one ("own").
pub fn cgroup(name: impl Display, column: impl Display) -> String {
    format!("{CGROUP}.{name}.{column}")
}

/// Whether a server publishes a metric up to a second late, and all at once when a load ends.
pub fn is_late(name: &str) -> bool {
    name.starts_with("postgres.")
}

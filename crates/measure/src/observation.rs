//! Observations of host and database during a run, on the run's clock.
//!
//! An observer names its metrics once ([`Observer`]) and then sends [`Reading`]s; sessions of the database come as
//! [`Waits`] over a dictionary of [`WaitGroup`]s; what has a beginning and an end is an [`Occurrence`]. All of it is
//! part of the run's event stream, so that the live view, the store and the findings read the same thing.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Nanos;
use crate::sampled_execution::SampledExecution;

/// A named value that a watcher reads repeatedly.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metric {
    /// Stable, dotted: "host.cpu.total.user", "postgres.wal.bytes". A remote host's have its address before them:
    /// "db1:9100/host.cpu.total.user".
    pub name: String,
    /// "ratio" (of 1), "1/s", "B/s", "kB/s", "B", "ms", "kB", "s/s", "MHz", "%" or "1".
    pub unit: String,
    /// One line that says what it is.
    pub help: String,
}

/// Metrics that a watcher could not read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnavailableMetrics {
    /// The metrics' common prefix, or what is missing as text.
    pub what: String,
    /// Why, and what would make it visible.
    pub why: String,
}

/// A directory of the database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatabaseDirectory {
    /// "data", "wal" or "temp".
    pub role: String,
    /// The directory.
    pub path: String,
    /// The block device by the name that its metrics have (`host.disk.DEVICE.…`); none when there is none.
    pub device: Option<String>,
    /// Where the file system is mounted.
    pub mount: String,
    /// Its type, such as "ext4".
    pub filesystem: String,
    /// How the kernel queues the disk's requests; none where there is no disk, or in runs before this was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<DiskQueue>,
}

/// How the kernel queues a disk's requests: settings below `/sys/block/DISK/queue`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskQueue {
    /// The disk's name; that of a partition's whole disk.
    pub disk: String,
    /// The I/O scheduler in effect.
    pub scheduler: Option<String>,
    /// Those that can be chosen.
    pub schedulers: Vec<String>,
    /// Bytes that sequential reads are ahead by at most.
    pub read_ahead: Option<u64>,
    /// Whether the disk says that it has moving heads; virtual disks often say so without.
    pub rotational: Option<bool>,
}

/// An observer and its metrics. One that finds more while it watches sends another of these for the new ones.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observer {
    /// Who: "host", "postgres", "sqlite", or a scraped URL without a password.
    pub source: String,
    /// Index of the first metric among those of the run.
    pub first: u32,
    /// The metrics, in the order of the values of its readings.
    pub metrics: Vec<Metric>,
    /// What it could not see.
    #[serde(default)]
    pub absent: Vec<UnavailableMetrics>,
    /// Where the database's files lie, where that is known.
    #[serde(default)]
    pub places: Vec<DatabaseDirectory>,
}

/// Values of one observer at one moment. A rate covers the time since the reading before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// When, on the run's clock.
    pub at: Nanos,
    /// Index of the first metric.
    pub first: u32,
    /// One value a metric; NaN (null in JSON) where it is unknown.
    #[serde(deserialize_with = "numbers")]
    pub values: Vec<f32>,
}

/// JSON has no number for what is none, and writes null.
fn numbers<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<f32>, D::Error> {
    let values: Vec<Option<f32>> = Deserialize::deserialize(deserializer)?;
    Ok(values.into_iter().map(|value| value.unwrap_or(f32::NAN)).collect())
}

/// What a session was doing, in terms common to all databases; the watcher translates the database's names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WaitKind {
    /// On a CPU, or waiting for one.
    Cpu,
    /// Reading data files, or waiting for one who does.
    DataRead,
    /// Writing data files.
    DataWrite,
    /// For the log: its buffers, its locks, its writes.
    Log,
    /// For the log to reach its device.
    LogFlush,
    /// For a row that another transaction holds.
    RowLock,
    /// For another lock that a transaction holds to its end.
    Lock,
    /// For a page that another session uses.
    Page,
    /// For another short lock within the server.
    Latch,
    /// For memory to be granted.
    Memory,
    /// For a standby.
    Replication,
    /// For its client, outside a transaction's pause.
    Client,
    /// For its client's next statement within a transaction.
    IdleInTransaction,
    /// For its own parallel workers, which are sessions themselves.
    Workers,
    /// All else.
    #[default]
    Other,
}

impl WaitKind {
    /// Its name for people.
    pub fn label(self) -> &'static str {
        match self {
            Self::Cpu => "CPU",
            Self::DataRead => "data reads",
            Self::DataWrite => "data writes",
            Self::Log => "log",
            Self::LogFlush => "log flush",
            Self::RowLock => "row locks",
            Self::Lock => "other locks",
            Self::Page => "pages",
            Self::Latch => "latches",
            Self::Memory => "memory grants",
            Self::Replication => "replication",
            Self::Client => "client",
            Self::IdleInTransaction => "idle in transaction",
            Self::Workers => "parallel workers",
            Self::Other => "other",
        }
    }
}

/// What a session was doing, as far as sessions are distinguished.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct WaitGroup {
    /// The kind of process: "client backend", "checkpointer", "walwriter", "autovacuum worker".
    pub backend: String,
    /// What it was doing.
    #[serde(default)]
    pub kind: WaitKind,
    /// The class of what it waited for as the database names it ("Lock", "LWLock", "IO", "Client", …), "CPU" when it
    /// waited for nothing that the database knows of, "Idle in transaction" when it waited for its client's next
    /// statement within a transaction.
    pub class: String,
    /// The wait event, such as "WALSync"; empty where there is none.
    pub event: String,
    /// The statement's identifier; none where the database does not say.
    pub query: Option<i64>,
    /// What of the database it is about: the table and index of a page, the class of a latch. None where the database does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
}

/// How often sessions were seen in which state. Idle sessions and the observers' own are not in it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitSamples {
    /// When the last look was taken, on the run's clock.
    pub at: Nanos,
    /// Looks taken since the event before, evenly spaced.
    pub looks: u32,
    /// Index of a [`WaitGroup`] and the sessions seen in it, summed over the looks: divided by `looks` it is the
    /// average number of sessions in that state.
    pub seen: Vec<(u32, u32)>,
    /// Sessions seen waiting for a row that another one holds, by relation, summed over `lock_looks` looks.
    #[serde(default)]
    pub rows: Vec<(String, u32)>,
    /// Looks at the locks.
    #[serde(default)]
    pub lock_looks: u32,
}

/// A session that held a lock which others waited for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Blocker {
    /// Its process.
    pub pid: i64,
    /// The name that its client has given itself; empty where it has none, or it may not be seen.
    pub application: String,
    /// Milliseconds since its transaction began; none where that may not be seen.
    pub transaction_ms: Option<f64>,
    /// What it was doing itself: "CPU", "Idle in transaction", or what it waited for, such as "LWLock WALWrite".
    pub doing: String,
    /// Those who waited for its transaction, and those who waited for them, by process: the first of them.
    pub waiting: Vec<i64>,
    /// How many waited; 0 where only those of `waiting` are known.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub waiters: u32,
    /// What it held: "row of public.stock", "table public.stock", "advisory lock"; empty where that was not seen.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub lock: String,
    /// Its statement without values, of an idle one the last; empty where it may not be seen.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub statement: String,
    /// The statement of the one who had waited longest for it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub waiting_statement: String,
    /// Milliseconds that this one had waited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited_ms: Option<f64>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Blocker {
    /// How many waited for it.
    pub fn number_waiting(&self) -> u32 {
        self.waiters.max(self.waiting.len() as u32)
    }
}

/// Something in the database besides the load with a start and an end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Occurrence {
    /// Which one: the same number comes again when it has ended.
    pub id: u32,
    /// "checkpoint", "autovacuum", "autoanalyze", "restart" or "misestimate".
    pub kind: String,
    /// What of: "requested" or "timed" for a checkpoint, the relation for a vacuum, node and statement for a misestimate.
    pub subject: String,
    /// When it began, on the run's clock.
    pub from: Nanos,
    /// When it ended; none while it is running.
    pub to: Option<Nanos>,
    /// Figures by name, with the unit in the name ("buffers", "write_ms", "sync_ms").
    #[serde(default)]
    pub figures: BTreeMap<String, f64>,
}

/// A node of a statement's plan that reads a relation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scan {
    /// "Seq Scan", "Index Scan", "Index Only Scan", "Bitmap Heap Scan".
    pub node: String,
    /// The relation.
    pub relation: String,
    /// The index, for scans of one.
    pub index: Option<String>,
}

/// How the database would run a statement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueryPlan {
    /// SHA-256 over nodes, relations and indexes in their order, as 16 hexadecimal digits: costs and rows are not in
    /// it, so that it changes when the way changes.
    pub hash: String,
    /// The plan as the database prints it, or a line for each table that it reads.
    pub text: String,
    /// What it reads.
    pub scans: Vec<Scan>,
    /// Another plan that the database's own history has, with which the statement was faster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub faster: Option<FasterPlan>,
}

/// A plan with which a statement took less than half of the time that it takes now, by the database's own history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FasterPlan {
    /// The plan's identifier by the database.
    pub hash: String,
    /// Mean time of an execution with it, in milliseconds.
    pub mean_ms: f64,
    /// The same with the plan that was used last.
    pub now_ms: f64,
    /// When it was last used, as the database writes it.
    pub executed: String,
    /// The level of compatibility of the optimizer that made it, and of that which made the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub optimizer: Option<(String, String)>,
}

impl FasterPlan {
    /// In one line.
    pub fn sentence(&self) -> String {
        let levels = self.optimizer.as_ref().filter(|(then, now)| then != now);
        let levels = levels.map_or(String::new(), |(then, now)| {
            format!("; the optimizer was at compatibility level {then}, and is at {now}")
        });
        format!(
            "with plan {} it took {} ms on average (last on {}), with the last one {} ms{levels}",
            self.hash,
            crate::text::number(self.mean_ms),
            self.executed,
            crate::text::number(self.now_ms)
        )
    }
}

/// What one statement came to over a point's window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StatementTotals {
    /// Its identifier by the database.
    pub query: i64,
    /// Its text without its constants.
    pub text: String,
    /// Executions.
    pub calls: u64,
    /// Time in execution, in milliseconds.
    pub total_ms: f64,
    /// Rows returned or affected.
    pub rows: u64,
    /// Pages found in the database's own buffers; none where the database does not count them by statement.
    pub blocks_hit: Option<u64>,
    /// Pages that were not.
    pub blocks_read: Option<u64>,
    /// Bytes of log written by it; none where the database does not count them.
    pub wal_bytes: Option<u64>,
    /// Bytes of temporary files written by it; none where the database does not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temporary_bytes: Option<u64>,
    /// Internal temporary tables that it put on disk (MySQL); none where the database does not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_tables: Option<u64>,
    /// Merges of the parts of its sorts that did not fit into memory (MySQL); none where the database does not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge_passes: Option<u64>,
    /// Milliseconds in which it was compiled (PostgreSQL: JIT); none where the database does not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jit_ms: Option<f64>,
    /// How often it was planned, and for how long; none where the database does not count that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planning: Option<Planning>,
    /// Its plan; none where it could not be had.
    pub plan: Option<QueryPlan>,
    /// A plan for known values that the planner finds cheaper than the generic one, which was executed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_plan: Option<CustomPlan>,
    /// What one execution for its plan showed, after the window; none where none was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<SampledExecution>,
}

impl StatementTotals {
    /// Whether it was planned for half of its executions or more; fewer plans mean a prepared statement with a generic plan. None where plans
    /// are not counted.
    pub fn is_planned_each_time(&self) -> Option<bool> {
        self.planning.map(|planning| planning.plans >= self.calls.div_ceil(2))
    }
}

/// How often a statement was planned. A prepared one that has a generic plan is executed without being planned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Planning {
    /// Plans that were made.
    pub plans: u64,
    /// Time that it took, in milliseconds: no part of the statement's time in execution.
    pub ms: f64,
}

/// How the executions of a prepared statement were planned in some sessions of a load, ramp-up included.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreparedStatement {
    /// Its text with a question mark for each value and parameter.
    pub text: String,
    /// Executions with the plan without values.
    pub generic: u64,
    /// Executions with a plan for their values.
    pub custom: u64,
}

/// A plan that a prepared statement would have for certain values of its parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CustomPlan {
    /// Hash, as [`QueryPlan::hash`].
    pub hash: String,
    /// The planner's total cost of it, in the planner's units (`seq_page_cost` is one page).
    pub cost: f64,
    /// The same of the generic plan.
    pub generic_cost: f64,
    /// Which values these are, by their columns: the values themselves are the tables' content and not kept.
    pub values: String,
}

/// Before or after the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CaptureTime {
    /// Before the users connect.
    Before,
    /// After they have ended.
    After,
}

/// A table or index.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Relation {
    /// Schema and name.
    pub name: String,
    /// "table" or "index".
    pub kind: String,
    /// The table of an index.
    pub table: Option<String>,
    /// Bytes on disk of its main fork; for tables with what is stored out of line.
    pub bytes: u64,
    /// Live rows, as the database estimates them.
    pub rows: Option<u64>,
    /// Rows that are dead and not yet removed.
    pub dead_rows: Option<u64>,
    /// Sequential scans (tables) so far.
    pub sequential_scans: Option<u64>,
    /// Index scans so far.
    pub index_scans: Option<u64>,
    /// Whether it has statistics for the planner; none where that could not be seen.
    pub analyzed: Option<bool>,
    /// Share of its bytes that a rewrite would give back, estimated; none where it could not be.
    pub bloat: Option<f64>,
    /// The statement that makes an index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
    /// Whether an index enforces a constraint, unique keys among them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enforces: Option<bool>,
    /// Writes of a table so far; none where they are not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writes: Option<TableWrites>,
    /// Pieces of large values that were stored beside a table so far (PostgreSQL: rows of its TOAST table, of 2 kB at most); none where there
    /// is no such table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pieces: Option<u64>,
    /// Rows of a table that were inserted, updated or deleted since its statistics for the planner were renewed; none where they are
    /// not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_since_analyze: Option<u64>,
    /// Seconds since then; none where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub analyzed_ago: Option<f64>,
}

/// Rows of a table that were written so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableWrites {
    /// Inserted.
    pub inserted: u64,
    /// Updated.
    pub updated: u64,
    /// Of these, those whose new version went to the same page, so that no index had to be changed (PostgreSQL: HOT).
    pub updated_in_page: u64,
    /// Per cent of a page that inserts fill.
    pub fillfactor: u32,
}

/// Processes of one name on a host that are neither the load generator's nor the server's.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct OtherProcess {
    /// The program's name, as the kernel has it (15 characters).
    pub name: String,
    /// How many of this name were seen.
    pub processes: u32,
    /// CPUs used on average.
    pub cpus: f64,
    /// Bytes of resident memory, the most that was seen: what is private to each process, and the largest part of one that others may
    /// share.
    pub resident: u64,
    /// Bytes a second read from devices; 0 where that may not be seen.
    pub read: f64,
    /// Bytes a second written to devices.
    pub written: f64,
}

impl OtherProcess {
    /// Names that are reported of each resource.
    pub const MOST: usize = 5;
    /// What one must have used of each resource to be named: the granularity of what is counted, and what a system's own services take.
    pub const LEAST: [f64; 3] = [0.01, 1e8, 1e5];

    /// What it used of each resource: CPUs, bytes of memory, bytes a second to and from devices.
    pub fn used(&self) -> [f64; 3] {
        [self.cpus, self.resident as f64, self.read + self.written]
    }
}

/// An observation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "observation", rename_all = "kebab-case")]
pub enum Observation {
    /// An observer and its metrics.
    Observer(Observer),
    /// Values.
    Reading(Reading),
    /// States of sessions that were seen for the first time: `first` is the index of the first of them.
    WaitGroups {
        /// Index of the first.
        first: u32,
        /// The states.
        groups: Vec<WaitGroup>,
    },
    /// What sessions were doing.
    Waits(WaitSamples),
    /// Who held what others waited for, at one look at the locks.
    Blocking {
        /// When, on the run's clock.
        at: Nanos,
        /// The ones whom most waited for, those first.
        blockers: Vec<Blocker>,
    },
    /// Something with a beginning and an end.
    Occurrence(Occurrence),
    /// What the statements came to over a point's window.
    Statements {
        /// Which point of the run.
        point: u32,
        /// The ones that took the most time, the longest first.
        statements: Vec<StatementTotals>,
        /// Time in execution of all statements of this database, in milliseconds.
        total_ms: f64,
    },
    /// How prepared statements were planned, by some of the load's own sessions when they ended.
    PreparedStatements {
        /// Which point of the run.
        point: u32,
        /// Sums over the sessions.
        statements: Vec<PreparedStatement>,
    },
    /// Texts of statements whose totals come later, for who watches meanwhile.
    StatementTexts {
        /// Identifier and text, the constants left out.
        texts: Vec<(i64, String)>,
    },
    /// What other processes used during a point's window, the most CPU first: the five names with the most.
    OtherProcesses {
        /// Which point of the run.
        point: u32,
        /// The names.
        processes: Vec<OtherProcess>,
    },
    /// Tables and indexes.
    Relations {
        /// Before or after the load.
        when: CaptureTime,
        /// The largest first.
        relations: Vec<Relation>,
        /// Bytes of the whole database.
        database_bytes: u64,
    },
    /// Every setting of the database that a finding asks for, whether at its default or not, by name. Sizes are in
    /// bytes, times in milliseconds, switches "on" or "off".
    Settings {
        /// Value by name.
        values: BTreeMap<String, String>,
    },
    /// A source fell silent or could not be read any more.
    Lost(UnavailableMetrics),
}

impl Observation {
    /// Its tag, as its JSON has it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Observer(_) => "observer",
            Self::Reading(_) => "reading",
            Self::WaitGroups { .. } => "wait-groups",
            Self::Waits(_) => "waits",
            Self::Blocking { .. } => "blocking",
            Self::Occurrence(_) => "occurrence",
            Self::Statements { .. } => "statements",
            Self::PreparedStatements { .. } => "prepared-statements",
            Self::StatementTexts { .. } => "statement-texts",
            Self::OtherProcesses { .. } => "other-processes",
            Self::Relations { .. } => "relations",
            Self::Settings { .. } => "settings",
            Self::Lost(_) => "lost",
        }
    }
}

//! Workloads: the transactions that virtual users execute, on every engine that supports them.
//!
//! A [`Workload`] builds, checks and drops its data, and creates [`VirtualUser`]s. A user first chooses its
//! next transaction, from its seed alone ([`VirtualUser::next`]), and then executes it
//! ([`VirtualUser::execute`]), again if the driver has to repeat it. Workloads do not measure transactions:
//! the driver in `run` does.

pub mod pgbench;
pub mod progress;
pub mod scan;
pub mod tproc_c;
pub mod tproc_h;
mod user_range;

use std::borrow::Cow;
use std::time::Duration;

use kelvin_database::{Engine, Result, Session};
use kelvin_measure::event::{AuditLine, CheckLine};
use kelvin_measure::query::QueryExecution;
use kelvin_measure::query_analysis::QueryAnalysis;
use kelvin_measure::{Clock, Counters, Nanos, TransactionOutcome};

pub use kelvin_measure::event::RatePeriod;
pub use progress::{BuildProgress, Stop};
pub use user_range::UserRange;

/// A transaction type, or a statement that is timed separately.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransactionKind {
    /// Its name in output, such as "New-Order", or the name of the user's script.
    pub name: Cow<'static, str>,
    /// Whether it counts towards the headline.
    pub headline: bool,
    /// For a statement: the index of the transaction type that it belongs to.
    pub statement_of: Option<u16>,
}

impl TransactionKind {
    /// A transaction type.
    pub const fn transaction(name: &'static str, headline: bool) -> Self {
        Self { name: Cow::Borrowed(name), headline, statement_of: None }
    }
}

/// The time that a statement took, as seen by the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatementTime {
    /// Its index in [`Workload::kinds`].
    pub kind: u16,
    /// From sending the statement to having read its result.
    pub took: Nanos,
    /// When it ended.
    pub end: Nanos,
}

/// A user's next transaction.
#[derive(Debug, Clone, Copy)]
pub struct NextTransaction {
    /// Index of the transaction type in [`Workload::kinds`].
    pub kind: u16,
    /// Wait before the transaction (keying).
    pub keying: Duration,
    /// Wait after the transaction (thinking).
    pub thinking: Duration,
}

/// The data of a workload: what determines them, and who can build them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkloadData {
    /// Text with everything that determines the rows: data with equal texts are equal.
    pub words: String,
    /// Whether [`Workload::build`] can create exactly these data again.
    pub can_be_built: bool,
    /// Names of the tables, without partitions.
    pub tables: Vec<&'static str>,
}

/// A load on a database.
pub trait Workload: Send + Sync {
    /// Its name on the command line, such as "tproc-c".
    fn name(&self) -> &'static str;

    /// The transaction types, followed by the timed statements if statements are timed. The index of one is
    /// its `kind` everywhere.
    fn kinds(&self) -> &[TransactionKind];

    /// Name of the headline, such as "NOPM".
    fn headline(&self) -> &'static str;

    /// The period of the headline's rate.
    fn headline_per(&self) -> RatePeriod {
        RatePeriod::Minute
    }

    /// The names of the users' audit counters, in their order.
    fn counters(&self) -> &'static [&'static str];

    /// Refuses an engine that does not support this workload with its options, whatever the data. Called
    /// before a build.
    fn check_engine(&self, engine: &dyn Engine) -> Result<()>;

    /// Inspects the data and rejects, with a message, data that this workload cannot use: missing, partly
    /// loaded, or of another size or schema. Returns sentences for the result (the routines that are called,
    /// what is not reproducible).
    fn inspect(&mut self, engine: &dyn Engine) -> Result<Vec<String>>;

    /// Whether complete data of the requested size exist; `false` for no data and for partly loaded data.
    fn is_built(&self, engine: &dyn Engine) -> Result<bool>;

    /// The data that this workload uses here or would build; `None` if they are the user's own.
    fn data(&self, _engine: &dyn Engine) -> Result<Option<WorkloadData>> {
        Ok(None)
    }

    /// Whether no run has changed the data since the build. Called for complete data only.
    fn is_fresh(&self, _session: &mut dyn Session) -> Result<bool> {
        Ok(false)
    }

    /// Creates the tables and loads them; resumes an interrupted build.
    fn build(&self, engine: &dyn Engine, progress: &dyn BuildProgress, stop: &Stop) -> Result<()>;

    /// Drops everything that [`Workload::build`] created.
    fn drop_data(&self, engine: &dyn Engine) -> Result<()>;

    /// Objects other than tables that complete data should have but do not (indexes, routines), as text. A
    /// run is possible without them, but its results are not comparable.
    fn missing_objects(&self, _engine: &dyn Engine) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    /// Checks the consistency conditions and calls `each` with each outcome, in their order, as soon as it is
    /// known. `progress` is updated from this thread.
    fn check(
        &self,
        engine: &dyn Engine,
        progress: &dyn BuildProgress,
        stop: &Stop,
        each: &mut dyn FnMut(CheckLine),
    ) -> Result<()>;

    /// Whether the number of headline transactions can be read from the data. If not,
    /// [`Workload::headline_count`] must not be called, and there is no server count to compare with the
    /// users' counts.
    fn counts_on_server(&self) -> bool {
        true
    }

    /// The number of headline transactions since the load, counted by the server. Only differences are
    /// meaningful.
    fn headline_count(&self, session: &mut dyn Session) -> Result<u64>;

    /// Whether users block their threads on anything other than the database, so that users cannot share a
    /// thread.
    fn blocks_threads(&self) -> bool {
        false
    }

    /// Creates the virtual users of `range`, in its order. Their random values depend only on `seed` and the
    /// user's number. `clock` times their statements. [`Workload::inspect`] must have been called.
    fn users(&self, range: UserRange, seed: u64, clock: &Clock) -> Vec<Box<dyn VirtualUser>>;

    /// Executes the headline transactions once more after the load, each for at most `timeout`, and calls
    /// `each` with the execution details of their plans. Does nothing if the workload or the engine does not
    /// support it.
    fn analyze(
        &self,
        _engine: &dyn Engine,
        (_seed, _timeout): (u64, Duration),
        (_progress, _stop): (&dyn BuildProgress, &Stop),
        _each: &mut dyn FnMut(QueryAnalysis),
    ) -> Result<()> {
        Ok(())
    }

    /// Executions that have ended since the last call, with their answers; empty if the workload keeps no
    /// answers.
    fn take_executions(&self) -> Vec<QueryExecution> {
        Vec::new()
    }

    /// Judges the counters over the measured window, summed over `users` users.
    fn audit(&self, counters: &[u64], users: u32) -> Vec<AuditLine>;
}

/// One virtual user.
pub trait VirtualUser: Send {
    /// Prepares the statements on a new connection: at the start and after a reconnect.
    fn prepare(&mut self, session: &mut dyn Session) -> Result<()>;

    /// Chooses the next transaction and all its inputs, from the seed.
    fn next(&mut self) -> NextTransaction;

    /// Whether the user has done all its work. [`VirtualUser::next`] is then not called again.
    fn has_ended(&self) -> bool {
        false
    }

    /// Executes the transaction that `next` chose, from begin to commit. After an error and a rollback by the
    /// caller, it may be called again with the same inputs.
    fn execute(&mut self, session: &mut dyn Session) -> Result<TransactionOutcome>;

    /// Adds the last successful `execute` to the audit counters. Called only for transactions that end within
    /// the measured window.
    fn count(&self, counters: &Counters);

    /// Times of the statements of the last successful `execute`, if statements are timed.
    fn statement_times(&self) -> &[StatementTime] {
        &[]
    }
}

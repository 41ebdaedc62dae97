//! Workloads: what virtual users do to a database, on every engine that can carry it.
//!
//! A [`Workload`] builds, checks and drops its data, and makes [`VirtualUser`]s. A user first decides what to
//! do next, from its seed alone ([`VirtualUser::next`]), then does it ([`VirtualUser::execute`]), as often as
//! the driver has to repeat it. No workload reads a clock to measure: the driver in `run` does.

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

/// One transaction type, or one statement whose time is taken by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransactionKind {
    /// Its name as printed, such as "New-Order"; a script's own where the user brings it.
    pub name: Cow<'static, str>,
    /// Whether it counts for the headline figure.
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

/// How long a statement took, as the user saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatementTime {
    /// Its index in [`Workload::kinds`].
    pub kind: u16,
    /// From sending it to having its result.
    pub took: Nanos,
    /// When it ended.
    pub end: Nanos,
}

/// What a user does next.
#[derive(Debug, Clone, Copy)]
pub struct NextTransaction {
    /// Index of the transaction type in [`Workload::kinds`].
    pub kind: u16,
    /// Waiting before the transaction (keying).
    pub keying: Duration,
    /// Waiting after the transaction (thinking).
    pub thinking: Duration,
}

/// The data of a workload: what decides it, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkloadData {
    /// Everything that determines the rows, as text: data with equal texts are equal.
    pub words: String,
    /// Whether [`Workload::build`] makes exactly these again.
    pub can_be_built: bool,
    /// Names of the tables, partitions aside.
    pub tables: Vec<&'static str>,
}

/// A load that can be put on a database.
pub trait Workload: Send + Sync {
    /// Its name on the command line, such as "tproc-c".
    fn name(&self) -> &'static str;

    /// Its transaction types and then, where statements are timed, those; the index is the `kind` everywhere.
    fn kinds(&self) -> &[TransactionKind];

    /// Name of the headline figure, such as "NOPM".
    fn headline(&self) -> &'static str;

    /// The time that the headline figure counts over.
    fn headline_per(&self) -> RatePeriod {
        RatePeriod::Minute
    }

    /// What each of the audit counters that a user writes counts.
    fn counters(&self) -> &'static [&'static str];

    /// Refuses an engine that cannot carry this workload as it was asked for, whatever its data: before
    /// anything is built.
    fn check_engine(&self, engine: &dyn Engine) -> Result<()>;

    /// Inspects the data and rejects, with a message, what this workload cannot drive: absent, half loaded, of
    /// another size or shape. Returns sentences that belong into the result (which routines are driven, what
    /// is not reproducible).
    fn inspect(&mut self, engine: &dyn Engine) -> Result<Vec<String>>;

    /// Whether complete data of the asked size is there; `false` when there is nothing or a part.
    fn is_built(&self, engine: &dyn Engine) -> Result<bool>;

    /// The data that this workload drives here, or would build; none when they are the user's own.
    fn data(&self, _engine: &dyn Engine) -> Result<Option<WorkloadData>> {
        Ok(None)
    }

    /// Whether the data are as the build left them: no run has changed them. Asked of complete data only.
    fn is_fresh(&self, _session: &mut dyn Session) -> Result<bool> {
        Ok(false)
    }

    /// Makes the tables and loads them; goes on where an earlier build stopped.
    fn build(&self, engine: &dyn Engine, progress: &dyn BuildProgress, stop: &Stop) -> Result<()>;

    /// Removes everything that [`Workload::build`] made.
    fn drop_data(&self, engine: &dyn Engine) -> Result<()>;

    /// What complete data should have beside their tables and do not (indexes, routines), as text: a run is possible
    /// without it, and is another one.
    fn missing_objects(&self, _engine: &dyn Engine) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    /// Checks the consistency conditions and hands out each outcome, in their order, as it is known. `progress` hears in
    /// this thread how far it is.
    fn check(
        &self,
        engine: &dyn Engine,
        progress: &dyn BuildProgress,
        stop: &Stop,
        each: &mut dyn FnMut(CheckLine),
    ) -> Result<()>;

    /// Whether the data show how many headline transactions there were; without that
    /// [`Workload::headline_count`] is not to be asked, and nothing can be compared with the users' count.
    fn counts_on_server(&self) -> bool {
        true
    }

    /// The server's own count of headline transactions since the load; a difference of two is meant.
    fn headline_count(&self, session: &mut dyn Session) -> Result<u64>;

    /// Whether its users block their thread for other things than the database, so that no two can share one.
    fn blocks_threads(&self) -> bool {
        false
    }

    /// Makes the virtual users of `range`, in its order. Their random values come from `seed` and their numbers alone. `clock` is
    /// for the times of their statements. [`Workload::inspect`] came before.
    fn users(&self, range: UserRange, seed: u64, clock: &Clock) -> Vec<Box<dyn VirtualUser>>;

    /// Executes the headline transactions once more after the load, each at most `timeout` long, and hands out what their plans
    /// did; nothing where the workload or the engine has nothing to say.
    fn analyze(
        &self,
        _engine: &dyn Engine,
        (_seed, _timeout): (u64, Duration),
        (_progress, _stop): (&dyn BuildProgress, &Stop),
        _each: &mut dyn FnMut(QueryAnalysis),
    ) -> Result<()> {
        Ok(())
    }

    /// The executions that users have ended since the last call, with their answers; empty where answers are not kept.
    fn take_executions(&self) -> Vec<QueryExecution> {
        Vec::new()
    }

    /// Judges the sums of the counters of `users` users over the measured window.
    fn audit(&self, counters: &[u64], users: u32) -> Vec<AuditLine>;
}

/// One virtual user.
pub trait VirtualUser: Send {
    /// Prepares the statements on a new connection: at the start, and after a lost connection.
    fn prepare(&mut self, session: &mut dyn Session) -> Result<()>;

    /// Decides the next transaction and all its inputs, from the seed.
    fn next(&mut self) -> NextTransaction;

    /// Whether it has done all that its workload has for it; [`VirtualUser::next`] is not called again.
    fn has_ended(&self) -> bool {
        false
    }

    /// Executes what `next` decided, from begin to commit. May be called again for the same inputs after an
    /// error; the caller has rolled back by then.
    fn execute(&mut self, session: &mut dyn Session) -> Result<TransactionOutcome>;

    /// Adds what the last successful `execute` did to the audit counters. Called only for transactions that
    /// ended within the measured window.
    fn count(&self, counters: &Counters);

    /// The statements of the last successful `execute`, when statements are timed.
    fn statement_times(&self) -> &[StatementTime] {
        &[]
    }
}

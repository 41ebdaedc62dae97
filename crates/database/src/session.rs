//! A connection and its operations.

use std::time::Duration;

use crate::{EngineKind, Error, Result, Rows, Value};

/// A prepared statement of the session that made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statement(pub u32);

/// How the executions of a prepared statement were planned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreparedPlans {
    /// The statement as it was sent.
    pub text: String,
    /// Executions with the plan without values.
    pub generic: u64,
    /// Executions with a plan for their values.
    pub custom: u64,
}

/// The beginning or end of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionControl {
    /// Begins a transaction that may write. SQLite begins it as a writer (`BEGIN IMMEDIATE`).
    Begin,
    /// Begins a transaction that only reads; on SQLite a deferred one that blocks no writer.
    BeginReadOnly,
    /// Commits the transaction. One that failed earlier is not committed in silence: that is an error.
    Commit,
    /// Rolls the transaction back, and empties the queue. Without a transaction it does nothing.
    Rollback,
}

impl TransactionControl {
    /// The statement that does it, in sessions that prepare them first and in this order.
    pub(crate) const fn statement(self) -> Statement {
        Statement(self as u32)
    }
}

/// One connection. Blocking, owned by one thread.
///
/// After an error inside a transaction the caller rolls back; after [`crate::ErrorClass::ConnectionLost`] or a
/// time-out, or whenever [`Session::is_broken`] is true, the session can only be dropped.
pub trait Session: Send {
    /// The kind of the engine.
    fn engine(&self) -> EngineKind;

    /// Begins, commits or rolls back, in one round trip.
    fn control(&mut self, control: TransactionControl) -> Result<()>;

    /// Adds the beginning or the end of a transaction to the batch that the next [`Session::flush`] sends.
    fn queue_control(&mut self, control: TransactionControl) -> Result<()>;

    /// Prepares a statement with parameters written `$1`, `$2`, …, in any order and any number of times; except on
    /// PostgreSQL, a parameter may also be unused. The engine translates them to its own syntax.
    fn prepare(&mut self, sql: &str) -> Result<Statement>;

    /// Runs a prepared statement in one round trip and replaces `rows` with its result.
    fn execute(&mut self, statement: Statement, params: &[Value<'_>], rows: &mut Rows) -> Result<()>;

    /// Adds a statement to the batch that the next [`Session::flush`] sends.
    fn queue(&mut self, statement: Statement, params: &[Value<'_>]) -> Result<()>;

    /// Sends the queued statements, in one round trip where the engine can
    /// ([`crate::Capabilities::one_round_trip_batch`]), and stores their results in order; `results` is resized to the
    /// number of statements and its memory reused. At the first error the rest is skipped, and the error returned after
    /// the connection is in order again (an open transaction still needs its rollback). The queue is empty afterwards
    /// in every case. Where the server does not stop at an error ([`crate::Capabilities::batch_stops_at_error`]), the
    /// statements sent after the failed one have run in the transaction that now needs its rollback; nothing after an
    /// error is committed.
    fn flush(&mut self, results: &mut Vec<Rows>) -> Result<()>;

    /// Runs one or more statements without parameters, separated by semicolons, ignoring their rows.
    fn run(&mut self, sql: &str) -> Result<()>;

    /// Runs one statement without parameters or preparation and returns its rows; not for the measured path.
    fn query(&mut self, sql: &str) -> Result<Rows>;

    /// Prepares a user-supplied statement, whatever the types of its parameters and results. With `parse_each_time`
    /// every execution parses the text again. `columns` gets the names of the result's columns. The representation of
    /// parameters and results depends on [`Session::infers_types`].
    fn prepare_text(
        &mut self,
        _sql: &str,
        _parse_each_time: bool,
        _columns: &mut Vec<String>,
    ) -> Result<Statement> {
        Err(text_is_unknown(self.engine()))
    }

    /// Whether the server infers the types of the parameters of [`Session::prepare_text`] from the statement
    /// (PostgreSQL): they are given as [`Value::Text`], [`Value::Int`] or NULL, and results are returned as text. Other
    /// servers use the types of the given values: each value is given with its own type, and results are typed.
    fn infers_types(&self) -> bool {
        false
    }

    /// From now on the rows of this statement's results are skipped unread: `rows` and the results of
    /// [`Session::flush`] have none of them, and return only the number of affected rows. For statements of
    /// [`Session::prepare_text`] whose result is not used.
    fn ignore_rows(&mut self, _statement: Statement) {}

    /// Runs one or more statements without parameters or preparation in one round trip; `results` gets one
    /// result for each, with the names of its columns if it has any. The fields are as those of
    /// [`Session::prepare_text`].
    fn query_text(&mut self, _sql: &str, _results: &mut Vec<Rows>) -> Result<()> {
        Err(text_is_unknown(self.engine()))
    }

    /// Ends the implicit transaction of the queued statements within the batch. The following statements are executed
    /// even when the preceding ones fail; the flush still returns the first error, after all is read.
    fn queue_sync(&mut self) -> Result<()> {
        Err(text_is_unknown(self.engine()))
    }

    /// [`Session::bulk_load`] whose rows are immediately visible to all and need no VACUUM (COPY's FREEZE), where the
    /// engine can: the caller has created or emptied the table in the open transaction.
    fn bulk_load_frozen<'a>(&'a mut self, table: &'a BulkTable<'a>) -> Result<Box<dyn BulkLoad + 'a>> {
        self.bulk_load(table)
    }

    /// Begins to load rows into a table as fast as the engine can. On SQLite the caller holds a transaction.
    fn bulk_load<'a>(&'a mut self, table: &'a BulkTable<'a>) -> Result<Box<dyn BulkLoad + 'a>>;

    /// Whether a transaction is open (also one that failed and waits for its rollback).
    fn in_transaction(&self) -> bool;

    /// Whether the connection can no longer be used.
    fn is_broken(&self) -> bool;

    /// A call that waits longer than this for the server, or for a lock, ends with [`crate::ErrorClass::Timeout`], and
    /// the session is broken; `None` waits forever.
    ///
    /// SQLite measures the whole call (of a load: each call of [`BulkLoad`]; of a batch: each statement).
    /// PostgreSQL and MySQL measure each wait for the next bytes of an answer, so a result that keeps arriving, and a
    /// load that is being received, may last longer. Messages that belong to no answer (notices, notifications, changed
    /// settings) do not prolong a call: after the first of these it has this long, once more, to end.
    fn set_timeout(&mut self, timeout: Option<Duration>) -> Result<()>;

    /// A handle with which another thread can interrupt the statement this session is running.
    fn cancel(&self) -> Box<dyn Cancel>;

    /// How the prepared statements with parameters were planned, those with the most executions first, 100 at most; none where the
    /// server does not report it, or keeps no statement. One round trip; not for the measured path.
    fn prepared_plans(&mut self) -> Result<Vec<PreparedPlans>> {
        Ok(Vec::new())
    }

    /// How often the engine had to wait because the database was busy (SQLite's busy handler); 0 elsewhere.
    fn busy_waits(&self) -> u64 {
        0
    }
}

#[cold]
fn text_is_unknown(engine: EngineKind) -> Error {
    Error::usage(format!("{engine} does not support statements in text form, which this load needs"))
}

/// Interrupts a running statement from another thread.
pub trait Cancel: Send + Sync {
    /// Asks the server to interrupt; the statement then fails with [`crate::ErrorClass::Timeout`].
    fn cancel(&self) -> Result<()>;
}

/// A column's type, as far as bulk loading needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    /// A 16-bit integer.
    Int2,
    /// A 32-bit integer.
    Int4,
    /// A 64-bit integer.
    Int8,
    /// An exact decimal with this many digits after the point.
    Decimal(u8),
    /// Text of any kind.
    Text,
    /// A point in time.
    Timestamp,
    /// A day: a [`crate::Timestamp`] that is its beginning.
    Date,
}

/// A table to load into.
#[derive(Debug, Clone, Copy)]
pub struct BulkTable<'a> {
    /// The table's name, quoted by the session.
    pub name: &'a str,
    /// Names, quoted by the session, and types, in the order of the values.
    pub columns: &'a [(&'a str, ColumnType)],
}

/// An identifier as SQL, for PostgreSQL and SQLite.
pub(crate) fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A load under way. Dropping it without [`BulkLoad::finish`] abandons the load with an error at the server.
pub trait BulkLoad {
    /// Adds a row; one value per column.
    fn row(&mut self, values: &[Value<'_>]) -> Result<()>;

    /// Ends the load and returns the number of rows that the server took.
    fn finish(self: Box<Self>) -> Result<u64>;
}

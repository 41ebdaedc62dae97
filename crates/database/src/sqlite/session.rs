//! One connection to the file.

use std::sync::Arc;
use std::time::Duration;

use rusqlite::fallible_iterator::FallibleIterator;
use rusqlite::types::ValueRef;
use rusqlite::{Batch, Connection, InterruptHandle, Statement as Compiled, TransactionState};

use super::bulk::SqliteLoad;
use super::busy::{self, Waits};
use super::error::translate;
use super::parameters::{self, Parameters};
use super::turns::{Turn, Turns};
use crate::placeholder;
use crate::{
    BulkLoad, BulkTable, Cancel, Cell, EngineKind, Error, ErrorClass, Result, Rows, Session, Statement,
    TransactionControl, Value,
};

/// Virtual machine steps between two readings of the clock: well under a millisecond.
const STEPS_BETWEEN_LOOKS: i32 = 4_000;

/// The state that every call of a session uses at its beginning and end: its time-out, and its turn at writing.
pub(crate) struct Calls {
    turn: Turn,
    waits: Arc<Waits>,
    timeout: Option<Duration>,
    broken: bool,
}

impl Calls {
    /// Begins a call.
    pub(crate) fn start(&self) {
        self.waits.start(self.timeout);
    }

    /// Gives the turn back when the transaction is over, and marks the session broken after a time-out.
    pub(crate) fn after_call<T>(&mut self, connection: &Connection, outcome: Result<T>) -> Result<T> {
        if self.turn.is_held() && connection.is_autocommit() {
            self.turn.give_back();
        }
        outcome.map_err(|error| {
            let waited = matches!(error.class(), ErrorClass::Timeout | ErrorClass::LockNotAvailable);
            if waited && self.timeout.is_some() && self.waits.is_overdue() {
                return self.timed_out();
            }
            if error.class() == ErrorClass::LockNotAvailable && self.waits.is_cancelled() {
                return cancelled();
            }
            error
        })
    }

    /// Takes the turn before a write.
    ///
    /// A transaction begun by a plain BEGIN requests it at its first write. If it has read before, waiting would be
    /// useless: after the other session has written, SQLite refuses a write based on an older snapshot. The statement
    /// then fails immediately, as in SQLite itself, and the transaction is repeated.
    fn take_turn(&mut self, connection: &Connection) -> Result<()> {
        if self.turn.is_held() {
            return Ok(());
        }
        let has_read = !connection.is_autocommit()
            && connection.transaction_state(None::<&str>).map_err(translate)? != TransactionState::None;
        if has_read {
            if self.turn.take_if_free() { Ok(()) } else { Err(written_since()) }
        } else if self.turn.take(&self.waits) {
            Ok(())
        } else {
            Err(self.no_turn())
        }
    }

    fn no_turn(&mut self) -> Error {
        if self.waits.is_cancelled() {
            cancelled()
        } else if self.timeout.is_some() && self.waits.is_overdue() {
            self.timed_out()
        } else {
            Error::new(ErrorClass::LockNotAvailable, "other sessions kept writing for too long")
                .with_code("SQLITE_BUSY")
        }
    }

    fn timed_out(&mut self) -> Error {
        self.broken = true;
        let limit = self.timeout.unwrap_or_default();
        Error::new(ErrorClass::Timeout, format!("no answer within {limit:?}")).with_code("SQLITE_INTERRUPT")
    }
}

/// One connection to an SQLite file.
///
/// A compiled statement borrows its connection, so the compiled ones live in the connection's cache, looked up by their
/// text. That costs about 0.2 µs per call (of 0.7 for a look-up by key) and avoids unsafe code.
pub(crate) struct SqliteSession {
    // Dropped in this order: the connection rolls back before the turn at writing is given back.
    connection: Connection,
    calls: Calls,
    statements: Vec<Prepared>,
    queue: Vec<Queued>,
    queued_parameters: Parameters,
}

/// The statements that every session prepares first, in the order of [`TransactionControl`].
const CONTROLS: [&str; 4] = ["BEGIN IMMEDIATE", "BEGIN", "COMMIT", "ROLLBACK"];

struct Prepared {
    sql: Box<str>,
    parameters: usize,
    /// Takes the write lock when no transaction has it yet.
    writes: bool,
    /// Inserts, updates or deletes, and returns no rows.
    changes: bool,
    /// Compiled at every execution.
    parses_each_time: bool,
    /// Its rows are skipped.
    ignores_rows: bool,
}

struct Queued {
    statement: Statement,
    first: usize,
}

impl SqliteSession {
    /// Creates a session from a connection whose settings have been made.
    pub(crate) fn new(connection: Connection, turns: Arc<Turns>, waits: Arc<Waits>) -> Result<Self> {
        connection.busy_handler(Some(busy::handler)).map_err(translate)?;
        let mut session = Self {
            connection,
            calls: Calls { turn: Turn::new(turns), waits, timeout: None, broken: false },
            statements: Vec::new(),
            queue: Vec::new(),
            queued_parameters: Parameters::default(),
        };
        for sql in CONTROLS {
            session.prepare(sql)?;
        }
        Ok(session)
    }

    fn execute_with(
        &mut self,
        statement: Statement,
        given: usize,
        bind: impl FnOnce(&mut Compiled<'_>) -> Result<()>,
        rows: &mut Rows,
    ) -> Result<()> {
        let Some(prepared) = self.statements.get(statement.0 as usize) else {
            return Err(unknown(statement));
        };
        if given != prepared.parameters {
            return Err(wrong_count(prepared, given));
        }
        self.calls.start();
        if statement == TransactionControl::Rollback.statement() && self.connection.is_autocommit() {
            // SQLite ends a transaction automatically after some errors; the caller need not know which.
            self.calls.turn.give_back();
            rows.reset(0, true);
            return Ok(());
        }
        if prepared.writes {
            self.calls.take_turn(&self.connection)?;
        }
        let outcome = run_prepared(&self.connection, prepared, bind, rows);
        self.calls.after_call(&self.connection, outcome)
    }
}

fn run_prepared(
    connection: &Connection,
    prepared: &Prepared,
    bind: impl FnOnce(&mut Compiled<'_>) -> Result<()>,
    rows: &mut Rows,
) -> Result<()> {
    let fields = if prepared.ignores_rows { Fields::Ignored } else { Fields::Plain };
    if prepared.parses_each_time {
        let mut compiled = connection.prepare(&prepared.sql).map_err(translate)?;
        bind(&mut compiled)?;
        fetch(&mut compiled, rows, fields)?;
    } else {
        let mut compiled = connection.prepare_cached(&prepared.sql).map_err(translate)?;
        bind(&mut compiled)?;
        fetch(&mut compiled, rows, fields)?;
    }
    if prepared.changes {
        rows.set_affected(connection.changes());
    }
    Ok(())
}

/// The fields to fetch from a result.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fields {
    Ignored,
    Plain,
    Named,
}

/// Runs a statement whose parameters are bound and replaces `rows` with its result.
fn fetch(compiled: &mut Compiled<'_>, rows: &mut Rows, fields: Fields) -> Result<()> {
    let mut columns = compiled.column_count();
    if fields == Fields::Ignored {
        rows.reset(0, true);
        let (mut found, mut count) = (compiled.raw_query(), 0);
        while found.next().map_err(translate)?.is_some() {
            count += 1;
        }
        rows.set_affected(count);
        return Ok(());
    }
    rows.reset(columns, true);
    if fields == Fields::Named {
        for name in compiled.column_names() {
            rows.push_name(name.as_bytes());
        }
    }
    let mut found = compiled.raw_query();
    let mut first = true;
    while let Some(row) = found.next().map_err(translate)? {
        if first {
            // The first step compiles anew after a change of the schema, and `SELECT *` may have grown.
            first = false;
            let now = row.as_ref().column_count();
            if now != columns {
                columns = now;
                rows.reset(columns, true);
                if fields == Fields::Named {
                    for name in row.as_ref().column_names() {
                        rows.push_name(name.as_bytes());
                    }
                }
            }
        }
        for column in 0..columns {
            match row.get_ref(column).map_err(translate)? {
                ValueRef::Null => rows.push(Cell::Null),
                ValueRef::Integer(value) => rows.push(Cell::Int(value)),
                ValueRef::Real(value) => rows.push(Cell::Float(value)),
                ValueRef::Text(text) => rows.push_text(text)?,
                ValueRef::Blob(_) => {
                    return Err(Error::new(ErrorClass::Statement, format!("column {column} is a blob")));
                }
            }
        }
    }
    rows.set_affected(rows.len() as u64);
    Ok(())
}

fn unknown(statement: Statement) -> Error {
    Error::usage(format!("statement {} was not prepared by this session", statement.0))
}

fn wrong_count(prepared: &Prepared, given: usize) -> Error {
    Error::usage(format!(
        "{given} parameters were given to a statement that has {}: {}",
        prepared.parameters, prepared.sql
    ))
}

#[cold]
fn written_since() -> Error {
    Error::new(ErrorClass::LockNotAvailable, "another session has written since this transaction read")
        .with_code("SQLITE_BUSY")
        .with_help("begin a transaction that reads before it writes with BEGIN IMMEDIATE")
}

fn cancelled() -> Error {
    Error::new(ErrorClass::Timeout, "cancelled while waiting for a lock").with_code("SQLITE_INTERRUPT")
}

/// Whether a statement's first word is one of those after which SQLite reports a number of changed rows.
fn is_change(sql: &str) -> bool {
    let word =
        sql.split(|c: char| !c.is_ascii_alphabetic()).find(|word| !word.is_empty()).unwrap_or_default();
    ["insert", "update", "delete", "replace", "with"].iter().any(|known| word.eq_ignore_ascii_case(known))
}

impl Session for SqliteSession {
    fn engine(&self) -> EngineKind {
        EngineKind::Sqlite
    }

    fn control(&mut self, control: TransactionControl) -> Result<()> {
        if control == TransactionControl::Rollback {
            // A caller that gave up between queue and flush is cleaning up.
            self.queue.clear();
            self.queued_parameters.clear();
        }
        self.execute(control.statement(), &[], &mut Rows::new())
    }

    fn queue_control(&mut self, control: TransactionControl) -> Result<()> {
        self.queue(control.statement(), &[])
    }

    fn prepare(&mut self, sql: &str) -> Result<Statement> {
        let number = u32::try_from(self.statements.len()).map_err(|_| Error::usage("too many statements"))?;
        // The cache has to hold them all, or the measured path would compile.
        if self.statements.len().is_multiple_of(64) {
            self.connection.set_prepared_statement_cache_capacity(self.statements.len() + 128);
        }
        self.calls.start();
        let sql = &*placeholder::numbered(sql.trim(), "?").0;
        expect_one(&self.connection, sql)?;
        let compiled = self.connection.prepare_cached(sql).map_err(translate)?;
        let writes = !compiled.readonly();
        self.statements.push(Prepared {
            sql: sql.into(),
            parameters: compiled.parameter_count(),
            writes,
            changes: writes && compiled.column_count() == 0 && is_change(sql),
            parses_each_time: false,
            ignores_rows: false,
        });
        Ok(Statement(number))
    }

    fn execute(&mut self, statement: Statement, params: &[Value<'_>], rows: &mut Rows) -> Result<()> {
        self.execute_with(statement, params.len(), |compiled| parameters::bind(compiled, params), rows)
    }

    fn queue(&mut self, statement: Statement, params: &[Value<'_>]) -> Result<()> {
        let Some(prepared) = self.statements.get(statement.0 as usize) else {
            return Err(unknown(statement));
        };
        if params.len() != prepared.parameters {
            return Err(wrong_count(prepared, params.len()));
        }
        let first = self.queued_parameters.len();
        for param in params {
            if let Err(error) = self.queued_parameters.push(param) {
                self.queued_parameters.truncate(first);
                return Err(error);
            }
        }
        self.queue.push(Queued { statement, first });
        Ok(())
    }

    fn flush(&mut self, results: &mut Vec<Rows>) -> Result<()> {
        results.resize_with(self.queue.len(), Rows::new);
        let queue = std::mem::take(&mut self.queue);
        let kept = std::mem::take(&mut self.queued_parameters);
        let mut outcome = Ok(());
        for (index, queued) in queue.iter().enumerate() {
            let end = queue.get(index + 1).map_or(kept.len(), |next| next.first);
            let count = end - queued.first;
            let bind = |compiled: &mut Compiled<'_>| kept.bind(compiled, queued.first, count);
            outcome = self.execute_with(queued.statement, count, bind, &mut results[index]);
            if outcome.is_err() {
                break;
            }
        }
        self.queue = queue;
        self.queue.clear();
        self.queued_parameters = kept;
        self.queued_parameters.clear();
        outcome
    }

    fn run(&mut self, sql: &str) -> Result<()> {
        self.calls.start();
        let outcome = run_all(&self.connection, &mut self.calls, sql, None);
        self.calls.after_call(&self.connection, outcome)
    }

    fn query(&mut self, sql: &str) -> Result<Rows> {
        self.calls.start();
        let mut rows = Rows::new();
        let outcome = expect_one(&self.connection, sql)
            .and_then(|()| self.connection.prepare(sql).map_err(translate))
            .and_then(|mut compiled| {
                fetch(&mut compiled, &mut rows, Fields::Plain).map(|()| compiled.column_count())
            });
        match self.calls.after_call(&self.connection, outcome)? {
            0 if is_change(sql) => rows.set_affected(self.connection.changes()),
            _ => {}
        }
        Ok(rows)
    }

    fn prepare_text(
        &mut self,
        sql: &str,
        parse_each_time: bool,
        columns: &mut Vec<String>,
    ) -> Result<Statement> {
        let statement = self.prepare(sql)?;
        columns.clear();
        if let Some(prepared) = self.statements.last_mut() {
            prepared.parses_each_time = parse_each_time;
            let compiled = self.connection.prepare_cached(&prepared.sql).map_err(translate)?;
            columns.extend(compiled.column_names().into_iter().map(str::to_owned));
        }
        Ok(statement)
    }

    fn ignore_rows(&mut self, statement: Statement) {
        if let Some(prepared) = self.statements.get_mut(statement.0 as usize) {
            prepared.ignores_rows = true;
        }
    }

    fn query_text(&mut self, sql: &str, results: &mut Vec<Rows>) -> Result<()> {
        self.calls.start();
        let outcome = run_all(&self.connection, &mut self.calls, sql, Some(results));
        self.calls.after_call(&self.connection, outcome)
    }

    fn bulk_load<'a>(&'a mut self, table: &'a BulkTable<'a>) -> Result<Box<dyn BulkLoad + 'a>> {
        self.calls.start();
        match SqliteLoad::prepare(&self.connection, table) {
            Ok(prepared) => Ok(Box::new(SqliteLoad::new(&self.connection, &mut self.calls, table, prepared))),
            Err(error) => self.calls.after_call(&self.connection, Err(error)),
        }
    }

    fn in_transaction(&self) -> bool {
        !self.connection.is_autocommit()
    }

    fn is_broken(&self) -> bool {
        self.calls.broken
    }

    fn set_timeout(&mut self, timeout: Option<Duration>) -> Result<()> {
        self.calls.timeout = timeout;
        self.calls.waits.clear_deadline();
        let waits = Arc::clone(&self.calls.waits);
        let handler = timeout.map(|_| move || waits.is_overdue());
        self.connection.progress_handler(STEPS_BETWEEN_LOOKS, handler).map_err(translate)
    }

    fn cancel(&self) -> Box<dyn Cancel> {
        Box::new(SqliteCancel {
            interrupt: self.connection.get_interrupt_handle(),
            waits: Arc::clone(&self.calls.waits),
        })
    }

    fn busy_waits(&self) -> u64 {
        self.calls.waits.count()
    }
}

/// Runs every statement of `sql`, and stores the result of each if the caller wants them.
fn run_all(
    connection: &Connection,
    calls: &mut Calls,
    sql: &str,
    mut results: Option<&mut Vec<Rows>>,
) -> Result<()> {
    let mut batch = Batch::new(connection, sql);
    let mut count = 0;
    while let Some(mut compiled) = batch.next().map_err(translate)? {
        if !compiled.readonly() {
            calls.take_turn(connection)?;
        }
        if let Some(results) = results.as_deref_mut() {
            if results.len() == count {
                results.push(Rows::new());
            }
            fetch(&mut compiled, &mut results[count], Fields::Named)?;
            count += 1;
        } else {
            let mut rows = compiled.raw_query();
            while rows.next().map_err(translate)?.is_some() {}
        }
        if connection.is_autocommit() {
            calls.turn.give_back();
        }
    }
    if let Some(results) = results {
        results.truncate(count);
    }
    Ok(())
}

/// Refuses an empty text, and a second statement, which SQLite would silently ignore.
fn expect_one(connection: &Connection, sql: &str) -> Result<()> {
    let mut batch = Batch::new(connection, sql);
    if batch.next().map_err(translate)?.is_none() {
        return Err(Error::new(ErrorClass::Statement, "the text contains no statement"));
    }
    if batch.next().map_err(translate)?.is_some() {
        return Err(translate(rusqlite::Error::MultipleStatement));
    }
    Ok(())
}

struct SqliteCancel {
    interrupt: InterruptHandle,
    waits: Arc<Waits>,
}

impl Cancel for SqliteCancel {
    fn cancel(&self) -> Result<()> {
        self.waits.cancel();
        self.interrupt.interrupt();
        Ok(())
    }
}

//! Loading many rows: INSERT statements of many rows each.

use rusqlite::{CachedStatement, Connection};

use super::error::translate;
use super::parameters::Parameters;
use super::session::Calls;
use crate::session::quote;
use crate::{BulkLoad, BulkTable, Error, ErrorClass, Result, Value};

/// Parameters of one INSERT.
const PARAMETERS: usize = 256;

/// Rows of one INSERT.
const ROWS: usize = 64;

/// A load under way.
pub(crate) struct SqliteLoad<'a> {
    connection: &'a Connection,
    calls: &'a mut Calls,
    table: &'a BulkTable<'a>,
    insert: CachedStatement<'a>,
    rows_per_insert: usize,
    pending: Parameters,
    pending_rows: usize,
    total: u64,
    /// An INSERT failed: the preceding rows may be lost.
    failed: bool,
}

impl<'a> SqliteLoad<'a> {
    /// Checks the table and compiles the INSERT of as many rows as one takes.
    pub(crate) fn prepare(connection: &'a Connection, table: &BulkTable<'_>) -> Result<CachedStatement<'a>> {
        if table.columns.is_empty() {
            return Err(Error::usage(format!("no columns to load into {}", table.name)));
        }
        if connection.is_autocommit() {
            // Every INSERT would be its own transaction: a hundred times slower, and half a load could stay.
            return Err(Error::usage("a bulk load into SQLite needs an open transaction"));
        }
        connection.prepare_cached(&insert_sql(table, rows_per_insert(table))).map_err(translate)
    }

    pub(crate) fn new(
        connection: &'a Connection,
        calls: &'a mut Calls,
        table: &'a BulkTable<'a>,
        insert: CachedStatement<'a>,
    ) -> Self {
        Self {
            connection,
            calls,
            table,
            insert,
            rows_per_insert: rows_per_insert(table),
            pending: Parameters::default(),
            pending_rows: 0,
            total: 0,
            failed: false,
        }
    }

    fn check_usable(&self) -> Result<()> {
        if self.failed { Err(Error::usage("the load has already failed")) } else { Ok(()) }
    }

    /// Inserts the pending rows, which fill an INSERT.
    fn insert(&mut self) -> Result<()> {
        self.calls.start();
        let bound = self.pending.bind(&mut self.insert, 0, self.pending.len());
        let outcome = bound.and_then(|()| self.insert.raw_execute().map_err(translate));
        self.pending.clear();
        self.pending_rows = 0;
        self.after_insert(outcome)
    }

    /// Inserts the pending rows, fewer than an INSERT takes.
    fn insert_rest(&mut self) -> Result<()> {
        self.calls.start();
        let sql = insert_sql(self.table, self.pending_rows);
        let compiled = self.connection.prepare(&sql).map_err(translate);
        let outcome = compiled.and_then(|mut insert| {
            self.pending.bind(&mut insert, 0, self.pending.len())?;
            insert.raw_execute().map_err(translate)
        });
        self.after_insert(outcome)
    }

    fn after_insert(&mut self, outcome: Result<usize>) -> Result<()> {
        self.failed = outcome.is_err();
        self.total += self.calls.after_call(self.connection, outcome)? as u64;
        Ok(())
    }
}

fn rows_per_insert(table: &BulkTable<'_>) -> usize {
    (PARAMETERS / table.columns.len().max(1)).clamp(1, ROWS)
}

/// The text of an INSERT of `rows` rows.
fn insert_sql(table: &BulkTable<'_>, rows: usize) -> String {
    let columns: Vec<String> = table.columns.iter().map(|(name, _)| quote(name)).collect();
    let one_row = format!("({})", vec!["?"; columns.len()].join(","));
    format!(
        "INSERT INTO {} ({}) VALUES {}",
        quote(table.name),
        columns.join(","),
        vec![one_row; rows].join(",")
    )
}

impl BulkLoad for SqliteLoad<'_> {
    fn row(&mut self, values: &[Value<'_>]) -> Result<()> {
        self.check_usable()?;
        if values.len() != self.table.columns.len() {
            return Err(Error::usage(format!(
                "{} values for the {} columns of {}",
                values.len(),
                self.table.columns.len(),
                self.table.name
            )));
        }
        let first = self.pending.len();
        for value in values {
            if let Err(error) = self.pending.push(value) {
                self.pending.truncate(first);
                return Err(error);
            }
        }
        self.pending_rows += 1;
        if self.pending_rows == self.rows_per_insert { self.insert() } else { Ok(()) }
    }

    fn finish(mut self: Box<Self>) -> Result<u64> {
        self.check_usable()?;
        if self.pending_rows > 0 {
            self.insert_rest()?;
        }
        if self.connection.is_autocommit() {
            return Err(Error::new(
                ErrorClass::Server,
                "the transaction of the load ended before the load did",
            ));
        }
        Ok(self.total)
    }
}

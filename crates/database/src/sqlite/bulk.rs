//! Loading many rows: INSERT statements of many rows each.

use rusqlite::{CachedStatement, Connection};

use super::error::translate;
use super::parameters::Parameters;
use crate::{BulkLoad, BulkTable, Error, ErrorClass, Result, Value};

/// Parameters of one INSERT.
const PARAMETERS: usize = 256;

/// Rows of one INSERT.
const ROWS: usize = 64;

/// A load under way.
pub(crate) struct SqliteLoad<'a> {
    connection: &'a Connection,
    table: &'a BulkTable<'a>,
    insert: CachedStatement<'a>,
    rows_per_insert: usize,
    pending: Parameters,
    pending_rows: usize,
    total: u64,
}

impl<'a> SqliteLoad<'a> {
    pub(crate) fn new(connection: &'a Connection, table: &'a BulkTable<'a>) -> Result<Self> {
        if table.columns.is_empty() {
            return Err(Error::usage(format!("no columns to load into {}", table.name)));
        }
        if connection.is_autocommit() {
            // Every INSERT would be its own transaction: a hundred times slower, and half a load could stay.
            return Err(Error::usage("a bulk load into SQLite needs an open transaction"));
        }
        let rows_per_insert = (PARAMETERS / table.columns.len()).clamp(1, ROWS);
        let insert = connection.prepare_cached(&insert_sql(table, rows_per_insert)).map_err(translate)?;
        Ok(Self {
            connection,
            table,
            insert,
            rows_per_insert,
            pending: Parameters::default(),
            pending_rows: 0,
            total: 0,
        })
    }
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

/// An identifier as SQL.
fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

impl BulkLoad for SqliteLoad<'_> {
    fn row(&mut self, values: &[Value<'_>]) -> Result<()> {
        if values.len() != self.table.columns.len() {
            return Err(Error::usage(format!(
                "{} values for the {} columns of {}",
                values.len(),
                self.table.columns.len(),
                self.table.name
            )));
        }
        for value in values {
            self.pending.push(value)?;
        }
        self.pending_rows += 1;
        if self.pending_rows == self.rows_per_insert {
            self.pending.bind(&mut self.insert, 0, self.pending.len())?;
            self.total += self.insert.raw_execute().map_err(translate)? as u64;
            self.pending.clear();
            self.pending_rows = 0;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<u64> {
        if self.pending_rows > 0 {
            let sql = insert_sql(self.table, self.pending_rows);
            let mut insert = self.connection.prepare(&sql).map_err(translate)?;
            self.pending.bind(&mut insert, 0, self.pending.len())?;
            self.total += insert.raw_execute().map_err(translate)? as u64;
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

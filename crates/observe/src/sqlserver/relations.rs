//! Tables and indexes: how large, how many rows, how often read and written, and how old their statistics are.

use std::collections::HashMap;

use kelvin_database::{Result, Rows, Session};
use kelvin_measure::observation::{Relation, TableWrites, UnavailableMetrics};

use super::indexes;
use super::link::Server;
use super::sql;

/// A table and the number of one of its indexes; a heap and a clustered index are the table itself.
pub(super) type Key = (String, i64);

/// Reads the largest tables and indexes, and the size of the database in bytes. Definitions, writes and statistics are left out where
/// the server refuses them: [`unreadable`] says so.
pub(super) fn read(session: &mut dyn Session, server: &Server) -> Result<(Vec<Relation>, u64)> {
    let rows = session.query(&sql::relations(server.has("dm_db_index_usage_stats")))?;
    // Before what may take long enough to break the connection.
    let size = session.query(sql::SIZE)?.int(0, 0)?;
    let mut definitions = indexes::read(session).unwrap_or_default();
    let writes = writes(session).ok();
    let statistics = statistics(session).unwrap_or_default();
    let mut found: Vec<Relation> = Vec::new();
    for row in 0..rows.len() {
        let count = |column| -> Result<Option<u64>> {
            Ok(rows.optional(row, column, Rows::int)?.map(|value| value.max(0).unsigned_abs()))
        };
        let table = rows.text(row, 0)?;
        // The table itself: a heap, or its clustered index.
        let number = rows.int(row, 2)?;
        let is_table = number <= 1;
        let index = rows.optional(row, 1, Rows::text)?.filter(|_| !is_table);
        let (scans, lookups) = (count(5)?, count(6)?);
        let key = (table.to_owned(), number);
        let index_facts = definitions.remove(&key).filter(|_| !is_table);
        let statistics = statistics.get(table).filter(|_| is_table);
        found.push(Relation {
            // Only with its table's is an index's name the only one.
            name: index.map_or_else(|| table.to_owned(), |index| format!("{table}.{index}")),
            kind: if is_table { "table" } else { "index" }.into(),
            table: index.map(|_| table.to_owned()),
            bytes: count(3)?.unwrap_or(0),
            rows: if is_table { count(4)? } else { None },
            sequential_scans: scans.filter(|_| is_table),
            index_scans: if is_table {
                lookups
            } else {
                scans.zip(lookups).map(|(scans, seeks)| scans + seeks)
            },
            enforces: index_facts.as_ref().map(|facts| facts.enforces),
            definition: index_facts.and_then(|facts| facts.definition),
            // What nobody has used has no row.
            writes: writes.as_ref().map(|all| all.get(&key).copied().unwrap_or(UNUSED)),
            analyzed: statistics.map(|facts| facts.filled),
            changed_since_analyze: statistics.and_then(|facts| facts.changed),
            analyzed_ago: statistics.and_then(|facts| facts.ago),
            ..Relation::default()
        });
    }
    Ok((found, size.max(0).unsigned_abs()))
}

const UNUSED: TableWrites = TableWrites { inserted: 0, updated: 0, updated_in_page: 0, fillfactor: 100 };

fn writes(session: &mut dyn Session) -> Result<HashMap<Key, TableWrites>> {
    let rows = session.query(sql::WRITES)?;
    let one = |row| {
        let count = |column| Ok::<u64, kelvin_database::Error>(rows.int(row, column)?.max(0).unsigned_abs());
        let (inserted, updated) = (count(2)?, count(3)?);
        // An update in place changes the one index, whose own count it is.
        let writes = TableWrites { inserted, updated, updated_in_page: updated, ..UNUSED };
        Ok(((rows.text(row, 0)?.to_owned(), rows.int(row, 1)?), writes))
    };
    (0..rows.len()).map(one).collect()
}

/// What is known of a table's statistics.
struct Statistics {
    /// Whether any of them were made when there were rows.
    filled: bool,
    changed: Option<u64>,
    /// Seconds since the one with the most changes was renewed.
    ago: Option<f64>,
}

fn statistics(session: &mut dyn Session) -> Result<HashMap<String, Statistics>> {
    let rows = session.query(sql::STATISTICS)?;
    let one = |row| {
        let changed = rows.optional(row, 2, Rows::int)?.map(|changes| changes.max(0).unsigned_abs());
        let ago = rows.optional(row, 3, Rows::float)?;
        let statistics = Statistics { filled: rows.int(row, 1)? > 0, changed, ago };
        Ok((rows.text(row, 0)?.to_owned(), statistics))
    };
    (0..rows.len()).map(one).collect()
}

/// What the server refuses of what [`read`] adds to tables and indexes, and of the settings.
pub(super) fn unreadable(session: &mut dyn Session) -> Vec<UnavailableMetrics> {
    let parts = [
        ("definitions of indexes", sql::INDEXES),
        ("foreign keys", sql::FOREIGN_KEYS),
        ("writes of tables and indexes", sql::WRITES),
        ("ages of statistics", sql::STATISTICS),
        ("numbers of worker threads and of tempdb's files", sql::LIMITS),
        ("memory model", sql::MEMORY),
    ];
    let mut refused = Vec::new();
    for (what, sql) in parts {
        if let Err(error) = session.query(sql) {
            refused.push(UnavailableMetrics { what: what.into(), why: error.to_string() });
        }
        if session.is_broken() {
            break;
        }
    }
    refused
}

//! Tables and indexes: how large, how many rows, and how often all of them was read.

use kelvin_database::{Result, Rows, Session};
use kelvin_measure::observation::Relation;

use super::link::Server;
use super::sql;

/// Reads the largest tables and indexes, and the size of the database in bytes.
pub(super) fn read(session: &mut dyn Session, server: &Server) -> Result<(Vec<Relation>, u64)> {
    let rows = session.query(&sql::relations(server.has("dm_db_index_usage_stats")))?;
    let mut found: Vec<Relation> = Vec::new();
    for row in 0..rows.len() {
        let count = |column| -> Result<Option<u64>> {
            Ok(rows.optional(row, column, Rows::int)?.map(|value| value.max(0).unsigned_abs()))
        };
        let table = rows.text(row, 0)?;
        // The table itself: a heap, or its clustered index.
        let is_table = rows.int(row, 2)? <= 1;
        let index = rows.optional(row, 1, Rows::text)?.filter(|_| !is_table);
        let schema = table.split_once('.').map_or("", |(schema, _)| schema);
        let (scans, lookups) = (count(5)?, count(6)?);
        found.push(Relation {
            name: index.map_or_else(|| table.to_owned(), |index| format!("{schema}.{index}")),
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
            ..Relation::default()
        });
    }
    let size = session.query(sql::SIZE)?.int(0, 0)?;
    Ok((found, size.max(0).unsigned_abs()))
}

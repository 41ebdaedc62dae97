//! Tables: how large, and how many rows.

use kelvin_database::{Result, Session};
use kelvin_measure::observation::Relation;

/// The 200 largest of the database: name, bytes of data and indexes, rows as InnoDB estimates them.
const TABLES: &str = "SELECT CONCAT(TABLE_SCHEMA, '.', TABLE_NAME), CAST(COALESCE(DATA_LENGTH + INDEX_LENGTH, 0) AS SIGNED), \
     CAST(COALESCE(TABLE_ROWS, 0) AS SIGNED) FROM information_schema.TABLES \
     WHERE TABLE_SCHEMA = DATABASE() AND TABLE_TYPE = 'BASE TABLE' ORDER BY 2 DESC, 1 LIMIT 200";

/// All bytes of the database.
const SIZE: &str = "SELECT CAST(COALESCE(SUM(DATA_LENGTH + INDEX_LENGTH), 0) AS SIGNED) FROM information_schema.TABLES \
     WHERE TABLE_SCHEMA = DATABASE()";

/// Reads the largest tables and the size of the database in bytes.
pub(super) fn read(session: &mut dyn Session) -> Result<(Vec<Relation>, u64)> {
    let rows = session.query(TABLES)?;
    let count = |value: i64| value.max(0).unsigned_abs();
    let one = |row| {
        Ok(Relation {
            name: rows.text(row, 0)?.to_owned(),
            kind: "table".into(),
            bytes: count(rows.int(row, 1)?),
            rows: Some(count(rows.int(row, 2)?)),
            ..Relation::default()
        })
    };
    let tables = (0..rows.len()).map(one).collect::<Result<_>>()?;
    Ok((tables, count(session.query(SIZE)?.int(0, 0)?)))
}

//! Tables and indexes: how large, how many rows, how often used and written.

use std::collections::{BTreeMap, HashMap, HashSet};

use kelvin_database::mysql::quote;
use kelvin_database::{Result, Rows, Session};
use kelvin_measure::observation::{Relation, TableWrites};

use super::counters::USES as USES_OF_INDEXES;
use super::link::Server;
use super::sessions::text;

/// The 200 largest of the database: name, bytes of data and indexes, rows as InnoDB estimates them.
const TABLES: &str = "SELECT CONCAT(TABLE_SCHEMA, '.', TABLE_NAME), CAST(COALESCE(DATA_LENGTH + INDEX_LENGTH, 0) AS SIGNED), \
     CAST(COALESCE(TABLE_ROWS, 0) AS SIGNED) FROM information_schema.TABLES \
     WHERE TABLE_SCHEMA = DATABASE() AND TABLE_TYPE = 'BASE TABLE' ORDER BY 2 DESC, 1 LIMIT 200";

/// All bytes of the database.
const SIZE: &str = "SELECT CAST(COALESCE(SUM(DATA_LENGTH + INDEX_LENGTH), 0) AS SIGNED) FROM information_schema.TABLES \
     WHERE TABLE_SCHEMA = DATABASE()";

/// Columns that need an index: those of foreign keys, those that they refer to, also from other databases, and those that count by
/// themselves: table and column of either.
const KEYS: &str = "SELECT CONCAT(TABLE_SCHEMA, '.', TABLE_NAME), COLUMN_NAME, \
     CONCAT(REFERENCED_TABLE_SCHEMA, '.', REFERENCED_TABLE_NAME), REFERENCED_COLUMN_NAME \
     FROM information_schema.KEY_COLUMN_USAGE WHERE DATABASE() IN (TABLE_SCHEMA, REFERENCED_TABLE_SCHEMA) \
     AND REFERENCED_TABLE_NAME IS NOT NULL UNION ALL \
     SELECT CONCAT(TABLE_SCHEMA, '.', TABLE_NAME), COLUMN_NAME, CONCAT(TABLE_SCHEMA, '.', TABLE_NAME), COLUMN_NAME \
     FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND EXTRA LIKE '%auto_increment%'";

/// Bytes of indexes by InnoDB's own statistics, which not every account may read. Partitions have names of their own.
const INDEX_BYTES: &str = "SELECT CONCAT(database_name, '.', SUBSTRING_INDEX(SUBSTRING_INDEX(table_name, '#P#', 1), '#p#', 1)), \
     index_name, CAST(SUM(stat_value) * @@innodb_page_size AS SIGNED) FROM mysql.innodb_index_stats \
     WHERE stat_name = 'size' AND database_name = DATABASE() GROUP BY 1, 2";

/// Seconds since InnoDB's statistics of each table were renewed, which not every account may read.
const RENEWED: &str = "SELECT CONCAT(database_name, '.', SUBSTRING_INDEX(SUBSTRING_INDEX(table_name, '#P#', 1), '#p#', 1)), \
     CAST(TIMESTAMPDIFF(SECOND, MIN(last_update), NOW()) AS SIGNED) FROM mysql.innodb_table_stats \
     WHERE database_name = DATABASE() GROUP BY 1";

/// Rows of each table that were changed since then, or since the server's start, which requires the privilege PROCESS.
fn changed(server: &Server) -> String {
    let view = if server.mariadb { "INNODB_SYS_TABLESTATS" } else { "INNODB_TABLESTATS" };
    format!(
        "SELECT SUBSTRING_INDEX(SUBSTRING_INDEX(REPLACE(NAME, '/', '.'), '#P#', 1), '#p#', 1), \
         CAST(SUM(MODIFIED_COUNTER) AS SIGNED) FROM information_schema.{view} \
         WHERE SUBSTRING_INDEX(NAME, '/', 1) = DATABASE() AND STATS_INITIALIZED <> 'Uninitialized' GROUP BY 1"
    )
}

/// Rows that were found through each index, or through none, and those inserted and updated. Which index an insert is counted for is of no
/// meaning.
const USES: &str = "SELECT CONCAT(OBJECT_SCHEMA, '.', OBJECT_NAME), INDEX_NAME, CAST(COUNT_READ AS SIGNED), \
     CAST(COUNT_INSERT AS SIGNED), CAST(COUNT_UPDATE AS SIGNED) \
     FROM performance_schema.table_io_waits_summary_by_index_usage WHERE OBJECT_SCHEMA = DATABASE()";

/// Indexes that the server had no room to count.
const LOST: &str = "SHOW GLOBAL STATUS LIKE 'Performance_schema_index_stat_lost'";

const COUNTED: &str = "SELECT CAST(COUNT(*) AS SIGNED) FROM performance_schema.setup_instruments \
     WHERE NAME = 'wait/io/table/sql/handler' AND ENABLED = 'YES'";

/// Columns of each index in their order: table, index, whether it is unique, whether it is a B-tree that the optimizer may use, column
/// (none for an expression), length of its prefix, direction, comment in quotes.
fn columns(server: &Server) -> String {
    let visible = match (server.mariadb, server.version) {
        (true, 100_600..) => "IGNORED = 'NO'",
        (false, 80_000..) => "IS_VISIBLE = 'YES'",
        _ => "1",
    };
    format!(
        "SELECT CONCAT(TABLE_SCHEMA, '.', TABLE_NAME), INDEX_NAME, CAST(NON_UNIQUE = 0 AS SIGNED), \
         CAST(INDEX_TYPE = 'BTREE' AND {visible} AS SIGNED), COLUMN_NAME, CAST(SUB_PART AS SIGNED), COLLATION, QUOTE(INDEX_COMMENT) \
         FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = DATABASE() ORDER BY 1, 2, SEQ_IN_INDEX"
    )
}

/// Table and index; none for rows that were found without one.
type Key = (String, Option<String>);

/// How often rows were used, inserted and updated so far.
type Uses = HashMap<Key, [u64; 3]>;

/// Whether uses of indexes are counted.
pub(super) fn are_counted(session: &mut dyn Session, server: &Server) -> Result<bool> {
    Ok(server.performance_schema && session.query(COUNTED)?.int(0, 0)? == 1)
}

/// What the account may not read of what [`read`] adds to the tables.
pub(super) fn unreadable(session: &mut dyn Session) -> Vec<(&'static str, String)> {
    let tables = [
        (USES_OF_INDEXES, "performance_schema.table_io_waits_summary_by_index_usage"),
        ("sizes of indexes", "mysql.innodb_index_stats"),
    ];
    let of = |(what, table)| {
        let error = session.query(&format!("SELECT 1 FROM {table} LIMIT 0")).err()?;
        Some((what, format!("{table}: {error}")))
    };
    tables.into_iter().filter_map(of).collect()
}

/// Reads the largest tables with their indexes, and the size of the database in bytes. Indexes or their uses are left out where the server
/// refuses them or takes too long.
pub(super) fn read(session: &mut dyn Session, server: &Server) -> Result<(Vec<Relation>, u64)> {
    let rows = session.query(TABLES)?;
    let one = |row| {
        Ok(Relation {
            name: rows.text(row, 0)?.to_owned(),
            kind: "table".into(),
            bytes: count(rows.int(row, 1)?),
            rows: Some(count(rows.int(row, 2)?)),
            ..Relation::default()
        })
    };
    let mut found = (0..rows.len()).map(one).collect::<Result<Vec<_>>>()?;
    let renewed = by_name(session, RENEWED).unwrap_or_default();
    let changed = by_name(session, &changed(server)).unwrap_or_default();
    for table in &mut found {
        table.analyzed_ago = renewed.get(&table.name).map(|seconds| *seconds as f64);
        table.changed_since_analyze = changed.get(&table.name).copied();
    }
    let uses = if are_counted(session, server).unwrap_or(false) { uses(session).ok() } else { None };
    let listed: HashSet<String> = found.iter().map(|table| table.name.clone()).collect();
    let mut indexes = indexes(session, server).unwrap_or_default();
    indexes.retain(|index| index.table.as_ref().is_some_and(|table| listed.contains(table)));
    if let Some((uses, complete)) = &uses {
        for table in &mut found {
            let of = |which: usize| {
                let its = uses.iter().filter(|((name, _), _)| *name == table.name);
                its.map(|(_, counts)| counts[which]).sum()
            };
            let (inserted, updated) = (of(1), of(2));
            // An update changes only the indexes whose columns it changes, and which those are is not counted.
            table.writes = Some(TableWrites { inserted, updated, updated_in_page: updated, fillfactor: 100 });
        }
        for index in &mut indexes {
            let table = index.table.clone().unwrap_or_default();
            let name = index.name.get(table.len() + 1..).map(str::to_owned);
            // One that nobody opened has no row.
            index.index_scans = uses.get(&(table, name)).map(|counts| counts[0]).or(complete.then_some(0));
        }
    }
    found.extend(indexes);
    Ok((found, count(session.query(SIZE)?.int(0, 0)?)))
}

fn count(value: i64) -> u64 {
    value.max(0).unsigned_abs()
}

/// A number for each name.
fn by_name(session: &mut dyn Session, sql: &str) -> Result<HashMap<String, u64>> {
    let rows = session.query(sql)?;
    (0..rows.len()).map(|row| Ok((rows.text(row, 0)?.to_owned(), count(rows.int(row, 1)?)))).collect()
}

/// With whether they are those of all indexes.
fn uses(session: &mut dyn Session) -> Result<(Uses, bool)> {
    let lost = session.query(LOST)?;
    let complete = lost.is_empty() || lost.text(0, 1)?.trim() == "0";
    let rows = session.query(USES)?;
    let one = |row| {
        let index = rows.optional(row, 1, Rows::text)?.map(str::to_owned);
        let counts = [count(rows.int(row, 2)?), count(rows.int(row, 3)?), count(rows.int(row, 4)?)];
        Ok(((rows.text(row, 0)?.to_owned(), index), counts))
    };
    Ok(((0..rows.len()).map(one).collect::<Result<_>>()?, complete))
}

/// All indexes of the database.
fn indexes(session: &mut dyn Session, server: &Server) -> Result<Vec<Relation>> {
    let rows = session.query(KEYS)?;
    let mut keys = HashSet::new();
    for row in 0..rows.len() {
        for (table, column) in [(0, 1), (2, 3)] {
            keys.insert((text(&rows, row, table)?.to_owned(), text(&rows, row, column)?.to_owned()));
        }
    }
    let mut bytes = HashMap::new();
    // The sizes are left out where the account may not read them.
    if let Ok(rows) = session.query(INDEX_BYTES) {
        for row in 0..rows.len() {
            let key = (rows.text(row, 0)?.to_owned(), rows.text(row, 1)?.to_owned());
            bytes.insert(key, count(rows.int(row, 2)?));
        }
    }
    let rows = session.query(&columns(server))?;
    let mut found: BTreeMap<(String, String), Index> = BTreeMap::new();
    for row in 0..rows.len() {
        let (table, name) = (rows.text(row, 0)?.to_owned(), rows.text(row, 1)?.to_owned());
        let column = rows.optional(row, 4, Rows::text)?;
        let part = match column {
            Some(column) if rows.int(row, 3)? == 1 => {
                let length = rows.optional(row, 5, Rows::int)?;
                let length = length.map_or_else(String::new, |length| format!("({length})"));
                let descends = rows.optional(row, 6, Rows::text)? == Some("D");
                Some(format!("{}{length}{}", quote(column), if descends { " DESC" } else { "" }))
            }
            _ => None,
        };
        let is_key = column.is_some_and(|column| keys.contains(&(table.clone(), column.to_owned())));
        let (unique, comment) = (rows.int(row, 2)? == 1, text(&rows, row, 7)?.to_owned());
        let index = found.entry((table, name));
        let index = index.or_insert_with(|| Index { unique, is_key, comment, parts: Some(Vec::new()) });
        index.parts = index.parts.take().zip(part).map(|(mut parts, part)| {
            parts.push(part);
            parts
        });
    }
    let one = |((table, name), index): ((String, String), Index)| Relation {
        name: format!("{table}.{name}"),
        kind: "index".into(),
        definition: index.definition(&table, &name),
        enforces: Some(index.unique || index.is_key),
        // That of the primary key is the table.
        bytes: bytes.get(&(table.clone(), name.clone())).copied().filter(|_| name != PRIMARY).unwrap_or(0),
        table: Some(table),
        ..Relation::default()
    };
    Ok(found.into_iter().map(one).collect())
}

/// The name of every primary key.
const PRIMARY: &str = "PRIMARY";

struct Index {
    unique: bool,
    /// Whether its first column is one of [`KEYS`].
    is_key: bool,
    /// In quotes.
    comment: String,
    /// Its columns as they are declared; none where it is no B-tree of columns, or the optimizer may not use it.
    parts: Option<Vec<String>>,
}

impl Index {
    /// The statement that creates it. A name that contains a dot is indistinguishable from two names.
    fn definition(&self, table: &str, name: &str) -> Option<String> {
        let (schema, plain) = table.split_once('.').filter(|(_, plain)| !plain.contains('.'))?;
        let what = match name {
            PRIMARY => "PRIMARY KEY".to_owned(),
            _ if name.contains('.') => return None,
            _ => format!("{}INDEX {}", if self.unique { "UNIQUE " } else { "" }, quote(name)),
        };
        let comment = if matches!(self.comment.as_str(), "''" | "") {
            String::new()
        } else {
            format!(" COMMENT {}", self.comment)
        };
        let (schema, plain, parts) = (quote(schema), quote(plain), self.parts.as_ref()?.join(", "));
        Some(format!("ALTER TABLE {schema}.{plain} ADD {what} USING btree ({parts}){comment}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_made_again_as_it_was() {
        let index = |unique, comment: &str, parts: Option<&[&str]>| Index {
            unique,
            is_key: false,
            comment: comment.into(),
            parts: parts.map(|parts| parts.iter().map(|&part| part.to_owned()).collect()),
        };
        assert_eq!(
            index(false, "''", Some(&["`a`(10)", "`b` DESC"])).definition("k.h", "i`").unwrap(),
            "ALTER TABLE `k`.`h` ADD INDEX `i``` USING btree (`a`(10), `b` DESC)"
        );
        assert_eq!(
            index(true, "'why'", Some(&["`a`"])).definition("k.h", "u").unwrap(),
            "ALTER TABLE `k`.`h` ADD UNIQUE INDEX `u` USING btree (`a`) COMMENT 'why'"
        );
        let key = index(true, "''", Some(&["`a`"]));
        assert_eq!(
            key.definition("k.h", PRIMARY).unwrap(),
            "ALTER TABLE `k`.`h` ADD PRIMARY KEY USING btree (`a`)"
        );
        assert_eq!((key.definition("k.h", "a.b"), key.definition("k.a.b", "i")), (None, None));
        assert_eq!(index(false, "''", None).definition("k.h", "i"), None);
    }
}

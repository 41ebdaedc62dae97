//! The schema in SQLite's SQL.
//!
//! Money is an INTEGER in units of the column's last decimal place; time is an INTEGER of microseconds since
//! 1970. Tables with a primary key are WITHOUT ROWID: one B-tree clustered by the key instead of a table and
//! an index, so that an access by key, as all accesses are, descends one tree.

use super::{ColumnKind, Table};

/// The statement that creates a table. In SQLite foreign keys can be defined only within `create table`.
pub(crate) fn create_table(table: &Table, foreign_keys: bool) -> String {
    let mut parts: Vec<String> = table
        .columns
        .iter()
        .map(|column| {
            let kind = match column.kind {
                ColumnKind::Int4 | ColumnKind::Int2 | ColumnKind::Decimal { .. } | ColumnKind::Timestamp => {
                    "integer"
                }
                ColumnKind::VarChar(_) | ColumnKind::Char(_) => "text",
            };
            let not_null = if column.nullable { "" } else { " not null" };
            format!("{} {kind}{not_null}", column.name)
        })
        .collect();
    let key = table.key(false);
    if !key.is_empty() {
        parts.push(format!("primary key ({})", key.join(", ")));
    }
    if foreign_keys {
        parts.extend(table.foreign_keys.iter().map(|key| {
            format!(
                "foreign key ({}) references {} ({})",
                key.columns.join(", "),
                key.table,
                key.references.join(", ")
            )
        }));
    }
    // A single integer key is the rowid, by which the table is clustered already.
    let clustered = if key.len() > 1 { " without rowid" } else { "" };
    format!("create table {} ({}){clustered}", table.name, parts.join(", "))
}

/// Name and statement of the second index of a table.
pub(crate) fn indexes(table: &Table) -> Vec<(String, String)> {
    let statement = |index: &super::Index| {
        format!(
            "create unique index if not exists {} on {} ({})",
            index.name,
            table.name,
            index.columns.join(", ")
        )
    };
    table.second.iter().map(|index| (index.name.to_string(), statement(index))).collect()
}

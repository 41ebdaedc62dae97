//! The schema in MySQL's and MariaDB's SQL.
//!
//! InnoDB clusters a table by its primary key, so the key is created with the table. Texts are compared byte
//! by byte, as on the other engines. Times are UTC in `datetime(6)`, which has no time zone.

use super::{ColumnKind, Index, Name, Table};

/// Collation of every table and of every text in the routines: texts with different collations cannot be
/// compared.
pub(crate) const TEXTS: &str = "character set utf8mb4 collate utf8mb4_bin";

/// The statement that creates a table with its primary key.
pub(crate) fn create_table(table: &Table, partitions: Option<u32>) -> String {
    let mut parts: Vec<String> = table
        .columns
        .iter()
        .map(|column| {
            let not_null = if column.nullable { "" } else { " not null" };
            format!("{} {}{not_null}", column.name, type_name(column.kind))
        })
        .collect();
    let key = table.key(false);
    if !key.is_empty() {
        parts.push(format!("primary key ({})", key.join(", ")));
    }
    let partitions = match partitions.filter(|_| table.id == Name::OrderLine) {
        Some(count) => format!(" partition by hash (ol_w_id) partitions {count}"),
        None => String::new(),
    };
    format!("create table {} ({}) engine = InnoDB {TEXTS}{partitions}", table.name, parts.join(", "))
}

fn type_name(kind: ColumnKind) -> String {
    match kind {
        ColumnKind::Int4 => "integer".into(),
        ColumnKind::Int2 => "smallint".into(),
        ColumnKind::Decimal { precision, scale } => format!("decimal({precision},{scale})"),
        ColumnKind::VarChar(length) => format!("varchar({length})"),
        ColumnKind::Char(length) => format!("char({length})"),
        ColumnKind::Timestamp => "datetime(6)".into(),
    }
}

/// The statement that creates the second index of a table.
pub(crate) fn create_index(table: &Table, index: &Index) -> String {
    format!("create unique index {} on {} ({})", index.name, table.name, index.columns.join(", "))
}

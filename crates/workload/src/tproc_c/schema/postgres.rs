//! The schema in PostgreSQL's SQL.

use super::{ColumnKind, Name, Table};

/// Statements that create a table without keys: keys are created faster after the load (see `load`).
pub(crate) fn create_table(table: &Table, partitions: Option<u32>) -> Vec<String> {
    let columns: Vec<String> = table
        .columns
        .iter()
        .map(|column| {
            let not_null = if column.nullable { "" } else { " not null" };
            format!("{} {}{not_null}", column.name, type_name(column.kind))
        })
        .collect();
    let create = format!("create table {} ({})", table.name, columns.join(", "));
    match partitions.filter(|_| table.id == Name::OrderLine) {
        Some(count) => std::iter::once(format!("{create} partition by hash (ol_w_id)"))
            .chain((0..count).map(|part| {
                format!(
                    "create table order_line_{part} partition of order_line \
                     for values with (modulus {count}, remainder {part})"
                )
            }))
            .collect(),
        None => vec![create],
    }
}

fn type_name(kind: ColumnKind) -> String {
    match kind {
        ColumnKind::Int4 => "integer".into(),
        ColumnKind::Int2 => "smallint".into(),
        ColumnKind::Decimal { precision, scale } => format!("numeric({precision},{scale})"),
        ColumnKind::VarChar(length) => format!("varchar({length})"),
        ColumnKind::Char(length) => format!("char({length})"),
        ColumnKind::Timestamp => "timestamptz".into(),
    }
}

/// Name and statement of every index of a table: the primary key and the second one.
pub(crate) fn indexes(table: &Table, item_first: bool) -> Vec<(String, String)> {
    let mut indexes = Vec::new();
    let key = table.key(item_first);
    if !key.is_empty() {
        let name = table.key_name();
        let sql =
            format!("alter table {} add constraint {name} primary key ({})", table.name, key.join(", "));
        indexes.push((name, sql));
    }
    if let Some(index) = &table.second {
        let sql =
            format!("create unique index {} on {} ({})", index.name, table.name, index.columns.join(", "));
        indexes.push((index.name.into(), sql));
    }
    indexes
}

/// Name and statement of every foreign key of a table.
pub(crate) fn foreign_keys(table: &Table) -> Vec<(&'static str, String)> {
    table.foreign_keys.iter().map(|key| (key.name, key.add_to(table))).collect()
}

/// Sets hint bits and the visibility map, and gathers statistics on every column that queries compare.
pub(crate) fn vacuum(table: &Table) -> String {
    let columns: Vec<&str> = table.columns.iter().filter(|c| !c.filler).map(|c| c.name).collect();
    format!("vacuum (analyze) {} ({})", table.name, columns.join(", "))
}

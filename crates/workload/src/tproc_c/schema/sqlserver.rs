//! The schema in SQL Server's SQL.
//!
//! A table is created without indexes, so that several connections can load it concurrently (see `load`); its
//! primary key becomes its clustered index afterwards. Texts are compared byte by byte, as on the other
//! engines; times are UTC in `datetime2(6)`.

use super::{ColumnKind, Name, Table};

/// Collation of every text column.
pub(crate) const BY_BYTES: &str = "collate Latin1_General_BIN2";

/// Whether a table's rows are changed by all transactions, so that [`create_table`] puts each on a separate
/// page if asked to.
fn is_hot(table: &Table) -> bool {
    matches!(table.id, Name::Warehouse | Name::District)
}

/// The statement that creates a table without a key. With `fill_page` the rows of warehouse and district take
/// more than half a page, so that no two share one: a `char` takes its full length even if it is NULL.
pub(crate) fn create_table(table: &Table, fill_page: bool) -> String {
    let mut columns: Vec<String> = table
        .columns
        .iter()
        .map(|column| {
            let null = if column.nullable { "null" } else { "not null" };
            format!("{} {} {null}", column.name, type_name(column.kind))
        })
        .collect();
    if fill_page && is_hot(table) {
        columns.push(format!("{}_filler char(5000) {BY_BYTES} null", &table.name[..1]));
    }
    format!("create table {} ({})", table.name, columns.join(", "))
}

fn type_name(kind: ColumnKind) -> String {
    match kind {
        ColumnKind::Int4 => "int".into(),
        ColumnKind::Int2 => "smallint".into(),
        ColumnKind::Decimal { precision, scale } => format!("decimal({precision},{scale})"),
        ColumnKind::VarChar(length) => format!("varchar({length}) {BY_BYTES}"),
        ColumnKind::Char(length) => format!("char({length}) {BY_BYTES}"),
        ColumnKind::Timestamp => "datetime2(6)".into(),
    }
}

/// Names, columns and statements of a table's indexes: the clustered primary key and the second index.
pub(crate) fn indexes(table: &Table) -> Vec<(String, &'static [&'static str], String)> {
    let mut indexes = Vec::new();
    for (name, columns) in table.key_and_index(false) {
        let list = columns.join(", ");
        let sql = if name == table.key_name() {
            // A page lock would lock several warehouses.
            let locks = if is_hot(table) { " with (allow_page_locks = off)" } else { "" };
            format!("alter table {} add constraint {name} primary key clustered ({list}){locks}", table.name)
        } else {
            format!("create unique index {name} on {} ({list})", table.name)
        };
        indexes.push((name, columns, sql));
    }
    indexes
}

#[cfg(test)]
mod tests {
    use super::super::table;
    use super::*;

    #[test]
    fn a_filled_warehouse_takes_more_than_half_a_page_and_other_tables_are_as_ever() {
        let widened = create_table(table(Name::Warehouse), true);
        assert!(widened.contains("w_ytd decimal(16,2) not null, w_filler char(5000)"), "{widened}");
        assert!(create_table(table(Name::District), true).contains(", d_filler char(5000)"));
        assert!(!create_table(table(Name::District), false).contains("filler"));
        assert_eq!(create_table(table(Name::Orders), true), create_table(table(Name::Orders), false));
        let [key, second] = &indexes(table(Name::Orders))[..] else { panic!("orders has two indexes") };
        assert!(
            key.2.ends_with("add constraint orders_i1 primary key clustered (o_w_id, o_d_id, o_id)"),
            "{}",
            key.2
        );
        assert_eq!(second.2, "create unique index orders_i2 on orders (o_w_id, o_d_id, o_c_id, o_id)");
        assert!(indexes(table(Name::Warehouse))[0].2.ends_with("(w_id) with (allow_page_locks = off)"));
        assert!(indexes(table(Name::History)).is_empty());
    }
}

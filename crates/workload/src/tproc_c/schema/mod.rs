//! The nine tables, described once; each engine's file translates the description into its DDL.
//!
//! Columns are ordered by alignment (8, 4, 2 bytes, then variable length), which avoids padding in
//! PostgreSQL.

pub(crate) mod metadata;
pub(crate) mod mysql;
pub(crate) mod postgres;
pub(crate) mod sqlite;
pub(crate) mod sqlserver;

use kelvin_database::ColumnType;

use super::Profile;
pub(crate) use metadata::SchemaDialect;

/// Districts per warehouse.
pub(crate) const DISTRICTS: i64 = 10;
/// Customers, and initial orders, per district.
pub(crate) const CUSTOMERS: u32 = 3000;
/// Items, and stock rows per warehouse.
pub(crate) const ITEMS: u32 = 100_000;
/// The last initial order of a district that has been delivered.
pub(crate) const DELIVERED: u32 = 2100;

/// Rows of a table per warehouse; for order_line the expected number.
pub(crate) fn rows_of_a_warehouse(table: Name) -> u64 {
    let orders = DISTRICTS as u64 * u64::from(CUSTOMERS);
    match table {
        Name::Item => 0,
        Name::Warehouse => 1,
        Name::District => DISTRICTS as u64,
        Name::Customer | Name::History | Name::Orders => orders,
        Name::Stock => u64::from(ITEMS),
        Name::NewOrder => DISTRICTS as u64 * u64::from(CUSTOMERS - DELIVERED),
        Name::OrderLine => orders * 10,
    }
}

/// Which table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Name {
    Item,
    Warehouse,
    District,
    Customer,
    History,
    Stock,
    Orders,
    NewOrder,
    OrderLine,
}

/// A column's type, independent of the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnKind {
    /// A 32-bit integer: row numbers and counters, which can exceed 32,767 in a long run.
    Int4,
    /// A 16-bit integer: numbers with bounds in the specification.
    Int2,
    /// An exact decimal with `precision` digits, `scale` of them after the decimal point.
    Decimal { precision: u8, scale: u8 },
    /// Text of at most this many characters.
    VarChar(u16),
    /// Text of exactly this many characters.
    Char(u16),
    /// A point in time.
    Timestamp,
}

/// One column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) kind: ColumnKind,
    pub(crate) nullable: bool,
    /// Random text that no query compares: statistics on it would be wasted effort.
    pub(crate) filler: bool,
}

/// One table.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) id: Name,
    pub(crate) name: &'static str,
    pub(crate) columns: &'static [Column],
    /// Columns of the primary key; empty for history.
    key: &'static [&'static str],
    /// A second index, which is unique.
    pub(crate) second: Option<Index>,
    pub(crate) foreign_keys: &'static [ForeignKey],
}

/// A unique index beside the primary key.
#[derive(Debug)]
pub(crate) struct Index {
    pub(crate) name: &'static str,
    pub(crate) columns: &'static [&'static str],
}

/// A reference from one table to another.
#[derive(Debug)]
pub(crate) struct ForeignKey {
    pub(crate) name: &'static str,
    pub(crate) columns: &'static [&'static str],
    pub(crate) table: &'static str,
    pub(crate) references: &'static [&'static str],
}

impl ForeignKey {
    /// The statement that adds it to its table.
    pub(crate) fn add_to(&self, table: &Table) -> String {
        format!(
            "alter table {} add constraint {} foreign key ({}) references {} ({})",
            table.name,
            self.name,
            self.columns.join(", "),
            self.table,
            self.references.join(", ")
        )
    }
}

impl Table {
    /// The primary key's columns. In HammerDB's PostgreSQL schema stock's key starts with the item.
    pub(crate) fn key(&self, item_first: bool) -> &'static [&'static str] {
        if item_first && self.id == Name::Stock { &["s_i_id", "s_w_id"] } else { self.key }
    }

    /// Name of the primary key's constraint and index.
    pub(crate) fn key_name(&self) -> String {
        format!("{}_i1", self.name)
    }

    /// Names and columns of the primary key and the second index, where these exist.
    pub(crate) fn key_and_index(&self, item_first: bool) -> Vec<(String, &'static [&'static str])> {
        let key = (self.key_name(), self.key(item_first));
        let second = self.second.as_ref().map(|index| (index.name.to_owned(), index.columns));
        std::iter::once(key).chain(second).filter(|(_, columns)| !columns.is_empty()).collect()
    }

    /// Column names and types for a bulk load.
    pub(crate) fn bulk_columns(&self) -> Vec<(&'static str, ColumnType)> {
        let kind = |column: &Column| match column.kind {
            ColumnKind::Int4 => ColumnType::Int4,
            ColumnKind::Int2 => ColumnType::Int2,
            ColumnKind::Decimal { scale, .. } => ColumnType::Decimal(scale),
            ColumnKind::VarChar(_) | ColumnKind::Char(_) => ColumnType::Text,
            ColumnKind::Timestamp => ColumnType::Timestamp,
        };
        self.columns.iter().map(|column| (column.name, kind(column))).collect()
    }
}

/// Whether stock's key starts with the item.
pub(crate) fn item_first(profile: Profile) -> bool {
    profile == Profile::Hammerdb
}

/// The table of that name.
pub(crate) fn table(id: Name) -> &'static Table {
    // The order of TABLES is that of Name.
    &TABLES[id as usize]
}

const fn column(name: &'static str, kind: ColumnKind) -> Column {
    Column { name, kind, nullable: false, filler: false }
}
const fn int4(name: &'static str) -> Column {
    column(name, ColumnKind::Int4)
}
const fn int2(name: &'static str) -> Column {
    column(name, ColumnKind::Int2)
}
const fn time(name: &'static str) -> Column {
    column(name, ColumnKind::Timestamp)
}
const fn decimal(name: &'static str, precision: u8, scale: u8) -> Column {
    column(name, ColumnKind::Decimal { precision, scale })
}
const fn varchar(name: &'static str, length: u16) -> Column {
    column(name, ColumnKind::VarChar(length))
}
const fn chars(name: &'static str, length: u16) -> Column {
    column(name, ColumnKind::Char(length))
}
const fn nullable(column: Column) -> Column {
    Column { nullable: true, ..column }
}
const fn filler(column: Column) -> Column {
    Column { filler: true, ..column }
}

/// All tables, referenced tables before referencing ones.
pub(crate) static TABLES: [Table; 9] = [
    Table {
        id: Name::Item,
        name: "item",
        columns: &[
            int4("i_id"),
            int4("i_im_id"),
            filler(varchar("i_name", 24)),
            decimal("i_price", 5, 2),
            filler(varchar("i_data", 50)),
        ],
        key: &["i_id"],
        second: None,
        foreign_keys: &[],
    },
    Table {
        id: Name::Warehouse,
        name: "warehouse",
        columns: &[
            int4("w_id"),
            filler(varchar("w_name", 10)),
            filler(varchar("w_street_1", 20)),
            filler(varchar("w_street_2", 20)),
            filler(varchar("w_city", 20)),
            filler(chars("w_state", 2)),
            filler(chars("w_zip", 9)),
            decimal("w_tax", 4, 4),
            decimal("w_ytd", 16, 2),
        ],
        key: &["w_id"],
        second: None,
        foreign_keys: &[],
    },
    Table {
        id: Name::District,
        name: "district",
        columns: &[
            int4("d_w_id"),
            int4("d_next_o_id"),
            int2("d_id"),
            decimal("d_ytd", 12, 2),
            decimal("d_tax", 4, 4),
            filler(varchar("d_name", 10)),
            filler(varchar("d_street_1", 20)),
            filler(varchar("d_street_2", 20)),
            filler(varchar("d_city", 20)),
            filler(chars("d_state", 2)),
            filler(chars("d_zip", 9)),
        ],
        key: &["d_w_id", "d_id"],
        second: None,
        foreign_keys: &[ForeignKey {
            name: "district_warehouse",
            columns: &["d_w_id"],
            table: "warehouse",
            references: &["w_id"],
        }],
    },
    Table {
        id: Name::Customer,
        name: "customer",
        columns: &[
            time("c_since"),
            int4("c_id"),
            int4("c_w_id"),
            int4("c_payment_cnt"),
            int4("c_delivery_cnt"),
            int2("c_d_id"),
            varchar("c_first", 16),
            chars("c_middle", 2),
            varchar("c_last", 16),
            filler(varchar("c_street_1", 20)),
            filler(varchar("c_street_2", 20)),
            filler(varchar("c_city", 20)),
            filler(chars("c_state", 2)),
            filler(chars("c_zip", 9)),
            filler(chars("c_phone", 16)),
            chars("c_credit", 2),
            decimal("c_credit_lim", 12, 2),
            decimal("c_discount", 4, 4),
            decimal("c_balance", 12, 2),
            decimal("c_ytd_payment", 12, 2),
            filler(varchar("c_data", 500)),
        ],
        key: &["c_w_id", "c_d_id", "c_id"],
        second: Some(Index {
            name: "customer_i2",
            columns: &["c_w_id", "c_d_id", "c_last", "c_first", "c_id"],
        }),
        foreign_keys: &[ForeignKey {
            name: "customer_district",
            columns: &["c_w_id", "c_d_id"],
            table: "district",
            references: &["d_w_id", "d_id"],
        }],
    },
    Table {
        id: Name::History,
        name: "history",
        columns: &[
            time("h_date"),
            int4("h_c_id"),
            int4("h_c_w_id"),
            int4("h_w_id"),
            int2("h_c_d_id"),
            int2("h_d_id"),
            decimal("h_amount", 6, 2),
            filler(varchar("h_data", 24)),
        ],
        key: &[],
        second: None,
        foreign_keys: &[
            ForeignKey {
                name: "history_customer",
                columns: &["h_c_w_id", "h_c_d_id", "h_c_id"],
                table: "customer",
                references: &["c_w_id", "c_d_id", "c_id"],
            },
            ForeignKey {
                name: "history_district",
                columns: &["h_w_id", "h_d_id"],
                table: "district",
                references: &["d_w_id", "d_id"],
            },
        ],
    },
    Table {
        id: Name::Stock,
        name: "stock",
        columns: &[
            int4("s_i_id"),
            int4("s_w_id"),
            int4("s_ytd"),
            int4("s_order_cnt"),
            int4("s_remote_cnt"),
            int2("s_quantity"),
            filler(chars("s_dist_01", 24)),
            filler(chars("s_dist_02", 24)),
            filler(chars("s_dist_03", 24)),
            filler(chars("s_dist_04", 24)),
            filler(chars("s_dist_05", 24)),
            filler(chars("s_dist_06", 24)),
            filler(chars("s_dist_07", 24)),
            filler(chars("s_dist_08", 24)),
            filler(chars("s_dist_09", 24)),
            filler(chars("s_dist_10", 24)),
            filler(varchar("s_data", 50)),
        ],
        key: &["s_w_id", "s_i_id"],
        second: None,
        foreign_keys: &[
            ForeignKey {
                name: "stock_warehouse",
                columns: &["s_w_id"],
                table: "warehouse",
                references: &["w_id"],
            },
            ForeignKey { name: "stock_item", columns: &["s_i_id"], table: "item", references: &["i_id"] },
        ],
    },
    Table {
        id: Name::Orders,
        name: "orders",
        columns: &[
            time("o_entry_d"),
            int4("o_id"),
            int4("o_w_id"),
            int4("o_c_id"),
            int2("o_d_id"),
            nullable(int2("o_carrier_id")),
            int2("o_ol_cnt"),
            int2("o_all_local"),
        ],
        key: &["o_w_id", "o_d_id", "o_id"],
        second: Some(Index { name: "orders_i2", columns: &["o_w_id", "o_d_id", "o_c_id", "o_id"] }),
        foreign_keys: &[ForeignKey {
            name: "orders_customer",
            columns: &["o_w_id", "o_d_id", "o_c_id"],
            table: "customer",
            references: &["c_w_id", "c_d_id", "c_id"],
        }],
    },
    Table {
        id: Name::NewOrder,
        name: "new_order",
        columns: &[int4("no_w_id"), int4("no_o_id"), int2("no_d_id")],
        key: &["no_w_id", "no_d_id", "no_o_id"],
        second: None,
        foreign_keys: &[ForeignKey {
            name: "new_order_orders",
            columns: &["no_w_id", "no_d_id", "no_o_id"],
            table: "orders",
            references: &["o_w_id", "o_d_id", "o_id"],
        }],
    },
    Table {
        id: Name::OrderLine,
        name: "order_line",
        columns: &[
            nullable(time("ol_delivery_d")),
            int4("ol_o_id"),
            int4("ol_w_id"),
            int4("ol_i_id"),
            int4("ol_supply_w_id"),
            int2("ol_d_id"),
            int2("ol_number"),
            int2("ol_quantity"),
            decimal("ol_amount", 6, 2),
            filler(chars("ol_dist_info", 24)),
        ],
        key: &["ol_w_id", "ol_d_id", "ol_o_id", "ol_number"],
        second: None,
        foreign_keys: &[
            ForeignKey {
                name: "order_line_orders",
                columns: &["ol_w_id", "ol_d_id", "ol_o_id"],
                table: "orders",
                references: &["o_w_id", "o_d_id", "o_id"],
            },
            ForeignKey {
                name: "order_line_stock",
                columns: &["ol_supply_w_id", "ol_i_id"],
                table: "stock",
                references: &["s_w_id", "s_i_id"],
            },
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_finds_its_table_and_every_key_its_columns() {
        for (index, table) in TABLES.iter().enumerate() {
            assert_eq!(table.id as usize, index, "{}", table.name);
            let has = |name: &&str| table.columns.iter().any(|column| column.name == *name);
            assert!(table.key.iter().all(has), "{}", table.name);
            assert!(table.second.iter().flat_map(|index| index.columns).all(has), "{}", table.name);
            for key in table.foreign_keys {
                assert!(key.columns.iter().all(has), "{}", key.name);
                let target = TABLES[..index].iter().find(|other| other.name == key.table);
                let target = target.unwrap_or_else(|| panic!("{} refers to a later table", key.name));
                assert_eq!(key.columns.len(), key.references.len());
                assert!(key.references.iter().all(|name| target.columns.iter().any(|c| c.name == *name)));
            }
        }
    }
}

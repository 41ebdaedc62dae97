//! The eight tables, described once; each dialect translates the description into its DDL.
//!
//! Names and types are the specification's (TPC-H clause 1.4), which are also HammerDB's.

use kelvin_database::ColumnType;
use tpchgen::generators::{
    CustomerGenerator, OrderGenerator, PartGenerator, PartSuppGenerator, SupplierGenerator,
};

/// Which table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Name {
    Region,
    Nation,
    Supplier,
    Part,
    PartSupp,
    Customer,
    Orders,
    LineItem,
}

/// A column's type, independent of the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnKind {
    /// A key; exceeds 32 bits from scale factor 358 on.
    Key,
    /// A 32-bit integer.
    Int,
    /// An exact decimal with two decimal places: money, quantities and rates.
    Decimal,
    Char(u16),
    VarChar(u16),
    Date,
}

/// A column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) kind: ColumnKind,
}

/// A table.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) id: Name,
    pub(crate) name: &'static str,
    pub(crate) columns: &'static [Column],
    /// Columns of the primary key.
    pub(crate) key: &'static [&'static str],
    /// Columns of each further index: foreign keys on which the queries join.
    pub(crate) indexes: &'static [&'static [&'static str]],
}

macro_rules! columns {
    ($($name:ident $kind:expr),* $(,)?) => {
        &[$(Column { name: stringify!($name), kind: $kind }),*]
    };
}

use ColumnKind::{Char, Date, Decimal, Int, Key, VarChar};

/// All tables, referenced tables first.
pub(crate) static TABLES: [Table; 8] = [
    Table {
        id: Name::Region,
        name: "region",
        columns: columns![r_regionkey Int, r_name Char(25), r_comment VarChar(152)],
        key: &["r_regionkey"],
        indexes: &[],
    },
    Table {
        id: Name::Nation,
        name: "nation",
        columns: columns![n_nationkey Int, n_name Char(25), n_regionkey Int, n_comment VarChar(152)],
        key: &["n_nationkey"],
        indexes: &[&["n_regionkey"]],
    },
    Table {
        id: Name::Supplier,
        name: "supplier",
        columns: columns![
            s_suppkey Int, s_name Char(25), s_address VarChar(40), s_nationkey Int, s_phone Char(15),
            s_acctbal Decimal, s_comment VarChar(101),
        ],
        key: &["s_suppkey"],
        indexes: &[&["s_nationkey"]],
    },
    Table {
        id: Name::Part,
        name: "part",
        columns: columns![
            p_partkey Int, p_name VarChar(55), p_mfgr Char(25), p_brand Char(10), p_type VarChar(25),
            p_size Int, p_container Char(10), p_retailprice Decimal, p_comment VarChar(23),
        ],
        key: &["p_partkey"],
        indexes: &[],
    },
    Table {
        id: Name::PartSupp,
        name: "partsupp",
        columns: columns![
            ps_partkey Int, ps_suppkey Int, ps_availqty Int, ps_supplycost Decimal, ps_comment VarChar(199),
        ],
        key: &["ps_partkey", "ps_suppkey"],
        indexes: &[&["ps_suppkey"]],
    },
    Table {
        id: Name::Customer,
        name: "customer",
        columns: columns![
            c_custkey Int, c_name VarChar(25), c_address VarChar(40), c_nationkey Int, c_phone Char(15),
            c_acctbal Decimal, c_mktsegment Char(10), c_comment VarChar(117),
        ],
        key: &["c_custkey"],
        indexes: &[&["c_nationkey"]],
    },
    Table {
        id: Name::Orders,
        name: "orders",
        columns: columns![
            o_orderkey Key, o_custkey Int, o_orderstatus Char(1), o_totalprice Decimal, o_orderdate Date,
            o_orderpriority Char(15), o_clerk Char(15), o_shippriority Int, o_comment VarChar(79),
        ],
        key: &["o_orderkey"],
        indexes: &[&["o_custkey"]],
    },
    Table {
        id: Name::LineItem,
        name: "lineitem",
        columns: columns![
            l_orderkey Key, l_partkey Int, l_suppkey Int, l_linenumber Int, l_quantity Decimal,
            l_extendedprice Decimal, l_discount Decimal, l_tax Decimal, l_returnflag Char(1),
            l_linestatus Char(1), l_shipdate Date, l_commitdate Date, l_receiptdate Date,
            l_shipinstruct Char(25), l_shipmode Char(10), l_comment VarChar(44),
        ],
        key: &["l_orderkey", "l_linenumber"],
        indexes: &[&["l_partkey", "l_suppkey"], &["l_suppkey"]],
    },
];

/// Maximum rows of a part of a load. The last part of a table also has the remainder.
const ROWS_OF_A_PART: i64 = 250_000;

/// A table by its name.
pub(crate) fn table(id: Name) -> &'static Table {
    &TABLES[id as usize]
}

impl Table {
    /// Rows at this scale factor; for lineitem the expected number, four per order.
    pub(crate) fn rows(&self, scale: f64) -> i64 {
        match self.id {
            Name::Region => 5,
            Name::Nation => 25,
            Name::Supplier => SupplierGenerator::calculate_row_count(scale, 1, 1),
            Name::Part => PartGenerator::calculate_row_count(scale, 1, 1),
            Name::PartSupp => 4 * PartSuppGenerator::calculate_row_count(scale, 1, 1),
            Name::Customer => CustomerGenerator::calculate_row_count(scale, 1, 1),
            Name::Orders => OrderGenerator::calculate_row_count(scale, 1, 1),
            Name::LineItem => 4 * OrderGenerator::calculate_row_count(scale, 1, 1),
        }
    }

    /// Number of parts in which it is loaded. It depends only on the scale factor, so that an interrupted
    /// load resumes with the same parts.
    pub(crate) fn parts(&self, scale: f64) -> i32 {
        let parts = self.rows(scale) / ROWS_OF_A_PART;
        i32::try_from(parts).unwrap_or(i32::MAX).max(1)
    }

    /// Column names and types for a bulk load.
    pub(crate) fn bulk_columns(&self, dates_are_text: bool) -> Vec<(&'static str, ColumnType)> {
        let kind = |column: &Column| match column.kind {
            Key => ColumnType::Int8,
            Int => ColumnType::Int4,
            Decimal => ColumnType::Decimal(2),
            Date if !dates_are_text => ColumnType::Date,
            Char(_) | VarChar(_) | Date => ColumnType::Text,
        };
        self.columns.iter().map(|column| (column.name, kind(column))).collect()
    }

    /// The date by which it is partitioned, if partitions are requested.
    pub(crate) fn partition_date(&self) -> Option<&'static str> {
        match self.id {
            Name::Orders => Some("o_orderdate"),
            Name::LineItem => Some("l_shipdate"),
            _ => None,
        }
    }

    /// Names and columns of its indexes; the first is that of the primary key.
    pub(crate) fn index_names(&self) -> impl Iterator<Item = (String, &'static [&'static str])> {
        let rest = self.indexes.iter().enumerate();
        let rest = rest.map(|(at, columns)| (format!("{}_i{}", self.name, at + 2), *columns));
        std::iter::once((format!("{}_pk", self.name), self.key)).chain(rest)
    }

    /// The CREATE TABLE statement with these column types. `key` includes the primary key; `rest` follows the
    /// column list.
    pub(crate) fn create(&self, type_of: impl Fn(ColumnKind) -> String, key: bool, rest: &str) -> String {
        let mut parts: Vec<String> = self
            .columns
            .iter()
            .map(|column| format!("{} {} not null", column.name, type_of(column.kind)))
            .collect();
        if key {
            parts.push(format!("primary key ({})", self.key.join(", ")));
        }
        format!("create table {} ({}){rest}", self.name, parts.join(", "))
    }
}

/// A type in standard SQL; `collate` follows text types.
pub(crate) fn standard_type(kind: ColumnKind, collate: &str) -> String {
    let text = |name: &str, length: u16| format!("{name}({length}) {collate}").trim_end().to_owned();
    match kind {
        Key => "bigint".into(),
        Int => "integer".into(),
        Decimal => "decimal(15,2)".into(),
        Char(length) => text("char", length),
        VarChar(length) => text("varchar", length),
        Date => "date".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_stand_where_their_names_point_and_parts_follow_the_scale() {
        for (at, table) in TABLES.iter().enumerate() {
            assert_eq!(table.id as usize, at);
            assert!(table.key.iter().all(|key| table.columns.iter().any(|column| column.name == *key)));
        }
        assert_eq!(table(Name::PartSupp).rows(1.0), 800_000);
        assert_eq!(table(Name::LineItem).parts(1.0), 24);
        assert_eq!(table(Name::LineItem).parts(0.01), 1);
        assert_eq!(table(Name::Orders).rows(0.01), 15_000);
    }
}

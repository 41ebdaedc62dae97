//! The queries of a scan. Each reads every row of one table, and needs columns that no index has.

use std::fmt;
use std::str::FromStr;

use kelvin_database::{Error, Result, Rows};
use serde::{Deserialize, Serialize};

/// One query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Query {
    /// What the stock of each warehouse is worth; looks up each row's item.
    StockValue,
    /// The ten items that sold most.
    OrderLinesByItem,
    /// Customers, and what they owe and have paid, by district.
    CustomersByDistrict,
}

/// Where a result has the number of rows that were read.
enum RowCount {
    /// In this column, of all rows together.
    OfEachRow(usize),
    /// In this column of any row.
    OfAll(usize),
}

impl Query {
    /// All of them, in the order in which a user runs them.
    pub const ALL: [Self; 3] = [Self::StockValue, Self::OrderLinesByItem, Self::CustomersByDistrict];

    /// Its name on the command line and in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::StockValue => "stock-value",
            Self::OrderLinesByItem => "order-lines-by-item",
            Self::CustomersByDistrict => "customers-by-district",
        }
    }

    /// The table that it reads as a whole.
    pub(super) const fn table(self) -> &'static str {
        match self {
            Self::StockValue => "stock",
            Self::OrderLinesByItem => "order_line",
            Self::CustomersByDistrict => "customer",
        }
    }

    /// Its SQL, which all engines read alike. The order of its rows is defined.
    pub const fn sql(self) -> &'static str {
        match self {
            Self::StockValue => {
                "select s_w_id, count(*), sum(s_quantity * i_price) from stock join item on i_id = s_i_id \
                 group by s_w_id order by s_w_id"
            }
            Self::OrderLinesByItem => {
                "select ol_i_id, n, quantity, amount, sum(n) over () from \
                 (select ol_i_id, count(*) as n, sum(ol_quantity) as quantity, sum(ol_amount) as amount \
                 from order_line group by ol_i_id) as items order by quantity desc, ol_i_id limit 10"
            }
            Self::CustomersByDistrict => {
                "select c_w_id, c_d_id, count(*), sum(c_payment_cnt), sum(c_balance), sum(c_ytd_payment) \
                 from customer group by c_w_id, c_d_id order by c_w_id, c_d_id"
            }
        }
    }

    /// How many rows of its table were read for this result.
    pub(super) fn rows_read(self, rows: &Rows) -> Result<u64> {
        let count = match self {
            Self::StockValue => RowCount::OfEachRow(1),
            Self::OrderLinesByItem => RowCount::OfAll(4),
            Self::CustomersByDistrict => RowCount::OfEachRow(2),
        };
        let read: Result<i64> = match count {
            RowCount::OfEachRow(column) => (0..rows.len()).map(|row| rows.int(row, column)).sum(),
            RowCount::OfAll(_) if rows.is_empty() => Ok(0),
            RowCount::OfAll(column) => rows.int(0, column),
        };
        let read = read?;
        u64::try_from(read).map_err(|_| Error::protocol(format!("{self} counted {read} rows")))
    }
}

impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Query {
    type Err = String;

    fn from_str(name: &str) -> std::result::Result<Self, String> {
        Self::ALL.into_iter().find(|query| query.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("there is no query \"{name}\"; choose from {names}")
        })
    }
}

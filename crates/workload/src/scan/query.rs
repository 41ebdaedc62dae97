//! The queries of a scan. Each reads every row of one table, and needs columns that are in no index.

use std::fmt;
use std::str::FromStr;

use kelvin_database::{Error, Result, Rows};
use serde::{Deserialize, Serialize};

/// A query of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Query {
    /// Value of the stock of each warehouse; looks up the item of each row.
    StockValue,
    /// The ten best-selling items.
    OrderLinesByItem,
    /// Customers, their debts and their payments, by district.
    CustomersByDistrict,
}

/// Where in a result the number of rows read is.
enum RowCount {
    /// In this column, summed over all rows.
    OfEachRow(usize),
    /// In this column of any row.
    OfAll(usize),
}

impl Query {
    /// All queries, in the order in which a user runs them.
    pub const ALL: [Self; 3] = [Self::StockValue, Self::OrderLinesByItem, Self::CustomersByDistrict];

    /// Its name on the command line and in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::StockValue => "stock-value",
            Self::OrderLinesByItem => "order-lines-by-item",
            Self::CustomersByDistrict => "customers-by-district",
        }
    }

    /// The table that it scans.
    pub(super) const fn table(self) -> &'static str {
        match self {
            Self::StockValue => "stock",
            Self::OrderLinesByItem => "order_line",
            Self::CustomersByDistrict => "customer",
        }
    }

    /// Its SQL, the same for all engines. The order of its rows is defined.
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

    /// The number of rows that were read from its table for this result.
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

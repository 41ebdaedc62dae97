//! Shared by the tests of the transactions: a separate PostgreSQL server, data, and digests of tables.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "each test uses a part, and one is inside the crate"
)]

#[path = "../server_support/mod.rs"]
mod postgres_server;

use kelvin_database::{Cell, EngineKind, Rows, Session};
pub use postgres_server::Server;

/// Sums over every table, computed by the server: a cheap test for any change.
pub fn sums(session: &mut dyn Session) -> Vec<String> {
    let sqlserver = session.engine() == EngineKind::SqlServer;
    TABLES
        .iter()
        .map(|&(table, columns, _)| {
            let sums: Vec<String> = columns
                .split(", ")
                .map(|column| column.trim().trim_end_matches(":2").trim_end_matches(":4"))
                .map(|name| match name {
                    "c_data" if sqlserver => "sum(len(c_data))".to_owned(),
                    "c_data" => "sum(length(c_data))".to_owned(),
                    "ol_delivery_d" => "count(ol_delivery_d)".to_owned(),
                    name if NUMBERS.iter().any(|end| name.ends_with(end)) && sqlserver => {
                        format!("sum(cast({name} as decimal(20, 4)))")
                    }
                    name if NUMBERS.iter().any(|end| name.ends_with(end)) => format!("sum({name})"),
                    name => format!("count({name})"),
                })
                .collect();
            let rows = session.query(&format!("select {} from {table}", sums.join(", "))).unwrap();
            let cells: Vec<_> = (0..rows.columns()).map(|column| rows.cell(0, column).unwrap()).collect();
            format!("{table}: {cells:?}")
        })
        .collect()
}

/// Suffixes of the names of numeric columns.
const NUMBERS: [&str; 12] = [
    "_id",
    "_ytd",
    "_cnt",
    "_balance",
    "_payment",
    "_amount",
    "_quantity",
    "_number",
    "_local",
    "_tax",
    "_price",
    "_lim",
];

/// Columns with times, which differ between runs.
const TIMES: [&str; 4] = ["c_since", "h_date", "o_entry_d", "ol_delivery_d"];

/// The tables with the compared columns and the columns that order their rows.
const TABLES: [(&str, &str, &str); 9] = [
    ("warehouse", "w_id, w_name, w_street_1, w_street_2, w_city, w_state, w_zip, w_tax:4, w_ytd:2", "1"),
    (
        "district",
        "d_w_id, d_id, d_next_o_id, d_ytd:2, d_tax:4, d_name, d_street_1, d_street_2, d_city, d_state, d_zip",
        "1, 2",
    ),
    (
        "customer",
        "c_w_id, c_d_id, c_id, c_payment_cnt, c_delivery_cnt, c_first, c_middle, c_last, c_street_1, \
         c_street_2, c_city, c_state, c_zip, c_phone, c_credit, c_credit_lim:2, c_discount:4, c_balance:2, \
         c_ytd_payment:2, c_data",
        "1, 2, 3",
    ),
    ("history", "h_c_w_id, h_c_d_id, h_c_id, h_w_id, h_d_id, h_amount:2, h_data", "1, 2, 3, 4, 5, 6"),
    ("item", "i_id, i_im_id, i_name, i_price:2, i_data", "1"),
    (
        "stock",
        "s_w_id, s_i_id, s_quantity, s_ytd, s_order_cnt, s_remote_cnt, s_dist_01, s_dist_02, s_dist_03, s_dist_04, s_dist_05, \
         s_dist_06, s_dist_07, s_dist_08, s_dist_09, s_dist_10, s_data",
        "1, 2",
    ),
    ("new_order", "no_w_id, no_d_id, no_o_id", "1, 2, 3"),
    ("orders", "o_w_id, o_d_id, o_id, o_c_id, o_carrier_id, o_ol_cnt, o_all_local", "1, 2, 3"),
    (
        "order_line",
        "ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount:2, \
         ol_dist_info, ol_delivery_d",
        "1, 2, 3, 4",
    ),
];

/// Number of rows and digest of each table, without times (of a delivery date only whether it is set).
pub fn digests(session: &mut dyn Session) -> Vec<(&'static str, usize, u64)> {
    TABLES.iter().map(|&(table, columns, order)| digest(session, table, columns, order)).collect()
}

/// A step of FNV-1a by words, since unoptimised code digests whole tables.
fn mix(hash: &mut u64, word: u64) {
    *hash = (*hash ^ word).wrapping_mul(0x0000_0100_0000_01b3);
    *hash ^= *hash >> 32;
}

fn digest(
    session: &mut dyn Session,
    table: &'static str,
    columns: &str,
    order: &str,
) -> (&'static str, usize, u64) {
    let columns: Vec<(&str, Option<u8>)> = columns
        .split(", ")
        .map(|column| match column.trim().split_once(':') {
            Some((name, scale)) => (name, Some(scale.parse().unwrap())),
            None => (column.trim(), None),
        })
        .collect();
    let names: Vec<String> = columns
        .iter()
        .map(|&(name, _)| {
            if TIMES.contains(&name) {
                format!("case when {name} is null then 0 else 1 end")
            } else {
                name.into()
            }
        })
        .collect();
    let rows = session.query(&format!("select {} from {table} order by {order}", names.join(", "))).unwrap();
    let scales: Vec<Option<u8>> = columns.iter().map(|&(_, scale)| scale).collect();
    (table, rows.len(), digest_rows(&rows, &scales))
}

/// A digest of rows. `scales` has the scale of each decimal column, and `None` for integers and texts.
pub fn digest_rows(rows: &Rows, scales: &[Option<u8>]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for row in 0..rows.len() {
        for (column, &scale) in scales.iter().enumerate() {
            let cell = rows.cell(row, column).unwrap();
            match (scale, cell) {
                (_, Cell::Null) => mix(&mut hash, 1),
                (Some(scale), _) => mix(&mut hash, rows.decimal(row, column, scale).unwrap() as u64),
                (None, Cell::Int(_) | Cell::Decimal { .. }) => {
                    mix(&mut hash, rows.int(row, column).unwrap() as u64);
                }
                (None, _) => {
                    let (words, rest) = rows.text(row, column).unwrap().as_bytes().as_chunks::<8>();
                    for word in words {
                        mix(&mut hash, u64::from_le_bytes(*word));
                    }
                    for byte in rest {
                        mix(&mut hash, u64::from(*byte));
                    }
                    mix(&mut hash, 2);
                }
            }
        }
    }
    hash
}

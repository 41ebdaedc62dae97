//! The statements of the transactions. Parameters are written `$1`, `$2`, … and given SQLite's sign when they
//! are prepared; what differs otherwise stands in a file for each engine.

mod postgres;
mod sqlite;

use kelvin_database::{EngineKind, Result, Session, Statement};

pub(super) use postgres::{
    DELIVER as DELIVER_AT_ONCE, INSERT_ORDER as INSERT_ORDER_AT_ONCE, LOW_STOCK as LOW_STOCK_AT_ONCE,
    NEXT_ORDER_AND_TERMS, PAY_BY_NAME, PAY_BY_NUMBER, STATUS_BY_NAME, STATUS_BY_NUMBER,
    TAKE_STOCK as TAKE_STOCK_AT_ONCE,
};

/// Adds one to d_next_o_id and so locks the district; returns the number taken, and the tax.
/// Parameters: warehouse, district.
pub(super) const NEXT_ORDER: &str = "UPDATE district SET d_next_o_id = d_next_o_id + 1 \
     WHERE d_w_id = $1 AND d_id = $2 RETURNING d_next_o_id - 1, d_tax";

/// The customer's discount and the warehouse's tax. Parameters: warehouse, district, customer.
pub(super) const TERMS: &str = "SELECT c_discount, c_last, c_credit, w_tax FROM customer, warehouse \
     WHERE w_id = $1 AND c_w_id = $1 AND c_d_id = $2 AND c_id = $3";

/// Parameters: warehouse, district, order, customer, time, lines, whether all are local.
pub(super) const INSERT_ORDER: &str = "INSERT INTO orders \
     (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) VALUES ($1, $2, $3, $4, $5, $6, $7)";

/// Parameters: warehouse, district, order.
pub(super) const INSERT_NEW_ORDER: &str =
    "INSERT INTO new_order (no_w_id, no_d_id, no_o_id) VALUES ($1, $2, $3)";

/// Parameter: item.
pub(super) const ITEM: &str = "SELECT i_price, i_data FROM item WHERE i_id = $1";

/// Takes a quantity from a stock row (clause 2.4.2.2). Parameters: quantity, 1 when remote, district,
/// supplying warehouse, item.
pub(super) const TAKE_STOCK: &str = "UPDATE stock SET \
     s_quantity = s_quantity - CAST($1 AS integer) + \
         CASE WHEN s_quantity >= CAST($1 AS integer) + 10 THEN 0 ELSE 91 END, \
     s_ytd = s_ytd + CAST($1 AS integer), s_order_cnt = s_order_cnt + 1, \
     s_remote_cnt = s_remote_cnt + CAST($2 AS integer) \
     WHERE s_w_id = $4 AND s_i_id = $5 \
     RETURNING CASE CAST($3 AS integer) WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03 \
         WHEN 4 THEN s_dist_04 WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06 WHEN 7 THEN s_dist_07 \
         WHEN 8 THEN s_dist_08 WHEN 9 THEN s_dist_09 ELSE s_dist_10 END, s_data";

/// Parameters: warehouse, district, order, line, item, supplying warehouse, quantity, amount, district's text.
pub(super) const INSERT_LINE: &str = "INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, \
     ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_dist_info) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";

/// Everybody of a last name, in no order: the client sorts the few there are, by bytes, so that no engine's
/// collation decides who stands in the middle. Parameters: warehouse, district, last name.
pub(super) const NAMESAKES: &str = "SELECT c_id, c_first, c_middle, c_balance FROM customer \
     WHERE c_w_id = $1 AND c_d_id = $2 AND c_last = $3";

/// Books a payment at the customer; a customer of bad credit gets it written at the beginning of c_data.
/// Parameters: warehouse, district, customer, amount, the text for c_data.
pub(super) const PAY_CUSTOMER: &str = "UPDATE customer SET c_balance = c_balance - $4, \
     c_ytd_payment = c_ytd_payment + $4, c_payment_cnt = c_payment_cnt + 1, \
     c_data = CASE WHEN c_credit = 'BC' THEN substr(CAST($5 AS text) || c_data, 1, 500) ELSE c_data END \
     WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3 RETURNING c_balance, c_credit";

/// Parameters: warehouse, district, amount.
pub(super) const PAY_DISTRICT: &str =
    "UPDATE district SET d_ytd = d_ytd + $3 WHERE d_w_id = $1 AND d_id = $2 RETURNING d_name";

/// Parameters: warehouse, amount.
pub(super) const PAY_WAREHOUSE: &str =
    "UPDATE warehouse SET w_ytd = w_ytd + $2 WHERE w_id = $1 RETURNING w_name";

/// Parameters: customer's warehouse, district and number, warehouse, district, time, amount, text.
pub(super) const INSERT_HISTORY: &str = "INSERT INTO history \
     (h_c_w_id, h_c_d_id, h_c_id, h_w_id, h_d_id, h_date, h_amount, h_data) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";

/// Parameters: warehouse, district, customer.
pub(super) const CUSTOMER: &str = "SELECT c_first, c_middle, c_last, c_balance FROM customer \
     WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3";

/// Parameters: warehouse, district, customer.
pub(super) const NEWEST_ORDER: &str = "SELECT o_id, o_entry_d, o_carrier_id FROM orders \
     WHERE o_w_id = $1 AND o_d_id = $2 AND o_c_id = $3 ORDER BY o_id DESC LIMIT 1";

/// Parameters: warehouse, district, order.
pub(super) const ORDER_LINES: &str = "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line \
     WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3";

/// Parameters: warehouse, district, order, carrier.
pub(super) const DELIVER_ORDER: &str = "UPDATE orders SET o_carrier_id = $4 \
     WHERE o_w_id = $1 AND o_d_id = $2 AND o_id = $3 RETURNING o_c_id";

/// Parameters: warehouse, district, order, time.
pub(super) const DELIVER_LINES: &str = "UPDATE order_line SET ol_delivery_d = $4 \
     WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3 RETURNING ol_amount";

/// Parameters: warehouse, district, customer, amount.
pub(super) const DELIVER_CUSTOMER: &str = "UPDATE customer SET c_balance = c_balance + $4, \
     c_delivery_cnt = c_delivery_cnt + 1 WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3";

/// Parameters: warehouse, district.
pub(super) const NEXT_NUMBER: &str = "SELECT d_next_o_id FROM district WHERE d_w_id = $1 AND d_id = $2";

/// Parameters: warehouse, district, threshold, next order number.
pub(super) const LOW_STOCK: &str = "SELECT count(DISTINCT s_i_id) FROM order_line, stock \
     WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id < CAST($4 AS integer) \
     AND ol_o_id >= CAST($4 AS integer) - 20 AND s_w_id = $1 AND s_i_id = ol_i_id AND s_quantity < $3";

/// Removes a district's oldest undelivered order and returns its number. Parameters: warehouse, district.
pub(super) fn oldest_new_order(engine: EngineKind) -> &'static str {
    match engine {
        EngineKind::Postgres => postgres::OLDEST_NEW_ORDER,
        EngineKind::Sqlite => sqlite::OLDEST_NEW_ORDER,
    }
}

/// Prepares a statement, with the parameters as its engine writes them.
pub(super) fn prepare(session: &mut dyn Session, sql: &str) -> Result<Statement> {
    match session.engine() {
        EngineKind::Postgres => session.prepare(sql),
        EngineKind::Sqlite => session.prepare(&sql.replace('$', "?")),
    }
}

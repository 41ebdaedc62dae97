//! The statements of the transactions. Statements specific to an engine are in a file for each.

#[cfg_attr(not(test), expect(dead_code, reason = "the known engines have statements of their own"))]
mod for_update;
pub(crate) mod mysql;
pub(crate) mod postgres;
pub(crate) mod sqlite;
pub(crate) mod sqlserver;

#[cfg(test)]
pub(crate) use for_update::for_update;
pub(super) use postgres::{
    DELIVER as DELIVER_AT_ONCE, DELIVER_ORDERS, INSERT_ORDER as INSERT_ORDER_AT_ONCE,
    LOW_STOCK as LOW_STOCK_AT_ONCE, NEXT_ORDER_AND_TERMS, PAY_BY_NAME, PAY_BY_NUMBER, STATUS_BY_NAME,
    STATUS_BY_NUMBER, TAKE_STOCK as TAKE_STOCK_AT_ONCE, TAKE_STOCK_OF_LINE,
};

/// The statements of transactions that are executed statement by statement.
pub(crate) struct Statements {
    /// Parameters: warehouse, district. Returns the order's number and the district's tax.
    pub(super) next_order: Change,
    pub(super) terms: &'static str,
    pub(super) insert_order: &'static str,
    pub(super) insert_new_order: &'static str,
    pub(super) item: &'static str,
    /// Parameters: quantity, 1 if remote, district, supplying warehouse, item. Returns the district's text
    /// and s_data.
    pub(super) take_stock: Change,
    pub(super) insert_line: &'static str,
    pub(super) namesakes: &'static str,
    /// Parameters: warehouse, district, customer, amount, the text for c_data. Returns the new balance and
    /// the credit.
    pub(super) pay_customer: Change,
    /// Parameters: warehouse, district, amount. Returns the name.
    pub(super) pay_district: Change,
    /// Parameters: warehouse, amount. Returns the name.
    pub(super) pay_warehouse: Change,
    pub(super) insert_history: &'static str,
    pub(super) customer: &'static str,
    pub(super) newest_order: &'static str,
    pub(super) order_lines: &'static str,
    /// Finds and deletes a district's oldest undelivered order. Parameters: warehouse, district.
    pub(super) oldest_new_order: OldestNewOrder,
    /// Parameters: warehouse, district, order, carrier. Returns the customer.
    pub(super) deliver_order: Change,
    /// Parameters: warehouse, district, order, time. Returns the amounts.
    pub(super) deliver_lines: Change,
    pub(super) deliver_customer: &'static str,
    pub(super) next_number: &'static str,
    pub(super) low_stock: &'static str,
}

/// A statement that changes rows and returns values from them.
pub(crate) enum Change {
    /// The statement returns the values itself.
    Returning(&'static str),
    /// A query before the change finds and locks the rows and returns the values. It takes only the first
    /// `parameters` parameters.
    Locking { find: String, parameters: usize, change: &'static str },
}

/// How a new_order row is found and deleted.
pub(crate) enum OldestNewOrder {
    /// One statement, which returns the order's number.
    Returning(&'static str),
    /// A query finds and locks the row; the DELETE takes the order's number as its third parameter.
    Locking { find: String, delete: &'static str },
}

/// The statements for an engine whose changes return values (`RETURNING`).
pub(crate) fn returning(oldest_new_order: &'static str) -> Statements {
    Statements {
        next_order: Change::Returning(NEXT_ORDER),
        terms: TERMS,
        insert_order: INSERT_ORDER,
        insert_new_order: INSERT_NEW_ORDER,
        item: ITEM,
        take_stock: Change::Returning(TAKE_STOCK),
        insert_line: INSERT_LINE,
        namesakes: NAMESAKES,
        pay_customer: Change::Returning(PAY_CUSTOMER),
        pay_district: Change::Returning(PAY_DISTRICT),
        pay_warehouse: Change::Returning(PAY_WAREHOUSE),
        insert_history: INSERT_HISTORY,
        customer: CUSTOMER,
        newest_order: NEWEST_ORDER,
        order_lines: ORDER_LINES,
        oldest_new_order: OldestNewOrder::Returning(oldest_new_order),
        deliver_order: Change::Returning(DELIVER_ORDER),
        deliver_lines: Change::Returning(DELIVER_LINES),
        deliver_customer: DELIVER_CUSTOMER,
        next_number: NEXT_NUMBER,
        low_stock: LOW_STOCK,
    }
}

/// Increments d_next_o_id, which locks the district; returns the number taken and the tax. Parameters:
/// warehouse, district.
const NEXT_ORDER: &str = "UPDATE district SET d_next_o_id = d_next_o_id + 1 \
     WHERE d_w_id = $1 AND d_id = $2 RETURNING d_next_o_id - 1, d_tax";

/// The customer's discount and the warehouse's tax. Parameters: warehouse, district, customer.
const TERMS: &str = "SELECT c_discount, c_last, c_credit, w_tax FROM customer, warehouse \
     WHERE w_id = $1 AND c_w_id = $1 AND c_d_id = $2 AND c_id = $3";

/// Parameters: warehouse, district, order, customer, time, lines, whether all are local.
const INSERT_ORDER: &str = "INSERT INTO orders \
     (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) VALUES ($1, $2, $3, $4, $5, $6, $7)";

/// Parameters: warehouse, district, order.
const INSERT_NEW_ORDER: &str = "INSERT INTO new_order (no_w_id, no_d_id, no_o_id) VALUES ($1, $2, $3)";

/// Parameter: item.
const ITEM: &str = "SELECT i_price, i_data FROM item WHERE i_id = $1";

/// Takes a quantity from a stock row (clause 2.4.2.2). Parameters: quantity, 1 if remote, district, supplying
/// warehouse, item.
const TAKE_STOCK: &str = "UPDATE stock SET \
     s_quantity = s_quantity - CAST($1 AS integer) + \
         CASE WHEN s_quantity >= CAST($1 AS integer) + 10 THEN 0 ELSE 91 END, \
     s_ytd = s_ytd + CAST($1 AS integer), s_order_cnt = s_order_cnt + 1, \
     s_remote_cnt = s_remote_cnt + CAST($2 AS integer) \
     WHERE s_w_id = $4 AND s_i_id = $5 \
     RETURNING CASE CAST($3 AS integer) WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03 \
         WHEN 4 THEN s_dist_04 WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06 WHEN 7 THEN s_dist_07 \
         WHEN 8 THEN s_dist_08 WHEN 9 THEN s_dist_09 ELSE s_dist_10 END, s_data";

/// Parameters: warehouse, district, order, line, item, supplying warehouse, quantity, amount, district's text.
const INSERT_LINE: &str = "INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, \
     ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_dist_info) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";

/// All customers with a last name, in any order. The client sorts these few rows by bytes, so that the choice
/// of the middle one does not depend on an engine's collation. Parameters: warehouse, district, last name.
const NAMESAKES: &str = "SELECT c_id, c_first, c_middle, c_balance FROM customer \
     WHERE c_w_id = $1 AND c_d_id = $2 AND c_last = $3";

/// Adds a payment to the customer; for bad credit, also writes the text at the beginning of c_data.
/// Parameters: warehouse, district, customer, amount, the text for c_data.
const PAY_CUSTOMER: &str = "UPDATE customer SET c_balance = c_balance - $4, \
     c_ytd_payment = c_ytd_payment + $4, c_payment_cnt = c_payment_cnt + 1, \
     c_data = CASE WHEN c_credit = 'BC' THEN substr(CAST($5 AS text) || c_data, 1, 500) ELSE c_data END \
     WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3 RETURNING c_balance, c_credit";

/// Parameters: warehouse, district, amount.
const PAY_DISTRICT: &str =
    "UPDATE district SET d_ytd = d_ytd + $3 WHERE d_w_id = $1 AND d_id = $2 RETURNING d_name";

/// Parameters: warehouse, amount.
const PAY_WAREHOUSE: &str = "UPDATE warehouse SET w_ytd = w_ytd + $2 WHERE w_id = $1 RETURNING w_name";

/// Parameters: customer's warehouse, district and number, warehouse, district, time, amount, text.
const INSERT_HISTORY: &str = "INSERT INTO history \
     (h_c_w_id, h_c_d_id, h_c_id, h_w_id, h_d_id, h_date, h_amount, h_data) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";

/// Parameters: warehouse, district, customer.
const CUSTOMER: &str = "SELECT c_first, c_middle, c_last, c_balance FROM customer \
     WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3";

/// Parameters: warehouse, district, customer.
const NEWEST_ORDER: &str = "SELECT o_id, o_entry_d, o_carrier_id FROM orders \
     WHERE o_w_id = $1 AND o_d_id = $2 AND o_c_id = $3 ORDER BY o_id DESC LIMIT 1";

/// Parameters: warehouse, district, order.
const ORDER_LINES: &str = "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line \
     WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3";

/// Parameters: warehouse, district, order, carrier.
const DELIVER_ORDER: &str = "UPDATE orders SET o_carrier_id = $4 \
     WHERE o_w_id = $1 AND o_d_id = $2 AND o_id = $3 RETURNING o_c_id";

/// Parameters: warehouse, district, order, time.
const DELIVER_LINES: &str = "UPDATE order_line SET ol_delivery_d = $4 \
     WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3 RETURNING ol_amount";

/// Parameters: warehouse, district, customer, amount.
pub(super) const DELIVER_CUSTOMER: &str = "UPDATE customer SET c_balance = c_balance + $4, \
     c_delivery_cnt = c_delivery_cnt + 1 WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3";

/// Parameters: warehouse, district.
const NEXT_NUMBER: &str = "SELECT d_next_o_id FROM district WHERE d_w_id = $1 AND d_id = $2";

/// Parameters: warehouse, district, threshold, next order number.
const LOW_STOCK: &str = "SELECT count(DISTINCT s_i_id) FROM order_line, stock \
     WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id < CAST($4 AS integer) \
     AND ol_o_id >= CAST($4 AS integer) - 20 AND s_w_id = $1 AND s_i_id = ol_i_id AND s_quantity < $3";

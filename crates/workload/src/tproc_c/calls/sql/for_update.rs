//! Statements for an engine whose changes return no values: a query finds and locks the rows before each
//! change.

use super::{Change, OldestNewOrder, Statements};

/// The statements; `lock`, such as ` FOR UPDATE`, is appended to queries whose rows are changed next.
pub(crate) fn for_update(lock: &str) -> Statements {
    let locking = |find: &str, parameters, change| {
        let find = format!("{find}{lock}");
        Change::Locking { find, parameters, change }
    };
    Statements {
        next_order: locking(FIND_DISTRICT, 2, NEXT_ORDER),
        take_stock: locking(FIND_STOCK, 5, TAKE_STOCK),
        pay_customer: locking(FIND_CUSTOMER, 4, PAY_CUSTOMER),
        pay_district: locking(FIND_DISTRICT_NAME, 2, PAY_DISTRICT),
        pay_warehouse: locking(FIND_WAREHOUSE_NAME, 1, PAY_WAREHOUSE),
        oldest_new_order: OldestNewOrder::Locking {
            find: format!("{FIND_OLDEST}{lock}"),
            delete: "DELETE FROM new_order WHERE no_w_id = $1 AND no_d_id = $2 AND no_o_id = $3",
        },
        deliver_order: locking(FIND_ORDER, 3, DELIVER_ORDER),
        deliver_lines: locking(FIND_LINES, 3, DELIVER_LINES),
        low_stock: LOW_STOCK,
        ..super::returning("")
    }
}

const FIND_DISTRICT: &str = "SELECT d_next_o_id, d_tax FROM district WHERE d_w_id = $1 AND d_id = $2";

const NEXT_ORDER: &str = "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = $1 AND d_id = $2";

const FIND_STOCK: &str = "SELECT CASE $3 WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03 \
     WHEN 4 THEN s_dist_04 WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06 WHEN 7 THEN s_dist_07 \
     WHEN 8 THEN s_dist_08 WHEN 9 THEN s_dist_09 ELSE s_dist_10 END, s_data \
     FROM stock WHERE s_w_id = $4 AND s_i_id = $5";

const TAKE_STOCK: &str = "UPDATE stock SET \
     s_quantity = s_quantity - $1 + CASE WHEN s_quantity >= $1 + 10 THEN 0 ELSE 91 END, \
     s_ytd = s_ytd + $1, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + $2 \
     WHERE s_w_id = $4 AND s_i_id = $5";

const FIND_CUSTOMER: &str = "SELECT c_balance - $4, c_credit FROM customer \
     WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3";

const PAY_CUSTOMER: &str = "UPDATE customer SET c_balance = c_balance - $4, \
     c_ytd_payment = c_ytd_payment + $4, c_payment_cnt = c_payment_cnt + 1, \
     c_data = CASE WHEN c_credit = 'BC' THEN substr(concat($5, c_data), 1, 500) ELSE c_data END \
     WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3";

const FIND_DISTRICT_NAME: &str = "SELECT d_name FROM district WHERE d_w_id = $1 AND d_id = $2";

const PAY_DISTRICT: &str = "UPDATE district SET d_ytd = d_ytd + $3 WHERE d_w_id = $1 AND d_id = $2";

const FIND_WAREHOUSE_NAME: &str = "SELECT w_name FROM warehouse WHERE w_id = $1";

const PAY_WAREHOUSE: &str = "UPDATE warehouse SET w_ytd = w_ytd + $2 WHERE w_id = $1";

/// Of two concurrent deliveries the second waits for the lock and then finds the next oldest order.
const FIND_OLDEST: &str = "SELECT no_o_id FROM new_order WHERE no_w_id = $1 AND no_d_id = $2 \
     ORDER BY no_o_id LIMIT 1";

const FIND_ORDER: &str = "SELECT o_c_id FROM orders WHERE o_w_id = $1 AND o_d_id = $2 AND o_id = $3";

const DELIVER_ORDER: &str = "UPDATE orders SET o_carrier_id = $4 \
     WHERE o_w_id = $1 AND o_d_id = $2 AND o_id = $3";

const FIND_LINES: &str = "SELECT ol_amount FROM order_line \
     WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3";

const DELIVER_LINES: &str = "UPDATE order_line SET ol_delivery_d = $4 \
     WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3";

const LOW_STOCK: &str = "SELECT count(DISTINCT s_i_id) FROM order_line, stock \
     WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id < $4 AND ol_o_id >= $4 - 20 \
     AND s_w_id = $1 AND s_i_id = ol_i_id AND s_quantity < $3";

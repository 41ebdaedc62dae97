//! Statements specific to SQL Server.
//!
//! Changes return values with OUTPUT. Text parameters that are compared with or joined to a column are cast.
//! Where the server does not infer a type they are sent as `nvarchar`, and a `varchar` column would then be
//! converted row by row.

use super::{Change, OldestNewOrder, Statements};

/// The statements.
pub(crate) fn statements() -> Statements {
    Statements {
        next_order: Change::Returning(NEXT_ORDER),
        take_stock: Change::Returning(TAKE_STOCK),
        namesakes: NAMESAKES,
        pay_customer: Change::Returning(PAY_CUSTOMER),
        pay_district: Change::Returning(PAY_DISTRICT),
        pay_warehouse: Change::Returning(PAY_WAREHOUSE),
        newest_order: NEWEST_ORDER,
        oldest_new_order: OldestNewOrder::Returning(OLDEST_NEW_ORDER),
        deliver_order: Change::Returning(DELIVER_ORDER),
        deliver_lines: Change::Returning(DELIVER_LINES),
        low_stock: LOW_STOCK,
        ..super::returning("")
    }
}

const NEXT_ORDER: &str = "UPDATE district SET d_next_o_id = d_next_o_id + 1 \
     OUTPUT inserted.d_next_o_id - 1, inserted.d_tax WHERE d_w_id = $1 AND d_id = $2";

/// The district's text is a substring of the ten texts joined: Babelfish does not evaluate OUTPUT within a
/// CASE.
const TAKE_STOCK: &str = "UPDATE stock SET \
     s_quantity = s_quantity - $1 + CASE WHEN s_quantity >= $1 + 10 THEN 0 ELSE 91 END, \
     s_ytd = s_ytd + $1, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + $2 \
     OUTPUT SUBSTRING(inserted.s_dist_01 + inserted.s_dist_02 + inserted.s_dist_03 + inserted.s_dist_04 + \
         inserted.s_dist_05 + inserted.s_dist_06 + inserted.s_dist_07 + inserted.s_dist_08 + inserted.s_dist_09 + \
         inserted.s_dist_10, 24 * $3 - 23, 24), inserted.s_data \
     WHERE s_w_id = $4 AND s_i_id = $5";

const NAMESAKES: &str = "SELECT c_id, c_first, c_middle, c_balance FROM customer \
     WHERE c_w_id = $1 AND c_d_id = $2 AND c_last = CAST($3 AS varchar(16))";

const PAY_CUSTOMER: &str = "UPDATE customer SET c_balance = c_balance - $4, \
     c_ytd_payment = c_ytd_payment + $4, c_payment_cnt = c_payment_cnt + 1, \
     c_data = CASE WHEN c_credit = 'BC' THEN LEFT(CAST($5 AS varchar(100)) + c_data, 500) ELSE c_data END \
     OUTPUT inserted.c_balance, inserted.c_credit WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3";

const PAY_DISTRICT: &str = "UPDATE district SET d_ytd = d_ytd + $3 OUTPUT inserted.d_name \
     WHERE d_w_id = $1 AND d_id = $2";

const PAY_WAREHOUSE: &str = "UPDATE warehouse SET w_ytd = w_ytd + $2 OUTPUT inserted.w_name WHERE w_id = $1";

const NEWEST_ORDER: &str = "SELECT TOP (1) o_id, o_entry_d, o_carrier_id FROM orders \
     WHERE o_w_id = $1 AND o_d_id = $2 AND o_c_id = $3 ORDER BY o_id DESC";

/// Of two concurrent deliveries the second waits for the lock and then finds the next oldest order.
const OLDEST_NEW_ORDER: &str = "DELETE FROM new_order OUTPUT deleted.no_o_id WHERE no_w_id = $1 AND no_d_id = $2 \
     AND no_o_id = (SELECT MIN(no_o_id) FROM new_order WITH (UPDLOCK, ROWLOCK) WHERE no_w_id = $1 AND no_d_id = $2)";

const DELIVER_ORDER: &str = "UPDATE orders SET o_carrier_id = $4 OUTPUT inserted.o_c_id \
     WHERE o_w_id = $1 AND o_d_id = $2 AND o_id = $3";

const DELIVER_LINES: &str = "UPDATE order_line SET ol_delivery_d = $4 OUTPUT inserted.ol_amount \
     WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3";

/// The twenty orders are few rows, but without the hint the plan for an unknown range reads the warehouse's
/// whole stock.
const LOW_STOCK: &str = "SELECT COUNT(DISTINCT s_i_id) FROM order_line INNER LOOP JOIN stock \
     ON s_w_id = ol_w_id AND s_i_id = ol_i_id \
     WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id < $4 AND ol_o_id >= $4 - 20 AND s_quantity < $3";

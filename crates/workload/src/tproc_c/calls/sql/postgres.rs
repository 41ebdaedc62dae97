//! What PostgreSQL says in its own way, and the statements of the pipelined calls, which carry the values of
//! a whole order in arrays.

/// The inner query locks the row it finds. When another delivery has taken that row meanwhile, the lock
/// comes free on a deleted row and the query goes on to the next oldest, so that two deliveries at once take
/// two different orders, and none fails. A plain `min()` would find the deleted row and skip the district.
pub(super) const OLDEST_NEW_ORDER: &str = "DELETE FROM new_order WHERE no_w_id = $1 AND no_d_id = $2 \
     AND no_o_id = (SELECT no_o_id FROM new_order WHERE no_w_id = $1 AND no_d_id = $2 \
         ORDER BY no_o_id LIMIT 1 FOR UPDATE) \
     RETURNING no_o_id";

/// Takes the quantities of several lines, of different stock rows, from the stock, in the order of the
/// arrays. A line whose item is unused finds nothing. Parameters: home warehouse, district, line numbers,
/// items, supplying warehouses, quantities. Returns line number, price, the district's text, and 1 for a
/// line that is "brand".
pub(crate) const TAKE_STOCK: &str = "UPDATE stock SET \
     s_quantity = s_quantity - l.quantity + CASE WHEN s_quantity >= l.quantity + 10 THEN 0 ELSE 91 END, \
     s_ytd = s_ytd + l.quantity, s_order_cnt = s_order_cnt + 1, \
     s_remote_cnt = s_remote_cnt + CASE WHEN s_w_id = $1 THEN 0 ELSE 1 END \
     FROM unnest($3::int[], $4::int[], $5::int[], $6::int[]) AS l(number, item, supply, quantity) \
     JOIN item ON i_id = l.item \
     WHERE s_w_id = l.supply AND s_i_id = l.item \
     RETURNING l.number, i_price, CASE $2::int WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 \
         WHEN 3 THEN s_dist_03 WHEN 4 THEN s_dist_04 WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06 \
         WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08 WHEN 9 THEN s_dist_09 ELSE s_dist_10 END, \
         CASE WHEN i_data LIKE '%ORIGINAL%' AND s_data LIKE '%ORIGINAL%' THEN 1 ELSE 0 END";

/// Writes an order with all its lines. Parameters: warehouse, district, order, customer, time, lines, whether
/// all are local; line numbers, items, supplying warehouses, quantities, amounts, texts.
pub(crate) const INSERT_ORDER: &str = "WITH o AS (INSERT INTO orders \
         (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) VALUES ($1, $2, $3, $4, $5, $6, $7)), \
     n AS (INSERT INTO new_order (no_w_id, no_d_id, no_o_id) VALUES ($1, $2, $3)) \
     INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, \
         ol_amount, ol_dist_info) \
     SELECT $1, $2, $3, l.* FROM unnest($8::int[], $9::int[], $10::int[], $11::int[], $12::numeric[], \
         $13::text[]) AS l";

/// Books a payment at the warehouse and writes its history. Parameters: customer's warehouse, district and
/// number, warehouse, district, time, amount.
pub(crate) const PAY_WAREHOUSE: &str = "WITH w AS \
     (UPDATE warehouse SET w_ytd = w_ytd + $7 WHERE w_id = $4 RETURNING w_name) \
     INSERT INTO history (h_c_w_id, h_c_d_id, h_c_id, h_w_id, h_d_id, h_date, h_amount, h_data) \
     SELECT $1, $2, $3, $4, $5, $6, $7, w_name || '    ' || d_name FROM w, district \
     WHERE d_w_id = $4 AND d_id = $5";

/// The lines of a customer's newest order. Parameters: warehouse, district, customer.
pub(crate) const NEWEST_LINES: &str = "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line \
     WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = \
         (SELECT max(o_id) FROM orders WHERE o_w_id = $1 AND o_d_id = $2 AND o_c_id = $3)";

/// Delivers orders of different districts, customers in the order of the districts. Parameters: warehouse,
/// carrier, time, districts, orders.
pub(crate) const DELIVER: &str = "WITH \
     o AS (UPDATE orders SET o_carrier_id = $2 FROM unnest($4::int[], $5::int[]) AS t(district, number) \
         WHERE o_w_id = $1 AND o_d_id = t.district AND o_id = t.number RETURNING o_d_id, o_c_id), \
     l AS (UPDATE order_line SET ol_delivery_d = $3 \
         FROM unnest($4::int[], $5::int[]) AS t(district, number) \
         WHERE ol_w_id = $1 AND ol_d_id = t.district AND ol_o_id = t.number RETURNING ol_d_id, ol_amount), \
     d AS (SELECT o_d_id, o_c_id, sum(ol_amount) AS amount FROM o JOIN l ON ol_d_id = o_d_id \
         GROUP BY o_d_id, o_c_id ORDER BY o_d_id) \
     UPDATE customer SET c_balance = c_balance + d.amount, c_delivery_cnt = c_delivery_cnt + 1 FROM d \
     WHERE c_w_id = $1 AND c_d_id = d.o_d_id AND c_id = d.o_c_id";

/// Parameters: warehouse, district, threshold.
pub(crate) const LOW_STOCK: &str = "SELECT count(DISTINCT s_i_id) FROM order_line, stock \
     WHERE ol_w_id = $1 AND ol_d_id = $2 \
     AND ol_o_id < (SELECT d_next_o_id FROM district WHERE d_w_id = $1 AND d_id = $2) \
     AND ol_o_id >= (SELECT d_next_o_id - 20 FROM district WHERE d_w_id = $1 AND d_id = $2) \
     AND s_w_id = $1 AND s_i_id = ol_i_id AND s_quantity < $3";

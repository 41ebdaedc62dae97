//! Statements specific to PostgreSQL, and those of the pipelined calls. These pass the values of a whole
//! order in arrays, and combine statements that the client would otherwise send separately.

/// The inner query locks the row it finds. If a concurrent delivery has deleted that row, the lock is granted
/// on the deleted row and the query continues with the next oldest, so that two concurrent deliveries take
/// different orders and neither fails. A plain `min()` would find the deleted row and skip the district.
pub(crate) const OLDEST_NEW_ORDER: &str = "DELETE FROM new_order WHERE no_w_id = $1 AND no_d_id = $2 \
     AND no_o_id = (SELECT no_o_id FROM new_order WHERE no_w_id = $1 AND no_d_id = $2 \
         ORDER BY no_o_id LIMIT 1 FOR UPDATE) \
     RETURNING no_o_id";

/// Takes the district's next order number, and finds the customer's discount and the taxes. Parameters:
/// warehouse, district, customer. Returns number, district's tax, discount, warehouse's tax, last name, credit.
pub(crate) const NEXT_ORDER_AND_TERMS: &str = "UPDATE district SET d_next_o_id = d_next_o_id + 1 \
     FROM customer, warehouse WHERE d_w_id = $1 AND d_id = $2 AND w_id = $1 AND c_w_id = $1 AND c_d_id = $2 \
     AND c_id = $3 RETURNING d_next_o_id - 1, d_tax, c_discount, w_tax, c_last, c_credit";

/// Takes the quantities of several lines with different stock rows from the stock, in the order of the
/// arrays. A line with an unused item returns no row. Parameters: home warehouse, district, line numbers,
/// items, supplying warehouses, quantities. Returns line number, price, the district's text, and 1 for a
/// "brand" line.
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

/// Takes the quantity of one line from the stock and joins only tables, for servers that lose rows in other
/// joins. Parameters: home warehouse, district, line number, item, supplying warehouse, quantity. Returns the
/// same columns as [`TAKE_STOCK`].
pub(crate) const TAKE_STOCK_OF_LINE: &str = "UPDATE stock SET \
     s_quantity = s_quantity - $6::int + CASE WHEN s_quantity >= $6::int + 10 THEN 0 ELSE 91 END, \
     s_ytd = s_ytd + $6::int, s_order_cnt = s_order_cnt + 1, \
     s_remote_cnt = s_remote_cnt + CASE WHEN s_w_id = $1 THEN 0 ELSE 1 END \
     FROM item WHERE i_id = $4 AND s_w_id = $5 AND s_i_id = $4 \
     RETURNING $3::int, i_price, CASE $2::int WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 \
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

/// The number of customers with the last name `$3`, and the number of the middle one: ⌈n/2⌉ by first name
/// (clause 2.5.2.2), ordered by bytes and then by number, like `customer::middle`.
macro_rules! middle {
    () => {
        "k AS (SELECT (array_agg(c_id ORDER BY c_first COLLATE \"C\", c_id))[(count(*) + 1) / 2] AS id, \
             count(*) AS matched FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_last = $3)"
    };
}

/// Executes a payment of the customer with the number `$customer`: updates customer, district and warehouse,
/// and inserts into history. Each part depends on the preceding one, which fixes the lock order, and nothing
/// changes if there is no such customer. The text for bad credit is that of `customer::bad_credit_text`.
macro_rules! pay {
    ($customer:literal) => {
        concat!(
            "c AS (UPDATE customer SET c_balance = c_balance - $7, c_ytd_payment = c_ytd_payment + $7, \
                 c_payment_cnt = c_payment_cnt + 1, c_data = CASE WHEN c_credit = 'BC' THEN \
                     substr(c_id || ' ' || $2::int || ' ' || $1::int || ' ' || $5::int || ' ' || $4::int || ' ' \
                         || $7::numeric(6, 2) || '|' || c_data, 1, 500) ELSE c_data END \
                 WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = ",
            $customer,
            " RETURNING c_id, c_balance, c_credit), \
             d AS (UPDATE district SET d_ytd = d_ytd + $7 \
                 WHERE d_w_id = $4 AND d_id = $5 AND EXISTS (SELECT FROM c) RETURNING d_name), \
             w AS (UPDATE warehouse SET w_ytd = w_ytd + $7 \
                 WHERE w_id = $4 AND EXISTS (SELECT FROM d) RETURNING w_name), \
             h AS (INSERT INTO history (h_c_w_id, h_c_d_id, h_c_id, h_w_id, h_d_id, h_date, h_amount, h_data) \
                 SELECT $1, $2, c_id, $4, $5, $6, $7, w_name || '    ' || d_name FROM c, d, w) "
        )
    };
}

/// A whole Payment by number. Parameters: customer's warehouse, district and number, warehouse, district,
/// time, amount. If all rows exist, returns NULL, balance, credit, number, and the names of district and
/// warehouse.
pub(crate) const PAY_BY_NUMBER: &str = concat!(
    "WITH ",
    pay!("$3"),
    "SELECT NULL::bigint, c_balance, c_credit, c_id, d_name, w_name FROM c, d, w"
);

/// The same by last name, which is the third parameter. Always returns a row: its first column is the number
/// of customers with the name; the others are NULL if there is none.
pub(crate) const PAY_BY_NAME: &str = concat!(
    "WITH ",
    middle!(),
    ", ",
    pay!("(SELECT id FROM k)"),
    "SELECT matched, c_balance, c_credit, c_id, d_name, w_name FROM k LEFT JOIN (c CROSS JOIN d CROSS JOIN w) ON true"
);

/// A customer with the newest order and its lines: a row per line, or one row if there is no order.
macro_rules! status {
    ($matched:literal, $customer:literal) => {
        concat!(
            "SELECT ",
            $matched,
            ", c_balance, o_id, o_entry_d, o_carrier_id, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, \
                 ol_delivery_d, c_first, c_middle, c_last FROM customer \
             LEFT JOIN LATERAL (SELECT o_id, o_entry_d, o_carrier_id FROM orders WHERE o_w_id = $1 \
                 AND o_d_id = $2 AND o_c_id = c_id ORDER BY o_id DESC LIMIT 1) AS o ON true \
             LEFT JOIN order_line ON ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = o_id \
             WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = ",
            $customer
        )
    };
}

/// A whole Order-Status. Parameters: warehouse, district, customer.
pub(crate) const STATUS_BY_NUMBER: &str = status!("NULL::bigint", "$3");

/// The same by last name. No row if no customer has it.
pub(crate) const STATUS_BY_NAME: &str =
    concat!("WITH ", middle!(), " ", status!("(SELECT matched FROM k)", "(SELECT id FROM k)"));

/// Delivers a warehouse's oldest orders except for the update of their customers. See [`OLDEST_NEW_ORDER`] on
/// how the oldest is found. No other session changes these orders and lines, since the new_order row is
/// locked.
macro_rules! deliver_orders {
    () => {
        "WITH t AS MATERIALIZED (SELECT district, number FROM generate_series(1, 10) AS district CROSS JOIN LATERAL \
         (SELECT no_o_id AS number FROM new_order WHERE no_w_id = $1 AND no_d_id = district \
          ORDER BY no_o_id LIMIT 1 FOR UPDATE) AS oldest), \
     n AS (DELETE FROM new_order USING t WHERE no_w_id = $1 AND no_d_id = t.district AND no_o_id = t.number), \
     o AS (UPDATE orders SET o_carrier_id = $2 FROM t \
         WHERE o_w_id = $1 AND o_d_id = t.district AND o_id = t.number RETURNING o_d_id, o_c_id), \
     l AS (UPDATE order_line SET ol_delivery_d = $3 FROM t \
         WHERE ol_w_id = $1 AND ol_d_id = t.district AND ol_o_id = t.number RETURNING ol_d_id, ol_amount), \
     d AS (SELECT o_d_id, o_c_id, coalesce(sum(ol_amount), 0) AS amount FROM o JOIN l ON ol_d_id = o_d_id \
         GROUP BY o_d_id, o_c_id ORDER BY o_d_id)"
    };
}

/// A whole Delivery, with customers in the order of the districts. Parameters: warehouse, carrier, time.
/// Returns the number of orders found and the number delivered.
pub(crate) const DELIVER: &str = concat!(
    deliver_orders!(),
    ", c AS (UPDATE customer SET c_balance = c_balance + d.amount, c_delivery_cnt = c_delivery_cnt + 1 FROM d \
         WHERE c_w_id = $1 AND c_d_id = d.o_d_id AND c_id = d.o_c_id RETURNING c_id) \
     SELECT (SELECT count(*) FROM t), (SELECT count(*) FROM c)"
);

/// The same without the update of the customers, which payments change concurrently, for servers that lose
/// rows in joins. Parameters as for [`DELIVER`]. Returns each order's district, customer and amount.
pub(crate) const DELIVER_ORDERS: &str = concat!(
    deliver_orders!(),
    " SELECT t.district, o_c_id, amount FROM t LEFT JOIN d ON o_d_id = t.district ORDER BY 1"
);

/// Parameters: warehouse, district, threshold.
pub(crate) const LOW_STOCK: &str = "SELECT count(DISTINCT s_i_id) FROM order_line, stock \
     WHERE ol_w_id = $1 AND ol_d_id = $2 \
     AND ol_o_id < (SELECT d_next_o_id FROM district WHERE d_w_id = $1 AND d_id = $2) \
     AND ol_o_id >= (SELECT d_next_o_id - 20 FROM district WHERE d_w_id = $1 AND d_id = $2) \
     AND s_w_id = $1 AND s_i_id = ol_i_id AND s_quantity < $3";

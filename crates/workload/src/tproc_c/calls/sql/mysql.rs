//! Statements specific to MySQL and MariaDB.
//!
//! A value that one statement finds and another needs stays in a session variable. For a value from a
//! subquery or a joined row MySQL uses no index lookup by key or range: it would read, and lock, a whole
//! district.
//!
//! The lines of an order are sent as a JSON array of [number, item, supplying warehouse, quantity, round],
//! since MySQL has no arrays.

/// Settings of a user's session. At REPEATABLE READ, the default, a delivery would lock the gap after the
/// last order of the preceding district, and new orders of that district would wait. READ COMMITTED is also
/// PostgreSQL's default.
pub(crate) const USER_SETTINGS: &str = "set session transaction isolation level read committed";

/// The text of a stock row for the district `$district`.
macro_rules! dist {
    ($district:literal) => {
        concat!(
            "CASE ",
            $district,
            " WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03 WHEN 4 THEN s_dist_04 \
             WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06 WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08 \
             WHEN 9 THEN s_dist_09 ELSE s_dist_10 END"
        )
    };
}

/// Converts the order lines in the parameter `$lines` to rows.
macro_rules! lines {
    ($lines:literal) => {
        concat!(
            "json_table(convert(",
            $lines,
            " using utf8mb4), '$[*]' COLUMNS (number int PATH '$[0]', item int PATH '$[1]', supply int PATH '$[2]', \
             quantity int PATH '$[3]', round int PATH '$[4]')) AS l"
        )
    };
}

/// Parameters: warehouse, district.
pub(crate) const NEXT_ORDER: &str =
    "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = $1 AND d_id = $2";

/// After [`NEXT_ORDER`]. Parameters: warehouse, district, customer, time, lines, whether all are local.
pub(crate) const INSERT_ORDER: &str = "INSERT INTO orders \
     (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) \
     SELECT d_w_id, d_id, d_next_o_id - 1, $3, $4, $5, $6 FROM district WHERE d_w_id = $1 AND d_id = $2";

/// After [`NEXT_ORDER`]. Parameters: warehouse, district.
pub(crate) const INSERT_NEW_ORDER: &str = "INSERT INTO new_order (no_w_id, no_d_id, no_o_id) \
     SELECT d_w_id, d_id, d_next_o_id - 1 FROM district WHERE d_w_id = $1 AND d_id = $2";

/// Takes the quantities of the lines of one round from the stock, in the order of the lines. Parameters: home
/// warehouse, lines, round.
pub(crate) const TAKE_STOCK: &str = concat!(
    "UPDATE ",
    lines!("$2"),
    " STRAIGHT_JOIN stock ON s_w_id = l.supply AND s_i_id = l.item SET \
     s_quantity = s_quantity - l.quantity + CASE WHEN s_quantity >= l.quantity + 10 THEN 0 ELSE 91 END, \
     s_ytd = s_ytd + l.quantity, s_order_cnt = s_order_cnt + 1, \
     s_remote_cnt = s_remote_cnt + CASE WHEN s_w_id = $1 THEN 0 ELSE 1 END WHERE l.round = $3"
);

/// After [`NEXT_ORDER`]. Affects one row per line whose item exists. Parameters: warehouse, district, lines.
pub(crate) const INSERT_LINES: &str = concat!(
    "INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, \
         ol_dist_info) \
     SELECT d_w_id, d_id, d_next_o_id - 1, l.number, l.item, l.supply, l.quantity, l.quantity * i_price, ",
    dist!("d_id"),
    " FROM district STRAIGHT_JOIN ",
    lines!("$3"),
    " STRAIGHT_JOIN item ON i_id = l.item STRAIGHT_JOIN stock ON s_w_id = l.supply AND s_i_id = l.item \
     WHERE d_w_id = $1 AND d_id = $2"
);

/// After [`INSERT_LINES`]. Parameters: warehouse, district, customer. Returns the order's number (NULL if one
/// of the three rows is missing), the district's tax, the discount, the warehouse's tax, the sum of the
/// amounts, and the number of "brand" lines.
pub(crate) const TOTALS: &str = "SELECT max(d_next_o_id) - 1, max(d_tax), max(c_discount), max(w_tax), \
     coalesce(sum(ol_amount), 0), \
     coalesce(sum(CASE WHEN i_data LIKE '%ORIGINAL%' AND s_data LIKE '%ORIGINAL%' THEN 1 ELSE 0 END), 0) \
     FROM district STRAIGHT_JOIN customer STRAIGHT_JOIN warehouse \
     LEFT JOIN order_line ON ol_w_id = d_w_id AND ol_d_id = d_id AND ol_o_id = d_next_o_id - 1 \
     LEFT JOIN item ON i_id = ol_i_id LEFT JOIN stock ON s_w_id = ol_supply_w_id AND s_i_id = ol_i_id \
     WHERE d_w_id = $1 AND d_id = $2 AND c_w_id = $1 AND c_d_id = $2 AND c_id = $3 AND w_id = $1";

/// Stores the number of the middle customer with a last name, ⌈n/2⌉ by first name (clause 2.5.2.2), and the
/// number of customers with that name. Parameters: warehouse, district, last name.
pub(crate) const FIND_CUSTOMER: &str = "SELECT min(c_id), coalesce(max(n), 0) INTO @kelvin_customer, @kelvin_matched FROM \
     (SELECT c_id, row_number() OVER (ORDER BY c_first, c_id) AS k, count(*) OVER () AS n FROM customer \
      WHERE c_w_id = $1 AND c_d_id = $2 AND c_last = $3) AS m WHERE k = (n + 1) DIV 2";

/// The customer of a transaction: number `$number`, or the one that [`FIND_CUSTOMER`] stored if that is NULL.
macro_rules! customer {
    ($number:literal) => {
        concat!("CAST(coalesce(", $number, ", @kelvin_customer) AS SIGNED)")
    };
}

/// Adds a payment to the customer and then to the district. Parameters: the customer's warehouse and
/// district, amount, paying warehouse, paying district, customer.
pub(crate) const PAY: &str = concat!(
    "UPDATE customer STRAIGHT_JOIN district SET c_balance = c_balance - $3, c_ytd_payment = c_ytd_payment + $3, \
     c_payment_cnt = c_payment_cnt + 1, \
     c_data = CASE WHEN c_credit = 'BC' THEN left(concat(c_id, ' ', c_d_id, ' ', c_w_id, ' ', d_id, ' ', d_w_id, ' ', \
         CAST($3 AS DECIMAL(6, 2)), '|', c_data), 500) ELSE c_data END, d_ytd = d_ytd + $3 \
     WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = ",
    customer!("$6"),
    " AND d_w_id = $4 AND d_id = $5"
);

/// Parameters: warehouse, district, customer. Returns the number of customers with the last name looked up,
/// and the balance (NULL if there is no such customer).
pub(crate) const BALANCE: &str = concat!(
    "SELECT CAST(@kelvin_matched AS SIGNED), \
     (SELECT c_balance FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = ",
    customer!("$3"),
    ")"
);

/// Parameters: customer's warehouse and district, warehouse, district, time, amount, customer.
pub(crate) const INSERT_HISTORY: &str = concat!(
    "INSERT INTO history (h_c_w_id, h_c_d_id, h_c_id, h_w_id, h_d_id, h_date, h_amount, h_data) \
     SELECT $1, $2, ",
    customer!("$7"),
    ", w_id, d_id, $5, $6, concat(w_name, '    ', d_name) FROM warehouse, district \
     WHERE w_id = $3 AND d_w_id = $3 AND d_id = $4 AND ",
    customer!("$7"),
    " IS NOT NULL"
);

/// Parameters: warehouse, amount.
pub(crate) const PAY_WAREHOUSE: &str = "UPDATE warehouse SET w_ytd = w_ytd + $2 WHERE w_id = $1";

/// Stores the number of the customer's newest order, or NULL. Parameters: warehouse, district, customer.
pub(crate) const FIND_NEWEST: &str = concat!(
    "SELECT max(o_id) INTO @kelvin_order FROM orders WHERE o_w_id = $1 AND o_d_id = $2 AND o_c_id = ",
    customer!("$3")
);

/// After [`FIND_NEWEST`]. Parameters: warehouse, district, customer.
pub(crate) const STATUS: &str = concat!(
    "SELECT CAST(@kelvin_matched AS SIGNED), c_balance, o_id, o_entry_d, o_carrier_id, ol_i_id, ol_supply_w_id, \
     ol_quantity, ol_amount, ol_delivery_d, c_first, c_middle, c_last FROM customer \
     LEFT JOIN orders ON o_w_id = $1 AND o_d_id = $2 AND o_id = @kelvin_order \
     LEFT JOIN order_line ON ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = @kelvin_order \
     WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = ",
    customer!("$3")
);

/// The oldest undelivered order of a district of warehouse `$1`, locked, or NULL. Of two concurrent
/// deliveries the second waits for the lock and then finds the next oldest order.
macro_rules! oldest {
    ($district:literal) => {
        concat!(
            "(SELECT no_o_id FROM new_order WHERE no_w_id = $1 AND no_d_id = ",
            $district,
            " ORDER BY no_o_id LIMIT 1 FOR UPDATE)"
        )
    };
}

/// Stores the numbers of the districts' oldest undelivered orders, or NULL, as a JSON array. Parameter:
/// warehouse.
pub(crate) const FIND_OLDEST: &str = concat!(
    "SET @kelvin_orders = json_array(",
    oldest!("1"),
    ", ",
    oldest!("2"),
    ", ",
    oldest!("3"),
    ", ",
    oldest!("4"),
    ", ",
    oldest!("5"),
    ", ",
    oldest!("6"),
    ", ",
    oldest!("7"),
    ", ",
    oldest!("8"),
    ", ",
    oldest!("9"),
    ", ",
    oldest!("10"),
    ")"
);

/// The orders that [`FIND_OLDEST`] stored, as rows.
macro_rules! found {
    () => {
        "json_table(convert(@kelvin_orders using utf8mb4), '$[*]' COLUMNS (district FOR ORDINALITY, number int PATH '$')) AS l"
    };
}

/// Affects one row per order to deliver. Parameter: warehouse.
pub(crate) const DELETE_OLDEST: &str = concat!(
    "DELETE new_order FROM ",
    found!(),
    " STRAIGHT_JOIN new_order ON no_w_id = $1 AND no_d_id = l.district AND no_o_id = l.number"
);

/// Parameters: warehouse, carrier.
pub(crate) const DELIVER_ORDERS: &str = concat!(
    "UPDATE ",
    found!(),
    " STRAIGHT_JOIN orders ON o_w_id = $1 AND o_d_id = l.district AND o_id = l.number SET o_carrier_id = $2"
);

/// Parameters: warehouse, time.
pub(crate) const DELIVER_LINES: &str = concat!(
    "UPDATE ",
    found!(),
    " STRAIGHT_JOIN order_line ON ol_w_id = $1 AND ol_d_id = l.district AND ol_o_id = l.number SET ol_delivery_d = $2"
);

/// Affects no customer whose order has no lines. Parameter: warehouse.
pub(crate) const DELIVER_CUSTOMERS: &str = concat!(
    "UPDATE ",
    found!(),
    " STRAIGHT_JOIN orders ON o_w_id = $1 AND o_d_id = l.district AND o_id = l.number \
     STRAIGHT_JOIN customer ON c_w_id = $1 AND c_d_id = l.district AND c_id = o_c_id \
     SET c_delivery_cnt = c_delivery_cnt + 1, c_balance = c_balance + (SELECT sum(ol_amount) FROM order_line \
         WHERE ol_w_id = $1 AND ol_d_id = l.district AND ol_o_id = l.number) \
     WHERE EXISTS (SELECT 1 FROM order_line WHERE ol_w_id = $1 AND ol_d_id = l.district AND ol_o_id = l.number)"
);

/// Stores the number that a district's next order will have. Parameters: warehouse, district.
pub(crate) const FIND_NEXT: &str =
    "SELECT d_next_o_id INTO @kelvin_order FROM district WHERE d_w_id = $1 AND d_id = $2";

/// After [`FIND_NEXT`]. Parameters: warehouse, district, threshold.
pub(crate) const LOW_STOCK: &str = "SELECT count(DISTINCT s_i_id) FROM order_line, stock \
     WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id < @kelvin_order AND ol_o_id >= @kelvin_order - 20 \
     AND s_w_id = $1 AND s_i_id = ol_i_id AND s_quantity < $3";

-- One row for each line of the customer's newest order; one row without an order when there is none. matched
-- is null when the customer came by number; no row when nobody has the name.
CREATE FUNCTION kelvin_order_status(home int, district_number int, customer_number int, last_name varchar)
RETURNS TABLE (matched int, customer int, balance numeric, order_number int, entered timestamptz, carrier int,
               item int, supply int, quantity int, amount numeric, delivered timestamptz)
LANGUAGE plpgsql STABLE AS $kelvin$
DECLARE
    namesakes int[];
    found_names int;
    chosen int := customer_number;
BEGIN
    IF last_name IS NOT NULL THEN
        SELECT array_agg(c.c_id ORDER BY c.c_first COLLATE "C", c.c_id) INTO namesakes FROM customer c
         WHERE c.c_w_id = home AND c.c_d_id = district_number AND c.c_last = last_name;
        found_names := coalesce(cardinality(namesakes), 0);
        chosen := namesakes[(found_names + 1) / 2];
    END IF;
    RETURN QUERY
    SELECT found_names, c.c_id::int, c.c_balance, o.o_id::int, o.o_entry_d::timestamptz, o.o_carrier_id::int,
           l.ol_i_id::int, l.ol_supply_w_id::int, l.ol_quantity::int, l.ol_amount, l.ol_delivery_d::timestamptz
      FROM customer c
      LEFT JOIN LATERAL (SELECT n.o_id, n.o_entry_d, n.o_carrier_id FROM orders n
                          WHERE n.o_w_id = home AND n.o_d_id = district_number AND n.o_c_id = c.c_id
                          ORDER BY n.o_id DESC LIMIT 1) o ON true
      LEFT JOIN order_line l ON l.ol_w_id = home AND l.ol_d_id = district_number AND l.ol_o_id = o.o_id
     WHERE c.c_w_id = home AND c.c_d_id = district_number AND c.c_id = chosen;
END
$kelvin$;

-- Procedures of the interface that HammerDB calls with pg_storedprocs, beside the functions of the same names: their
-- arguments differ. What goes in through INOUT comes out changed; timestamps of the caller are not used.

CREATE PROCEDURE neword(no_w_id int, no_max_w_id int, no_d_id int, no_c_id int, no_o_ol_cnt int,
    INOUT no_c_discount numeric, INOUT no_c_last varchar, INOUT no_c_credit varchar, INOUT no_d_tax numeric,
    INOUT no_w_tax numeric, INOUT no_d_next_o_id int, tstamp timestamp)
LANGUAGE plpgsql AS $kelvin$
BEGIN
    -- made by kelvin
    PERFORM neword(no_w_id, no_max_w_id, no_d_id, no_c_id, no_o_ol_cnt, 0);
    -- The district's row is ours until the end, so that its number is this order's, or the last one's when this one
    -- was rolled back.
    SELECT c_discount, c_last, c_credit, d_tax, w_tax, d_next_o_id - 1
      INTO no_c_discount, no_c_last, no_c_credit, no_d_tax, no_w_tax, no_d_next_o_id
      FROM customer, district, warehouse
     WHERE w_id = no_w_id AND d_w_id = no_w_id AND d_id = no_d_id
       AND c_w_id = no_w_id AND c_d_id = no_d_id AND c_id = no_c_id;
END
$kelvin$;

CREATE PROCEDURE payment(p_w_id int, p_d_id int, p_c_w_id int, p_c_d_id int, byname int, p_h_amount numeric,
    INOUT p_c_credit character, INOUT p_c_last varchar, INOUT p_c_id int,
    INOUT p_w_street_1 varchar, INOUT p_w_street_2 varchar, INOUT p_w_city varchar, INOUT p_w_state character,
    INOUT p_w_zip character,
    INOUT p_d_street_1 varchar, INOUT p_d_street_2 varchar, INOUT p_d_city varchar, INOUT p_d_state character,
    INOUT p_d_zip character,
    INOUT p_c_first varchar, INOUT p_c_middle character, INOUT p_c_street_1 varchar, INOUT p_c_street_2 varchar,
    INOUT p_c_city varchar, INOUT p_c_state character, INOUT p_c_zip character, INOUT p_c_phone character,
    INOUT p_c_since timestamp, INOUT p_c_credit_lim numeric, INOUT p_c_discount numeric,
    INOUT p_c_balance numeric, INOUT p_c_data varchar, tstamp timestamp)
LANGUAGE plpgsql AS $kelvin$
BEGIN
    -- made by kelvin
    SELECT k.chosen INTO p_c_id FROM kelvin_payment(p_w_id, p_d_id, p_c_w_id, p_c_d_id, p_c_id,
        CASE WHEN byname = 1 THEN p_c_last END, p_h_amount) k;
    SELECT w_street_1, w_street_2, w_city, w_state, w_zip, d_street_1, d_street_2, d_city, d_state, d_zip
      INTO p_w_street_1, p_w_street_2, p_w_city, p_w_state, p_w_zip,
           p_d_street_1, p_d_street_2, p_d_city, p_d_state, p_d_zip
      FROM warehouse, district
     WHERE w_id = p_w_id AND d_w_id = p_w_id AND d_id = p_d_id;
    SELECT c_credit, c_last, c_first, c_middle, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone,
           c_since, c_credit_lim, c_discount, c_balance, CASE WHEN c_credit = 'BC' THEN left(c_data, 200) END
      INTO p_c_credit, p_c_last, p_c_first, p_c_middle, p_c_street_1, p_c_street_2, p_c_city, p_c_state, p_c_zip,
           p_c_phone, p_c_since, p_c_credit_lim, p_c_discount, p_c_balance, p_c_data
      FROM customer
     WHERE c_w_id = p_c_w_id AND c_d_id = p_c_d_id AND c_id = p_c_id;
END
$kelvin$;

CREATE PROCEDURE delivery(d_w_id int, d_o_carrier_id int, tstamp timestamp)
LANGUAGE plpgsql AS $kelvin$
BEGIN
    -- made by kelvin
    PERFORM kelvin_delivery(d_w_id, d_o_carrier_id);
END
$kelvin$;

CREATE PROCEDURE slev(st_w_id int, st_d_id int, threshold int, INOUT stock_count int)
LANGUAGE plpgsql AS $kelvin$
BEGIN
    -- made by kelvin
    stock_count := kelvin_stock_level(st_w_id, st_d_id, threshold);
END
$kelvin$;

CREATE PROCEDURE ostat(os_w_id int, os_d_id int, INOUT os_c_id int, byname int, INOUT os_c_last varchar,
    INOUT os_c_first varchar, INOUT os_c_middle varchar, INOUT os_c_balance numeric, INOUT os_o_id int,
    INOUT os_entdate timestamp, INOUT os_o_carrier_id int, INOUT os_c_line text)
LANGUAGE plpgsql AS $kelvin$
BEGIN
    -- made by kelvin
    SELECT s.customer, max(c.c_last), max(c.c_first), max(c.c_middle), max(s.balance), max(s.order_number),
           max(s.entered), max(s.carrier),
           string_agg(concat_ws(',', s.item, s.supply, s.quantity, s.amount, s.delivered), ' ')
      INTO os_c_id, os_c_last, os_c_first, os_c_middle, os_c_balance, os_o_id, os_entdate, os_o_carrier_id, os_c_line
      FROM kelvin_order_status(os_w_id, os_d_id, os_c_id, CASE WHEN byname = 1 THEN os_c_last END) s
      JOIN customer c ON c.c_w_id = os_w_id AND c.c_d_id = os_d_id AND c.c_id = s.customer
     GROUP BY s.customer;
END
$kelvin$;

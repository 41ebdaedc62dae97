-- One row for each line of the customer's newest order; one row without an order when there is none. The first column is
-- null when the customer came by number; no row when nobody has the name.
CREATE PROCEDURE kelvin_order_status(
    home int, district_number int, customer_number int,
    last_name varchar(16) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
READS SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE matched, chosen, before_the_middle, newest int;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    SET chosen = customer_number;
    START TRANSACTION;
    IF last_name IS NOT NULL THEN
        SELECT count(*) INTO matched FROM customer
         WHERE c_w_id = home AND c_d_id = district_number AND c_last = last_name;
        IF matched > 0 THEN
            SET before_the_middle = (matched - 1) DIV 2;
            SELECT c_id INTO chosen FROM customer
             WHERE c_w_id = home AND c_d_id = district_number AND c_last = last_name
             ORDER BY c_first, c_id LIMIT before_the_middle, 1;
        END IF;
    END IF;
    SELECT max(o_id) INTO newest FROM orders WHERE o_w_id = home AND o_d_id = district_number AND o_c_id = chosen;
    SELECT matched, c_balance, o_id, o_entry_d, o_carrier_id, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount,
           ol_delivery_d, c_first, c_middle, c_last
      FROM customer
           LEFT JOIN orders ON o_w_id = home AND o_d_id = district_number AND o_id = newest
           LEFT JOIN order_line ON ol_w_id = home AND ol_d_id = district_number AND ol_o_id = newest
     WHERE c_w_id = home AND c_d_id = district_number AND c_id = chosen;
    COMMIT;
END

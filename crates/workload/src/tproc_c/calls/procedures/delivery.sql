-- Returns the number of districts that had an order to deliver. The oldest order is locked before it is deleted: a delivery
-- that waited for another one then takes the next, instead of none.
CREATE PROCEDURE kelvin_delivery(home int, carrier int, OUT delivered int)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE district_number int DEFAULT 1;
    DECLARE oldest, customer_number, lines_found, customers_found int;
    DECLARE amount decimal(12,2);
    DECLARE delivered_at datetime(6) DEFAULT utc_timestamp(6);
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    SET delivered = 0;
    START TRANSACTION;
    WHILE district_number <= 10 DO
        SET oldest = NULL, customer_number = NULL;
        SELECT no_o_id INTO oldest FROM new_order WHERE no_w_id = home AND no_d_id = district_number
         ORDER BY no_o_id LIMIT 1 FOR UPDATE;
        IF oldest IS NOT NULL THEN
            DELETE FROM new_order WHERE no_w_id = home AND no_d_id = district_number AND no_o_id = oldest;
            UPDATE orders SET o_carrier_id = carrier
             WHERE o_w_id = home AND o_d_id = district_number AND o_id = oldest;
            SELECT o_c_id INTO customer_number FROM orders
             WHERE o_w_id = home AND o_d_id = district_number AND o_id = oldest;
            UPDATE order_line SET ol_delivery_d = delivered_at
             WHERE ol_w_id = home AND ol_d_id = district_number AND ol_o_id = oldest;
            SELECT count(*), coalesce(sum(ol_amount), 0) INTO lines_found, amount FROM order_line
             WHERE ol_w_id = home AND ol_d_id = district_number AND ol_o_id = oldest;
            UPDATE customer SET c_balance = c_balance + amount, c_delivery_cnt = c_delivery_cnt + 1
             WHERE c_w_id = home AND c_d_id = district_number AND c_id = customer_number;
            SET customers_found = row_count();
            IF lines_found = 0 OR customers_found = 0 THEN
                SIGNAL SQLSTATE 'KV002'
                   SET MESSAGE_TEXT = 'an order to deliver, its lines or its customer is missing';
            END IF;
            SET delivered = delivered + 1;
        END IF;
        SET district_number = district_number + 1;
    END WHILE;
    COMMIT;
END

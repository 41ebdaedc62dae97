CREATE PROCEDURE kelvin_stock_level(home int, district_number int, threshold int, OUT low int)
READS SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE next_number int;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    START TRANSACTION;
    SELECT d_next_o_id INTO next_number FROM district WHERE d_w_id = home AND d_id = district_number;
    SELECT count(DISTINCT s_i_id) INTO low FROM order_line, stock
     WHERE ol_w_id = home AND ol_d_id = district_number AND ol_o_id < next_number AND ol_o_id >= next_number - 20
       AND s_w_id = home AND s_i_id = ol_i_id AND s_quantity < threshold;
    COMMIT;
END

-- Lines are a JSON array of [number, item, supplying warehouse, quantity, round], in the order of their locks; a line that
-- repeats a stock row has a later round than the one it repeats, so that no statement changes a row twice. An order with
-- an unused item is rolled back, and its number is null.
CREATE PROCEDURE kelvin_new_order(
    home int, district_number int, customer_number int, local_only int, rounds int, line_count int,
    all_lines text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    OUT order_number int, OUT total decimal(16,2), OUT branded int)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE written int;
    DECLARE district_rate, warehouse_rate, discount decimal(4,4);
    DECLARE current_round int DEFAULT 1;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    START TRANSACTION;
    UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = home AND d_id = district_number;
    SELECT d_next_o_id - 1, d_tax, c_discount, w_tax INTO order_number, district_rate, discount, warehouse_rate
      FROM district, customer, warehouse
     WHERE d_w_id = home AND d_id = district_number
       AND c_w_id = home AND c_d_id = district_number AND c_id = customer_number AND w_id = home;
    IF order_number IS NULL THEN
        SIGNAL SQLSTATE 'KV002' SET MESSAGE_TEXT = 'the customer, district or warehouse of an order is missing';
    END IF;
    INSERT INTO orders (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local)
    VALUES (home, district_number, order_number, customer_number, utc_timestamp(6), line_count, local_only);
    INSERT INTO new_order (no_w_id, no_d_id, no_o_id) VALUES (home, district_number, order_number);
    WHILE current_round <= rounds DO
        UPDATE json_table(all_lines, '$[*]' COLUMNS (
                   item int PATH '$[1]', supply int PATH '$[2]', quantity int PATH '$[3]', round int PATH '$[4]')) AS l
               STRAIGHT_JOIN stock ON s_w_id = l.supply AND s_i_id = l.item
           SET s_quantity = s_quantity - l.quantity + CASE WHEN s_quantity >= l.quantity + 10 THEN 0 ELSE 91 END,
               s_ytd = s_ytd + l.quantity,
               s_order_cnt = s_order_cnt + 1,
               s_remote_cnt = s_remote_cnt + CASE WHEN s_w_id = home THEN 0 ELSE 1 END
         WHERE l.round = current_round;
        SET current_round = current_round + 1;
    END WHILE;
    INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount,
                            ol_dist_info)
    SELECT home, district_number, order_number, l.number, l.item, l.supply, l.quantity, l.quantity * i_price,
           CASE district_number
               WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03 WHEN 4 THEN s_dist_04
               WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06 WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08
               WHEN 9 THEN s_dist_09 ELSE s_dist_10 END
      FROM json_table(all_lines, '$[*]' COLUMNS (
               number int PATH '$[0]', item int PATH '$[1]', supply int PATH '$[2]', quantity int PATH '$[3]')) AS l
           STRAIGHT_JOIN item ON i_id = l.item
           STRAIGHT_JOIN stock ON s_w_id = l.supply AND s_i_id = l.item;
    SET written = row_count();
    IF written < line_count THEN
        ROLLBACK;
        SET order_number = NULL;
    ELSE
        SELECT sum(ol_amount), sum(CASE WHEN i_data LIKE '%ORIGINAL%' AND s_data LIKE '%ORIGINAL%' THEN 1 ELSE 0 END)
          INTO total, branded
          FROM order_line STRAIGHT_JOIN item ON i_id = ol_i_id
               STRAIGHT_JOIN stock ON s_w_id = ol_supply_w_id AND s_i_id = ol_i_id
         WHERE ol_w_id = home AND ol_d_id = district_number AND ol_o_id = order_number;
        COMMIT;
        SET total = round(total * (1 - discount) * (1 + warehouse_rate + district_rate), 2);
    END IF;
END

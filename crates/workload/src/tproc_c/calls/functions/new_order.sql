-- Lines come in the order of their locks; a line that repeats a stock row has a later round than the one it
-- repeats, so that no statement changes a row twice. When a line finds no item, the whole work is undone by
-- an error of our own code, which the client takes for the intended roll-back.
-- A server that loses rows in updates with joins (kelvin writes the condition) takes the lines one by one.
CREATE FUNCTION kelvin_new_order(
    home int, district_number int, customer_number int, local_only int, rounds int,
    line_number int[], line_item int[], line_supply int[], line_quantity int[], line_round int[],
    OUT order_number int, OUT total numeric, OUT branded int)
LANGUAGE plpgsql AS $kelvin$
DECLARE
    district_rate numeric;
    warehouse_rate numeric;
    discount numeric;
    written int := 0;
    round_lines int;
    round_amount numeric;
    round_branded int;
    joins_lose_rows boolean := /*joins lose rows*/;
    price numeric;
    line_text varchar;
    line_brand boolean;
BEGIN
    UPDATE district SET d_next_o_id = d_next_o_id + 1
     WHERE d_w_id = home AND d_id = district_number
    RETURNING d_next_o_id - 1, d_tax INTO order_number, district_rate;
    SELECT c_discount, w_tax INTO discount, warehouse_rate FROM customer, warehouse
     WHERE w_id = home AND c_w_id = home AND c_d_id = district_number AND c_id = customer_number;
    IF order_number IS NULL OR NOT FOUND THEN
        RAISE EXCEPTION 'customer %, district % or warehouse % is missing', customer_number, district_number, home
            USING ERRCODE = 'KV002';
    END IF;
    INSERT INTO orders (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local)
    VALUES (home, district_number, order_number, customer_number, now(), cardinality(line_number), local_only);
    INSERT INTO new_order (no_w_id, no_d_id, no_o_id) VALUES (home, district_number, order_number);
    total := 0;
    branded := 0;
    FOR line IN 1..CASE WHEN joins_lose_rows THEN cardinality(line_number) ELSE 0 END LOOP
        UPDATE stock
           SET s_quantity = s_quantity - line_quantity[line]
                   + CASE WHEN s_quantity >= line_quantity[line] + 10 THEN 0 ELSE 91 END,
               s_ytd = s_ytd + line_quantity[line],
               s_order_cnt = s_order_cnt + 1,
               s_remote_cnt = s_remote_cnt + CASE WHEN s_w_id = home THEN 0 ELSE 1 END
          FROM item
         WHERE i_id = line_item[line] AND s_w_id = line_supply[line] AND s_i_id = line_item[line]
        RETURNING i_price,
            CASE district_number
                WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03 WHEN 4 THEN s_dist_04
                WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06 WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08
                WHEN 9 THEN s_dist_09 ELSE s_dist_10 END,
            i_data LIKE '%ORIGINAL%' AND s_data LIKE '%ORIGINAL%'
          INTO price, line_text, line_brand;
        EXIT WHEN NOT FOUND;
        INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity,
                                ol_amount, ol_dist_info)
        VALUES (home, district_number, order_number, line_number[line], line_item[line], line_supply[line],
                line_quantity[line], line_quantity[line] * price, line_text);
        written := written + 1;
        total := total + line_quantity[line] * price;
        branded := branded + line_brand::int;
    END LOOP;
    FOR current_round IN 1..CASE WHEN joins_lose_rows THEN 0 ELSE rounds END LOOP
        WITH taken AS (
            UPDATE stock
               SET s_quantity = s_quantity - l.quantity + CASE WHEN s_quantity >= l.quantity + 10 THEN 0 ELSE 91 END,
                   s_ytd = s_ytd + l.quantity,
                   s_order_cnt = s_order_cnt + 1,
                   s_remote_cnt = s_remote_cnt + CASE WHEN s_w_id = home THEN 0 ELSE 1 END
              FROM unnest(line_number, line_item, line_supply, line_quantity, line_round)
                   AS l(number, item, supply, quantity, round)
              JOIN item ON i_id = l.item
             WHERE l.round = current_round AND s_w_id = l.supply AND s_i_id = l.item
            RETURNING l.number, l.item, l.supply, l.quantity, l.quantity * i_price AS amount,
                CASE district_number
                    WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03 WHEN 4 THEN s_dist_04
                    WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06 WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08
                    WHEN 9 THEN s_dist_09 ELSE s_dist_10 END AS text,
                i_data LIKE '%ORIGINAL%' AND s_data LIKE '%ORIGINAL%' AS brand),
        lines AS (
            INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity,
                                    ol_amount, ol_dist_info)
            SELECT home, district_number, order_number, number, item, supply, quantity, amount, text FROM taken)
        SELECT count(*), coalesce(sum(amount), 0), count(*) FILTER (WHERE brand)
          INTO round_lines, round_amount, round_branded FROM taken;
        written := written + round_lines;
        total := total + round_amount;
        branded := branded + round_branded;
    END LOOP;
    IF written < cardinality(line_number) THEN
        RAISE EXCEPTION 'an item of the order is unused' USING ERRCODE = 'KV001';
    END IF;
    total := round(total * (1 - discount) * (1 + warehouse_rate + district_rate), 2);
END
$kelvin$;

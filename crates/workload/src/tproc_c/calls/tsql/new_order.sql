-- Lines are a JSON array of [number, item, supplying warehouse, quantity, round], in the order of their locks; a line that
-- repeats a stock row has a later round than the one it repeats, so that no statement changes a row twice. An order with
-- an unused item is rolled back, and its number is null. Rows that are only read are read before any is locked.
SET NOCOUNT ON;
SET XACT_ABORT ON;
DECLARE @order_number int, @district_rate decimal(4,4), @warehouse_rate decimal(4,4), @discount decimal(4,4),
        @current_round int = 1, @written int, @total decimal(16,2), @branded int;
BEGIN TRANSACTION;
SELECT @discount = c_discount, @warehouse_rate = w_tax FROM customer, warehouse
 WHERE c_w_id = @home AND c_d_id = @district_number AND c_id = @customer_number AND w_id = @home;
UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = @home AND d_id = @district_number;
SELECT @order_number = d_next_o_id - 1, @district_rate = d_tax FROM district
 WHERE d_w_id = @home AND d_id = @district_number;
IF @discount IS NULL OR @order_number IS NULL
    THROW 58002, 'the customer, district or warehouse of an order is missing', 1;
INSERT INTO orders (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local)
VALUES (@home, @district_number, @order_number, @customer_number, SYSUTCDATETIME(), @line_count, @local_only);
INSERT INTO new_order (no_w_id, no_d_id, no_o_id) VALUES (@home, @district_number, @order_number);
WHILE @current_round <= @rounds
BEGIN
    UPDATE stock
       SET s_quantity = s_quantity - l.quantity + CASE WHEN s_quantity >= l.quantity + 10 THEN 0 ELSE 91 END,
           s_ytd = s_ytd + l.quantity,
           s_order_cnt = s_order_cnt + 1,
           s_remote_cnt = s_remote_cnt + CASE WHEN s_w_id = @home THEN 0 ELSE 1 END
      FROM OPENJSON(@all_lines) WITH (
               item int '$[1]', supply int '$[2]', quantity int '$[3]', round int '$[4]') AS l
           INNER LOOP JOIN stock ON s_w_id = l.supply AND s_i_id = l.item
     WHERE l.round = @current_round;
    SET @current_round = @current_round + 1;
END;
INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount,
                        ol_dist_info)
SELECT @home, @district_number, @order_number, l.number, l.item, l.supply, l.quantity, l.quantity * i_price,
       CASE @district_number
           WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03 WHEN 4 THEN s_dist_04
           WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06 WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08
           WHEN 9 THEN s_dist_09 ELSE s_dist_10 END
  FROM OPENJSON(@all_lines) WITH (
           number int '$[0]', item int '$[1]', supply int '$[2]', quantity int '$[3]') AS l
       INNER LOOP JOIN item ON i_id = l.item
       INNER LOOP JOIN stock ON s_w_id = l.supply AND s_i_id = l.item;
SET @written = @@ROWCOUNT;
IF @written < @line_count
BEGIN
    ROLLBACK TRANSACTION;
    SET @order_number = NULL;
END
ELSE
BEGIN
    SELECT @total = SUM(ol_amount),
           @branded = SUM(CASE WHEN i_data LIKE '%ORIGINAL%' AND s_data LIKE '%ORIGINAL%' THEN 1 ELSE 0 END)
      FROM order_line
           INNER LOOP JOIN item ON i_id = ol_i_id
           INNER LOOP JOIN stock ON s_w_id = ol_supply_w_id AND s_i_id = ol_i_id
     WHERE ol_w_id = @home AND ol_d_id = @district_number AND ol_o_id = @order_number;
    COMMIT TRANSACTION;
    SET @total = ROUND(@total * (1 - @discount) * (1 + @warehouse_rate + @district_rate), 2);
END;

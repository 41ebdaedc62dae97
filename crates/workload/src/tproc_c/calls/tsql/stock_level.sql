-- The twenty orders are few: without the hint the plan of an unknown range reads all of the warehouse's stock.
SET NOCOUNT ON;
SET XACT_ABORT ON;
DECLARE @next_number int, @low int;
BEGIN TRANSACTION;
SELECT @next_number = d_next_o_id FROM district WHERE d_w_id = @home AND d_id = @district_number;
SELECT @low = COUNT(DISTINCT s_i_id)
  FROM order_line INNER LOOP JOIN stock ON s_w_id = ol_w_id AND s_i_id = ol_i_id
 WHERE ol_w_id = @home AND ol_d_id = @district_number AND ol_o_id < @next_number AND ol_o_id >= @next_number - 20
   AND s_quantity < @threshold;
COMMIT TRANSACTION;

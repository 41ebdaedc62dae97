-- Finds the customer and the newest order. How many matched is null when the customer came by number.
SET NOCOUNT ON;
SET XACT_ABORT ON;
DECLARE @chosen int = @customer_number, @matched int, @before_the_middle int, @newest int;
BEGIN TRANSACTION;
IF @last_name IS NOT NULL
BEGIN
    SELECT @matched = COUNT(*) FROM customer
     WHERE c_w_id = @home AND c_d_id = @district_number AND c_last = @last_name;
    SET @before_the_middle = CASE WHEN @matched > 0 THEN (@matched - 1) / 2 ELSE 0 END;
    SET @chosen = NULL;
    SELECT @chosen = c_id FROM customer
     WHERE c_w_id = @home AND c_d_id = @district_number AND c_last = @last_name
     ORDER BY c_first, c_id OFFSET @before_the_middle ROWS FETCH NEXT 1 ROWS ONLY;
END;
SELECT @newest = MAX(o_id) FROM orders WHERE o_w_id = @home AND o_d_id = @district_number AND o_c_id = @chosen;

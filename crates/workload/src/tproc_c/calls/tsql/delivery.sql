-- Counts the districts that had an order to deliver. The oldest order is locked before it is deleted: a delivery that waited
-- for another one then takes the next, instead of none. A server that reads past the hint may lose it to another delivery, and
-- looks again.
SET NOCOUNT ON;
SET XACT_ABORT ON;
DECLARE @district_number int = 1, @delivered int = 0, @oldest int, @taken int, @customer_number int,
        @lines_found int, @amount decimal(12,2), @delivered_at datetime2(6) = SYSUTCDATETIME();
BEGIN TRANSACTION;
WHILE @district_number <= 10
BEGIN
    SET @taken = 0;
    SELECT @oldest = MIN(no_o_id) FROM new_order WITH (UPDLOCK, ROWLOCK)
     WHERE no_w_id = @home AND no_d_id = @district_number;
    IF @oldest IS NOT NULL
    BEGIN
        DELETE FROM new_order WHERE no_w_id = @home AND no_d_id = @district_number AND no_o_id = @oldest;
        SET @taken = @@ROWCOUNT;
    END;
    IF @taken > 0
    BEGIN
        SET @customer_number = NULL;
        SELECT @customer_number = o_c_id FROM orders
         WHERE o_w_id = @home AND o_d_id = @district_number AND o_id = @oldest;
        UPDATE orders SET o_carrier_id = @carrier
         WHERE o_w_id = @home AND o_d_id = @district_number AND o_id = @oldest;
        UPDATE order_line SET ol_delivery_d = @delivered_at
         WHERE ol_w_id = @home AND ol_d_id = @district_number AND ol_o_id = @oldest;
        SELECT @lines_found = COUNT(*), @amount = SUM(ol_amount) FROM order_line
         WHERE ol_w_id = @home AND ol_d_id = @district_number AND ol_o_id = @oldest;
        UPDATE customer SET c_balance = c_balance + COALESCE(@amount, 0), c_delivery_cnt = c_delivery_cnt + 1
         WHERE c_w_id = @home AND c_d_id = @district_number AND c_id = @customer_number;
        IF @@ROWCOUNT = 0 OR @lines_found = 0
            THROW 58002, 'an order to deliver, its lines or its customer is missing', 1;
        SET @delivered = @delivered + 1;
    END;
    IF @taken > 0 OR @oldest IS NULL
        SET @district_number = @district_number + 1;
END;
COMMIT TRANSACTION;

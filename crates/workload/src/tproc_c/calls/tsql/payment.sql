-- The customer, the district and the warehouse are locked in this order: the row that every payment of a warehouse needs is
-- held the shortest. How many matched is null when the customer came by number, and 0, with nothing done and no balance, when
-- nobody has the name.
SET NOCOUNT ON;
SET XACT_ABORT ON;
DECLARE @chosen int = @customer_number, @matched int, @before_the_middle int, @balance decimal(12,2),
        @names varchar(24);
BEGIN TRANSACTION;
IF @last_name IS NOT NULL
BEGIN
    SELECT @matched = COUNT(*) FROM customer
     WHERE c_w_id = @customer_home AND c_d_id = @customer_district AND c_last = @last_name;
    SET @before_the_middle = CASE WHEN @matched > 0 THEN (@matched - 1) / 2 ELSE 0 END;
    SET @chosen = NULL;
    SELECT @chosen = c_id FROM customer
     WHERE c_w_id = @customer_home AND c_d_id = @customer_district AND c_last = @last_name
     ORDER BY c_first, c_id OFFSET @before_the_middle ROWS FETCH NEXT 1 ROWS ONLY;
END;
IF @matched = 0
    ROLLBACK TRANSACTION;
ELSE
BEGIN
    UPDATE customer
       SET c_balance = c_balance - @amount,
           c_ytd_payment = c_ytd_payment + @amount,
           c_payment_cnt = c_payment_cnt + 1,
           c_data = CASE WHEN c_credit = 'BC' THEN
               LEFT(CONCAT(@chosen, ' ', @customer_district, ' ', @customer_home, ' ', @district_number, ' ', @home, ' ',
                           @amount, '|', c_data), 500)
               ELSE c_data END
     WHERE c_w_id = @customer_home AND c_d_id = @customer_district AND c_id = @chosen;
    SELECT @balance = c_balance FROM customer
     WHERE c_w_id = @customer_home AND c_d_id = @customer_district AND c_id = @chosen;
    UPDATE district SET d_ytd = d_ytd + @amount WHERE d_w_id = @home AND d_id = @district_number;
    UPDATE warehouse SET w_ytd = w_ytd + @amount WHERE w_id = @home;
    SELECT @names = CONCAT(w_name, '    ', d_name) FROM warehouse, district
     WHERE w_id = @home AND d_w_id = @home AND d_id = @district_number;
    IF @balance IS NULL OR @names IS NULL
        THROW 58002, 'the customer, district or warehouse of a payment is missing', 1;
    INSERT INTO history (h_c_w_id, h_c_d_id, h_c_id, h_w_id, h_d_id, h_date, h_amount, h_data)
    VALUES (@customer_home, @customer_district, @chosen, @home, @district_number, SYSUTCDATETIME(), @amount, @names);
    COMMIT TRANSACTION;
END;

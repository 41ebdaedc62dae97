-- The customer, the district and the warehouse are locked in this order, and the row that every payment of a warehouse needs
-- comes last: it is held the shortest. How many matched is null when the customer came by number, and 0, with nothing done
-- and nobody chosen, when nobody has the name.
CREATE PROCEDURE kelvin_payment(
    home int, district_number int, customer_home int, customer_district int, customer_number int,
    last_name varchar(16) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, amount decimal(6,2),
    OUT matched int, OUT balance decimal(12,2), OUT chosen int)
MODIFIES SQL DATA SQL SECURITY INVOKER
payment: BEGIN
    DECLARE before_the_middle, taken int;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    SET chosen = customer_number;
    START TRANSACTION;
    IF last_name IS NOT NULL THEN
        SELECT count(*) INTO matched FROM customer
         WHERE c_w_id = customer_home AND c_d_id = customer_district AND c_last = last_name;
        IF matched = 0 THEN
            ROLLBACK;
            SET chosen = NULL;
            LEAVE payment;
        END IF;
        SET before_the_middle = (matched - 1) DIV 2;
        SELECT c_id INTO chosen FROM customer
         WHERE c_w_id = customer_home AND c_d_id = customer_district AND c_last = last_name
         ORDER BY c_first, c_id LIMIT before_the_middle, 1;
    END IF;
    UPDATE customer
       SET c_balance = c_balance - amount,
           c_ytd_payment = c_ytd_payment + amount,
           c_payment_cnt = c_payment_cnt + 1,
           c_data = CASE WHEN c_credit = 'BC' THEN
               left(concat(chosen, ' ', customer_district, ' ', customer_home, ' ', district_number, ' ', home, ' ',
                           amount, '|', c_data), 500)
               ELSE c_data END
     WHERE c_w_id = customer_home AND c_d_id = customer_district AND c_id = chosen;
    SELECT c_balance INTO balance FROM customer
     WHERE c_w_id = customer_home AND c_d_id = customer_district AND c_id = chosen;
    IF balance IS NULL THEN
        SIGNAL SQLSTATE 'KV002' SET MESSAGE_TEXT = 'the customer of a payment is missing';
    END IF;
    UPDATE district SET d_ytd = d_ytd + amount WHERE d_w_id = home AND d_id = district_number;
    INSERT INTO history (h_c_w_id, h_c_d_id, h_c_id, h_w_id, h_d_id, h_date, h_amount, h_data)
    SELECT customer_home, customer_district, chosen, home, district_number, utc_timestamp(6), amount,
           concat(w_name, '    ', d_name)
      FROM warehouse, district WHERE w_id = home AND d_w_id = home AND d_id = district_number;
    SET taken = row_count();
    IF taken = 0 THEN
        SIGNAL SQLSTATE 'KV002' SET MESSAGE_TEXT = 'the district or warehouse of a payment is missing';
    END IF;
    UPDATE warehouse SET w_ytd = w_ytd + amount WHERE w_id = home;
    COMMIT;
END

-- The customer, the district and the warehouse are locked in this order: the row that every payment of a
-- warehouse needs is held the shortest. matched is null when the customer came by number, and 0, with
-- nothing done, when nobody has the name.
CREATE FUNCTION kelvin_payment(
    home int, district_number int, customer_home int, customer_district int, customer_number int,
    last_name varchar, amount numeric,
    OUT matched int, OUT chosen int, OUT balance numeric)
LANGUAGE plpgsql AS $kelvin$
DECLARE
    namesakes int[];
    district_name varchar;
    warehouse_name varchar;
BEGIN
    chosen := customer_number;
    IF last_name IS NOT NULL THEN
        SELECT array_agg(c_id ORDER BY c_first COLLATE "C", c_id) INTO namesakes FROM customer
         WHERE c_w_id = customer_home AND c_d_id = customer_district AND c_last = last_name;
        matched := coalesce(cardinality(namesakes), 0);
        IF matched = 0 THEN
            RETURN;
        END IF;
        chosen := namesakes[(matched + 1) / 2];
    END IF;
    UPDATE customer
       SET c_balance = c_balance - amount,
           c_ytd_payment = c_ytd_payment + amount,
           c_payment_cnt = c_payment_cnt + 1,
           c_data = CASE WHEN c_credit = 'BC' THEN
               substr(chosen || ' ' || customer_district || ' ' || customer_home || ' ' || district_number || ' '
                   || home || ' ' || amount::numeric(6, 2) || '|' || c_data, 1, 500)
               ELSE c_data END
     WHERE c_w_id = customer_home AND c_d_id = customer_district AND c_id = chosen
    RETURNING c_balance INTO balance;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'customer % of district % in warehouse % is missing',
            chosen, customer_district, customer_home USING ERRCODE = 'KV002';
    END IF;
    UPDATE district SET d_ytd = d_ytd + amount WHERE d_w_id = home AND d_id = district_number
    RETURNING d_name INTO district_name;
    UPDATE warehouse SET w_ytd = w_ytd + amount WHERE w_id = home RETURNING w_name INTO warehouse_name;
    IF district_name IS NULL OR warehouse_name IS NULL THEN
        RAISE EXCEPTION 'district % or warehouse % is missing', district_number, home USING ERRCODE = 'KV002';
    END IF;
    INSERT INTO history (h_c_w_id, h_c_d_id, h_c_id, h_w_id, h_d_id, h_date, h_amount, h_data)
    VALUES (customer_home, customer_district, chosen, home, district_number, now(), amount,
            warehouse_name || '    ' || district_name);
END
$kelvin$;

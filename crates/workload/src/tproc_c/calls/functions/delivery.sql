-- Returns the number of districts that had an order to deliver. The oldest order is locked before it is
-- deleted: a delivery that waited for another one then takes the next, instead of none. The customers, whose rows
-- payments change at the same time, are updated one by one: servers exist that lose such rows in a join.
CREATE FUNCTION kelvin_delivery(home int, carrier int) RETURNS int
LANGUAGE plpgsql AS $kelvin$
DECLARE
    districts int[] := '{}';
    numbers int[] := '{}';
    oldest int;
    customers int[];
    amounts numeric[];
BEGIN
    FOR district_number IN 1..10 LOOP
        DELETE FROM new_order
         WHERE no_w_id = home AND no_d_id = district_number
           AND no_o_id = (SELECT no_o_id FROM new_order WHERE no_w_id = home AND no_d_id = district_number
                           ORDER BY no_o_id LIMIT 1 FOR UPDATE)
        RETURNING no_o_id INTO oldest;
        IF FOUND THEN
            districts := districts || district_number;
            numbers := numbers || oldest;
        END IF;
    END LOOP;
    WITH o AS (
        UPDATE orders SET o_carrier_id = carrier FROM unnest(districts, numbers) AS t(district, number)
         WHERE o_w_id = home AND o_d_id = t.district AND o_id = t.number
        RETURNING o_d_id, o_c_id),
    l AS (
        UPDATE order_line SET ol_delivery_d = now() FROM unnest(districts, numbers) AS t(district, number)
         WHERE ol_w_id = home AND ol_d_id = t.district AND ol_o_id = t.number
        RETURNING ol_d_id, ol_amount),
    d AS (
        SELECT o_d_id, o_c_id, coalesce(sum(ol_amount), 0) AS amount FROM o JOIN l ON ol_d_id = o_d_id
         GROUP BY o_d_id, o_c_id)
    SELECT array_agg(o_c_id ORDER BY o_d_id), array_agg(amount ORDER BY o_d_id) INTO customers, amounts FROM d;
    IF coalesce(cardinality(customers), 0) <> cardinality(districts) THEN
        RAISE EXCEPTION 'an order or its lines are missing in warehouse %', home USING ERRCODE = 'KV002';
    END IF;
    FOR delivered IN 1..cardinality(districts) LOOP
        UPDATE customer SET c_balance = c_balance + amounts[delivered], c_delivery_cnt = c_delivery_cnt + 1
         WHERE c_w_id = home AND c_d_id = districts[delivered] AND c_id = customers[delivered];
        IF NOT FOUND THEN
            RAISE EXCEPTION 'the customer of an order is missing in warehouse %', home USING ERRCODE = 'KV002';
        END IF;
    END LOOP;
    RETURN cardinality(districts);
END
$kelvin$;

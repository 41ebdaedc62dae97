-- Returns the number of districts that had an order to deliver. The oldest order is locked before it is
-- deleted: a delivery that waited for another one then takes the next, instead of none.
CREATE FUNCTION kelvin_delivery(home int, carrier int) RETURNS int
LANGUAGE plpgsql AS $kelvin$
DECLARE
    districts int[] := '{}';
    numbers int[] := '{}';
    oldest int;
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
        SELECT o_d_id, o_c_id, sum(ol_amount) AS amount FROM o JOIN l ON ol_d_id = o_d_id
         GROUP BY o_d_id, o_c_id ORDER BY o_d_id)
    UPDATE customer SET c_balance = c_balance + d.amount, c_delivery_cnt = c_delivery_cnt + 1 FROM d
     WHERE c_w_id = home AND c_d_id = d.o_d_id AND c_id = d.o_c_id;
    GET DIAGNOSTICS oldest = ROW_COUNT;
    IF oldest <> cardinality(districts) THEN
        RAISE EXCEPTION 'an order, its lines or its customer are missing in warehouse %', home
            USING ERRCODE = 'KV002';
    END IF;
    RETURN cardinality(districts);
END
$kelvin$;

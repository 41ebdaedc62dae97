-- Functions of the interface that HammerDB calls, over kelvin's own: the server draws what the caller does
-- not give. An order with an unused item is really rolled back, and returns 0.

CREATE FUNCTION dbms_random(low int, high int) RETURNS int
LANGUAGE plpgsql AS $kelvin$
BEGIN
    -- made by kelvin
    RETURN low + floor(random() * (high::bigint - low + 1))::int;
END
$kelvin$;

CREATE FUNCTION neword(no_w_id int, no_max_w_id int, no_d_id int, no_c_id int, no_o_ol_cnt int, no_d_next_o_id int)
RETURNS numeric
LANGUAGE plpgsql AS $kelvin$
DECLARE
    -- made by kelvin
    items int[] := '{}';
    supplies int[] := '{}';
    quantities int[] := '{}';
    supply int;
    local_only int := 1;
    unused boolean := dbms_random(1, 100) = 1;
    lines record;
    answer record;
BEGIN
    FOR line IN 1..no_o_ol_cnt LOOP
        supply := no_w_id;
        IF no_max_w_id > 1 AND dbms_random(1, 100) = 1 THEN
            supply := dbms_random(1, no_max_w_id - 1);
            IF supply >= no_w_id THEN
                supply := supply + 1;
            END IF;
            local_only := 0;
        END IF;
        items := items || CASE WHEN unused AND line = no_o_ol_cnt THEN 100001
                               ELSE ((dbms_random(0, 8191) | dbms_random(1, 100000)) + 4321) % 100000 + 1 END;
        supplies := supplies || supply;
        quantities := quantities || dbms_random(1, 10);
    END LOOP;
    SELECT array_agg(l.number ORDER BY l.round, l.item = 100001, l.supply, l.item) AS number,
           array_agg(l.item ORDER BY l.round, l.item = 100001, l.supply, l.item) AS item,
           array_agg(l.supply ORDER BY l.round, l.item = 100001, l.supply, l.item) AS supply,
           array_agg(l.quantity ORDER BY l.round, l.item = 100001, l.supply, l.item) AS quantity,
           array_agg(l.round ORDER BY l.round, l.item = 100001, l.supply, l.item) AS round,
           max(l.round) AS rounds
      INTO lines
      FROM (SELECT number::int, item, u.supply, quantity,
                   row_number() OVER (PARTITION BY item, u.supply ORDER BY number)::int AS round
              FROM unnest(items, supplies, quantities) WITH ORDINALITY AS u(item, supply, quantity, number)) l;
    IF NOT unused THEN
        SELECT * INTO answer FROM kelvin_new_order(no_w_id, no_d_id, no_c_id, local_only, lines.rounds,
            lines.number, lines.item, lines.supply, lines.quantity, lines.round);
        RETURN answer.total;
    END IF;
    -- Only this way pays for a savepoint.
    BEGIN
        SELECT * INTO answer FROM kelvin_new_order(no_w_id, no_d_id, no_c_id, local_only, lines.rounds,
            lines.number, lines.item, lines.supply, lines.quantity, lines.round);
        RETURN answer.total;
    EXCEPTION WHEN SQLSTATE 'KV001' THEN
        RETURN 0;
    END;
END
$kelvin$;

CREATE FUNCTION payment(p_w_id int, p_d_id int, p_c_w_id int, p_c_d_id int, p_c_id int, byname int,
                        p_h_amount numeric, p_c_last varchar, p_c_credit varchar, p_c_balance numeric)
RETURNS int
LANGUAGE plpgsql AS $kelvin$
DECLARE
    -- made by kelvin
    answer record;
BEGIN
    SELECT * INTO answer FROM kelvin_payment(p_w_id, p_d_id, p_c_w_id, p_c_d_id, p_c_id,
        CASE WHEN byname = 1 THEN p_c_last END, p_h_amount);
    RETURN answer.chosen;
END
$kelvin$;

CREATE FUNCTION delivery(d_w_id int, d_o_carrier_id int) RETURNS int
LANGUAGE plpgsql AS $kelvin$
BEGIN
    -- made by kelvin
    RETURN kelvin_delivery(d_w_id, d_o_carrier_id);
END
$kelvin$;

CREATE FUNCTION ostat(os_w_id int, os_d_id int, os_c_id int, byname int, os_c_last varchar)
RETURNS SETOF record
LANGUAGE plpgsql STABLE AS $kelvin$
BEGIN
    -- made by kelvin
    RETURN QUERY
    SELECT s.item, s.supply, s.quantity::smallint, s.amount, s.delivered, s.customer, c.c_last::varchar,
           c.c_first::varchar, c.c_middle::varchar, s.balance, s.order_number, s.entered::timestamp, s.carrier
      FROM kelvin_order_status(os_w_id, os_d_id, os_c_id, CASE WHEN byname = 1 THEN os_c_last END) s
      JOIN customer c ON c.c_w_id = os_w_id AND c.c_d_id = os_d_id AND c.c_id = s.customer;
END
$kelvin$;

CREATE FUNCTION slev(st_w_id int, st_d_id int, threshold int) RETURNS int
LANGUAGE plpgsql STABLE AS $kelvin$
BEGIN
    -- made by kelvin
    RETURN kelvin_stock_level(st_w_id, st_d_id, threshold);
END
$kelvin$;

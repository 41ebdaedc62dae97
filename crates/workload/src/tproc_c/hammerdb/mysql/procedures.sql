-- Procedures of the interface that HammerDB calls, over kelvin's own: the server draws what the caller does not give. An
-- order with an unused item is rolled back, and its number comes out as null. What the caller says of the time is not used.

CREATE PROCEDURE neword(
    no_w_id int, no_max_w_id int, no_d_id int, no_c_id int, no_o_ol_cnt int,
    OUT no_c_discount decimal(4,4), OUT no_c_last varchar(16), OUT no_c_credit varchar(2),
    OUT no_d_tax decimal(4,4), OUT no_w_tax decimal(4,4), INOUT no_d_next_o_id int, tstamp datetime)
MODIFIES SQL DATA SQL SECURITY INVOKER COMMENT 'made by kelvin'
BEGIN
    DECLARE line, local_only int DEFAULT 1;
    DECLARE drawn_item, drawn_supply, rounds, branded int;
    DECLARE total decimal(16,2);
    DECLARE unused boolean DEFAULT rand() < 0.01;
    DECLARE drawn, all_lines text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT '';
    WHILE line <= no_o_ol_cnt DO
        SET drawn_supply = no_w_id;
        IF no_max_w_id > 1 AND rand() < 0.01 THEN
            SET drawn_supply = 1 + floor(rand() * (no_max_w_id - 1));
            IF drawn_supply >= no_w_id THEN
                SET drawn_supply = drawn_supply + 1;
            END IF;
            SET local_only = 0;
        END IF;
        IF unused AND line = no_o_ol_cnt THEN
            SET drawn_item = 100001;
        ELSE
            SET drawn_item = 1 + ((CAST(floor(rand() * 8192) AS UNSIGNED) | CAST(1 + floor(rand() * 100000) AS UNSIGNED))
                                  + 4321) % 100000;
        END IF;
        SET drawn = concat(drawn, IF(line = 1, '[', ',['), line, ',', drawn_item, ',', drawn_supply, ',',
                           CAST(1 + floor(rand() * 10) AS UNSIGNED), ']');
        SET line = line + 1;
    END WHILE;
    SELECT concat('[', group_concat('[', number, ',', item, ',', supply, ',', quantity, ',', round, ']'
                                    ORDER BY round, item = 100001, supply, item), ']'), max(round)
      INTO all_lines, rounds
      FROM (SELECT number, item, supply, quantity,
                   row_number() OVER (PARTITION BY item, supply ORDER BY number) AS round
              FROM json_table(concat('[', drawn, ']'), '$[*]' COLUMNS (
                   number int PATH '$[0]', item int PATH '$[1]', supply int PATH '$[2]', quantity int PATH '$[3]')) AS d) AS l;
    SELECT c_discount, c_last, c_credit, d_tax, w_tax
      INTO no_c_discount, no_c_last, no_c_credit, no_d_tax, no_w_tax
      FROM customer, district, warehouse
     WHERE c_w_id = no_w_id AND c_d_id = no_d_id AND c_id = no_c_id
       AND d_w_id = no_w_id AND d_id = no_d_id AND w_id = no_w_id;
    CALL kelvin_new_order(no_w_id, no_d_id, no_c_id, local_only, rounds, no_o_ol_cnt, all_lines,
                          no_d_next_o_id, total, branded);
END;

CREATE PROCEDURE payment(
    p_w_id int, p_d_id int, p_c_w_id int, p_c_d_id int, INOUT p_c_id int, byname int, p_h_amount decimal(6,2),
    INOUT p_c_last varchar(16) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    OUT p_w_street_1 varchar(20), OUT p_w_street_2 varchar(20), OUT p_w_city varchar(20), OUT p_w_state char(2),
    OUT p_w_zip char(9),
    OUT p_d_street_1 varchar(20), OUT p_d_street_2 varchar(20), OUT p_d_city varchar(20), OUT p_d_state char(2),
    OUT p_d_zip char(9),
    OUT p_c_first varchar(16), OUT p_c_middle char(2), OUT p_c_street_1 varchar(20), OUT p_c_street_2 varchar(20),
    OUT p_c_city varchar(20), OUT p_c_state char(2), OUT p_c_zip char(9), OUT p_c_phone char(16),
    OUT p_c_since datetime, INOUT p_c_credit char(2), OUT p_c_credit_lim decimal(12,2), OUT p_c_discount decimal(4,4),
    INOUT p_c_balance decimal(12,2), OUT p_c_data varchar(500), tstamp datetime)
MODIFIES SQL DATA SQL SECURITY INVOKER COMMENT 'made by kelvin'
BEGIN
    DECLARE matched, chosen int;
    CALL kelvin_payment(p_w_id, p_d_id, p_c_w_id, p_c_d_id, p_c_id, IF(byname = 1, p_c_last, NULL), p_h_amount,
                        matched, p_c_balance, chosen);
    SET p_c_id = chosen;
    SELECT w_street_1, w_street_2, w_city, w_state, w_zip, d_street_1, d_street_2, d_city, d_state, d_zip
      INTO p_w_street_1, p_w_street_2, p_w_city, p_w_state, p_w_zip,
           p_d_street_1, p_d_street_2, p_d_city, p_d_state, p_d_zip
      FROM warehouse, district
     WHERE w_id = p_w_id AND d_w_id = p_w_id AND d_id = p_d_id;
    IF chosen IS NOT NULL THEN
        SELECT c_last, c_first, c_middle, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since, c_credit,
               c_credit_lim, c_discount, IF(c_credit = 'BC', left(c_data, 200), NULL)
          INTO p_c_last, p_c_first, p_c_middle, p_c_street_1, p_c_street_2, p_c_city, p_c_state, p_c_zip, p_c_phone,
               p_c_since, p_c_credit, p_c_credit_lim, p_c_discount, p_c_data
          FROM customer
         WHERE c_w_id = p_c_w_id AND c_d_id = p_c_d_id AND c_id = chosen;
    END IF;
END;

CREATE PROCEDURE delivery(d_w_id int, d_o_carrier_id int, tstamp datetime)
MODIFIES SQL DATA SQL SECURITY INVOKER COMMENT 'made by kelvin'
BEGIN
    DECLARE delivered int;
    CALL kelvin_delivery(d_w_id, d_o_carrier_id, delivered);
END;

CREATE PROCEDURE slev(st_w_id int, st_d_id int, threshold int, OUT stock_count int)
READS SQL DATA SQL SECURITY INVOKER COMMENT 'made by kelvin'
    CALL kelvin_stock_level(st_w_id, st_d_id, threshold, stock_count);

CREATE PROCEDURE ostat(
    os_w_id int, os_d_id int, INOUT os_c_id int, byname int,
    INOUT os_c_last varchar(16) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    OUT os_c_first varchar(16), OUT os_c_middle char(2), OUT os_c_balance decimal(12,2), OUT os_o_id int,
    OUT os_entdate datetime, OUT os_o_carrier_id int)
READS SQL DATA SQL SECURITY INVOKER COMMENT 'made by kelvin'
BEGIN
    DECLARE amount decimal(12,2);
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    START TRANSACTION;
    IF byname = 1 THEN
        SELECT min(c_id) INTO os_c_id
          FROM (SELECT c_id, row_number() OVER (ORDER BY c_first, c_id) AS k, count(*) OVER () AS n FROM customer
                 WHERE c_w_id = os_w_id AND c_d_id = os_d_id AND c_last = os_c_last) AS m
         WHERE k = (n + 1) DIV 2;
    END IF;
    SELECT max(o_id) INTO os_o_id FROM orders WHERE o_w_id = os_w_id AND o_d_id = os_d_id AND o_c_id = os_c_id;
    SELECT max(c_last), max(c_first), max(c_middle), max(c_balance), max(o_entry_d), max(o_carrier_id),
           sum(ol_amount)
      INTO os_c_last, os_c_first, os_c_middle, os_c_balance, os_entdate, os_o_carrier_id, amount
      FROM customer
           LEFT JOIN orders ON o_w_id = os_w_id AND o_d_id = os_d_id AND o_id = os_o_id
           LEFT JOIN order_line ON ol_w_id = os_w_id AND ol_d_id = os_d_id AND ol_o_id = os_o_id
     WHERE c_w_id = os_w_id AND c_d_id = os_d_id AND c_id = os_c_id;
    COMMIT;
END

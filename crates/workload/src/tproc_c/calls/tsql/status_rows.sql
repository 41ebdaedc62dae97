-- One row for each line of the customer's newest order; one row without an order when there is none; no row when nobody has
-- the name.
SELECT @matched, c_balance, o_id, o_entry_d, o_carrier_id, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount,
       ol_delivery_d, c_first, c_middle, c_last
  FROM customer
       LEFT JOIN orders ON o_w_id = @home AND o_d_id = @district_number AND o_id = @newest
       LEFT JOIN order_line ON ol_w_id = @home AND ol_d_id = @district_number AND ol_o_id = @newest
 WHERE c_w_id = @home AND c_d_id = @district_number AND c_id = @chosen;
COMMIT TRANSACTION;

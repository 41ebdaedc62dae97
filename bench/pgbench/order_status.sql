\set w random(1, :warehouses)
\set d random(1, 10)
\set c random(1, 3000)
select matched, balance, order_number, entered, carrier, item, supply, quantity, amount, delivered from kelvin_order_status(:w, :d, :c, null);

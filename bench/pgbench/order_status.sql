\set w random(1, :warehouses)
\set d random(1, 10)
\if random(1, 100) <= 60
\set n ((random(0, 255) | random(0, 999)) + 123) % 1000 + 0
select matched, balance, order_number, entered, carrier, item, supply, quantity, amount, delivered from kelvin_order_status(:w, :d, null, ((array['BAR', 'OUGHT', 'ABLE', 'PRI', 'PRES', 'ESE', 'ANTI', 'CALLY', 'ATION', 'EING'])[:n / 100 + 1] || (array['BAR', 'OUGHT', 'ABLE', 'PRI', 'PRES', 'ESE', 'ANTI', 'CALLY', 'ATION', 'EING'])[:n / 10 % 10 + 1] || (array['BAR', 'OUGHT', 'ABLE', 'PRI', 'PRES', 'ESE', 'ANTI', 'CALLY', 'ATION', 'EING'])[:n % 10 + 1])::varchar);
\else
\set c ((random(0, 1023) | random(1, 3000)) + 259) % 3000 + 1
select matched, balance, order_number, entered, carrier, item, supply, quantity, amount, delivered from kelvin_order_status(:w, :d, :c, null);
\endif

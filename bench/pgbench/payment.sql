-- 60 % by last name, whose syllables the server concatenates; 15 % for a customer of another warehouse.
\set w random(1, :warehouses)
\set d random(1, 10)
\set remote random(1, 100) <= 15
\set cw case when :remote then (:w + random(0, :warehouses - 2)) % :warehouses + 1 else :w end
\set cd case when :remote then random(1, 10) else :d end
\set cents random(100, 500000)
\if random(1, 100) <= 60
\set n ((random(0, 255) | random(0, 999)) + 123) % 1000 + 0
select matched, balance from kelvin_payment(:w, :d, :cw, :cd, null, ((array['BAR', 'OUGHT', 'ABLE', 'PRI', 'PRES', 'ESE', 'ANTI', 'CALLY', 'ATION', 'EING'])[:n / 100 + 1] || (array['BAR', 'OUGHT', 'ABLE', 'PRI', 'PRES', 'ESE', 'ANTI', 'CALLY', 'ATION', 'EING'])[:n / 10 % 10 + 1] || (array['BAR', 'OUGHT', 'ABLE', 'PRI', 'PRES', 'ESE', 'ANTI', 'CALLY', 'ATION', 'EING'])[:n % 10 + 1])::varchar, :cents / 100.0);
\else
\set c ((random(0, 1023) | random(1, 3000)) + 259) % 3000 + 1
select matched, balance from kelvin_payment(:w, :d, :cw, :cd, :c, null, :cents / 100.0);
\endif

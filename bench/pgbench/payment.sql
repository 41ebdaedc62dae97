\set w random(1, :warehouses)
\set d random(1, 10)
\set c random(1, 3000)
\set cents random(100, 500000)
select matched, balance from kelvin_payment(:w, :d, :w, :d, :c, null, :cents / 100.0);

-- The same random inputs as Kelvin, as far as pgbench allows: customer and items by NURand, one line in a hundred from
-- another warehouse. Ten lines, the average of 5 to 15, because a script cannot repeat a command; no unused items,
-- because an error ends a client. The server sorts the lines into locking order, which Kelvin does on the client.
\set w random(1, :warehouses)
\set d random(1, 10)
\set c ((random(0, 1023) | random(1, 3000)) + 259) % 3000 + 1
\set i1 ((random(0, 8191) | random(1, 100000)) + 4321) % 100000 + 1
\set s1 case when random(1, 100) = 1 then (:w + random(0, :warehouses - 2)) % :warehouses + 1 else :w end
\set q1 random(1, 10)
\set i2 ((random(0, 8191) | random(1, 100000)) + 4321) % 100000 + 1
\set s2 case when random(1, 100) = 1 then (:w + random(0, :warehouses - 2)) % :warehouses + 1 else :w end
\set q2 random(1, 10)
\set i3 ((random(0, 8191) | random(1, 100000)) + 4321) % 100000 + 1
\set s3 case when random(1, 100) = 1 then (:w + random(0, :warehouses - 2)) % :warehouses + 1 else :w end
\set q3 random(1, 10)
\set i4 ((random(0, 8191) | random(1, 100000)) + 4321) % 100000 + 1
\set s4 case when random(1, 100) = 1 then (:w + random(0, :warehouses - 2)) % :warehouses + 1 else :w end
\set q4 random(1, 10)
\set i5 ((random(0, 8191) | random(1, 100000)) + 4321) % 100000 + 1
\set s5 case when random(1, 100) = 1 then (:w + random(0, :warehouses - 2)) % :warehouses + 1 else :w end
\set q5 random(1, 10)
\set i6 ((random(0, 8191) | random(1, 100000)) + 4321) % 100000 + 1
\set s6 case when random(1, 100) = 1 then (:w + random(0, :warehouses - 2)) % :warehouses + 1 else :w end
\set q6 random(1, 10)
\set i7 ((random(0, 8191) | random(1, 100000)) + 4321) % 100000 + 1
\set s7 case when random(1, 100) = 1 then (:w + random(0, :warehouses - 2)) % :warehouses + 1 else :w end
\set q7 random(1, 10)
\set i8 ((random(0, 8191) | random(1, 100000)) + 4321) % 100000 + 1
\set s8 case when random(1, 100) = 1 then (:w + random(0, :warehouses - 2)) % :warehouses + 1 else :w end
\set q8 random(1, 10)
\set i9 ((random(0, 8191) | random(1, 100000)) + 4321) % 100000 + 1
\set s9 case when random(1, 100) = 1 then (:w + random(0, :warehouses - 2)) % :warehouses + 1 else :w end
\set q9 random(1, 10)
\set i10 ((random(0, 8191) | random(1, 100000)) + 4321) % 100000 + 1
\set s10 case when random(1, 100) = 1 then (:w + random(0, :warehouses - 2)) % :warehouses + 1 else :w end
\set q10 random(1, 10)
with lines as (select number, item, supply, quantity, row_number() over (partition by supply, item order by number)::int as round from unnest(array[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]::int[], array[:i1, :i2, :i3, :i4, :i5, :i6, :i7, :i8, :i9, :i10]::int[], array[:s1, :s2, :s3, :s4, :s5, :s6, :s7, :s8, :s9, :s10]::int[], array[:q1, :q2, :q3, :q4, :q5, :q6, :q7, :q8, :q9, :q10]::int[]) as t(number, item, supply, quantity)),
arrays as (select min((supply = :w)::int) as local, max(round) as rounds, array_agg(number order by round, supply, item) as numbers, array_agg(item order by round, supply, item) as items, array_agg(supply order by round, supply, item) as supplies, array_agg(quantity order by round, supply, item) as quantities, array_agg(round order by round, supply, item) as line_rounds from lines)
select order_number, total, branded from arrays, kelvin_new_order(:w, :d, :c, local, rounds, numbers, items, supplies, quantities, line_rounds);

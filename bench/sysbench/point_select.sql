\set id random(1, 100000)
select c from sbtest1 where id = :id

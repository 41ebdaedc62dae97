//! The statements. Each is one text for all engines; the dialect fills in the parts that differ.

use super::Parameters;
use crate::tproc_h::dialect::Dialect;

/// The statement of a query, 1 to 22.
pub(crate) fn sql(query: u8, dialect: &dyn Dialect, parameters: &Parameters) -> String {
    let writer = Writer { dialect, p: parameters };
    match query {
        1 => writer.pricing_summary(),
        2 => writer.minimum_cost(),
        3 => writer.shipping_priority(),
        4 => writer.order_priority(),
        5 => writer.local_supplier(),
        6 => writer.forecast(),
        7 => writer.volume_shipping(),
        8 => writer.market_share(),
        9 => writer.product_profit(),
        10 => writer.returned_items(),
        11 => writer.important_stock(),
        12 => writer.shipping_modes(),
        13 => writer.customer_distribution(),
        14 => writer.promotion(),
        15 => writer.top_supplier(),
        16 => writer.parts_suppliers(),
        17 => writer.small_quantity(),
        18 => writer.large_volume(),
        19 => writer.discounted(),
        20 => writer.part_promotion(),
        21 => writer.waiting_suppliers(),
        _ => writer.sales_opportunity(),
    }
}

struct Writer<'a> {
    dialect: &'a dyn Dialect,
    p: &'a Parameters,
}

/// The texts as an SQL list.
fn list(texts: &[String]) -> String {
    texts.iter().map(|text| format!("'{text}'")).collect::<Vec<_>>().join(", ")
}

impl Writer<'_> {
    /// The SQL for one minus a rate, in the representation of this engine's rates.
    fn one_minus(&self, rate: &str) -> String {
        let one = if self.dialect.has_only_integers() { 100 } else { 1 };
        format!("({one} - {rate})")
    }

    fn revenue(&self) -> String {
        format!("l_extendedprice * {}", self.one_minus("l_discount"))
    }

    fn sum(&self, x: &str) -> String {
        self.dialect.sum(x)
    }

    fn pricing_summary(&self) -> String {
        let (d, revenue) = (self.dialect, self.revenue());
        let one = if d.has_only_integers() { 100 } else { 1 };
        format!(
            "select l_returnflag, l_linestatus, {} as sum_qty, {} as sum_base_price, {} as sum_disc_price, \
             {} as sum_charge, {} as avg_qty, {} as avg_price, {} as avg_disc, count(*) as count_order \
             from lineitem where l_shipdate <= '{}' \
             group by l_returnflag, l_linestatus order by l_returnflag, l_linestatus",
            d.sum("l_quantity"),
            d.sum("l_extendedprice"),
            d.sum(&revenue),
            d.sum(&format!("{revenue} * ({one} + l_tax)")),
            d.average("l_quantity"),
            d.average("l_extendedprice"),
            d.average("l_discount"),
            self.p.text(0)
        )
    }

    fn minimum_cost(&self) -> String {
        let region = self.p.text(2);
        format!(
            "select{} s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment \
             from part, supplier, partsupp, nation, region \
             where p_partkey = ps_partkey and s_suppkey = ps_suppkey and p_size = {} and p_type like '%{}' \
             and s_nationkey = n_nationkey and n_regionkey = r_regionkey and r_name = '{region}' \
             and ps_supplycost = (select min(ps_supplycost) from partsupp, supplier, nation, region \
             where p_partkey = ps_partkey and s_suppkey = ps_suppkey and s_nationkey = n_nationkey \
             and n_regionkey = r_regionkey and r_name = '{region}') \
             order by s_acctbal desc, n_name, s_name, p_partkey{}",
            self.dialect.top(100),
            self.p.text(0),
            self.p.text(1),
            self.dialect.limit(100)
        )
    }

    fn shipping_priority(&self) -> String {
        let date = self.p.text(1);
        format!(
            "select{} l_orderkey, {} as revenue, o_orderdate, o_shippriority from customer, orders, lineitem \
             where c_mktsegment = '{}' and c_custkey = o_custkey and l_orderkey = o_orderkey \
             and o_orderdate < '{date}' and l_shipdate > '{date}' \
             group by l_orderkey, o_orderdate, o_shippriority order by revenue desc, o_orderdate{}",
            self.dialect.top(10),
            self.sum(&self.revenue()),
            self.p.text(0),
            self.dialect.limit(10)
        )
    }

    fn order_priority(&self) -> String {
        format!(
            "select o_orderpriority, count(*) as order_count from orders \
             where o_orderdate >= '{}' and o_orderdate < '{}' and exists \
             (select * from lineitem where l_orderkey = o_orderkey and l_commitdate < l_receiptdate) \
             group by o_orderpriority order by o_orderpriority",
            self.p.text(0),
            self.p.text(1)
        )
    }

    fn local_supplier(&self) -> String {
        format!(
            "select n_name, {} as revenue from customer, orders, lineitem, supplier, nation, region \
             where c_custkey = o_custkey and l_orderkey = o_orderkey and l_suppkey = s_suppkey \
             and c_nationkey = s_nationkey and s_nationkey = n_nationkey and n_regionkey = r_regionkey \
             and r_name = '{}' and o_orderdate >= '{}' and o_orderdate < '{}' \
             group by n_name order by revenue desc",
            self.sum(&self.revenue()),
            self.p.text(0),
            self.p.text(1),
            self.p.text(2)
        )
    }

    fn forecast(&self) -> String {
        let discount = self.p.number(2);
        format!(
            "select {} as revenue from lineitem where l_shipdate >= '{}' and l_shipdate < '{}' \
             and l_discount between {} and {} and l_quantity < {}",
            self.sum("l_extendedprice * l_discount"),
            self.p.text(0),
            self.p.text(1),
            self.dialect.hundredths(discount - 1),
            self.dialect.hundredths(discount + 1),
            self.dialect.hundredths(100 * self.p.number(3))
        )
    }

    fn volume_shipping(&self) -> String {
        let (one, two) = (self.p.text(0), self.p.text(1));
        format!(
            "select supp_nation, cust_nation, l_year, {} as revenue from \
             (select n1.n_name as supp_nation, n2.n_name as cust_nation, {} as l_year, {} as volume \
             from supplier, lineitem, orders, customer, nation n1, nation n2 \
             where s_suppkey = l_suppkey and o_orderkey = l_orderkey and c_custkey = o_custkey \
             and s_nationkey = n1.n_nationkey and c_nationkey = n2.n_nationkey \
             and ((n1.n_name = '{one}' and n2.n_name = '{two}') or (n1.n_name = '{two}' and n2.n_name = '{one}')) \
             and l_shipdate between '1995-01-01' and '1996-12-31') as shipping \
             group by supp_nation, cust_nation, l_year order by supp_nation, cust_nation, l_year",
            self.sum("volume"),
            self.dialect.year("l_shipdate"),
            self.revenue()
        )
    }

    fn market_share(&self) -> String {
        let nation = format!("sum(case when nation = '{}' then volume else 0 end)", self.p.text(0));
        format!(
            "select o_year, {} as mkt_share from (select {} as o_year, {} as volume, n2.n_name as nation \
             from part, supplier, lineitem, orders, customer, nation n1, nation n2, region \
             where p_partkey = l_partkey and s_suppkey = l_suppkey and l_orderkey = o_orderkey \
             and o_custkey = c_custkey and c_nationkey = n1.n_nationkey and n1.n_regionkey = r_regionkey \
             and r_name = '{}' and s_nationkey = n2.n_nationkey \
             and o_orderdate between '1995-01-01' and '1996-12-31' and p_type = '{}') as all_nations \
             group by o_year order by o_year",
            self.quotient(&nation, "sum(volume)"),
            self.dialect.year("o_orderdate"),
            self.revenue(),
            self.p.text(1),
            self.p.text(2)
        )
    }

    /// The SQL for the ratio of two sums of decimals.
    fn quotient(&self, a: &str, b: &str) -> String {
        if self.dialect.has_only_integers() {
            return format!("cast({a} as real) / {b}");
        }
        self.dialect.rounded(&format!("{a} / {b}"), 4)
    }

    fn product_profit(&self) -> String {
        format!(
            "select nation, o_year, {} as sum_profit from \
             (select n_name as nation, {} as o_year, {} - ps_supplycost * l_quantity as amount \
             from part, supplier, lineitem, partsupp, orders, nation \
             where s_suppkey = l_suppkey and ps_suppkey = l_suppkey and ps_partkey = l_partkey \
             and p_partkey = l_partkey and o_orderkey = l_orderkey and s_nationkey = n_nationkey \
             and p_name like '%{}%') as profit \
             group by nation, o_year order by nation, o_year desc",
            self.sum("amount"),
            self.dialect.year("o_orderdate"),
            self.revenue(),
            self.p.text(0)
        )
    }

    fn returned_items(&self) -> String {
        format!(
            "select{} c_custkey, c_name, {} as revenue, c_acctbal, n_name, c_address, c_phone, c_comment \
             from customer, orders, lineitem, nation \
             where c_custkey = o_custkey and l_orderkey = o_orderkey and o_orderdate >= '{}' \
             and o_orderdate < '{}' and l_returnflag = 'R' and c_nationkey = n_nationkey \
             group by c_custkey, c_name, c_acctbal, c_phone, n_name, c_address, c_comment \
             order by revenue desc{}",
            self.dialect.top(20),
            self.sum(&self.revenue()),
            self.p.text(0),
            self.p.text(1),
            self.dialect.limit(20)
        )
    }

    fn important_stock(&self) -> String {
        let nation = self.p.text(0);
        let value = "sum(ps_supplycost * ps_availqty)";
        format!(
            "select ps_partkey, {} as value from partsupp, supplier, nation \
             where ps_suppkey = s_suppkey and s_nationkey = n_nationkey and n_name = '{nation}' \
             group by ps_partkey having {value} > (select {value} * {} from partsupp, supplier, nation \
             where ps_suppkey = s_suppkey and s_nationkey = n_nationkey and n_name = '{nation}') \
             order by value desc",
            self.sum("ps_supplycost * ps_availqty"),
            self.p.text(1)
        )
    }

    fn shipping_modes(&self) -> String {
        let urgent = "o_orderpriority = '1-URGENT' or o_orderpriority = '2-HIGH'";
        let other = "o_orderpriority <> '1-URGENT' and o_orderpriority <> '2-HIGH'";
        format!(
            "select l_shipmode, sum(case when {urgent} then 1 else 0 end) as high_line_count, \
             sum(case when {other} then 1 else 0 end) as low_line_count from orders, lineitem \
             where o_orderkey = l_orderkey and l_shipmode in ('{}', '{}') and l_commitdate < l_receiptdate \
             and l_shipdate < l_commitdate and l_receiptdate >= '{}' and l_receiptdate < '{}' \
             group by l_shipmode order by l_shipmode",
            self.p.text(0),
            self.p.text(1),
            self.p.text(2),
            self.p.text(3)
        )
    }

    fn customer_distribution(&self) -> String {
        format!(
            "select c_count, count(*) as custdist from (select c_custkey, count(o_orderkey) as c_count \
             from customer left outer join orders on c_custkey = o_custkey and o_comment not like '%{}%{}%' \
             group by c_custkey) as c_orders group by c_count order by custdist desc, c_count desc",
            self.p.text(0),
            self.p.text(1)
        )
    }

    fn promotion(&self) -> String {
        let revenue = self.revenue();
        let promoted = format!("100.00 * sum(case when p_type like 'PROMO%' then {revenue} else 0 end)");
        format!(
            "select {} as promo_revenue from lineitem, part \
             where l_partkey = p_partkey and l_shipdate >= '{}' and l_shipdate < '{}'",
            self.quotient(&promoted, &format!("sum({revenue})")),
            self.p.text(0),
            self.p.text(1)
        )
    }

    fn top_supplier(&self) -> String {
        format!(
            "with revenue (supplier_no, total_revenue) as (select l_suppkey, sum({}) from lineitem \
             where l_shipdate >= '{}' and l_shipdate < '{}' group by l_suppkey) \
             select s_suppkey, s_name, s_address, s_phone, {} as total_revenue from supplier, revenue \
             where s_suppkey = supplier_no and total_revenue = (select max(total_revenue) from revenue) \
             order by s_suppkey",
            self.revenue(),
            self.p.text(0),
            self.p.text(1),
            self.dialect.rounded("total_revenue", 2)
        )
    }

    fn parts_suppliers(&self) -> String {
        format!(
            "select p_brand, p_type, p_size, count(distinct ps_suppkey) as supplier_cnt from partsupp, part \
             where p_partkey = ps_partkey and p_brand <> '{}' and p_type not like '{}%' and p_size in ({}) \
             and ps_suppkey not in (select s_suppkey from supplier \
             where s_comment like '%Customer%Complaints%') \
             group by p_brand, p_type, p_size order by supplier_cnt desc, p_brand, p_type, p_size",
            self.p.text(0),
            self.p.text(1),
            self.p.arguments_from(2).join(", ")
        )
    }

    fn small_quantity(&self) -> String {
        let (d, sum) = (self.dialect, "sum(l_extendedprice)");
        // 0.2 times an average, without the factor 0.2, which binary floating point cannot represent.
        let (average, limit) = if d.has_only_integers() {
            (format!("cast({sum} as real) / 700"), "5 * l_quantity < (select avg(l_quantity)")
        } else {
            (d.rounded(&format!("{sum} / 7.0"), 2), "l_quantity < (select 0.2 * avg(l_quantity)")
        };
        format!(
            "select {average} as avg_yearly from lineitem, part where p_partkey = l_partkey \
             and p_brand = '{}' and p_container = '{}' and {limit} from lineitem where l_partkey = p_partkey)",
            self.p.text(0),
            self.p.text(1)
        )
    }

    fn large_volume(&self) -> String {
        format!(
            "select{} c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, {} as quantity \
             from customer, orders, lineitem where o_orderkey in \
             (select l_orderkey from lineitem group by l_orderkey having sum(l_quantity) > {}) \
             and c_custkey = o_custkey and o_orderkey = l_orderkey \
             group by c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice \
             order by o_totalprice desc, o_orderdate{}",
            self.dialect.top(100),
            self.sum("l_quantity"),
            self.dialect.hundredths(100 * self.p.number(0)),
            self.dialect.limit(100)
        )
    }

    fn discounted(&self) -> String {
        let branch = |at: usize, containers: &str, size: u8| {
            let quantity = self.p.number(at + 3);
            format!(
                "(p_partkey = l_partkey and p_brand = '{}' and p_container in ({containers}) \
                 and l_quantity >= {} and l_quantity <= {} and p_size between 1 and {size} \
                 and l_shipmode in ('AIR', 'AIR REG') and l_shipinstruct = 'DELIVER IN PERSON')",
                self.p.text(at),
                self.dialect.hundredths(100 * quantity),
                self.dialect.hundredths(100 * (quantity + 10))
            )
        };
        format!(
            "select {} as revenue from lineitem, part where {} or {} or {}",
            self.sum(&self.revenue()),
            branch(0, "'SM CASE', 'SM BOX', 'SM PACK', 'SM PKG'", 5),
            branch(1, "'MED BAG', 'MED BOX', 'MED PKG', 'MED PACK'", 10),
            branch(2, "'LG CASE', 'LG BOX', 'LG PACK', 'LG PKG'", 15)
        )
    }

    fn part_promotion(&self) -> String {
        // Half of a quantity, which is stored in hundredths if the engine has only integers.
        let more = if self.dialect.has_only_integers() {
            "200 * ps_availqty > (select sum(l_quantity)"
        } else {
            "ps_availqty > (select 0.5 * sum(l_quantity)"
        };
        format!(
            "select s_name, s_address from supplier, nation where s_suppkey in \
             (select ps_suppkey from partsupp where ps_partkey in \
             (select p_partkey from part where p_name like '{}%') and {more} from lineitem \
             where l_partkey = ps_partkey and l_suppkey = ps_suppkey \
             and l_shipdate >= '{}' and l_shipdate < '{}')) \
             and s_nationkey = n_nationkey and n_name = '{}' order by s_name",
            self.p.text(0),
            self.p.text(1),
            self.p.text(2),
            self.p.text(3)
        )
    }

    fn waiting_suppliers(&self) -> String {
        format!(
            "select{} s_name, count(*) as numwait from supplier, lineitem l1, orders, nation \
             where s_suppkey = l1.l_suppkey and o_orderkey = l1.l_orderkey and o_orderstatus = 'F' \
             and l1.l_receiptdate > l1.l_commitdate and exists (select * from lineitem l2 \
             where l2.l_orderkey = l1.l_orderkey and l2.l_suppkey <> l1.l_suppkey) \
             and not exists (select * from lineitem l3 where l3.l_orderkey = l1.l_orderkey \
             and l3.l_suppkey <> l1.l_suppkey and l3.l_receiptdate > l3.l_commitdate) \
             and s_nationkey = n_nationkey and n_name = '{}' \
             group by s_name order by numwait desc, s_name{}",
            self.dialect.top(100),
            self.p.text(0),
            self.dialect.limit(100)
        )
    }

    fn sales_opportunity(&self) -> String {
        let codes = list(self.p.arguments_from(0));
        let code = "substring(c_phone, 1, 2)";
        format!(
            "select cntrycode, count(*) as numcust, {} as totacctbal from \
             (select {code} as cntrycode, c_acctbal from customer where {code} in ({codes}) \
             and c_acctbal > (select avg(c_acctbal) from customer \
             where c_acctbal > {} and {code} in ({codes})) \
             and not exists (select * from orders where o_custkey = c_custkey)) as custsale \
             group by cntrycode order by cntrycode",
            self.sum("c_acctbal"),
            self.dialect.hundredths(0)
        )
    }
}

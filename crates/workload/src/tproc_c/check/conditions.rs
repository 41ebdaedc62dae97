//! The conditions in SQL that all engines understand: a derived table to examine, a test that finds
//! violations, and an example as text.

use crate::tproc_c::dialect::Dialect;
use crate::tproc_c::schema::TABLES;

/// One condition.
pub(super) struct Condition {
    pub(super) number: u32,
    pub(super) name: &'static str,
    /// The name of the rows of `from`, in the plural.
    pub(super) what: &'static str,
    /// The source of the rows. Tables are in braces; a table without a key that starts with the warehouse is
    /// followed by its warehouse column. All compared rows belong to one warehouse, so that a range of
    /// warehouses can be checked separately.
    from: Source,
    /// True for a row that violates the condition; false or null for the others.
    violated: &'static str,
    /// A text expression for a violation. `{m:x}` is the money x, `{n:x}` the number x; both print NULL as
    /// "none".
    example: &'static str,
    /// Why data that HammerDB built and drove violate it, if they do.
    pub(super) not_kept_by_hammerdb: Option<&'static str>,
}

/// The FROM clause of a condition.
enum Source {
    /// This text.
    Rows(&'static str),
    /// A full join: all rows of both sides, with NULLs where the other side has no match.
    BothSides {
        left: &'static str,
        right: &'static str,
        on: &'static str,
        /// The columns that the condition needs.
        columns: &'static str,
        /// A column of the left side that is NULL only if the left side has no match.
        left_key: &'static str,
    },
}

impl Source {
    fn sql(&self, dialect: &dyn Dialect) -> String {
        match self {
            Self::Rows(rows) => (*rows).to_owned(),
            Self::BothSides { left, right, on, .. } if dialect.has_full_join() => {
                format!("{left} full join {right} on {on}")
            }
            Self::BothSides { left, right, on, columns, left_key } => format!(
                "(select {columns} from {left} left join {right} on {on} union all \
                 select {columns} from {right} left join {left} on {on} where {left_key} is null) as both_sides"
            ),
        }
    }
}

impl Condition {
    /// Whether one of its tables has no key by which a range of warehouses can be found.
    pub(super) fn scans(&self) -> bool {
        match self.from {
            Source::Rows(rows) => rows.contains("{history by "),
            Source::BothSides { right, .. } => right.contains("{history by "),
        }
    }

    /// A query for the warehouses of `slice`. It returns one row: rows examined, violations, an example.
    pub(super) fn sql(&self, dialect: &dyn Dialect, slice: Slice) -> String {
        let from = match dialect.condition_source(self.number) {
            Some(words) => words.to_owned(),
            None => self.from.sql(dialect),
        };
        let from = replace(&from, |table| slice.restrict(table));
        format!(
            "select count(*), coalesce(sum(case when {violated} then 1 else 0 end), 0), \
             min(case when {violated} then {example} end) from {from}",
            violated = self.violated,
            example = dialect.joined(&expand(self.example, dialect)),
        )
    }
}

/// Replaces the parts of a text that are in braces.
fn replace(words: &str, mut with: impl FnMut(&str) -> String) -> String {
    let mut replaced = String::new();
    let mut rest = words;
    while let Some((before, after)) = rest.split_once('{') {
        let (placeholder, after) = after.split_once('}').unwrap_or((after, ""));
        replaced.push_str(before);
        replaced.push_str(&with(placeholder));
        rest = after;
    }
    replaced.push_str(rest);
    replaced
}

fn expand(example: &str, dialect: &dyn Dialect) -> String {
    replace(example, |placeholder| {
        let (text, x) = match placeholder.split_once(':') {
            Some(("m", x)) => (dialect.money_as_text(x), x),
            Some((_, x)) => (dialect.number_as_text(x), x),
            None => (placeholder.to_owned(), "null"),
        };
        format!("case when {x} is null then 'none' else {text} end")
    })
}

/// A range of warehouses. Without a limit it extends to all numbers on that side, even invalid ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slice {
    first: Option<u32>,
    last: Option<u32>,
}

impl Slice {
    /// Divides the warehouses into `count` ranges of about equal size, which together contain every number.
    pub(super) fn divide(warehouses: u32, count: u32) -> Vec<Self> {
        let count = count.clamp(1, warehouses.max(1));
        // The last warehouse of the first `ranges` ranges.
        let end = |ranges: u32| (u64::from(warehouses) * u64::from(ranges) / u64::from(count)) as u32;
        let range = |number: u32| Self {
            first: (number > 0).then(|| end(number) + 1),
            last: (number + 1 < count).then(|| end(number + 1)),
        };
        (0..count).map(range).collect()
    }

    /// The FROM item for the table's rows in the range. `table` is its name, followed by its warehouse column
    /// if no key starts with it.
    fn restrict(self, table: &str) -> String {
        let (name, column) = table.split_once(" by ").unwrap_or_else(|| {
            let found = TABLES.iter().find(|one| one.name == table);
            (table, found.and_then(|found| found.key(false).first().copied()).unwrap_or_default())
        });
        let condition = match (self.first, self.last) {
            (None, None) => return name.to_owned(),
            (Some(first), Some(last)) => format!("{column} between {first} and {last}"),
            (Some(first), None) => format!("{column} >= {first}"),
            (None, Some(last)) => format!("{column} <= {last}"),
        };
        format!("(select * from {name} where {condition}) as {name}")
    }
}

/// Sum of the amounts of delivered lines by customer, joined to every customer.
macro_rules! delivered {
    () => {
        "{customer} left join (select o_w_id, o_d_id, o_c_id, sum(ol_amount) as delivered from {order_line} \
         join {orders} on o_w_id = ol_w_id and o_d_id = ol_d_id and o_id = ol_o_id \
         where ol_delivery_d is not null group by o_w_id, o_d_id, o_c_id) as d \
         on o_w_id = c_w_id and o_d_id = c_d_id and o_c_id = c_id"
    };
}

const SWAPPED_AMOUNTS: &str = "not met by HammerDB's routines and loader: delivered lines get an amount, but \
    the customer's balance does not include it";

pub(super) const CONDITIONS: [Condition; 12] = [
    Condition {
        number: 1,
        name: "w_ytd = sum of d_ytd",
        what: "warehouses",
        from: Source::BothSides {
            left: "{warehouse}",
            right: "(select d_w_id, sum(d_ytd) as total from {district} group by d_w_id) as d",
            on: "d_w_id = w_id",
            columns: "w_id, w_ytd, d_w_id, total",
            left_key: "w_id",
        },
        violated: "w_id is null or total is null or w_ytd <> total",
        example: "'warehouse ' || coalesce(w_id, d_w_id) || ': w_ytd ' || {m:w_ytd} || ', sum ' || {m:total}",
        not_kept_by_hammerdb: None,
    },
    Condition {
        number: 2,
        name: "d_next_o_id - 1 = max(o_id) = max(no_o_id)",
        what: "districts",
        // The part about new_order does not apply to a district without outstanding orders.
        from: Source::Rows(
            "{district} left join (select o_w_id, o_d_id, max(o_id) as o_max from {orders} \
               group by o_w_id, o_d_id) as o on o_w_id = d_w_id and o_d_id = d_id \
               left join (select no_w_id, no_d_id, max(no_o_id) as no_max from {new_order} \
               group by no_w_id, no_d_id) as n on no_w_id = d_w_id and no_d_id = d_id",
        ),
        violated: "o_max is null or d_next_o_id - 1 <> o_max or o_max <> no_max",
        example: "'warehouse ' || d_w_id || ', district ' || d_id || ': d_next_o_id ' || d_next_o_id || \
                  ', max(o_id) ' || {n:o_max} || ', max(no_o_id) ' || {n:no_max}",
        not_kept_by_hammerdb: None,
    },
    Condition {
        number: 3,
        name: "max - min + 1 of no_o_id = count of new_order, per district",
        what: "districts",
        // A district without outstanding orders has nothing to compare, but still returns a row.
        from: Source::Rows(
            "{district} left join (select no_w_id, no_d_id, max(no_o_id) - min(no_o_id) + 1 as span, \
               count(*) as n from {new_order} group by no_w_id, no_d_id) as n \
               on no_w_id = d_w_id and no_d_id = d_id",
        ),
        violated: "span <> n",
        example: "'warehouse ' || d_w_id || ', district ' || d_id || ': max - min + 1 ' || span || \
                  ', rows ' || n",
        not_kept_by_hammerdb: None,
    },
    Condition {
        number: 4,
        name: "sum of o_ol_cnt = count of order_line, per district",
        what: "districts",
        from: Source::BothSides {
            left: "(select o_w_id, o_d_id, sum(o_ol_cnt) as total from {orders} group by o_w_id, o_d_id) as o",
            right: "(select ol_w_id, ol_d_id, count(*) as n from {order_line} group by ol_w_id, ol_d_id) as l",
            on: "ol_w_id = o_w_id and ol_d_id = o_d_id",
            columns: "o_w_id, o_d_id, total, ol_w_id, ol_d_id, n",
            left_key: "o_w_id",
        },
        violated: "total is null or n is null or total <> n",
        example: "'warehouse ' || coalesce(o_w_id, ol_w_id) || ', district ' || coalesce(o_d_id, ol_d_id) || \
                  ': sum of o_ol_cnt ' || {n:total} || ', lines ' || {n:n}",
        not_kept_by_hammerdb: None,
    },
    Condition {
        number: 5,
        name: "o_carrier_id is null exactly when there is a new_order row",
        what: "orders",
        from: Source::BothSides {
            left: "{orders}",
            right: "{new_order}",
            on: "no_w_id = o_w_id and no_d_id = o_d_id and no_o_id = o_id",
            columns: "o_w_id, o_d_id, o_id, o_carrier_id, no_w_id, no_d_id, no_o_id",
            left_key: "o_id",
        },
        violated: "o_id is null or (o_carrier_id is null and no_o_id is null) \
                   or (o_carrier_id is not null and no_o_id is not null)",
        example: "'warehouse ' || coalesce(o_w_id, no_w_id) || ', district ' || coalesce(o_d_id, no_d_id) || \
                  ', order ' || coalesce(o_id, no_o_id) || ': carrier ' || {n:o_carrier_id} || \
                  ', new_order ' || {n:no_o_id}",
        not_kept_by_hammerdb: None,
    },
    Condition {
        number: 6,
        name: "o_ol_cnt = count of the order's lines",
        what: "orders",
        from: Source::BothSides {
            left: "{orders}",
            right: "(select ol_w_id, ol_d_id, ol_o_id, count(*) as n from {order_line} \
                    group by ol_w_id, ol_d_id, ol_o_id) as l",
            on: "ol_w_id = o_w_id and ol_d_id = o_d_id and ol_o_id = o_id",
            columns: "o_w_id, o_d_id, o_id, o_ol_cnt, ol_w_id, ol_d_id, ol_o_id, n",
            left_key: "o_id",
        },
        violated: "o_id is null or n is null or o_ol_cnt <> n",
        example: "'warehouse ' || coalesce(o_w_id, ol_w_id) || ', district ' || coalesce(o_d_id, ol_d_id) || \
                  ', order ' || coalesce(o_id, ol_o_id) || ': o_ol_cnt ' || {n:o_ol_cnt} || \
                  ', lines ' || {n:n}",
        not_kept_by_hammerdb: None,
    },
    Condition {
        number: 7,
        name: "ol_delivery_d is null exactly when the order's o_carrier_id is null",
        what: "order lines",
        from: Source::Rows(
            "{order_line} left join {orders} on o_w_id = ol_w_id and o_d_id = ol_d_id and o_id = ol_o_id",
        ),
        violated: "o_id is null or (ol_delivery_d is null and o_carrier_id is not null) \
                   or (ol_delivery_d is not null and o_carrier_id is null)",
        example: "'warehouse ' || ol_w_id || ', district ' || ol_d_id || ', order ' || ol_o_id || ', line ' || \
                  ol_number || ': delivered ' || {n:ol_delivery_d} || ', carrier ' || {n:o_carrier_id}",
        not_kept_by_hammerdb: None,
    },
    Condition {
        number: 8,
        name: "w_ytd = sum of h_amount",
        what: "warehouses",
        from: Source::BothSides {
            left: "{warehouse}",
            right: "(select h_w_id, sum(h_amount) as total from {history by h_w_id} group by h_w_id) as h",
            on: "h_w_id = w_id",
            columns: "w_id, w_ytd, h_w_id, total",
            left_key: "w_id",
        },
        violated: "w_id is null or total is null or w_ytd <> total",
        example: "'warehouse ' || coalesce(w_id, h_w_id) || ': w_ytd ' || {m:w_ytd} || ', sum ' || {m:total}",
        not_kept_by_hammerdb: None,
    },
    Condition {
        number: 9,
        name: "d_ytd = sum of h_amount",
        what: "districts",
        from: Source::BothSides {
            left: "{district}",
            right: "(select h_w_id, h_d_id, sum(h_amount) as total from {history by h_w_id} group by h_w_id, h_d_id) as h",
            on: "h_w_id = d_w_id and h_d_id = d_id",
            columns: "d_w_id, d_id, d_ytd, h_w_id, h_d_id, total",
            left_key: "d_id",
        },
        violated: "d_id is null or total is null or d_ytd <> total",
        example: "'warehouse ' || coalesce(d_w_id, h_w_id) || ', district ' || coalesce(d_id, h_d_id) || \
                  ': d_ytd ' || {m:d_ytd} || ', sum ' || {m:total}",
        not_kept_by_hammerdb: None,
    },
    Condition {
        number: 10,
        name: "c_balance = sum of delivered ol_amount - sum of h_amount",
        what: "customers",
        from: Source::Rows(concat!(
            delivered!(),
            " left join (select h_c_w_id, h_c_d_id, h_c_id, sum(h_amount) as paid from {history by h_c_w_id} \
             group by h_c_w_id, h_c_d_id, h_c_id) as h \
             on h_c_w_id = c_w_id and h_c_d_id = c_d_id and h_c_id = c_id"
        )),
        violated: "c_balance <> coalesce(delivered, 0) - coalesce(paid, 0)",
        example: "'warehouse ' || c_w_id || ', district ' || c_d_id || ', customer ' || c_id || ': balance ' || \
                  {m:c_balance} || ', delivered ' || {m:delivered} || ', paid ' || {m:paid}",
        not_kept_by_hammerdb: Some(SWAPPED_AMOUNTS),
    },
    Condition {
        number: 11,
        name: "count of orders - count of new_order = 2100 + deliveries since the load, per district",
        what: "districts",
        // Every delivery increments the c_delivery_cnt of one customer of the district. The load leaves it at
        // 0, so the sum is the number of deliveries since.
        from: Source::Rows(
            "{district} left join (select o_w_id, o_d_id, count(*) as orders from {orders} \
               group by o_w_id, o_d_id) as o on o_w_id = d_w_id and o_d_id = d_id \
               left join (select no_w_id, no_d_id, count(*) as waiting from {new_order} \
               group by no_w_id, no_d_id) as n on no_w_id = d_w_id and no_d_id = d_id \
               left join (select c_w_id, c_d_id, sum(c_delivery_cnt) as deliveries from {customer} \
               group by c_w_id, c_d_id) as c on c_w_id = d_w_id and c_d_id = d_id",
        ),
        violated: "coalesce(orders, 0) - coalesce(waiting, 0) <> 2100 + coalesce(deliveries, 0)",
        example: "'warehouse ' || d_w_id || ', district ' || d_id || ': orders ' || {n:orders} || \
                  ', new_order ' || {n:waiting} || ', deliveries ' || {n:deliveries}",
        not_kept_by_hammerdb: Some(
            "not met by HammerDB's routines: their Delivery does not update c_delivery_cnt",
        ),
    },
    Condition {
        number: 12,
        name: "c_balance + c_ytd_payment = sum of delivered ol_amount",
        what: "customers",
        from: Source::Rows(delivered!()),
        violated: "c_balance + c_ytd_payment <> coalesce(delivered, 0)",
        example: "'warehouse ' || c_w_id || ', district ' || c_d_id || ', customer ' || c_id || ': balance ' || \
                  {m:c_balance} || ', payments ' || {m:c_ytd_payment} || ', delivered ' || {m:delivered}",
        not_kept_by_hammerdb: Some(SWAPPED_AMOUNTS),
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(first: Option<u32>, last: Option<u32>) -> Slice {
        Slice { first, last }
    }

    #[test]
    fn ranges_have_every_warehouse_once_and_what_lies_outside_too() {
        assert_eq!(Slice::divide(1, 8), [slice(None, None)]);
        assert_eq!(Slice::divide(0, 8), [slice(None, None)]);
        assert_eq!(
            Slice::divide(25, 3),
            [slice(None, Some(8)), slice(Some(9), Some(16)), slice(Some(17), None)]
        );
        for (warehouses, count) in [(7, 7), (100, 10), (1000, 64), (u32::MAX, 100)] {
            let ranges = Slice::divide(warehouses, count);
            assert_eq!(ranges.len(), count as usize);
            assert!(ranges.windows(2).all(|pair| pair[0].last.map(|last| last + 1) == pair[1].first));
        }
    }

    #[test]
    fn tables_are_cut_by_the_column_of_the_warehouse() {
        let middle = slice(Some(3), Some(4));
        assert_eq!(
            middle.restrict("orders"),
            "(select * from orders where o_w_id between 3 and 4) as orders"
        );
        let history = "(select * from history where h_c_w_id >= 3) as history";
        assert_eq!(slice(Some(3), None).restrict("history by h_c_w_id"), history);
        assert_eq!(slice(None, None).restrict("history by h_w_id"), "history");
        for condition in &CONDITIONS {
            let parts = match condition.from {
                Source::Rows(rows) => vec![rows],
                Source::BothSides { left, right, .. } => vec![left, right],
            };
            for part in parts {
                // Every table is restricted, and each has a column for it.
                let cut = replace(part, |table| middle.restrict(table));
                assert!(!cut.contains("where  "), "{cut}");
                for table in &TABLES {
                    assert!(!cut.contains(&format!("from {} group", table.name)), "{cut}");
                    assert!(!cut.contains(&format!("join {} ", table.name)), "{cut}");
                }
            }
        }
        let scanned: Vec<u32> = CONDITIONS.iter().filter(|one| one.scans()).map(|one| one.number).collect();
        assert_eq!(scanned, [8, 9, 10]);
    }
}

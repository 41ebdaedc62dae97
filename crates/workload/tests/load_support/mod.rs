//! Shared by the tests of the load and of the checks; the test file of each engine runs the same bodies.
#![allow(dead_code, reason = "each test file uses a part")]
#![allow(unreachable_pub, clippy::unwrap_used, clippy::type_complexity, reason = "helpers of tests")]

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

use kelvin_database::{Cell, Engine, Session};
use kelvin_workload::tproc_c::{Options, TprocC};
use kelvin_workload::{BuildProgress, Stop, progress::Quiet};

pub fn options(warehouses: u32) -> Options {
    Options { warehouses: Some(warehouses), ..Options::default() }
}

pub fn build(engine: &dyn Engine, options: Options) -> TprocC {
    let workload = TprocC::new(options).unwrap();
    workload.build(engine, &Quiet, &Stop::new()).unwrap();
    assert!(workload.is_built(engine).unwrap());
    workload
}

fn int(session: &mut dyn Session, sql: &str) -> i64 {
    session.query(sql).and_then(|rows| rows.int(0, 0)).unwrap_or_else(|error| panic!("{sql}: {error}"))
}

/// Numbers of the conditions that do not hold.
pub fn violated(workload: &TprocC, engine: &dyn Engine) -> Vec<(u32, String)> {
    let (mut bad, mut seen) = (Vec::new(), Vec::new());
    workload
        .check(engine, &Quiet, &Stop::new(), &mut |line| {
            seen.push(line.number);
            if !line.holds {
                bad.push((line.number, line.detail));
            }
        })
        .unwrap();
    assert_eq!(seen, (1..=12).collect::<Vec<_>>());
    bad
}

/// Checks row counts and the rules of clause 4.3.3; each query counts rows that violate a rule.
pub fn initial_data_follow_the_rules(engine: &dyn Engine, warehouses: i64) {
    let mut session = engine.connect().unwrap();
    let session = session.as_mut();
    let cents = |money: i64| match engine.kind() {
        kelvin_database::EngineKind::Sqlite => money.to_string(),
        _ => format!("{money} / 100.0"),
    };
    let rates = |units: i64| match engine.kind() {
        kelvin_database::EngineKind::Sqlite => units.to_string(),
        _ => format!("{units} / 10000.0"),
    };
    for (table, rows) in [
        ("item", 100_000),
        ("warehouse", warehouses),
        ("district", 10 * warehouses),
        ("customer", 30_000 * warehouses),
        ("history", 30_000 * warehouses),
        ("stock", 100_000 * warehouses),
        ("orders", 30_000 * warehouses),
        ("new_order", 9_000 * warehouses),
        ("kelvin_tproc_c_loaded", warehouses + 1),
    ] {
        assert_eq!(int(session, &format!("select count(*) from {table}")), rows, "{table}");
    }
    let none = [
        ("item", format!("i_price not between {} and {}", cents(100), cents(10_000))),
        ("item", "length(i_data) not between 26 and 50 or length(i_name) not between 14 and 24".into()),
        ("item", "i_im_id not between 1 and 10000".into()),
        ("warehouse", format!("w_ytd <> {} or w_tax not between 0 and {}", cents(30_000_000), rates(2000))),
        ("district", format!("d_ytd <> {} or d_tax not between 0 and {}", cents(3_000_000), rates(2000))),
        ("district", "d_next_o_id <> 3001 or d_zip not like '____11111' or length(d_state) <> 2".into()),
        ("customer", format!("c_balance <> {} or c_ytd_payment <> {}", cents(-1000), cents(1000))),
        ("customer", format!("c_credit_lim <> {} or c_middle <> 'OE'", cents(5_000_000))),
        ("customer", format!("c_discount not between 0 and {}", rates(5000))),
        ("customer", "c_payment_cnt <> 1 or c_delivery_cnt <> 0 or c_credit not in ('GC', 'BC')".into()),
        ("customer", "length(c_data) not between 300 and 500 or c_zip not like '____11111'".into()),
        ("customer", "length(c_phone) <> 16 or length(c_first) not between 8 and 16".into()),
        ("customer", "c_id = 1 and c_last <> 'BARBARBAR' or c_id = 372 and c_last <> 'PRICALLYOUGHT'".into()),
        ("customer", "c_id = 1000 and c_last <> 'EINGEINGEING'".into()),
        ("history", format!("h_amount <> {} or h_c_w_id <> h_w_id or h_c_d_id <> h_d_id", cents(1000))),
        ("history", "length(h_data) not between 12 and 24".into()),
        ("stock", "s_quantity not between 10 and 100 or s_ytd + s_order_cnt + s_remote_cnt <> 0".into()),
        ("stock", "length(s_dist_01) <> 24 or length(s_dist_10) <> 24".into()),
        ("stock", "length(s_data) not between 26 and 50 or s_dist_01 = s_dist_02".into()),
        ("orders", "o_ol_cnt not between 5 and 15 or o_all_local <> 1".into()),
        (
            "orders",
            "(o_id <= 2100) <> (o_carrier_id is not null) or o_carrier_id not between 1 and 10".into(),
        ),
        ("new_order", "no_o_id not between 2101 and 3000".into()),
        ("order_line", "ol_quantity <> 5 or ol_supply_w_id <> ol_w_id".into()),
        ("order_line", "ol_i_id not between 1 and 100000 or length(ol_dist_info) <> 24".into()),
        ("order_line", "ol_o_id <= 2100 and (ol_amount <> 0 or ol_delivery_d is null)".into()),
        (
            "order_line join orders on o_w_id = ol_w_id and o_d_id = ol_d_id and o_id = ol_o_id",
            format!(
                "ol_o_id > 2100 and (ol_delivery_d is not null or ol_amount not between {} and {}) \
                 or ol_delivery_d <> o_entry_d",
                cents(1),
                cents(999_999)
            ),
        ),
    ];
    for (table, broken) in none {
        assert_eq!(
            int(session, &format!("select count(*) from {table} where {broken}")),
            0,
            "{table}: {broken}"
        );
    }
    // The orders of every district belong to a permutation of its customers, and not to the identity.
    let customers =
        int(session, "select count(*) from (select distinct o_w_id, o_d_id, o_c_id from orders) as o");
    assert_eq!(customers, 30_000 * warehouses);
    assert!(int(session, "select count(*) from orders where o_c_id = o_id") < 200 * warehouses);
    // Every name occurs. The remaining ones are not uniform: NURand makes some far more frequent.
    assert_eq!(
        int(session, "select count(distinct c_last) from customer where c_w_id = 1 and c_d_id = 1"),
        1000
    );
    assert!(
        int(session, "select max(n) from (select count(*) as n from customer group by c_last) as c") > 100
    );
    // Shares of about a tenth, within five standard deviations of the binomial distribution on each side.
    for (sql, n) in [
        ("select count(*) from item where i_data like '%ORIGINAL%'", 100_000),
        ("select count(*) from stock where s_data like '%ORIGINAL%'", 100_000 * warehouses),
        ("select count(*) from customer where c_credit = 'BC'", 30_000 * warehouses),
        ("select count(*) from orders where o_carrier_id = 7", 21_000 * warehouses),
    ] {
        let found = int(session, sql);
        let spread = 5.0 * (n as f64 * 0.09).sqrt();
        assert!((found as f64 - n as f64 / 10.0).abs() < spread, "{sql}: {found} of {n}");
    }
}

/// For each damage: the violated conditions, the damage, and its repair.
const DAMAGES: [(&[u32], &str, &str); 13] = [
    (&[1, 8], "update warehouse set w_ytd = w_ytd + 1", "update warehouse set w_ytd = w_ytd - 1"),
    (
        &[2],
        "update district set d_next_o_id = 3002 where d_w_id = 1 and d_id = 3",
        "update district set d_next_o_id = 3001 where d_w_id = 1 and d_id = 3",
    ),
    (
        &[3, 5, 11],
        "delete from new_order where no_w_id = 1 and no_d_id = 4 and no_o_id = 2500",
        "insert into new_order (no_w_id, no_d_id, no_o_id) values (1, 4, 2500)",
    ),
    (
        &[4, 6],
        "update orders set o_ol_cnt = o_ol_cnt + 1 where o_w_id = 1 and o_d_id = 5 and o_id = 17",
        "update orders set o_ol_cnt = o_ol_cnt - 1 where o_w_id = 1 and o_d_id = 5 and o_id = 17",
    ),
    (
        &[5, 7],
        "update orders set o_carrier_id = 3 where o_w_id = 1 and o_d_id = 5 and o_id = 2999",
        "update orders set o_carrier_id = null where o_w_id = 1 and o_d_id = 5 and o_id = 2999",
    ),
    (
        &[6],
        "update orders set o_ol_cnt = o_ol_cnt + (case when o_id = 8 then 1 else -1 end) \
             where o_w_id = 1 and o_d_id = 5 and o_id in (8, 9)",
        "update orders set o_ol_cnt = o_ol_cnt - (case when o_id = 8 then 1 else -1 end) \
             where o_w_id = 1 and o_d_id = 5 and o_id in (8, 9)",
    ),
    (
        // A line without its order: the district's sums would still agree if another order gained a line.
        &[6, 7],
        "update order_line set ol_o_id = 9000 where ol_w_id = 1 and ol_d_id = 2 and ol_o_id = 77 and ol_number = 1",
        "update order_line set ol_o_id = 77 where ol_w_id = 1 and ol_d_id = 2 and ol_o_id = 9000 and ol_number = 1",
    ),
    (
        &[7],
        "update order_line set ol_delivery_d = null where ol_w_id = 1 and ol_d_id = 2 and ol_o_id = 5",
        "update order_line set ol_delivery_d = (select o_entry_d from orders where o_w_id = 1 and o_d_id = 2 \
             and o_id = 5) where ol_w_id = 1 and ol_d_id = 2 and ol_o_id = 5",
    ),
    (
        &[8, 9, 10],
        "update history set h_amount = h_amount + 1 where h_w_id = 1 and h_d_id = 1 and h_c_id = 42",
        "update history set h_amount = h_amount - 1 where h_w_id = 1 and h_d_id = 1 and h_c_id = 42",
    ),
    (
        &[9],
        "update district set d_ytd = d_ytd + (case when d_id = 1 then 1 else -1 end) \
             where d_w_id = 1 and d_id in (1, 2)",
        "update district set d_ytd = d_ytd - (case when d_id = 1 then 1 else -1 end) \
             where d_w_id = 1 and d_id in (1, 2)",
    ),
    (
        &[10],
        "update customer set c_balance = c_balance + 1, c_ytd_payment = c_ytd_payment - 1 \
             where c_w_id = 1 and c_d_id = 10 and c_id = 3000",
        "update customer set c_balance = c_balance - 1, c_ytd_payment = c_ytd_payment + 1 \
             where c_w_id = 1 and c_d_id = 10 and c_id = 3000",
    ),
    (
        &[11],
        "update customer set c_delivery_cnt = 1 where c_w_id = 1 and c_d_id = 10 and c_id = 3000",
        "update customer set c_delivery_cnt = 0 where c_w_id = 1 and c_d_id = 10 and c_id = 3000",
    ),
    (
        &[12],
        "update customer set c_ytd_payment = c_ytd_payment + 1 where c_w_id = 1 and c_d_id = 1 and c_id = 1",
        "update customer set c_ytd_payment = c_ytd_payment - 1 where c_w_id = 1 and c_d_id = 1 and c_id = 1",
    ),
];

/// Violates all conditions together, checks that none holds, repairs them, and checks that all hold.
pub fn all_conditions_find_their_violations(workload: &TprocC, engine: &dyn Engine) {
    let mut session = engine.connect().unwrap();
    for (_, damage, _) in DAMAGES {
        session.run(damage).unwrap();
    }
    let found = violated(workload, engine);
    assert_eq!(found.iter().map(|(number, _)| *number).collect::<Vec<_>>(), (1..=12).collect::<Vec<_>>());
    assert!(found.iter().all(|(_, detail)| detail.contains("; warehouse ")), "{found:?}");
    for (_, _, repair) in DAMAGES.iter().rev() {
        session.run(repair).unwrap();
    }
    assert_eq!(violated(workload, engine), []);
}

/// Applies each damage, checks that exactly its conditions are violated, and repairs it.
pub fn each_condition_finds_its_violation(workload: &TprocC, engine: &dyn Engine) {
    let mut session = engine.connect().unwrap();
    for (numbers, damage, repair) in DAMAGES {
        session.run(damage).unwrap();
        let found = violated(workload, engine);
        assert_eq!(found.iter().map(|(n, _)| *n).collect::<Vec<_>>(), numbers, "{damage}: {found:?}");
        assert!(found.iter().all(|(_, detail)| detail.contains("warehouse 1")), "{found:?}");
        session.run(repair).unwrap();
    }
    assert_eq!(violated(workload, engine), []);
    session.run("alter table history rename column h_amount to hidden").unwrap();
    let failed: Vec<u32> = violated(workload, engine).iter().map(|(number, _)| *number).collect();
    assert_eq!(failed, [8, 9, 10], "a failed query is a failed check");
    session.run("alter table history rename column hidden to h_amount").unwrap();
    // If a table is missing, no condition is checked.
    session.run("alter table history rename to hidden").unwrap();
    let error = workload.check(engine, &Quiet, &Stop::new(), &mut |line| panic!("{line:?}")).unwrap_err();
    assert!(error.message().contains("table history is missing"), "{error}");
    session.run("alter table hidden rename to history").unwrap();
}

/// Requests a stop once this many rows of warehouses are loaded.
pub struct StopAfter {
    pub rows: u64,
    pub stop: Stop,
    pub seen: AtomicU64,
}

impl BuildProgress for StopAfter {
    fn update(&self, what: &str, done: u64, _total: u64, rows: u64) {
        if what.ends_with("warehouses loaded") {
            self.seen.store(done, Ordering::Relaxed);
            // A second request would abort immediately.
            if rows >= self.rows && !self.stop.requested() {
                self.stop.request();
            }
        }
    }
}

/// Stops a build of two warehouses halfway, refuses other options, resumes, and ends with the same rows as an
/// uninterrupted build.
pub fn stopped_build_goes_on(engine: &dyn Engine, whole: &dyn Engine) {
    let workload = TprocC::new(options(2)).unwrap();
    let stop = Stop::new();
    let progress = StopAfter { rows: 600_000, stop: stop.clone(), seen: AtomicU64::new(0) };
    let error = workload.build(engine, &progress, &stop).unwrap_err();
    assert!(error.message().contains("stopped on request"), "{error}");
    assert!(error.help().unwrap_or_default().contains("to continue"), "{error}");
    assert!(!workload.is_built(engine).unwrap());
    {
        let mut session = engine.connect().unwrap();
        let parts = int(session.as_mut(), "select count(*) from kelvin_tproc_c_loaded");
        assert!((1..3).contains(&parts), "{parts} parts of 3 are loaded");
        assert_eq!(int(session.as_mut(), "select count(*) from warehouse"), parts - 1);
    }

    let other = TprocC::new(Options { data_seed: Some(9), ..options(2) }).unwrap();
    let refused = other.build(engine, &Quiet, &Stop::new()).unwrap_err();
    assert!(refused.message().contains("data seed 1, not 9"), "{refused}");

    build(engine, options(2));
    assert_eq!(violated(&workload, engine), []);
    build(whole, options(2));
    assert_eq!(digests(engine), digests(whole));
}

/// Name, number of rows and hash of every table, without its timestamps and in the same form for all engines.
pub fn digests(engine: &dyn Engine) -> Vec<(String, usize, u64)> {
    let tables: [(&str, &str, &[(&str, u8)]); 9] = [
        ("item", "i_id, i_im_id, i_name, i_data, i_price", &[("i_price", 2)]),
        (
            "warehouse",
            "w_id, w_name, w_street_1, w_street_2, w_city, w_state, w_zip, w_tax, w_ytd",
            &[("w_tax", 4), ("w_ytd", 2)],
        ),
        (
            "district",
            "d_w_id, d_id, d_next_o_id, d_name, d_street_1, d_street_2, d_city, d_state, d_zip, d_tax, d_ytd",
            &[("d_tax", 4), ("d_ytd", 2)],
        ),
        (
            "customer",
            "c_w_id, c_d_id, c_id, c_payment_cnt, c_delivery_cnt, c_first, c_middle, c_last, c_street_1, c_street_2, \
             c_city, c_state, c_zip, c_phone, c_credit, c_data, c_credit_lim, c_discount, c_balance, c_ytd_payment",
            &[("c_credit_lim", 2), ("c_discount", 4), ("c_balance", 2), ("c_ytd_payment", 2)],
        ),
        ("history", "h_c_w_id, h_c_d_id, h_c_id, h_w_id, h_d_id, h_data, h_amount", &[("h_amount", 2)]),
        (
            "stock",
            "s_w_id, s_i_id, s_quantity, s_ytd, s_order_cnt, s_remote_cnt, s_dist_01, s_dist_02, s_dist_03, \
             s_dist_04, s_dist_05, s_dist_06, s_dist_07, s_dist_08, s_dist_09, s_dist_10, s_data",
            &[],
        ),
        ("orders", "o_w_id, o_d_id, o_id, o_c_id, o_carrier_id, o_ol_cnt, o_all_local", &[]),
        ("new_order", "no_w_id, no_d_id, no_o_id", &[]),
        (
            "order_line",
            "ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_dist_info, ol_amount",
            &[("ol_amount", 2)],
        ),
    ];
    let mut session = engine.connect().unwrap();
    tables
        .iter()
        .map(|(table, columns, decimals)| {
            let names: Vec<&str> = columns.split(',').map(str::trim).collect();
            let order = if names.len() > 3 { "1, 2, 3, 4" } else { "1, 2, 3" };
            let rows = session.query(&format!("select {columns} from {table} order by {order}")).unwrap();
            let mut hasher = DefaultHasher::new();
            for row in 0..rows.len() {
                for (column, name) in names.iter().enumerate() {
                    let scale = decimals.iter().find(|(decimal, _)| decimal == name).map(|(_, scale)| *scale);
                    match (rows.cell(row, column).unwrap(), scale) {
                        (Cell::Null, _) => "null".hash(&mut hasher),
                        (_, Some(scale)) => rows.decimal(row, column, scale).unwrap().hash(&mut hasher),
                        (Cell::Text { .. }, None) => rows.text(row, column).unwrap().hash(&mut hasher),
                        (_, None) => rows.int(row, column).unwrap().hash(&mut hasher),
                    }
                }
            }
            (table.to_string(), rows.len(), hasher.finish())
        })
        .collect()
}

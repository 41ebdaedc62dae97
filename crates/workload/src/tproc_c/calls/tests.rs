//! Each transaction's effects, row by row, by every way of calling, on real engines.

use kelvin_database::sqlite::SqliteEngine;
use kelvin_database::{Engine, Rows, Session};
use kelvin_measure::TransactionOutcome;

use super::*;
use crate::Stop;
use crate::progress::Quiet;
use crate::tproc_c::TprocC;
use crate::tproc_c::dialect::of_engine;
use crate::tproc_c::inputs::{Customer, UNUSED_ITEM, order_of};

#[path = "../../../tests/transactions_support/mod.rs"]
pub(super) mod support;

#[path = "../../../tests/mysql_databases/mod.rs"]
mod databases;

#[path = "../../../tests/sqlserver_databases/mod.rs"]
mod sqlserver_databases;

/// Data of two warehouses and a way of calling. Several of these use the same data one after another.
struct Bench {
    session: Box<dyn Session>,
    executor: Box<dyn Execute>,
    calls: Calls,
}

impl Bench {
    fn new(engine: &dyn Engine, calls: Calls) -> Self {
        Self::driven(engine, Driven::new(of_engine(engine.kind()).unwrap(), calls))
    }

    fn driven(engine: &dyn Engine, driven: Driven) -> Self {
        let mut session = engine.connect().unwrap();
        let calls = driven.calls;
        let mut executor = executor(Profile::Spec, driven, 2);
        executor.prepare(session.as_mut()).unwrap();
        Self { session, executor, calls }
    }

    #[expect(clippy::needless_pass_by_value, reason = "each call makes its own")]
    fn execute(&mut self, transaction: Transaction) -> (TransactionOutcome, Details) {
        let mut done = Details::default();
        let outcome = self.executor.execute(self.session.as_mut(), &transaction, &mut done).unwrap();
        assert!(!self.session.in_transaction(), "{:?} leaves nothing open", self.calls);
        (outcome, done)
    }

    fn rows(&mut self, sql: &str) -> Rows {
        self.session.query(sql).unwrap()
    }

    fn int(&mut self, sql: &str) -> i64 {
        self.rows(sql).int(0, 0).unwrap()
    }

    /// A decimal in units of 10^-`scale`.
    fn decimal(&mut self, sql: &str, scale: u8) -> i64 {
        self.rows(sql).decimal(0, 0, scale).unwrap()
    }

    fn text(&mut self, sql: &str) -> String {
        self.rows(sql).text(0, 0).unwrap().to_owned()
    }

    /// Quantity, year-to-date, order count and remote order count of a stock row.
    fn stock(&mut self, warehouse: i64, item: i64) -> [i64; 4] {
        let rows = self.rows(&format!(
            "select s_quantity, s_ytd, s_order_cnt, s_remote_cnt from stock \
             where s_w_id = {warehouse} and s_i_id = {item}"
        ));
        std::array::from_fn(|column| rows.int(0, column).unwrap())
    }
}

/// Applies a line to a stock row according to clause 2.4.2.2.
fn take(stock: &mut [i64; 4], quantity: i64, remote: bool) {
    stock[0] = if stock[0] >= quantity + 10 { stock[0] - quantity } else { stock[0] - quantity + 91 };
    stock[1] += quantity;
    stock[2] += 1;
    stock[3] += i64::from(remote);
}

fn every_effect(engine: &dyn Engine, calls: Calls) {
    every_effect_of(Bench::new(engine, calls));
}

fn every_effect_of(mut bench: Bench) {
    let bench = &mut bench;
    new_order_with_a_repeated_item(bench);
    new_order_that_rolls_back(bench);
    payment_by_number_with_bad_credit(bench);
    payment_by_name(bench);
    nobody_has_the_name(bench);
    order_status(bench);
    stock_level(bench);
    delivery(bench);
    missing_rows_are_errors(bench);
}

fn new_order_with_a_repeated_item(bench: &mut Bench) {
    // Item 77 three times from the home warehouse, enough to trigger the refill, and once from the other
    // warehouse.
    let lines = [(77, 1, 10), (500, 1, 3), (77, 1, 10), (77, 2, 4), (99_999, 1, 1), (77, 1, 9)];
    let district = "from district where d_w_id = 1 and d_id = 4";
    let number = bench.int(&format!("select d_next_o_id {district}"));
    let mut expected = [(1, 77), (2, 77), (1, 500), (1, 99_999)].map(|(w, i)| ((w, i), bench.stock(w, i)));
    let mut cents = 0;
    for (item, supply, quantity) in lines {
        let row = expected.iter_mut().find(|(key, _)| *key == (supply, item)).unwrap();
        take(&mut row.1, quantity, supply != 1);
        cents += quantity * bench.decimal(&format!("select i_price from item where i_id = {item}"), 2);
    }
    let order = order_of(1, 4, 123, &lines);
    let (outcome, done) = bench.execute(Transaction::NewOrder(order));
    assert_eq!((outcome, done.order), (TransactionOutcome::Committed, number));
    let customer = "from customer where c_w_id = 1 and c_d_id = 4 and c_id = 123";
    let discount = bench.decimal(&format!("select c_discount {customer}"), 4);
    let tax = bench.decimal("select w_tax from warehouse where w_id = 1", 4)
        + bench.decimal(&format!("select d_tax {district}"), 4);
    let exact = cents as f64 * (1.0 - discount as f64 / 1e4) * (1.0 + tax as f64 / 1e4);
    assert!((done.cents as f64 - exact).abs() <= 0.51, "{} for {exact}", done.cents);

    assert_eq!(bench.int(&format!("select d_next_o_id {district}")), number + 1);
    for ((warehouse, item), stock) in expected {
        assert_eq!(bench.stock(warehouse, item), stock, "{:?}: stock {warehouse}, {item}", bench.calls);
    }
    let rows = bench.rows(&format!(
        "select o_c_id, o_carrier_id, o_ol_cnt, o_all_local from orders \
         where o_w_id = 1 and o_d_id = 4 and o_id = {number}"
    ));
    assert_eq!((rows.len(), rows.int(0, 0).unwrap(), rows.is_null(0, 1).unwrap()), (1, 123, true));
    assert_eq!((rows.int(0, 2).unwrap(), rows.int(0, 3).unwrap()), (6, 0));
    let new =
        format!("select count(*) from new_order where no_w_id = 1 and no_d_id = 4 and no_o_id = {number}");
    assert_eq!(bench.int(&new), 1);
    let rows = bench.rows(&format!(
        "select ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, i_price, ol_delivery_d, \
         ol_dist_info, s_dist_04 from order_line join item on i_id = ol_i_id \
         join stock on s_w_id = ol_supply_w_id and s_i_id = ol_i_id \
         where ol_w_id = 1 and ol_d_id = 4 and ol_o_id = {number} order by ol_number"
    ));
    assert_eq!(rows.len(), lines.len());
    for (row, (item, supply, quantity)) in lines.into_iter().enumerate() {
        let found: [i64; 4] = std::array::from_fn(|column| rows.int(row, column).unwrap());
        assert_eq!(found, [row as i64 + 1, item, supply, quantity]);
        assert_eq!(rows.decimal(row, 4, 2).unwrap(), quantity * rows.decimal(row, 5, 2).unwrap());
        assert!(rows.is_null(row, 6).unwrap());
        assert_eq!(rows.text(row, 7).unwrap(), rows.text(row, 8).unwrap());
    }
}

fn new_order_that_rolls_back(bench: &mut Bench) {
    let before = support::sums(bench.session.as_mut());
    let order = order_of(1, 5, 9, &[(12, 1, 3), (13, 2, 5), (14, 1, 7), (12, 1, 2), (UNUSED_ITEM, 1, 1)]);
    assert_eq!(bench.execute(Transaction::NewOrder(order)).0, TransactionOutcome::RolledBack);
    assert_eq!(support::sums(bench.session.as_mut()), before, "{:?} left something", bench.calls);
}

fn payment_by_number_with_bad_credit(bench: &mut Bench) {
    let bad = bench.int("select min(c_id) from customer where c_w_id = 2 and c_d_id = 7 and c_credit = 'BC'");
    let good =
        bench.int("select min(c_id) from customer where c_w_id = 2 and c_d_id = 7 and c_credit = 'GC'");
    for id in [bad, good] {
        let customer = format!("from customer where c_w_id = 2 and c_d_id = 7 and c_id = {id}");
        let history =
            format!("from history where h_c_w_id = 2 and h_c_d_id = 7 and h_c_id = {id} and h_w_id = 1");
        bench.session.run(&format!("delete {history}")).unwrap();
        let figures = format!("select c_balance, c_ytd_payment, c_payment_cnt {customer}");
        let old = bench.rows(&figures);
        let old_data = bench.text(&format!("select c_data {customer}"));
        let home =
            "select w_ytd, d_ytd from warehouse join district on d_w_id = w_id where w_id = 1 and d_id = 3";
        let old_home = bench.rows(home);
        let payment = Payment {
            warehouse: 1,
            district: 3,
            customer_warehouse: 2,
            customer_district: 7,
            customer: Customer::Id(id),
            amount: 123_405,
        };
        let (outcome, done) = bench.execute(Transaction::Payment(payment));
        assert_eq!((outcome, done.matched), (TransactionOutcome::Committed, None));
        let new = bench.rows(&figures);
        assert_eq!(new.decimal(0, 0, 2).unwrap(), old.decimal(0, 0, 2).unwrap() - 123_405);
        assert_eq!(new.decimal(0, 0, 2).unwrap(), done.cents);
        assert_eq!(new.decimal(0, 1, 2).unwrap(), old.decimal(0, 1, 2).unwrap() + 123_405);
        assert_eq!(new.int(0, 2).unwrap(), old.int(0, 2).unwrap() + 1);
        let new_home = bench.rows(home);
        for column in 0..2 {
            let (new, old) =
                (new_home.decimal(0, column, 2).unwrap(), old_home.decimal(0, column, 2).unwrap());
            assert_eq!(new, old + 123_405);
        }
        let mut expected = if id == bad { format!("{id} 7 2 3 1 1234.05|{old_data}") } else { old_data };
        expected.truncate(500);
        assert_eq!(bench.text(&format!("select c_data {customer}")), expected);
        let history = bench.rows(&format!(
            "select h_amount, h_data, w_name, d_name from history, warehouse, district where h_c_w_id = 2 \
             and h_c_d_id = 7 and h_c_id = {id} and h_w_id = 1 and h_d_id = 3 and w_id = 1 and d_w_id = 1 \
             and d_id = 3"
        ));
        assert_eq!((history.len(), history.decimal(0, 0, 2).unwrap()), (1, 123_405));
        let names = format!("{}    {}", history.text(0, 2).unwrap(), history.text(0, 3).unwrap());
        assert_eq!(history.text(0, 1).unwrap(), names);
    }
}

/// A last name with an even number of customers in warehouse 1, district 2, and these customers.
fn shared_name(bench: &mut Bench) -> (&'static str, Vec<(String, i64)>) {
    let rows = bench.rows(
        "select c_last from customer where c_w_id = 1 and c_d_id = 2 group by c_last \
         having count(*) = 4 order by c_last",
    );
    let name: &'static str = rows.text(0, 0).unwrap().to_owned().leak();
    let rows = bench.rows(&format!(
        "select c_first, c_id from customer where c_w_id = 1 and c_d_id = 2 and c_last = '{name}'"
    ));
    let mut people: Vec<(String, i64)> =
        (0..4).map(|row| (rows.text(row, 0).unwrap().to_owned(), rows.int(row, 1).unwrap())).collect();
    people.sort();
    (name, people)
}

fn payment_by_name(bench: &mut Bench) {
    let (name, people) = shared_name(bench);
    let counts = |bench: &mut Bench| -> Vec<i64> {
        let of = |id: &i64| {
            format!("select c_payment_cnt from customer where c_w_id = 1 and c_d_id = 2 and c_id = {id}")
        };
        people.iter().map(|(_, id)| bench.int(&of(id))).collect()
    };
    let mut expected = counts(bench);
    expected[1] += 1;
    let payment = Payment {
        warehouse: 1,
        district: 2,
        customer_warehouse: 1,
        customer_district: 2,
        customer: Customer::Name(name),
        amount: 100,
    };
    let (outcome, done) = bench.execute(Transaction::Payment(payment));
    assert_eq!((outcome, done.matched), (TransactionOutcome::Committed, Some(4)));
    assert_eq!(counts(bench), expected, "{:?}: the second of four by first name pays", bench.calls);
}

fn nobody_has_the_name(bench: &mut Bench) {
    let before = support::sums(bench.session.as_mut());
    let customer = Customer::Name("$8");
    let payment = Payment {
        warehouse: 1,
        district: 2,
        customer_warehouse: 1,
        customer_district: 2,
        customer,
        amount: 100,
    };
    let status = OrderStatus { warehouse: 1, district: 2, customer };
    for transaction in [Transaction::Payment(payment), Transaction::OrderStatus(status)] {
        let (outcome, done) = bench.execute(transaction);
        assert_eq!((outcome, done.matched), (TransactionOutcome::RolledBack, Some(0)));
    }
    assert_eq!(support::sums(bench.session.as_mut()), before);
}

fn order_status(bench: &mut Bench) {
    let (name, people) = shared_name(bench);
    let second = people[1].1;
    for customer in [Customer::Id(second), Customer::Name(name)] {
        let status = OrderStatus { warehouse: 1, district: 2, customer };
        let (outcome, done) = bench.execute(Transaction::OrderStatus(status));
        assert_eq!(outcome, TransactionOutcome::Committed);
        assert_eq!(done.matched, customer.by_name().then_some(4));
        let of = format!("o_w_id = 1 and o_d_id = 2 and o_c_id = {second}");
        let newest = bench.rows(&format!("select o_id, o_ol_cnt from orders where {of} order by o_id desc"));
        assert_eq!((done.order, done.count), (newest.int(0, 0).unwrap(), newest.int(0, 1).unwrap()));
        let balance =
            format!("select c_balance from customer where c_w_id = 1 and c_d_id = 2 and c_id = {second}");
        assert_eq!(done.cents, bench.decimal(&balance, 2));
    }
}

fn stock_level(bench: &mut Bench) {
    let mut low = 0;
    for district in 1..=10 {
        let level = StockLevel { warehouse: 1, district, threshold: 20 };
        let (_, done) = bench.execute(Transaction::StockLevel(level));
        let next =
            bench.int(&format!("select d_next_o_id from district where d_w_id = 1 and d_id = {district}"));
        let expected = bench.int(&format!(
            "select count(*) from stock where s_w_id = 1 and s_quantity < 20 and s_i_id in \
             (select ol_i_id from order_line where ol_w_id = 1 and ol_d_id = {district} \
             and ol_o_id between {} and {})",
            next - 20,
            next - 1
        ));
        assert_eq!(done.count, expected);
        low += done.count;
    }
    assert!(low > 0, "some item is low somewhere, or the comparison says nothing");
}

fn delivery(bench: &mut Bench) {
    // District 6 keeps one order, which the first delivery takes and the second misses. Orders that an
    // earlier bench delivered become new orders again.
    let again = "insert into new_order (no_w_id, no_d_id, no_o_id) select o_w_id, o_d_id, o_id from orders \
                 where o_w_id = 2 and o_d_id = 6 and o_carrier_id is null and o_id not in \
                 (select n.no_o_id from new_order n where n.no_w_id = 2 and n.no_d_id = 6)";
    bench.session.run(again).unwrap();
    let keep = "delete from new_order where no_w_id = 2 and no_d_id = 6 and no_o_id > \
                (select min(n.no_o_id) from new_order n where n.no_w_id = 2 and n.no_d_id = 6)";
    bench.session.run(keep).unwrap();
    for skipped in [0, 1] {
        let oldest =
            bench.rows("select no_d_id, min(no_o_id) from new_order where no_w_id = 2 group by no_d_id");
        let orders: Vec<(i64, i64)> =
            (0..oldest.len()).map(|row| (oldest.int(row, 0).unwrap(), oldest.int(row, 1).unwrap())).collect();
        assert_eq!(orders.len() as u64 + skipped, 10);
        let mut expected = Vec::new();
        for &(district, order) in &orders {
            let lines = format!("ol_w_id = 2 and ol_d_id = {district} and ol_o_id = {order}");
            let cents = bench.decimal(&format!("select sum(ol_amount) from order_line where {lines}"), 2);
            assert!(cents > 0);
            let key = format!("o_w_id = 2 and o_d_id = {district} and o_id = {order}");
            let customer = bench.int(&format!("select o_c_id from orders where {key}"));
            let account = format!(
                "select c_balance, c_delivery_cnt from customer \
                 where c_w_id = 2 and c_d_id = {district} and c_id = {customer}"
            );
            let old = bench.rows(&account);
            expected.push((account, old.decimal(0, 0, 2).unwrap() + cents, old.int(0, 1).unwrap() + 1));
        }
        let (outcome, done) = bench.execute(Transaction::Delivery(Delivery { warehouse: 2, carrier: 9 }));
        assert_eq!((outcome, done.skipped), (TransactionOutcome::Committed, Some(skipped)));
        for (account, cents, deliveries) in expected {
            let new = bench.rows(&account);
            assert_eq!((new.decimal(0, 0, 2).unwrap(), new.int(0, 1).unwrap()), (cents, deliveries));
        }
        for (district, order) in orders {
            let new = format!("no_w_id = 2 and no_d_id = {district} and no_o_id = {order}");
            assert_eq!(bench.int(&format!("select count(*) from new_order where {new}")), 0);
            let key = format!("o_w_id = 2 and o_d_id = {district} and o_id = {order}");
            assert_eq!(bench.int(&format!("select o_carrier_id from orders where {key}")), 9);
            let lines = format!("ol_w_id = 2 and ol_d_id = {district} and ol_o_id = {order}");
            let open = format!("select count(*) from order_line where {lines} and ol_delivery_d is null");
            assert_eq!(bench.int(&open), 0);
        }
    }
}

fn missing_rows_are_errors(bench: &mut Bench) {
    // A line with an unused item in an order that is not meant to roll back: the data are damaged.
    let mut order = order_of(1, 1, 1, &[(5, 1, 1), (UNUSED_ITEM, 1, 1)]);
    order.rolls_back = false;
    let nobody = Customer::Id(3001);
    let payment = Payment {
        warehouse: 1,
        district: 2,
        customer_warehouse: 1,
        customer_district: 2,
        customer: nobody,
        amount: 100,
    };
    for transaction in [
        Transaction::NewOrder(order),
        Transaction::NewOrder(order_of(3, 1, 1, &[(5, 1, 1)])),
        Transaction::Payment(payment),
        Transaction::OrderStatus(OrderStatus { warehouse: 1, district: 2, customer: nobody }),
    ] {
        let mut done = Details::default();
        let error = bench.executor.execute(bench.session.as_mut(), &transaction, &mut done).unwrap_err();
        assert_eq!(error.class(), ErrorClass::Statement, "{error}");
        assert!(error.message().contains("missing"), "{error}");
        if bench.session.in_transaction() {
            bench.session.run("rollback").unwrap();
        }
    }
}

pub(super) fn build(engine: &dyn Engine) {
    let options = Options { warehouses: Some(2), ..Options::default() };
    TprocC::new(options).unwrap().build(engine, &Quiet, &Stop::new()).unwrap();
}

#[test]
fn every_effect_on_sqlite() {
    let directory = tempfile::tempdir().unwrap();
    let engine = SqliteEngine::open(directory.path().join("kelvin.db")).unwrap();
    build(&engine);
    every_effect(&engine, Calls::Statements);
}

#[test]
fn every_effect_on_postgresql_and_trial_b2_where_joins_lose_rows() {
    let server = support::Server::start();
    server.admin().run("create database loaded").unwrap();
    let engine = server.engine("loaded");
    build(&engine);
    let healthy = [Calls::Statements, Calls::Pipelined, Calls::Functions].map(|calls| (calls, false));
    for (calls, joins_lose_rows) in
        healthy.into_iter().chain([(Calls::Pipelined, true), (Calls::Functions, true)])
    {
        if joins_lose_rows {
            functions::create_for(engine.connect().unwrap().as_mut(), Profile::Spec, "true").unwrap();
        }
        every_effect_of(Bench::driven(
            &engine,
            Driven { joins_lose_rows, ..Driven::new(of_engine(engine.kind()).unwrap(), calls) },
        ));
    }
}

#[test]
fn every_effect_on_mariadb() {
    let server = databases::start();
    let engine = databases::database(&server, "loaded");
    build(&engine);
    for calls in [Calls::Statements, Calls::Pipelined, Calls::Functions] {
        every_effect(&engine, calls);
    }
}

#[test]
fn every_effect_on_sql_server() {
    let Some(engine) = sqlserver_databases::database("effects") else { return };
    build(&engine);
    for calls in [Calls::Statements, Calls::Pipelined, Calls::Functions] {
        every_effect(&engine, calls);
    }
}

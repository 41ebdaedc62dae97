//! The same seed gives the same tables on every engine and with every way of calling.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod mysql_databases;
mod sqlserver_databases;
mod transactions_support;

use kelvin_database::sqlite::SqliteEngine;
use kelvin_database::{Engine, Session};
use kelvin_measure::{Counters, TransactionOutcome};
use kelvin_workload::progress::Quiet;
use kelvin_workload::scan::{self, Query, Scan};
use kelvin_workload::tproc_c::{Calls, Options, TprocC};
use kelvin_workload::{Stop, UserRange, Workload};
use transactions_support::{Server, digest_rows, digests};

const WAREHOUSES: u32 = 2;
const TRANSACTIONS: u32 = 1200;

/// Number of rows and digest of each table.
type Tables = Vec<(&'static str, usize, u64)>;

fn options(warehouses: u32, calls: Option<Calls>) -> Options {
    Options { warehouses: Some(warehouses), calls, ..Options::default() }
}

fn build(engine: &dyn Engine, warehouses: u32) {
    TprocC::new(options(warehouses, None)).unwrap().build(engine, &Quiet, &Stop::new()).unwrap();
}

/// Runs one user and returns the tables' digests. The audit must succeed and, with `check`, the conditions
/// must hold.
fn run(engine: &dyn Engine, calls: Calls, seed: u64, check: bool) -> Tables {
    let mut workload = TprocC::new(options(WAREHOUSES, Some(calls))).unwrap();
    workload.inspect(engine).unwrap();
    let mut session = engine.connect().unwrap();
    let before = workload.headline_count(session.as_mut()).unwrap();
    let counters = Counters::new(Workload::counters(&workload).len());
    let mut user = workload.users(UserRange::all(1), seed, &kelvin_measure::Clock::real()).remove(0);
    user.prepare(session.as_mut()).unwrap();
    let (mut orders, mut rolled_back) = (0, 0);
    for _ in 0..TRANSACTIONS {
        let next = user.next();
        let outcome = user.execute(session.as_mut()).unwrap();
        assert!(!session.in_transaction());
        user.count(&counters);
        if workload.kinds()[usize::from(next.kind)].headline {
            orders += u64::from(outcome == TransactionOutcome::Committed);
            rolled_back += u64::from(outcome == TransactionOutcome::RolledBack);
        }
    }
    assert!(rolled_back > 0, "the seed rolls some orders back");
    assert_eq!(workload.headline_count(session.as_mut()).unwrap() - before, orders);
    let mut sums = vec![0; counters.len()];
    counters.sum_into(&mut sums);
    let audit = workload.audit(&sums, 4);
    assert!(audit.iter().all(|line| line.valid), "{calls:?}: {audit:#?}");
    if !check {
        return digests(session.as_mut());
    }
    let mut numbers = Vec::new();
    let mut each = |line: kelvin_measure::event::CheckLine| {
        assert!(line.holds, "{calls:?}: condition {} ({}): {}", line.number, line.name, line.detail);
        numbers.push(line.number);
    };
    Workload::check(&workload, engine, &Quiet, &Stop::new(), &mut each).unwrap();
    assert_eq!(numbers.len(), 12);
    digests(session.as_mut())
}

/// Runs each query of a scan; returns the number of rows read and a digest of its answer.
fn scans(engine: &dyn Engine) -> Tables {
    let mut workload = Scan::new(scan::Options::default()).unwrap();
    workload.inspect(engine).unwrap();
    assert_eq!(workload.counters().len(), 2, "the engine knows the sizes of its tables");
    let mut session = engine.connect().unwrap();
    let mut user = workload.users(UserRange::all(1), 1, &kelvin_measure::Clock::real()).remove(0);
    user.prepare(session.as_mut()).unwrap();
    // The scales of columns with money.
    let columns: [&[Option<u8>]; 3] = [
        &[None, None, Some(2)],
        &[None, None, None, Some(2), None],
        &[None, None, None, None, Some(2), Some(2)],
    ];
    let each = Query::ALL.into_iter().zip(columns).map(|(query, columns)| {
        let (counters, mut sums) = (Counters::new(2), vec![0; 2]);
        let next = user.next();
        assert_eq!(workload.kinds()[usize::from(next.kind)].name, query.name());
        user.execute(session.as_mut()).unwrap();
        user.count(&counters);
        counters.sum_into(&mut sums);
        assert!((30..3000).contains(&(sums[1] / sums[0])), "{query}: {sums:?}");
        let answer = session.query(query.sql()).unwrap();
        assert_eq!(answer.columns(), columns.len());
        (query.name(), sums[0] as usize, digest_rows(&answer, columns))
    });
    each.collect()
}

/// Builds, and runs one seed after another on the same tables, each with another way of calling; returns the
/// tables after each.
fn build_and_run(engine: &dyn Engine, ways: [Calls; 3]) -> Vec<Tables> {
    build(engine, WAREHOUSES);
    let loaded = digests(engine.connect().unwrap().as_mut());
    // Equal tables meet the conditions on all engines, so the conditions are checked only after the last run.
    let runs = ways.into_iter().zip(42..).map(|(calls, seed)| run(engine, calls, seed, seed == 44));
    std::iter::once(loaded).chain(runs).collect()
}

/// The same, and the results of scans of the last tables.
fn build_run_and_scan(engine: &dyn Engine, ways: [Calls; 3]) -> (Vec<Tables>, Tables) {
    (build_and_run(engine, ways), scans(engine))
}

#[test]
fn one_seed_gives_the_same_tables_on_every_engine_and_by_every_way_of_calling() {
    let ways = [Calls::Statements, Calls::Pipelined, Calls::Functions];
    let ([(sqlite, answers), postgres, mariadb], sqlserver) = std::thread::scope(|scope| {
        let sqlite = scope.spawn(|| {
            let directory = tempfile::tempdir().unwrap();
            let engine = SqliteEngine::open(directory.path().join("kelvin.db")).unwrap();
            build_run_and_scan(&engine, [Calls::Statements; 3])
        });
        let postgres = scope.spawn(|| {
            let server = Server::start();
            server.admin().run("create database kelvin").unwrap();
            build_run_and_scan(&server.engine("kelvin"), ways)
        });
        let mariadb = scope.spawn(|| {
            let server = mysql_databases::start();
            build_run_and_scan(&mysql_databases::database(&server, "tables"), ways)
        });
        let sqlserver = scope.spawn(|| {
            let engine = sqlserver_databases::database("tables");
            engine.map(|engine| build_and_run(&engine, ways)).unwrap_or_default()
        });
        ([sqlite, postgres, mariadb].map(|engine| engine.join().unwrap()), sqlserver.join().unwrap())
    });
    for (before, after) in sqlite.iter().zip(&sqlite[1..]) {
        for (before, after) in before.iter().zip(after) {
            assert_eq!(
                before == after,
                before.0 == "item",
                "{} changes unless it is the item table",
                before.0
            );
        }
    }
    for (step, expected) in sqlite.iter().enumerate() {
        assert_eq!(&postgres.0[step], expected, "PostgreSQL, step {step} of {ways:?}");
        assert_eq!(&mariadb.0[step], expected, "MariaDB, step {step} of {ways:?}");
        if let Some(found) = sqlserver.get(step) {
            assert_eq!(found, expected, "SQL Server, step {step} of {ways:?}");
        }
    }
    assert_eq!(postgres.1, answers, "PostgreSQL's answers");
    assert_eq!(mariadb.1, answers, "MariaDB's answers");
    for (place, table) in ["stock", "order_line", "customer"].into_iter().enumerate() {
        let rows = sqlite.last().unwrap().iter().find(|(name, ..)| *name == table).unwrap().1;
        assert_eq!(answers[place].1, rows, "{} reads all of {table}", answers[place].0);
    }
}

#[test]
fn sqlite_refuses_what_it_cannot_do() {
    let directory = tempfile::tempdir().unwrap();
    let engine = SqliteEngine::open(directory.path().join("kelvin.db")).unwrap();
    build(&engine, 1);
    for calls in [Calls::Pipelined, Calls::Functions] {
        let error = TprocC::new(options(1, Some(calls))).unwrap().inspect(&engine).unwrap_err();
        assert_eq!(error.class(), kelvin_database::ErrorClass::Usage);
        assert!(error.to_string().contains("SQLite does not support"), "{error}");
    }
    let _: Box<dyn Session> = engine.connect().unwrap();
}

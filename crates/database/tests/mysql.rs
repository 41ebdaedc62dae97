//! The client against a real MariaDB (or, with `KELVIN_MYSQL_BASE`, MySQL).
#![allow(clippy::unwrap_used)]

mod mysql_support;

use std::sync::LazyLock;
use std::time::Duration;

use kelvin_database::mysql::MysqlEngine;
use kelvin_database::{
    BulkTable, ColumnType, Decimal, Engine, ErrorClass, Rows, Session, Timestamp, TransactionControl, Value,
};
use mysql_support::{Server, is_mariadb};

static SERVER: LazyLock<Server> = LazyLock::new(Server::start);

fn session() -> Box<dyn Session> {
    SERVER.session()
}

fn over_tcp() -> Box<dyn Session> {
    MysqlEngine::new(SERVER.tcp()).connect().unwrap()
}

#[test]
fn statements_are_prepared_and_executed() {
    for mut session in [session(), over_tcp()] {
        let add = session.prepare("SELECT $2, $1, $2 + 1, '$3 it''s'").unwrap();
        let mut rows = Rows::new();
        for _ in 0..2 {
            session.execute(add, &[Value::Text("é"), Value::Int(-7)], &mut rows).unwrap();
            assert_eq!((rows.len(), rows.int(0, 0).unwrap(), rows.text(0, 1).unwrap()), (1, -7, "é"));
            assert_eq!((rows.int(0, 2).unwrap(), rows.text(0, 3).unwrap()), (-6, "$3 it's"));
        }
        assert_eq!(session.query("SELECT 1 + 1").unwrap().int(0, 0).unwrap(), 2);
        session.execute(add, &[Value::Null, Value::Null], &mut rows).unwrap();
        assert!(rows.is_null(0, 0).unwrap() && rows.is_null(0, 1).unwrap() && rows.is_null(0, 2).unwrap());
        let error = session.execute(add, &[Value::Null], &mut rows).unwrap_err();
        assert_eq!(error.class(), ErrorClass::Statement, "{error}");
        let error = session.prepare("SELECT ?").unwrap_err();
        assert!(error.help().unwrap().contains("$1"), "{error}");
        assert_eq!(session.query("SELECT 'well'").unwrap().text(0, 0).unwrap(), "well");
    }
}

#[test]
fn every_type_is_read_as_what_it_is_in_both_formats() {
    let mut session = session();
    let sql = "SELECT CAST(-5 AS SIGNED), CAST(12.340 AS DECIMAL(20,3)), CAST(-0.01 AS DECIMAL(4,2)), 1.5e0, \
               TIMESTAMP'2024-02-29 12:34:56.789', DATE'1970-01-02', TIME'-26:03:04', 'text', x'00ff', NULL, \
               CAST(18 AS UNSIGNED), b'101'";
    let prepared = session.prepare(sql).unwrap();
    let mut binary = Rows::new();
    session.execute(prepared, &[], &mut binary).unwrap();
    for rows in [binary, session.query(sql).unwrap()] {
        assert_eq!(rows.int(0, 0).unwrap(), -5);
        assert_eq!(rows.decimal(0, 1, 3).unwrap(), 12_340);
        assert_eq!(rows.decimal(0, 2, 2).unwrap(), -1);
        assert_eq!(rows.float(0, 3).unwrap(), 1.5);
        assert_eq!(rows.timestamp(0, 4).unwrap(), Timestamp(1_709_210_096_789_000));
        assert_eq!(rows.timestamp(0, 5).unwrap(), Timestamp(86_400_000_000));
        assert_eq!(rows.text(0, 6).unwrap(), "-26:03:04");
        assert_eq!(rows.text(0, 7).unwrap(), "text");
        assert_eq!(rows.bytes(0, 8).unwrap(), [0, 255]);
        assert!(rows.is_null(0, 9).unwrap());
        assert_eq!(rows.int(0, 10).unwrap(), 18);
        assert_eq!(rows.affected(), 1);
    }
    let error = session.query("SELECT 18446744073709551615, 'rest'").unwrap_err();
    assert_eq!(error.class(), ErrorClass::Statement, "{error}");
    assert!(!session.is_broken());
    assert_eq!(session.query("SELECT 3").unwrap().int(0, 0).unwrap(), 3);
}

#[test]
fn transactions_commit_and_roll_back_and_a_failed_one_is_not_committed() {
    let mut session = session();
    session.run("CREATE TABLE t (k INT PRIMARY KEY, v INT) ENGINE=InnoDB").unwrap();
    let insert = session.prepare("INSERT INTO t VALUES ($1, $2)").unwrap();
    let count =
        |session: &mut dyn Session| session.query("SELECT count(*) FROM t").unwrap().int(0, 0).unwrap();
    let mut rows = Rows::new();
    session.control(TransactionControl::Begin).unwrap();
    assert!(session.in_transaction());
    session.execute(insert, &[1.into(), 1.into()], &mut rows).unwrap();
    assert_eq!(rows.affected(), 1);
    session.control(TransactionControl::Rollback).unwrap();
    assert!(!session.in_transaction());
    assert_eq!(count(&mut *session), 0);

    session.control(TransactionControl::Begin).unwrap();
    session.execute(insert, &[1.into(), 1.into()], &mut rows).unwrap();
    let error = session.execute(insert, &[1.into(), 2.into()], &mut rows).unwrap_err();
    assert_eq!((error.class(), error.code().0.as_str()), (ErrorClass::Constraint, "1062/23000"));
    assert!(session.in_transaction());
    assert!(
        session.execute(insert, &[2.into(), 2.into()], &mut rows).is_err(),
        "only a rollback goes through"
    );
    assert!(session.run("INSERT INTO t VALUES (3, 3)").is_err());
    let error = session.control(TransactionControl::Commit).unwrap_err();
    assert!(error.message().contains("was a rollback"), "{error}");
    assert_eq!(count(&mut *session), 0);

    session.control(TransactionControl::Begin).unwrap();
    assert_eq!(session.control(TransactionControl::Begin).unwrap_err().class(), ErrorClass::Usage);
    session.execute(insert, &[1.into(), 1.into()], &mut rows).unwrap();
    session.control(TransactionControl::Commit).unwrap();
    assert_eq!(count(&mut *session), 1);
    let update = session.prepare("UPDATE t SET v = 1 WHERE k = 1").unwrap();
    session.execute(update, &[], &mut rows).unwrap();
    assert_eq!(rows.affected(), 1, "rows found, not rows changed");
    session.control(TransactionControl::BeginReadOnly).unwrap();
    assert!(session.execute(insert, &[9.into(), 1.into()], &mut rows).is_err());
    session.control(TransactionControl::Rollback).unwrap();
}

#[test]
fn a_batch_stops_at_its_first_error_and_commits_nothing() {
    let mut session = session();
    session.run("CREATE TABLE batch (k INT PRIMARY KEY) ENGINE=InnoDB").unwrap();
    let insert = session.prepare("INSERT INTO batch VALUES ($1)").unwrap();
    let select = session.prepare("SELECT k, 'x' FROM batch ORDER BY k").unwrap();
    let mut results = Vec::new();
    let keys = |session: &mut dyn Session| -> Vec<i64> {
        let rows = session.query("SELECT k FROM batch ORDER BY k").unwrap();
        (0..rows.len()).map(|row| rows.int(row, 0).unwrap()).collect()
    };
    for round in 0..3 {
        session.queue_control(TransactionControl::Begin).unwrap();
        session.queue(insert, &[(10 * round + 1).into()]).unwrap();
        session.queue(insert, &[(10 * round + 2).into()]).unwrap();
        session.queue(select, &[]).unwrap();
        session.queue_control(TransactionControl::Commit).unwrap();
        session.flush(&mut results).unwrap();
        assert_eq!(results.len(), 5);
        assert_eq!(results[3].len() as i64, 2 * (round + 1));
        assert_eq!((results[1].affected(), results[3].text(0, 1).unwrap()), (1, "x"));
        assert!(!session.in_transaction());
    }
    let before = keys(&mut *session);
    session.queue_control(TransactionControl::Begin).unwrap();
    session.queue(insert, &[100.into()]).unwrap();
    session.queue(insert, &[1.into()]).unwrap();
    session.queue(insert, &[101.into()]).unwrap();
    session.queue_control(TransactionControl::Commit).unwrap();
    let error = session.flush(&mut results).unwrap_err();
    assert_eq!(error.class(), ErrorClass::Constraint, "{error}");
    assert!(session.in_transaction());
    session.control(TransactionControl::Rollback).unwrap();
    assert_eq!(keys(&mut *session), before);
    // Outside of a transaction what precedes the error stays, and what follows is not run.
    session.queue(insert, &[200.into()]).unwrap();
    session.queue(insert, &[1.into()]).unwrap();
    session.queue(insert, &[201.into()]).unwrap();
    assert!(session.flush(&mut results).is_err());
    assert_eq!(keys(&mut *session).last(), Some(&200));
    assert!(!session.in_transaction());
    // A transaction that was begun by itself.
    session.control(TransactionControl::Begin).unwrap();
    session.queue(insert, &[300.into()]).unwrap();
    session.queue(insert, &[301.into()]).unwrap();
    session.flush(&mut results).unwrap();
    session.control(TransactionControl::Rollback).unwrap();
    assert_eq!(keys(&mut *session).last(), Some(&200));
    assert_eq!(session.query("SELECT @@autocommit").unwrap().int(0, 0).unwrap(), 1, "as on every engine");
}

/// A deadlock rolls the whole transaction back, and what follows in the batch runs all the same.
#[test]
fn nothing_commits_behind_a_deadlock_within_a_batch() {
    let mut first = session();
    first.run("CREATE TABLE dead (k INT PRIMARY KEY, v INT) ENGINE=InnoDB").unwrap();
    first.run("INSERT INTO dead VALUES (1, 0), (2, 0), (3, 0), (4, 0)").unwrap();
    let mut second = session();
    let sql = "UPDATE dead SET v = v + 1 WHERE k = $1";
    let (of_first, of_second) = (first.prepare(sql).unwrap(), second.prepare(sql).unwrap());
    let mut rows = Rows::new();
    first.control(TransactionControl::Begin).unwrap();
    // Heavier, so that the other becomes the victim.
    first.run("UPDATE dead SET v = v + 1 WHERE k IN (1, 4)").unwrap();
    second.control(TransactionControl::Begin).unwrap();
    second.execute(of_second, &[2.into()], &mut rows).unwrap();
    let thread = std::thread::spawn(move || {
        let mut rows = Rows::new();
        let outcome = first.execute(of_first, &[2.into()], &mut rows);
        (first, outcome)
    });
    let mut watcher = session();
    let waiting = "SELECT count(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'";
    while watcher.query(waiting).unwrap().int(0, 0).unwrap() == 0 {
        // The table is made anew only when nobody has read it for 100 ms.
        std::thread::sleep(Duration::from_millis(200));
    }
    let mut results = Vec::new();
    second.queue(of_second, &[1.into()]).unwrap();
    second.queue(of_second, &[3.into()]).unwrap();
    second.queue_control(TransactionControl::Commit).unwrap();
    let error = second.flush(&mut results).unwrap_err();
    assert_eq!((error.class(), error.code().0.as_str()), (ErrorClass::Deadlock, "1213/40001"), "{error}");
    assert!(error.class().is_retryable() && second.in_transaction());
    second.control(TransactionControl::Rollback).unwrap();
    let (mut first, outcome) = thread.join().unwrap();
    outcome.unwrap();
    first.control(TransactionControl::Commit).unwrap();
    let rows = watcher.query("SELECT v FROM dead ORDER BY k").unwrap();
    let values: Vec<i64> = (0..4).map(|row| rows.int(row, 0).unwrap()).collect();
    assert_eq!(values, [1, 1, 0, 1], "nothing of the victim");
}

#[test]
fn a_lock_that_is_not_granted_in_time_can_be_tried_again() {
    let (mut first, mut second) = (session(), session());
    first
        .run("CREATE TABLE locked (k INT PRIMARY KEY) ENGINE=InnoDB; INSERT INTO locked VALUES (1)")
        .unwrap();
    second.run("SET SESSION innodb_lock_wait_timeout = 1").unwrap();
    first.control(TransactionControl::Begin).unwrap();
    first.query("SELECT k FROM locked FOR UPDATE").unwrap();
    second.control(TransactionControl::Begin).unwrap();
    let error = second.query("SELECT k FROM locked FOR UPDATE").unwrap_err();
    assert_eq!((error.class(), error.code().0.as_str()), (ErrorClass::LockNotAvailable, "1205/HY000"));
    assert!(second.query("SELECT 1").is_err(), "the transaction is to be rolled back");
    second.control(TransactionControl::Rollback).unwrap();
    first.control(TransactionControl::Rollback).unwrap();
}

#[test]
fn calls_return_their_out_parameters() {
    let mut session = session();
    session
        .run(
            "CREATE PROCEDURE both_ways(IN a INT, OUT b INT, INOUT c VARCHAR(20)) \
             BEGIN SELECT a * 10 AS tenfold, 'row'; SET b = a + 1; SET c = CONCAT(c, '!'); END; \
             CREATE PROCEDURE rows_only(a INT) BEGIN SELECT a AS first; SELECT a + 1 AS second; END; \
             CREATE PROCEDURE nothing() BEGIN END",
        )
        .unwrap();
    let call = session.prepare("CALL both_ways($1, $2, $3)").unwrap();
    let mut rows = Rows::new();
    for a in 1..4 {
        session.execute(call, &[Value::Int(a), Value::Null, Value::Text("hey")], &mut rows).unwrap();
        assert_eq!((rows.columns(), rows.int(0, 0).unwrap(), rows.text(0, 1).unwrap()), (2, a + 1, "hey!"));
    }
    let call = session.prepare("CALL rows_only($1)").unwrap();
    session.execute(call, &[5.into()], &mut rows).unwrap();
    assert_eq!((rows.len(), rows.int(0, 0).unwrap()), (1, 5));
    let call = session.prepare("CALL nothing()").unwrap();
    session.execute(call, &[], &mut rows).unwrap();
    assert_eq!((rows.len(), rows.columns()), (0, 0));
    let mut results = Vec::new();
    session.query_text("CALL rows_only(7); SELECT 'end' AS last", &mut results).unwrap();
    let last = results.last().unwrap();
    assert_eq!((results[0].name(0), results[1].int(0, 0).unwrap()), (Some(&b"first"[..]), 8));
    assert_eq!((last.name(0), last.text(0, 0).unwrap()), (Some(&b"last"[..]), "end"));
}

#[test]
fn text_statements_are_prepared_or_parsed_each_time() {
    let mut session = session();
    for parse_each_time in [false, true] {
        let mut columns = Vec::new();
        let sql = "SELECT $2 AS b, $1 AS a, '?'";
        let statement = session.prepare_text(sql, parse_each_time, &mut columns).unwrap();
        assert_eq!(columns, ["b", "a", "?"]);
        let mut rows = Rows::new();
        session.execute(statement, &[Value::Text(r"a\'b"), Value::Int(2)], &mut rows).unwrap();
        assert_eq!((rows.int(0, 0).unwrap(), rows.text(0, 1).unwrap()), (2, r"a\'b"), "{parse_each_time}");
        session.ignore_rows(statement);
        session.execute(statement, &[Value::Text("x"), Value::Int(2)], &mut rows).unwrap();
        assert_eq!((rows.len(), rows.affected()), (0, 1));
        // What the server does not prepare is sent as text.
        for sql in ["BEGIN", "SELECT 1", "ROLLBACK"] {
            let statement = session.prepare_text(sql, parse_each_time, &mut columns).unwrap();
            session.execute(statement, &[], &mut rows).unwrap();
            assert_eq!(session.in_transaction(), sql != "ROLLBACK", "{sql}");
        }
    }
    session.run("SET sql_mode = 'NO_BACKSLASH_ESCAPES'").unwrap();
    let statement = session.prepare_text("SELECT $1", true, &mut Vec::new()).unwrap();
    let mut rows = Rows::new();
    session.execute(statement, &[Value::Text(r"a\'b")], &mut rows).unwrap();
    assert_eq!(rows.text(0, 0).unwrap(), r"a\'b");
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]
    /// What goes in comes out again, and is what the server itself writes as text.
    #[test]
    fn values_make_the_round_trip_in_both_formats(
        int: i64,
        unscaled: i64,
        scale in 0_u8..=18,
        text in "[^\0]{0,40}",
        micros in -62_167_219_200_000_000_i64..253_402_300_800_000_000,
        float in proptest::num::f64::NORMAL,
    ) {
        thread_local! {
            static SESSION: std::cell::RefCell<Box<dyn Session>> = std::cell::RefCell::new(session());
        }
        SESSION.with_borrow_mut(|session| {
            let sql = "SELECT $1, $2, $3, $4, $5, CAST($1 AS CHAR), CAST($2 AS CHAR), CAST($3 AS CHAR)";
            let decimal = Decimal::new(unscaled, scale);
            let values = [
                Value::Int(int),
                Value::Decimal(decimal),
                Value::Text(&text),
                Value::Timestamp(Timestamp(micros)),
                Value::Float(float),
            ];
            let digits = {
                let magnitude = unscaled.unsigned_abs().to_string();
                let padded = format!("{magnitude:0>width$}", width = usize::from(scale) + 1);
                let (whole, part) = padded.split_at(padded.len() - usize::from(scale));
                let sign = if unscaled < 0 { "-" } else { "" };
                if scale == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{part}") }
            };
            for parse_each_time in [false, true] {
                let statement = session.prepare_text(sql, parse_each_time, &mut Vec::new()).unwrap();
                let mut rows = Rows::new();
                session.execute(statement, &values, &mut rows).unwrap();
                proptest::prop_assert_eq!(rows.int(0, 0).unwrap(), int);
                proptest::prop_assert_eq!(rows.decimal(0, 1, scale).unwrap(), unscaled);
                proptest::prop_assert_eq!(rows.text(0, 2).unwrap(), text.as_str());
                // MySQL gives a parameter's point in time as text.
                if let Ok(at) = rows.timestamp(0, 3) {
                    proptest::prop_assert_eq!(at.0, micros);
                }
                proptest::prop_assert_eq!(rows.float(0, 4).unwrap(), float);
                proptest::prop_assert_eq!(rows.text(0, 5).unwrap(), int.to_string());
                proptest::prop_assert_eq!(rows.text(0, 6).unwrap(), digits.as_str());
                proptest::prop_assert_eq!(rows.text(0, 7).unwrap(), text.as_str());
            }
            Ok(())
        })?;
    }
}

fn load(session: &mut dyn Session, name: &str, texts: bool) -> kelvin_database::Result<u64> {
    let columns = [
        ("k", ColumnType::Int4),
        ("d", ColumnType::Decimal(2)),
        ("t", ColumnType::Text),
        ("at", ColumnType::Timestamp),
        ("u", ColumnType::Text),
        ("v", ColumnType::Text),
    ];
    let columns = if texts { &columns[..] } else { &columns[..4] };
    let table = BulkTable { name, columns };
    let mut load = session.bulk_load(&table)?;
    for k in 0..20_000 {
        let text = format!("tab\tline\nback\\slash 'quote' \\N {k}\r\0ünd…🦀");
        let text = if k % 7 == 0 { Value::Null } else { Value::Text(&text) };
        let row = [
            Value::Int(k),
            Value::Decimal(Decimal::new(-k, 2)),
            text,
            Value::Timestamp(Timestamp(k * 1_000_001)),
            Value::Null,
            text,
        ];
        load.row(&row[..columns.len()])?;
    }
    load.finish()
}

#[test]
fn loads_are_exact_in_every_way() {
    let mut session = session();
    // As INSERTs, as a file, and with many texts, for which MariaDB has a way of its own.
    for (local_infile, texts) in [(0, false), (1, false), (1, true)] {
        session.run(&format!("SET GLOBAL local_infile = {local_infile}")).unwrap();
        let mut session = over_tcp();
        session
            .run(
                "DROP TABLE IF EXISTS loaded; CREATE TABLE loaded (k INT PRIMARY KEY, d DECIMAL(12,2) NOT NULL, \
                 t VARCHAR(100), at DATETIME(6) NOT NULL, \
                 u VARCHAR(100), v VARCHAR(100)) ENGINE=InnoDB CHARACTER SET utf8mb4",
            )
            .unwrap();
        assert_eq!(load(&mut *session, "loaded", texts).unwrap(), 20_000);
        assert!(!session.in_transaction());
        let rows = session.query("SELECT k, d, t, at FROM loaded ORDER BY k").unwrap();
        assert_eq!(rows.len(), 20_000);
        for (row, k) in (0..20_000).enumerate().step_by(113) {
            assert_eq!(rows.decimal(row, 1, 2).unwrap(), -k);
            if k % 7 == 0 {
                assert!(rows.is_null(row, 2).unwrap());
            } else {
                assert_eq!(
                    rows.text(row, 2).unwrap(),
                    format!("tab\tline\nback\\slash 'quote' \\N {k}\r\0ünd…🦀")
                );
            }
            assert_eq!(rows.timestamp(row, 3).unwrap().0, k * 1_000_001);
        }
        // The same keys again: none is left out in silence, and none of a load that failed stays.
        session.run("DELETE FROM loaded WHERE k = 5").unwrap();
        let error = load(&mut *session, "loaded", texts).unwrap_err();
        assert_eq!(error.class(), ErrorClass::Constraint, "{error}");
        let mut again = over_tcp();
        let left = again.query("SELECT count(*) FROM loaded").unwrap().int(0, 0).unwrap();
        assert_eq!(left, 19_999, "local_infile = {local_infile}, texts: {texts}");
        // One that is dropped leaves nothing.
        let columns = [("k", ColumnType::Int4), ("t", ColumnType::Text)];
        let table = BulkTable { name: "loaded", columns: &columns[..if texts { 2 } else { 1 }] };
        let mut session = over_tcp();
        let mut abandoned = session.bulk_load(&table).unwrap();
        abandoned.row(&[50_000.into(), "x".into()][..table.columns.len()]).unwrap();
        drop(abandoned);
        drop(session);
        let left = again.query("SELECT count(*) FROM loaded").unwrap().int(0, 0).unwrap();
        assert_eq!(left, 19_999);
    }
    let mut session = over_tcp();
    let table = BulkTable { name: "loaded", columns: &[("no_such_column", ColumnType::Text)] };
    assert_eq!(session.bulk_load(&table).err().unwrap().class(), ErrorClass::Statement);
    assert!(!session.is_broken());
}

#[test]
fn a_file_that_we_did_not_offer_is_refused() {
    let mut session = session();
    session.run("SET GLOBAL local_infile = 1; CREATE TABLE stolen (t TEXT)").unwrap();
    let error = session.run("LOAD DATA LOCAL INFILE '/etc/hostname' INTO TABLE stolen").unwrap_err();
    assert!(error.message().contains("requested a file from this host"), "{error}");
    assert!(session.is_broken());
    let taken = self::session().query("SELECT count(*) FROM stolen").unwrap().int(0, 0).unwrap();
    assert_eq!(taken, 0);
}

#[test]
fn a_statement_is_cancelled_from_another_thread() {
    let mut session = over_tcp();
    let cancel = session.cancel();
    let thread = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        cancel.cancel().unwrap();
    });
    let error = session.query("SELECT count(*) FROM information_schema.columns a JOIN information_schema.columns b JOIN information_schema.columns c").unwrap_err();
    thread.join().unwrap();
    assert_eq!((error.class(), error.code().0.as_str()), (ErrorClass::Timeout, "1317/70100"), "{error}");
    assert!(!session.is_broken());
    assert_eq!(session.query("SELECT 1").unwrap().int(0, 0).unwrap(), 1);
}

#[test]
fn a_wait_that_is_too_long_breaks_the_session() {
    let mut session = session();
    session.set_timeout(Some(Duration::from_millis(200))).unwrap();
    let error = session.query("SELECT SLEEP(30)").unwrap_err();
    assert_eq!(error.class(), ErrorClass::Timeout, "{error}");
    assert!(session.is_broken());
    assert_eq!(session.query("SELECT 1").unwrap_err().class(), ErrorClass::ConnectionLost);
}

#[test]
fn large_values_go_both_ways() {
    let mut session = session();
    session.run("SET GLOBAL max_allowed_packet = 67108864").unwrap();
    let mut session = over_tcp();
    let echo = session.prepare("SELECT $1, LENGTH($2)").unwrap();
    let mut rows = Rows::new();
    for length in [0, 250, 251, 65_536, (1 << 24) - 40, (1 << 24) + 7, 17 << 20] {
        let text = "x".repeat(length);
        session.execute(echo, &[Value::Text(&text), Value::Text(&text)], &mut rows).unwrap();
        assert_eq!((rows.text(0, 0).unwrap().len(), rows.int(0, 1).unwrap()), (length, length as i64));
        let rows = session.query(&format!("SELECT REPEAT('y', {length}), 1")).unwrap();
        assert_eq!((rows.text(0, 0).unwrap().len(), rows.int(0, 1).unwrap()), (length, 1));
    }
    let text = "x".repeat(70 << 20);
    let error = session.execute(echo, &[Value::Text(&text), Value::Null], &mut rows).unwrap_err();
    assert!(session.is_broken(), "{error}");
}

#[test]
fn the_engine_says_what_the_server_is() {
    let engine = MysqlEngine::new(SERVER.unix());
    let mut session = engine.connect().unwrap();
    let fingerprint = engine.fingerprint(&mut *session).unwrap();
    let product = if is_mariadb() { "MariaDB 1" } else { "MySQL 8" };
    assert!(fingerprint.version.starts_with(product), "{}", fingerprint.version);
    let of = |name: &str| fingerprint.settings.iter().find(|setting| setting.name == name);
    let flush = of("innodb_flush_log_at_trx_commit").unwrap();
    assert_eq!(flush.value, "0");
    assert_ne!(flush.source, "default");
    assert_eq!(of("sync_binlog").unwrap().source, "default");
    assert!(of("socket").is_none());
    let home = engine.home().unwrap();
    assert!(home.product().unwrap().starts_with(product));
    assert_eq!(engine.data_directory(&mut *session).unwrap(), SERVER.directory().join("data"));

    session.run("CREATE DATABASE IF NOT EXISTS sized").unwrap();
    let mut config = SERVER.unix();
    config.database = "sized".into();
    let engine = MysqlEngine::new(config);
    let home = engine.home().unwrap();
    let mut session = engine.connect().unwrap();
    session.run("CREATE TABLE `odd ``name` (k INT PRIMARY KEY, v INT, KEY (v)) ENGINE=InnoDB; CREATE TABLE plain (v INT)").unwrap();
    assert!(engine.size(&mut *session).unwrap() >= 2 * 65_536);
    assert_eq!(home.tables().unwrap(), ["odd `name", "plain"]);
    for (_, sql) in home.upkeep(true, true) {
        session.run(sql).unwrap();
    }
    home.ready_for_a_snapshot().unwrap();
    assert_eq!(home.prewarm().unwrap(), "2 tables read through their 2 indexes");
    engine.checkpoint(&mut *session).unwrap();
    let before = engine.counters(&mut *session).unwrap().unwrap();
    session.control(TransactionControl::Begin).unwrap();
    session.run("INSERT INTO plain VALUES (1)").unwrap();
    session.control(TransactionControl::Commit).unwrap();
    session.control(TransactionControl::Begin).unwrap();
    session.control(TransactionControl::Rollback).unwrap();
    let after = engine.counters(&mut *session).unwrap().unwrap();
    assert!(after.commits > before.commits && after.rollbacks > before.rollbacks);
}

//! SQLite through the traits, on real files.

#![allow(clippy::unwrap_used)]

use std::time::{Duration, Instant};

use kelvin_database::sqlite::SqliteEngine;
use kelvin_database::{
    BulkLoad, BulkTable, ColumnType, Decimal, Engine, ErrorClass, Rows, Session, Statement, Timestamp,
    TransactionControl, Value,
};

fn engine() -> (tempfile::TempDir, SqliteEngine) {
    let directory = tempfile::tempdir().unwrap();
    let engine = SqliteEngine::open(directory.path().join("test.db")).unwrap();
    (directory, engine)
}

fn with_table(engine: &SqliteEngine) -> Box<dyn Session> {
    let mut session = engine.connect().unwrap();
    session
        .run("CREATE TABLE t (k INTEGER PRIMARY KEY, money INTEGER, at INTEGER, name TEXT, f REAL)")
        .unwrap();
    session
}

#[test]
fn values_come_back_as_they_went() {
    let (_directory, engine) = engine();
    let mut session = with_table(&engine);
    let mut rows = Rows::new();
    let insert = session.prepare("INSERT INTO t VALUES (?1, ?2, ?3, ?4, ?5)").unwrap();
    let at = Timestamp(1_700_000_000_123_456);
    let params = [
        Value::Int(i64::MAX),
        Value::Decimal(Decimal::new(-1234, 2)),
        Value::Timestamp(at),
        Value::Text("Zürich '\""),
        Value::Float(0.5),
    ];
    session.execute(insert, &params, &mut rows).unwrap();
    assert_eq!((rows.affected(), rows.len()), (1, 0));
    session
        .execute(insert, &[Value::Int(1), Value::Null, Value::Null, Value::Null, Value::Null], &mut rows)
        .unwrap();

    let select = session.prepare("SELECT k, money, at, name, f FROM t WHERE k = ?1").unwrap();
    session.execute(select, &[Value::Int(i64::MAX)], &mut rows).unwrap();
    assert_eq!((rows.len(), rows.columns(), rows.affected()), (1, 5, 1));
    assert_eq!(rows.int(0, 0).unwrap(), i64::MAX);
    assert_eq!(rows.decimal(0, 1, 2).unwrap(), -1234);
    assert_eq!(rows.timestamp(0, 2).unwrap(), at);
    assert_eq!(rows.text(0, 3).unwrap(), "Zürich '\"");
    assert_eq!(rows.float(0, 4).unwrap(), 0.5);
    session.execute(select, &[Value::Int(1)], &mut rows).unwrap();
    assert!((1..5).all(|column| rows.is_null(0, column).unwrap()));
    session.execute(select, &[Value::Int(2)], &mut rows).unwrap();
    assert!(rows.is_empty());

    let update = session.prepare("UPDATE t SET money = money + ?1").unwrap();
    session.execute(update, &[Value::Int(1)], &mut rows).unwrap();
    assert_eq!(rows.affected(), 2);
    let returning = session.prepare("UPDATE t SET money = 7 RETURNING k").unwrap();
    session.execute(returning, &[], &mut rows).unwrap();
    assert_eq!((rows.affected(), rows.len()), (2, 2));
}

#[test]
fn what_cannot_be_stored_or_bound_is_refused() {
    let (_directory, engine) = engine();
    let mut session = with_table(&engine);
    let mut rows = Rows::new();
    let insert = session.prepare("INSERT INTO t (k) VALUES (?1)").unwrap();
    for (params, class) in [
        (vec![Value::IntArray(&[1])], ErrorClass::Usage),
        (vec![Value::Float(f64::NAN)], ErrorClass::Usage),
        (vec![], ErrorClass::Usage),
        (vec![Value::Int(1), Value::Int(2)], ErrorClass::Usage),
        (vec![Value::Text("not a number")], ErrorClass::Statement),
    ] {
        assert_eq!(session.execute(insert, &params, &mut rows).unwrap_err().class(), class, "{params:?}");
        assert!(session.queue(insert, &params).is_err() || session.flush(&mut Vec::new()).is_err());
    }
    assert_eq!(session.execute(Statement(99), &[], &mut rows).unwrap_err().class(), ErrorClass::Usage);
    session.execute(insert, &[Value::Int(1)], &mut rows).unwrap();
    let error = session.execute(insert, &[Value::Int(1)], &mut rows).unwrap_err();
    assert_eq!(
        (error.class(), error.code().0.as_str()),
        (ErrorClass::Constraint, "SQLITE_CONSTRAINT_PRIMARYKEY")
    );
    for sql in ["SELEC 1", "SELECT * FROM nowhere", "SELECT 1; SELECT 2", ""] {
        assert_eq!(session.prepare(sql).unwrap_err().class(), ErrorClass::Statement, "{sql}");
    }
    assert_eq!(session.query("SELECT count(*) FROM t").unwrap().int(0, 0).unwrap(), 1);
}

#[test]
fn a_batch_stops_at_its_first_error() {
    let (_directory, engine) = engine();
    let mut session = with_table(&engine);
    let insert = session.prepare("INSERT INTO t (k, name) VALUES (?1, ?2)").unwrap();
    let count = session.prepare("SELECT count(*), max(name) FROM t").unwrap();
    let mut results = Vec::new();
    session.queue_control(TransactionControl::Begin).unwrap();
    session.queue(insert, &[Value::Int(1), Value::Text("one")]).unwrap();
    session.queue(insert, &[Value::Int(2), Value::Text("two")]).unwrap();
    session.queue(count, &[]).unwrap();
    session.queue_control(TransactionControl::Commit).unwrap();
    session.flush(&mut results).unwrap();
    assert_eq!(results.len(), 5);
    assert_eq!((results[3].int(0, 0).unwrap(), results[3].text(0, 1).unwrap()), (2, "two"));
    assert!(!session.in_transaction());

    session.queue_control(TransactionControl::Begin).unwrap();
    session.queue(insert, &[Value::Int(3), Value::Text("three")]).unwrap();
    session.queue(insert, &[Value::Int(1), Value::Text("again")]).unwrap();
    session.queue_control(TransactionControl::Commit).unwrap();
    assert_eq!(session.flush(&mut results).unwrap_err().class(), ErrorClass::Constraint);
    assert!(session.in_transaction() && !session.is_broken());
    let mut rows = Rows::new();
    session.control(TransactionControl::Rollback).unwrap();
    // A second one is harmless: SQLite rolls back automatically after some errors.
    session.control(TransactionControl::Rollback).unwrap();
    session.flush(&mut results).unwrap();
    assert!(results.is_empty(), "the queue is empty after an error");
    session.execute(count, &[], &mut rows).unwrap();
    assert_eq!(rows.int(0, 0).unwrap(), 2);
}

#[test]
fn a_statement_survives_a_change_of_the_schema() {
    let (_directory, engine) = engine();
    let mut session = with_table(&engine);
    session.run("INSERT INTO t (k) VALUES (1)").unwrap();
    let all = session.prepare("SELECT * FROM t").unwrap();
    let mut rows = Rows::new();
    session.execute(all, &[], &mut rows).unwrap();
    assert_eq!(rows.columns(), 5);
    engine.connect().unwrap().run("ALTER TABLE t ADD COLUMN more INTEGER DEFAULT 6").unwrap();
    session.execute(all, &[], &mut rows).unwrap();
    assert_eq!((rows.columns(), rows.len(), rows.int(0, 5).unwrap()), (6, 1, 6));
}

#[test]
fn bulk_loading_takes_every_row_at_any_count() {
    const COLUMNS: &[(&str, ColumnType)] =
        &[("k", ColumnType::Int4), ("money", ColumnType::Decimal(2)), ("name", ColumnType::Text)];
    let (_directory, engine) = engine();
    let mut session = with_table(&engine);
    let table = BulkTable { name: "t", columns: COLUMNS };
    assert_eq!(session.bulk_load(&table).err().unwrap().class(), ErrorClass::Usage, "without a transaction");
    let mut next = 0;
    for count in [0, 1, 63, 64, 65, 1000] {
        session.control(TransactionControl::Begin).unwrap();
        let mut load = session.bulk_load(&table).unwrap();
        for _ in 0..count {
            let name = format!("row {next}");
            load.row(&[Value::Int(next), Value::Decimal(Decimal::new(next * 2, 2)), Value::Text(&name)])
                .unwrap();
            next += 1;
        }
        assert_eq!(load.finish().unwrap(), count);
        session.control(TransactionControl::Commit).unwrap();
    }
    let found = session.query("SELECT count(*), sum(money), sum(name = 'row ' || k) FROM t").unwrap();
    assert_eq!(
        (found.int(0, 0).unwrap(), found.int(0, 1).unwrap(), found.int(0, 2).unwrap()),
        (next, next * (next - 1), next)
    );
    // Abandoned and rolled back: no rows remain. A duplicate is an error.
    session.control(TransactionControl::Begin).unwrap();
    let mut load = session.bulk_load(&table).unwrap();
    load.row(&[Value::Int(1), Value::Null, Value::Null]).unwrap();
    assert!(load.row(&[Value::Int(1)]).is_err());
    assert_eq!(load.finish().unwrap_err().class(), ErrorClass::Constraint);
    session.control(TransactionControl::Rollback).unwrap();
    assert_eq!(session.query("SELECT count(*) FROM t").unwrap().int(0, 0).unwrap(), next);
}

#[test]
fn eight_writers_lose_no_update() {
    let (_directory, engine) = engine();
    let mut session = with_table(&engine);
    session.run("INSERT INTO t (k, money) VALUES (1, 0)").unwrap();
    let mut waits = 0;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let mut session = engine.connect().unwrap();
                    let read = session.prepare("SELECT money FROM t WHERE k = 1").unwrap();
                    let write = session.prepare("UPDATE t SET money = ?1 WHERE k = 1").unwrap();
                    let mut rows = Rows::new();
                    for _ in 0..500 {
                        session.control(TransactionControl::Begin).unwrap();
                        session.execute(read, &[], &mut rows).unwrap();
                        let next = rows.int(0, 0).unwrap() + 1;
                        session.execute(write, &[Value::Int(next)], &mut rows).unwrap();
                        session.control(TransactionControl::Commit).unwrap();
                    }
                    session.busy_waits()
                })
            })
            .collect();
        for thread in threads {
            waits += thread.join().unwrap();
        }
    });
    assert_eq!(session.query("SELECT money FROM t").unwrap().int(0, 0).unwrap(), 4_000);
    assert!(waits > 0, "eight writers have to wait for each other");
}

#[test]
fn another_engine_on_the_file_is_waited_for_and_counted() {
    let (directory, engine) = engine();
    let mut session = with_table(&engine);
    let other = SqliteEngine::open(directory.path().join("test.db")).unwrap();
    let mut holder = other.connect().unwrap();
    holder.run("BEGIN IMMEDIATE").unwrap();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(move || {
            session.control(TransactionControl::Begin).unwrap();
            session.busy_waits()
        });
        // However slow the machine is, the waiter cannot end before the holder does.
        std::thread::sleep(Duration::from_millis(100));
        assert!(!waiter.is_finished());
        holder.run("COMMIT").unwrap();
        assert!(waiter.join().unwrap() <= 1);
    });
    // A reader never has to wait.
    let mut reader = other.connect().unwrap();
    reader.control(TransactionControl::BeginReadOnly).unwrap();
    assert_eq!(reader.query("SELECT count(*) FROM t").unwrap().int(0, 0).unwrap(), 0);
    assert_eq!(reader.busy_waits(), 0);
}

#[test]
fn a_time_out_ends_waiting_and_computing_and_breaks_the_session() {
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
    let (directory, engine) = engine();
    let other = SqliteEngine::open(directory.path().join("test.db")).unwrap();
    for engine_of_waiter in [&engine, &other] {
        let mut holder = engine.connect().unwrap();
        holder.control(TransactionControl::Begin).unwrap();
        let mut waiter = engine_of_waiter.connect().unwrap();
        waiter.set_timeout(Some(Duration::from_millis(60))).unwrap();
        let began = Instant::now();
        let error = waiter.control(TransactionControl::Begin).unwrap_err();
        assert_eq!(error.class(), ErrorClass::Timeout, "{error}");
        assert!(waiter.is_broken() && began.elapsed() < Duration::from_mins(1));
    }
    let mut session = engine.connect().unwrap();
    session.set_timeout(Some(Duration::from_millis(50))).unwrap();
    assert_eq!(session.query(endless).unwrap_err().class(), ErrorClass::Timeout);
    assert!(session.is_broken());

    let mut session = engine.connect().unwrap();
    let cancel = session.cancel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            cancel.cancel().unwrap();
        });
        let error = session.query(endless).unwrap_err();
        assert_eq!((error.class(), error.code().0.as_str()), (ErrorClass::Timeout, "SQLITE_INTERRUPT"));
    });
    assert!(!session.is_broken());
    assert_eq!(session.query("SELECT 1").unwrap().int(0, 0).unwrap(), 1);
}

#[test]
fn a_dropped_session_lets_the_others_write() {
    let (_directory, engine) = engine();
    let mut left = with_table(&engine);
    left.control(TransactionControl::Begin).unwrap();
    left.run("INSERT INTO t (k) VALUES (1)").unwrap();
    drop(left);
    let mut session = engine.connect().unwrap();
    session.control(TransactionControl::Begin).unwrap();
    assert_eq!(session.query("SELECT count(*) FROM t").unwrap().int(0, 0).unwrap(), 0);
}

#[test]
fn files_that_cannot_be_used_are_refused_in_words() {
    let directory = tempfile::tempdir().unwrap();
    let text = directory.path().join("letter.txt");
    std::fs::write(&text, "Dear reader, this is no database. ".repeat(50)).unwrap();
    for (path, words) in [
        (directory.path().to_path_buf(), "is a directory"),
        (text.clone(), "not an SQLite database"),
        (directory.path().join("missing/test.db"), "there is no directory"),
        ("/dev/null".into(), "not a regular file"),
        ("".into(), "empty"),
        (text.join("below"), "no directory"),
    ] {
        let error = SqliteEngine::open(path.clone()).unwrap_err();
        assert_eq!(error.class(), ErrorClass::Usage, "{}: {error}", path.display());
        assert!(error.to_string().contains(words), "{error}");
    }
    assert!(std::fs::read_to_string(&text).unwrap().starts_with("Dear reader"), "the file is unharmed");
}

#[test]
fn a_full_file_and_a_corrupt_one_are_distinguished() {
    let (directory, engine) = engine();
    let mut session = with_table(&engine);
    session.run("PRAGMA max_page_count = 3").unwrap();
    session.control(TransactionControl::Begin).unwrap();
    let error = session
        .run(
            "INSERT INTO t (name) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 500) \
              SELECT hex(randomblob(500)) FROM n",
        )
        .unwrap_err();
    assert_eq!((error.class(), error.code().0.as_str()), (ErrorClass::DiskFull, "SQLITE_FULL"));
    session.control(TransactionControl::Rollback).unwrap();
    session.run("PRAGMA max_page_count = 1000000; INSERT INTO t (k) VALUES (1)").unwrap();
    engine.checkpoint(&mut *session).unwrap();
    drop(session);
    drop(engine);

    let path = directory.path().join("test.db");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[4096..].fill(0x5a);
    std::fs::write(&path, bytes).unwrap();
    let engine = SqliteEngine::open(path).unwrap();
    let error = engine.connect().unwrap().query("SELECT * FROM t").unwrap_err();
    assert_eq!((error.class(), error.code().0.as_str()), (ErrorClass::Server, "SQLITE_CORRUPT"));
}

#[test]
fn the_engine_reports_settings_size_and_directory() {
    let (directory, engine) = engine();
    let mut session = with_table(&engine);
    let fingerprint = engine.fingerprint(&mut *session).unwrap();
    assert!(fingerprint.version.starts_with("SQLite 3."), "{}", fingerprint.version);
    let value =
        |name| fingerprint.settings.iter().find(|setting| setting.name == name).unwrap().value.clone();
    assert_eq!(value("journal_mode"), "wal");
    assert_eq!(value("synchronous"), "NORMAL");
    assert_eq!(value("page_size"), "4096 B");
    assert!(engine.size(&mut *session).unwrap() >= 8192);
    assert_eq!(engine.data_directory(&mut *session).unwrap(), directory.path());
    assert!(engine.counters(&mut *session).unwrap().is_none());

    session.run("INSERT INTO t (name) VALUES ('x')").unwrap();
    let log = directory.path().join("test.db-wal");
    assert!(std::fs::metadata(&log).unwrap().len() > 0);
    engine.checkpoint(&mut *session).unwrap();
    assert_eq!(std::fs::metadata(&log).unwrap().len(), 0);
    // The loader may trade safety for speed while there is no other session, and the next session is safe again.
    session.run("PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF").unwrap();
    session.run("INSERT INTO t (name) VALUES ('y')").unwrap();
    drop(session);
    let mut session = engine.connect().unwrap();
    assert_eq!(session.query("PRAGMA journal_mode").unwrap().text(0, 0).unwrap(), "wal");
    assert_eq!(session.query("SELECT count(*) FROM t").unwrap().int(0, 0).unwrap(), 2);
}

/// A table whose every insert computes practically forever.
const SLOW: &str = "CREATE TABLE slow (k INTEGER); CREATE TRIGGER slowly AFTER INSERT ON slow BEGIN
    SELECT count(*) FROM (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT new.k) SELECT i FROM n);
    END";

#[test]
fn a_load_that_fails_gives_its_turn_at_writing_back() {
    let (_directory, engine) = engine();
    engine.connect().unwrap().run(SLOW).unwrap();
    let table = BulkTable { name: "slow", columns: &[("k", ColumnType::Int8)] };
    let fill = |load: &mut dyn BulkLoad| (0..64).try_for_each(|_| load.row(&[Value::Int(i64::MAX)]));
    for (cancelled, at_the_end) in [(false, false), (false, true), (true, false)] {
        let mut loader = engine.connect().unwrap();
        let cancel = loader.cancel();
        loader.set_timeout(Some(Duration::from_secs(if cancelled { 60 } else { 1 }))).unwrap();
        loader.control(TransactionControl::Begin).unwrap();
        let stop = std::sync::atomic::AtomicBool::new(false);
        let error = std::thread::scope(|scope| {
            if cancelled {
                scope.spawn(|| {
                    while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                        std::thread::sleep(Duration::from_millis(20));
                        cancel.cancel().unwrap();
                    }
                });
            }
            let mut load = loader.bulk_load(&table).unwrap();
            let error = if at_the_end {
                load.row(&[Value::Int(i64::MAX)]).unwrap();
                load.finish().unwrap_err()
            } else {
                let error = fill(load.as_mut()).unwrap_err();
                assert!(load.row(&[Value::Int(1)]).is_err(), "the load has failed");
                error
            };
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            error
        });
        assert_eq!(error.class(), ErrorClass::Timeout, "{error}");
        assert_eq!(loader.is_broken(), !cancelled);
        assert!(!loader.in_transaction(), "SQLite rolls an interrupted write back by itself");
        // Another session writes while the first is still there.
        let mut other = engine.connect().unwrap();
        other.set_timeout(Some(Duration::from_secs(20))).unwrap();
        other.control(TransactionControl::Begin).unwrap();
        other.control(TransactionControl::Commit).unwrap();
        loader.control(TransactionControl::Rollback).unwrap();
    }
}

#[test]
fn the_time_out_of_a_load_is_one_of_each_call() {
    let (_directory, engine) = engine();
    let mut session = engine.connect().unwrap();
    session.run(SLOW).unwrap();
    session.set_timeout(Some(Duration::from_secs(4))).unwrap();
    session.control(TransactionControl::Begin).unwrap();
    let table = BulkTable { name: "slow", columns: &[("k", ColumnType::Int8)] };
    let mut load = session.bulk_load(&table).unwrap();
    std::thread::sleep(Duration::from_millis(4_100));
    for _ in 0..65 {
        load.row(&[Value::Int(500)]).unwrap();
    }
    assert_eq!(load.finish().unwrap(), 65);
    session.control(TransactionControl::Commit).unwrap();
}

#[test]
fn files_that_somebody_else_needs_are_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, sql: &str| {
        let path = directory.path().join(name);
        rusqlite::Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        path
    };
    let before = |path: &std::path::Path| std::fs::read(path).unwrap();

    let store = file("results.db", "PRAGMA application_id = 0x4b4c564e; CREATE TABLE run (id)");
    let bytes = before(&store);
    let error = SqliteEngine::open(&store).unwrap_err();
    assert!(error.class() == ErrorClass::Usage && error.message().contains("results"), "{error}");
    assert_eq!(before(&store), bytes);

    let foreign = file("foreign.db", "CREATE TABLE mine (id)");
    let bytes = before(&foreign);
    let error = SqliteEngine::open(&foreign).unwrap_err();
    assert!(error.class() == ErrorClass::Usage && error.message().contains("wal"), "{error}");
    assert_eq!(before(&foreign), bytes);

    for (name, sql) in [
        ("ours.db", "CREATE TABLE kelvin_tproc_c (id)"),
        ("empty.db", "PRAGMA user_version = 1"),
        ("log.db", "PRAGMA journal_mode = WAL; CREATE TABLE mine (id)"),
    ] {
        SqliteEngine::open(file(name, sql)).unwrap();
    }
}

//! The PostgreSQL client against a real server.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::{Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use kelvin_database::postgres::{Config, Host, PostgresEngine};
use kelvin_database::{
    BulkTable, ColumnType, Decimal, Engine, Error, ErrorClass, Rows, Session, Statement, Timestamp,
    TransactionControl, Value,
};
use support::{Server, await_statement};

/// One server for all tests of this file, which use separate tables. Statics are never dropped, so the guard of the
/// last test ends it.
struct Shared {
    server: Option<Server>,
    users: usize,
}

fn shared() -> &'static Mutex<Shared> {
    static SHARED: OnceLock<Mutex<Shared>> = OnceLock::new();
    SHARED.get_or_init(|| Mutex::new(Shared { server: None, users: 0 }))
}

fn lock() -> MutexGuard<'static, Shared> {
    shared().lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Keeps the shared server alive.
struct Lease {
    config: Config,
    tcp: Config,
}

impl Lease {
    fn new() -> Self {
        let mut shared = lock();
        shared.users += 1;
        let server = shared.server.get_or_insert_with(Server::start);
        Self { config: server.unix(), tcp: server.tcp() }
    }

    fn session(&self) -> Box<dyn Session> {
        PostgresEngine::new(self.config.clone()).connect().unwrap()
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut shared = lock();
        shared.users -= 1;
        if shared.users == 0 {
            shared.server = None;
        }
    }
}

fn one(session: &mut dyn Session, sql: &str, params: &[Value<'_>]) -> Rows {
    let statement = session.prepare(sql).unwrap();
    let mut rows = Rows::new();
    session.execute(statement, params, &mut rows).unwrap();
    rows
}

fn class<T>(result: Result<T, Error>) -> ErrorClass {
    match result {
        Ok(_) => panic!("an error was expected"),
        Err(e) => e.class(),
    }
}

#[test]
fn values_come_back_as_they_went() {
    let server = Lease::new();
    for config in [server.config.clone(), server.tcp.clone()] {
        let mut s = PostgresEngine::new(config).connect().unwrap();
        let s = s.as_mut();
        let rows = one(
            s,
            "SELECT $1::int2, $2::int4, $3::int8, $4::float8, $5::numeric(12,2), $6::text, $7::varchar, $8::char(5), \
             $9::timestamptz, $10::timestamp, $11::int4, $12::float4, $13::bool, $14::oid, $15::name, $16::\"char\"",
            &[
                Value::Int(-7),
                Value::Int(i32::MIN.into()),
                Value::Int(i64::MAX),
                Value::Float(1.5),
                Value::Decimal(Decimal::new(-123_456, 2)),
                Value::Text("añ€😀"),
                Value::Text(""),
                Value::Text("ab"),
                Value::Timestamp(Timestamp(1_700_000_000_123_456)),
                Value::Timestamp(Timestamp(-1)),
                Value::Null,
                Value::Float(0.25),
                Value::Int(1),
                Value::Int(4_000_000_000),
                Value::Text("n"),
                Value::Text("c"),
            ],
        );
        assert_eq!((rows.len(), rows.columns()), (1, 16));
        assert_eq!(rows.int(0, 0).unwrap(), -7);
        assert_eq!(rows.int(0, 1).unwrap(), i64::from(i32::MIN));
        assert_eq!(rows.int(0, 2).unwrap(), i64::MAX);
        assert_eq!(rows.float(0, 3).unwrap(), 1.5);
        assert_eq!(rows.decimal(0, 4, 2).unwrap(), -123_456);
        assert_eq!(rows.text(0, 5).unwrap(), "añ€😀");
        assert_eq!(rows.text(0, 6).unwrap(), "");
        assert_eq!(rows.text(0, 7).unwrap(), "ab   ");
        assert_eq!(rows.timestamp(0, 8).unwrap(), Timestamp(1_700_000_000_123_456));
        assert_eq!(rows.timestamp(0, 9).unwrap(), Timestamp(-1));
        assert!(rows.is_null(0, 10).unwrap());
        assert_eq!(rows.float(0, 11).unwrap(), 0.25);
        assert_eq!(rows.int(0, 12).unwrap(), 1);
        assert_eq!(rows.int(0, 13).unwrap(), 4_000_000_000);
        assert_eq!(rows.text(0, 14).unwrap(), "n");
        assert_eq!(rows.text(0, 15).unwrap(), "c");
    }
}

/// The server's text of a numeric is the reference for both directions.
#[test]
fn numerics_agree_with_the_server() {
    let server = Lease::new();
    let mut s = server.session();
    let statement = s.prepare("SELECT ($1::numeric)::text, $1::numeric").unwrap();
    let mut rows = Rows::new();
    let mut check = |unscaled: i64, scale: u8| {
        s.execute(statement, &[Value::Decimal(Decimal::new(unscaled, scale))], &mut rows).unwrap();
        let digits = format!("{:0>width$}", unscaled.unsigned_abs(), width = usize::from(scale) + 1);
        let (whole, part) = digits.split_at(digits.len() - usize::from(scale));
        let sign = if unscaled < 0 { "-" } else { "" };
        let point = if scale == 0 { "" } else { "." };
        assert_eq!(rows.text(0, 0).unwrap(), format!("{sign}{whole}{point}{part}"));
        assert_eq!(rows.decimal(0, 1, scale).unwrap(), unscaled);
    };
    for scale in 0..=18 {
        let mut value = 1_i64;
        for unscaled in [0, 1, -1, 9_999, 10_000, -10_001, 100_000_000, i64::MAX, i64::MIN] {
            check(unscaled, scale);
        }
        for _ in 0..40 {
            value = value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            check(value >> (value as u64 % 50), scale);
        }
    }
    for bad in ["'NaN'::numeric", "1e30::numeric", "1/3::numeric * 1e-10"] {
        let statement = s.prepare(&format!("SELECT {bad}, 1")).unwrap();
        assert_eq!(class(s.execute(statement, &[], &mut rows)), ErrorClass::Protocol, "{bad}");
        assert!(!s.is_broken(), "what does not fit is no broken connection");
    }
}

#[test]
fn arrays_arrive() {
    let server = Lease::new();
    let mut s = server.session();
    let rows = one(
        s.as_mut(),
        "SELECT array_to_string($1::int2[], ','), array_to_string($2::int4[], ','), array_to_string($3::int8[], ','), \
         array_to_string($4::numeric[], ','), array_to_string($5::text[], '|'), array_to_string($6::varchar[], '|'), \
         cardinality($7::int4[])",
        &[
            Value::IntArray(&[1, -2]),
            Value::IntArray(&[3]),
            Value::IntArray(&[i64::MAX, 0]),
            Value::DecimalArray(&[Decimal::new(105, 2), Decimal::new(-1, 4)]),
            Value::TextArray(&["a", "", "ö"]),
            Value::TextArray(&["x"]),
            Value::IntArray(&[]),
        ],
    );
    let texts: Vec<&str> = (0..6).map(|c| rows.text(0, c).unwrap()).collect();
    assert_eq!(texts, ["1,-2", "3", "9223372036854775807,0", "1.05,-0.0001", "a||ö", "x"]);
    assert_eq!(rows.int(0, 6).unwrap(), 0);
}

#[test]
fn simple_queries_are_typed_by_oid() {
    let server = Lease::new();
    let mut s = server.session();
    let rows = s
        .query(
            "SELECT 1::int8, 2.50::numeric, 0.5::float8, 'x'::text, true, NULL, timestamptz '2024-02-29 12:00:00.5+02', \
             date '1970-01-02', interval '1 day' UNION ALL SELECT 2, 3, 4, 'y', false, NULL, now(), now(), NULL",
        )
        .unwrap();
    assert_eq!((rows.len(), rows.affected()), (2, 2));
    assert_eq!(rows.int(0, 0).unwrap(), 1);
    assert_eq!(rows.decimal(0, 1, 2).unwrap(), 250);
    assert_eq!(rows.float(0, 2).unwrap(), 0.5);
    assert_eq!(rows.text(0, 3).unwrap(), "x");
    assert_eq!(rows.int(0, 4).unwrap(), 1);
    assert!(rows.is_null(0, 5).unwrap());
    assert_eq!(rows.timestamp(0, 6).unwrap(), Timestamp(1_709_200_800_500_000));
    assert_eq!(rows.timestamp(0, 7).unwrap(), Timestamp(86_400_000_000));
    assert_eq!(rows.text(0, 8).unwrap(), "1 day");
    s.run("CREATE TEMP TABLE a (i int); INSERT INTO a VALUES (1), (2); SELECT * FROM a; DO $$ BEGIN RAISE NOTICE 'hi'; END $$")
        .unwrap();
    assert_eq!(s.query("SELECT count(*) FROM a").unwrap().int(0, 0).unwrap(), 2);
    assert_eq!(class(s.run("SELECT 1; SELEC 2")), ErrorClass::Statement);
    assert_eq!(
        class(s.run("COPY a FROM STDIN")),
        ErrorClass::Timeout,
        "the refused copy counts as cancelled"
    );
    s.run("COPY a TO STDOUT").unwrap();
    assert_eq!(s.query("SELECT 5").unwrap().int(0, 0).unwrap(), 5);
}

#[test]
fn statements_that_cannot_be_handled_are_refused_and_the_session_goes_on() {
    let server = Lease::new();
    let mut s = server.session();
    let error = s.prepare("SELECT '1 day'::interval AS span").unwrap_err();
    assert!(error.message().contains("span") && error.message().contains("interval"), "{error}");
    let error = s.prepare("SELECT $1::bytea IS NULL").unwrap_err();
    assert!(error.message().contains("$1") && error.message().contains("bytea"), "{error}");
    let error = s.prepare("SELECT * FROM no_such_table").unwrap_err();
    assert_eq!((error.class(), error.code().0.as_str()), (ErrorClass::Statement, "42P01"));
    assert!(error.help().unwrap().contains("character 15"), "{error}");
    let statement = s.prepare("SELECT $1::int4").unwrap();
    let mut rows = Rows::new();
    for params in [&[][..], &[Value::Int(1), Value::Int(1)], &[Value::Int(1 << 40)], &[Value::Text("1")]] {
        assert_eq!(class(s.execute(statement, params, &mut rows)), ErrorClass::Statement);
    }
    assert_eq!(class(s.execute(Statement(99), &[], &mut rows)), ErrorClass::Usage);
    s.run("CREATE TEMP TABLE a (i int PRIMARY KEY)").unwrap();
    let copy = s.prepare("COPY a FROM STDIN").unwrap();
    assert!(s.execute(copy, &[], &mut rows).is_err());
    let insert = s.prepare("INSERT INTO a VALUES ($1)").unwrap();
    s.execute(insert, &[Value::Int(1)], &mut rows).unwrap();
    assert_eq!(rows.affected(), 1);
    let error = s.execute(insert, &[Value::Int(1)], &mut rows).unwrap_err();
    assert_eq!(error.class(), ErrorClass::Constraint);
    assert!(error.help().unwrap().contains("(i)=(1)"), "{error}");
    s.execute(statement, &[Value::Int(6)], &mut rows).unwrap();
    assert_eq!(rows.int(0, 0).unwrap(), 6);
}

#[test]
fn transactions_report_their_state() {
    let server = Lease::new();
    let mut s = server.session();
    s.run("CREATE TEMP TABLE a (i int)").unwrap();
    s.control(TransactionControl::Begin).unwrap();
    assert!(s.in_transaction());
    s.run("INSERT INTO a VALUES (1)").unwrap();
    s.control(TransactionControl::Rollback).unwrap();
    assert!(!s.in_transaction());
    s.control(TransactionControl::Begin).unwrap();
    assert!(s.run("SELECT 1/0").is_err());
    assert!(s.in_transaction());
    let error = s.control(TransactionControl::Commit).unwrap_err();
    assert_eq!(error.code().0, "25P02", "a commit that rolls back is no commit");
    assert!(!s.in_transaction());
    s.control(TransactionControl::BeginReadOnly).unwrap();
    assert_eq!(
        s.run("INSERT INTO pg_temp.a VALUES (1); CREATE TABLE kelvin_x (i int)").unwrap_err().code().0,
        "25006"
    );
    s.control(TransactionControl::Rollback).unwrap();
    assert_eq!(s.query("SELECT count(*) FROM a").unwrap().int(0, 0).unwrap(), 0);
}

#[test]
fn a_pipeline_is_one_transaction_and_survives_an_error_in_its_middle() {
    let server = Lease::new();
    let mut s = server.session();
    s.run("CREATE TEMP TABLE p (i int PRIMARY KEY, t text)").unwrap();
    let insert = s.prepare("INSERT INTO p VALUES ($1, $2)").unwrap();
    let select = s.prepare("SELECT i, t FROM p ORDER BY i").unwrap();
    let mut results = Vec::new();
    s.queue_control(TransactionControl::Begin).unwrap();
    for i in 0..5 {
        s.queue(insert, &[Value::Int(i), Value::Text("x")]).unwrap();
    }
    s.queue(select, &[]).unwrap();
    s.queue_control(TransactionControl::Commit).unwrap();
    s.flush(&mut results).unwrap();
    assert_eq!(results.len(), 8);
    assert_eq!(results[1].affected(), 1);
    assert_eq!(results[6].len(), 5);
    assert_eq!(results[6].int(4, 0).unwrap(), 4);
    assert!(!s.in_transaction());

    s.queue_control(TransactionControl::Begin).unwrap();
    for i in [10, 0, 11] {
        s.queue(insert, &[Value::Int(i), Value::Text("y")]).unwrap();
    }
    s.queue_control(TransactionControl::Commit).unwrap();
    assert_eq!(class(s.flush(&mut results)), ErrorClass::Constraint);
    assert!(s.in_transaction(), "the rollback is the caller's");
    assert_eq!(results[1].affected(), 1);
    let mut rows = Rows::new();
    s.control(TransactionControl::Rollback).unwrap();
    s.flush(&mut results).unwrap();
    assert!(results.is_empty(), "the queue is empty after an error");

    s.queue(select, &[]).unwrap();
    assert_eq!(class(s.execute(select, &[], &mut rows)), ErrorClass::Usage);
    assert!(s.queue(insert, &[Value::Int(1 << 40), Value::Null]).is_err());
    s.execute(select, &[], &mut rows).unwrap();
    assert_eq!(rows.len(), 5);
}

/// Requests and answers are both far larger than the sockets' buffers: each side would wait for the other.
#[test]
fn a_large_batch_does_not_lock_up() {
    let server = Lease::new();
    for config in [server.config.clone(), server.tcp.clone()] {
        let mut s = PostgresEngine::new(config).connect().unwrap();
        s.set_timeout(Some(Duration::from_mins(1))).unwrap();
        let echo = s.prepare("SELECT $1::text").unwrap();
        let text = "z".repeat(20_000);
        for _ in 0..1_000 {
            s.queue(echo, &[Value::Text(&text)]).unwrap();
        }
        let mut results = Vec::new();
        s.flush(&mut results).unwrap();
        assert_eq!(results.len(), 1_000);
        assert!(results.iter().all(|r| r.text(0, 0).unwrap() == text));
    }
}

const COLUMNS: &[(&str, ColumnType)] = &[
    ("i", ColumnType::Int4),
    ("s", ColumnType::Int2),
    ("b", ColumnType::Int8),
    ("n", ColumnType::Decimal(2)),
    ("te\"xt", ColumnType::Text),
    ("at", ColumnType::Timestamp),
];

fn copy_table(session: &mut dyn Session, name: &str) {
    session
        .run(&format!(
            "CREATE TEMP TABLE {name} (i int4 PRIMARY KEY, s int2, b int8, n numeric(12,2), \"te\"\"xt\" varchar(30), at timestamptz)"
        ))
        .unwrap();
}

#[test]
fn copy_loads_every_row() {
    let server = Lease::new();
    let mut s = server.session();
    copy_table(s.as_mut(), "c");
    let table = BulkTable { name: "c", columns: COLUMNS };
    let mut load = s.bulk_load(&table).unwrap();
    for i in 0..100_000_i64 {
        let at = Value::Timestamp(Timestamp(1_700_000_000_000_000 + i));
        let row = [
            Value::Int(i),
            Value::Int(i % 100),
            Value::Int(i << 20),
            Value::Decimal(Decimal::new(i - 50_000, 2)),
            Value::Text("tëxt"),
            if i % 2 == 0 { at } else { Value::Null },
        ];
        load.row(&row).unwrap();
    }
    assert_eq!(load.finish().unwrap(), 100_000);
    let rows = s
        .query(
            "SELECT count(*), sum(i)::int8, sum(n), count(at), max(at), min(\"te\"\"xt\"), sum(b)::numeric, sum(s) FROM c",
        )
        .unwrap();
    assert_eq!(rows.int(0, 0).unwrap(), 100_000);
    assert_eq!(rows.int(0, 1).unwrap(), 4_999_950_000);
    assert_eq!(rows.decimal(0, 2, 2).unwrap(), -50_000);
    assert_eq!(rows.int(0, 3).unwrap(), 50_000);
    assert_eq!(rows.timestamp(0, 4).unwrap(), Timestamp(1_700_000_000_000_000 + 99_998));
    assert_eq!(rows.text(0, 5).unwrap(), "tëxt");
    assert_eq!(rows.int(0, 6).unwrap(), 4_999_950_000 << 20);
    assert_eq!(rows.int(0, 7).unwrap(), 4_950_000);
}

#[test]
fn copy_that_fails_or_is_abandoned_leaves_the_session_in_order() {
    let server = Lease::new();
    let mut s = server.session();
    s.set_timeout(Some(Duration::from_secs(30))).unwrap();
    copy_table(s.as_mut(), "c");
    let table = BulkTable { name: "c", columns: COLUMNS };
    let row = |i: i64| [Value::Int(i), Value::Null, Value::Null, Value::Null, Value::Null, Value::Null];

    let mut load = s.bulk_load(&table).unwrap();
    load.row(&row(1)).unwrap();
    assert_eq!(class(load.row(&row(1)[..3])), ErrorClass::Statement);
    assert_eq!(class(load.row(&row(1 << 40))), ErrorClass::Statement);
    drop(load);
    assert_eq!(s.query("SELECT count(*) FROM c").unwrap().int(0, 0).unwrap(), 0);

    // A duplicate early on is known long before the end.
    let mut load = s.bulk_load(&table).unwrap();
    let failed = (0..10_000_000).find_map(|_| load.row(&row(7)).err()).expect("the server's error is seen");
    assert_eq!(failed.class(), ErrorClass::Constraint, "{failed}");
    assert!(load.row(&row(8)).is_err());
    assert!(load.finish().is_err());

    // An error at the end is returned by `finish`.
    let mut load = s.bulk_load(&table).unwrap();
    load.row(&row(7)).unwrap();
    load.row(&row(7)).unwrap();
    assert_eq!(class(load.finish()), ErrorClass::Constraint);

    let absent = BulkTable { name: "no such", columns: COLUMNS };
    assert_eq!(class(s.bulk_load(&absent).map(drop)), ErrorClass::Statement);
    let fine = BulkTable { name: "c", columns: &[("n", ColumnType::Decimal(2)), ("i", ColumnType::Int4)] };
    let mut load = s.bulk_load(&fine).unwrap();
    assert!(
        load.row(&[Value::Decimal(Decimal::new(1, 3)), Value::Int(1)]).is_err(),
        "a third place would be rounded"
    );
    load.row(&[Value::Decimal(Decimal::new(10, 3)), Value::Int(1)]).unwrap();
    assert_eq!(load.finish().unwrap(), 1);
    assert_eq!(s.query("SELECT count(*) FROM c").unwrap().int(0, 0).unwrap(), 1);
}

#[test]
fn a_statement_is_cancelled_from_another_thread() {
    let server = Lease::new();
    for config in [server.config.clone(), server.tcp.clone()] {
        let mut s = PostgresEngine::new(config).connect().unwrap();
        let cancel = s.cancel();
        let mut watcher = server.session();
        let began = Instant::now();
        let thread = std::thread::spawn(move || {
            await_statement(watcher.as_mut(), "SELECT pg_sleep(31)");
            cancel.cancel().unwrap();
        });
        let error = s.run("SELECT pg_sleep(31)").unwrap_err();
        thread.join().unwrap();
        assert_eq!((error.class(), error.code().0.as_str()), (ErrorClass::Timeout, "57014"));
        assert!(began.elapsed() < Duration::from_secs(30));
        assert!(!s.is_broken());
        s.run("SELECT 1").unwrap();
    }
}

#[test]
fn a_wait_ends_with_its_timeout() {
    let server = Lease::new();
    let mut s = server.session();
    s.set_timeout(Some(Duration::from_millis(200))).unwrap();
    let began = Instant::now();
    assert_eq!(class(s.run("SELECT pg_sleep(30)")), ErrorClass::Timeout);
    assert!(began.elapsed() < Duration::from_secs(29));
    assert!(s.is_broken());
    assert_eq!(class(s.run("SELECT 1")), ErrorClass::ConnectionLost);
}

#[test]
fn notices_do_not_prolong_a_call() {
    let server = Lease::new();
    let endless = "DO 'BEGIN LOOP RAISE NOTICE $x$more$x$; PERFORM pg_sleep(0.02); END LOOP; END'";
    let mut s = server.session();
    s.set_timeout(Some(Duration::from_millis(500))).unwrap();
    let began = Instant::now();
    assert_eq!(class(s.run(endless)), ErrorClass::Timeout);
    assert!(began.elapsed() >= Duration::from_millis(500) && began.elapsed() < Duration::from_mins(1));
    assert!(s.is_broken());

    // Messages during one call do not count against the next.
    let mut s = server.session();
    s.set_timeout(Some(Duration::from_secs(5))).unwrap();
    for _ in 0..3 {
        s.run("DO 'BEGIN RAISE NOTICE $x$once$x$; PERFORM pg_sleep(1.8); END'").unwrap();
    }
}

#[test]
fn a_terminated_session_is_a_lost_connection() {
    let server = Lease::new();
    let mut killer = server.session();
    for config in [server.config.clone(), server.tcp.clone()] {
        // While it waits between statements.
        let mut s = PostgresEngine::new(config.clone()).connect().unwrap();
        let pid = s.query("SELECT pg_backend_pid()").unwrap().int(0, 0).unwrap();
        let statement = s.prepare("SELECT 1").unwrap();
        killer.run(&format!("SELECT pg_terminate_backend({pid}, 10000)")).unwrap();
        let error = s.execute(statement, &[], &mut Rows::new()).unwrap_err();
        assert_eq!(
            (error.class(), error.code().0.as_str()),
            (ErrorClass::ConnectionLost, "57P01"),
            "{error}"
        );
        assert!(s.is_broken());

        // While it executes one.
        let mut s = PostgresEngine::new(config).connect().unwrap();
        let pid = s.query("SELECT pg_backend_pid()").unwrap().int(0, 0).unwrap();
        let thread =
            std::thread::spawn(move || s.run("SELECT pg_sleep(32)").map_err(|e| (e.class(), s.is_broken())));
        await_statement(killer.as_mut(), "SELECT pg_sleep(32)");
        killer.run(&format!("SELECT pg_terminate_backend({pid}, 10000)")).unwrap();
        assert_eq!(thread.join().unwrap(), Err((ErrorClass::ConnectionLost, true)));
    }
}

#[test]
fn retryable_failures_have_their_class() {
    let server = Lease::new();
    let (mut a, mut b) = (server.session(), server.session());
    a.run("CREATE TABLE retry (i int PRIMARY KEY, n int); INSERT INTO retry VALUES (1, 0), (2, 0)").unwrap();
    for s in [&mut a, &mut b] {
        s.run("BEGIN ISOLATION LEVEL REPEATABLE READ").unwrap();
        s.query("SELECT * FROM retry").unwrap();
    }
    a.run("UPDATE retry SET n = n + 1 WHERE i = 1; COMMIT").unwrap();
    let error = b.run("UPDATE retry SET n = n + 1 WHERE i = 1").unwrap_err();
    assert_eq!(error.class(), ErrorClass::SerializationFailure);
    assert!(error.class().is_retryable() && b.in_transaction());
    b.run("ROLLBACK").unwrap();

    a.run("BEGIN; UPDATE retry SET n = 1 WHERE i = 1").unwrap();
    assert_eq!(
        class(b.run("SELECT * FROM retry WHERE i = 1 FOR UPDATE NOWAIT")),
        ErrorClass::LockNotAvailable
    );
    b.run("BEGIN; SET LOCAL deadlock_timeout = '50ms'; UPDATE retry SET n = 1 WHERE i = 2").unwrap();
    let thread = std::thread::spawn(move || {
        let outcome = a.run("UPDATE retry SET n = 2 WHERE i = 2");
        let _ = a.run("ROLLBACK");
        outcome
    });
    std::thread::sleep(Duration::from_millis(200));
    let outcome = b.run("UPDATE retry SET n = 2 WHERE i = 1");
    let _ = b.run("ROLLBACK");
    let outcomes = [outcome, thread.join().unwrap()];
    let victims: Vec<_> = outcomes.iter().filter_map(|o| o.as_ref().err().map(Error::class)).collect();
    assert_eq!(victims, [ErrorClass::Deadlock]);
    b.run("DROP TABLE retry").unwrap();
}

#[test]
fn the_engine_describes_the_server() {
    let server = Lease::new();
    let engine = PostgresEngine::new(server.config.clone());
    let mut s = engine.connect().unwrap();
    let fingerprint = engine.fingerprint(s.as_mut()).unwrap();
    assert!(fingerprint.version.starts_with("PostgreSQL "));
    let of = |name: &str| fingerprint.settings.iter().find(|s| s.name == name).map(|s| s.value.as_str());
    assert_eq!(of("fsync"), Some("off"));
    assert_eq!(of("shared_buffers"), Some("64MB"));
    assert_eq!(of("wal_level"), Some("replica"));
    assert_eq!((of("block_size"), of("wal_segment_size")), (Some("8192"), Some("16MB")));
    assert!(matches!(of("data_checksums"), Some("on" | "off")));
    let before = engine.counters(s.as_mut()).unwrap().unwrap();
    for _ in 0..10 {
        s.run("BEGIN").unwrap();
        s.run("SELECT 1/0").unwrap_err();
        s.run("ROLLBACK").unwrap();
    }
    let after = engine.counters(s.as_mut()).unwrap().unwrap();
    assert!(after.rollbacks >= before.rollbacks + 10, "{before:?} {after:?}");
    assert!(after.commits > before.commits);
    assert!(engine.size(s.as_mut()).unwrap() > 1_000_000);
    assert!(engine.data_directory(s.as_mut()).unwrap().join("PG_VERSION").exists());
    engine.checkpoint(s.as_mut()).unwrap();
    assert!(engine.describe().starts_with("postgres://kelvin@/postgres?host="));
}

#[test]
fn a_missing_database_and_a_missing_server_are_reported_clearly() {
    let server = Lease::new();
    let connect = |config: Config| PostgresEngine::new(config).connect().map(drop).unwrap_err();
    let error = connect(Config { database: "nosuch".into(), ..server.config.clone() });
    assert_eq!(error.class(), ErrorClass::Usage);
    assert!(
        error.message().contains("\"nosuch\" does not exist") && error.help().unwrap().contains("create"),
        "{error}"
    );
    let error = connect(Config { user: "nobody".into(), ..server.config.clone() });
    assert_eq!(error.class(), ErrorClass::Authentication);
    let error = connect(Config { port: 1, ..server.config.clone() });
    assert_eq!(error.class(), ErrorClass::ConnectionLost);
    assert!(error.message().contains(".s.PGSQL.1"), "{error}");
    let error = connect(Config::new(Host::Tcp("127.0.0.1".into()), 1, "u", "d"));
    assert_eq!(error.class(), ErrorClass::ConnectionLost);
    assert!(error.message().contains("refused"), "{error}");
}

//! The client against a real server of the protocol: the one that `KELVIN_TEST_SQLSERVER` names (a URL; the password in
//! `MSSQL_PASSWORD`), SQL Server or Babelfish. Without it these tests say so and are skipped.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use kelvin_database::sqlserver::{Config, SqlServerEngine, password};
use kelvin_database::{
    BulkTable, Capabilities, ColumnType, Decimal, Engine, ErrorClass, Rows, Session, Timestamp,
    TransactionControl, Value,
};

static CONFIG: LazyLock<Option<Config>> = LazyLock::new(|| {
    let Ok(url) = std::env::var("KELVIN_TEST_SQLSERVER") else {
        eprintln!("skipped: KELVIN_TEST_SQLSERVER names no server");
        return None;
    };
    let mut config = Config::parse(&url).unwrap();
    config.password = password::find(&|name| std::env::var(name).ok());
    Some(config)
});

fn engine() -> Option<SqlServerEngine> {
    CONFIG.clone().map(SqlServerEngine::new)
}

fn connect() -> Option<Box<dyn Session>> {
    engine().map(|engine| engine.connect().unwrap())
}

fn fresh(session: &mut dyn Session, table: &str, columns: &str) {
    session.run(&format!("IF OBJECT_ID('{table}') IS NOT NULL DROP TABLE {table}")).unwrap();
    session.run(&format!("CREATE TABLE {table} ({columns})")).unwrap();
}

#[test]
fn every_type_comes_back() {
    let Some(mut session) = connect() else { return };
    let rows = session
        .query(
            "SELECT CAST(255 AS tinyint), CAST(-2 AS smallint), -3, CAST(-4 AS bigint), CAST(1 AS bit), \
             CAST(1.5 AS real), CAST(-2.25 AS float), CAST(-12.34 AS decimal(12,2)), CAST(1.5 AS money), \
             CAST(-1.5 AS smallmoney), CAST('ab' AS char(4)), CAST('cd' AS varchar(9)), N'é€', \
             REPLICATE(CAST('x' AS varchar(max)), 9000), CAST(N'long' AS nvarchar(max)), \
             CAST('2024-02-29' AS date), CAST('12:34:56.78' AS time(2)), CAST('2024-02-29T12:34:56.790' AS datetime), \
             CAST('2024-02-29T12:34:56.789123' AS datetime2(6)), CAST('2024-02-29T12:34:00' AS smalldatetime), \
             CAST('2024-02-29T12:34:56.5+05:30' AS datetimeoffset(3)), \
             CAST('6F9619FF-8B86-D011-B42D-00C04FC964FF' AS uniqueidentifier), CAST(0x0102 AS varbinary(4)), \
             CAST(NULL AS int), CAST(NULL AS nvarchar(max)), CAST(7 AS sql_variant)",
        )
        .unwrap();
    for (column, expected) in [255, -2, -3, -4, 1].into_iter().enumerate() {
        assert_eq!(rows.int(0, column).unwrap(), expected);
    }
    assert_eq!((rows.float(0, 5).unwrap(), rows.float(0, 6).unwrap()), (1.5, -2.25));
    assert_eq!(rows.decimal(0, 7, 2).unwrap(), -1234);
    assert_eq!((rows.decimal(0, 8, 4).unwrap(), rows.decimal(0, 9, 4).unwrap()), (15_000, -15_000));
    assert_eq!((rows.text(0, 10).unwrap(), rows.text(0, 11).unwrap()), ("ab  ", "cd"));
    assert_eq!(rows.text(0, 12).unwrap(), "é€");
    assert_eq!((rows.text(0, 13).unwrap().len(), rows.text(0, 14).unwrap()), (9000, "long"));
    let noon = 1_709_210_096_000_000;
    assert_eq!(rows.timestamp(0, 15).unwrap(), Timestamp(1_709_164_800_000_000));
    assert_eq!(rows.text(0, 16).unwrap(), "12:34:56.78");
    assert_eq!(rows.timestamp(0, 17).unwrap(), Timestamp(noon + 790_000));
    assert_eq!(rows.timestamp(0, 18).unwrap(), Timestamp(noon + 789_123));
    assert_eq!(rows.timestamp(0, 19).unwrap(), Timestamp(noon - 56_000_000));
    assert_eq!(rows.timestamp(0, 20).unwrap(), Timestamp(noon + 500_000 - 19_800_000_000));
    assert_eq!(rows.text(0, 21).unwrap(), "6F9619FF-8B86-D011-B42D-00C04FC964FF");
    assert_eq!(rows.bytes(0, 22).unwrap(), [1, 2]);
    assert!(rows.is_null(0, 23).unwrap() && rows.is_null(0, 24).unwrap());
    assert_eq!(rows.int(0, 25).unwrap(), 7);
}

#[test]
fn parameters_go_and_come_back() {
    let Some(mut session) = connect() else { return };
    fresh(
        &mut *session,
        "kelvin_params",
        "k int PRIMARY KEY, d decimal(12,2), c char(6), v nvarchar(max), f float, t datetime2(6)",
    );
    let insert = session.prepare("INSERT INTO kelvin_params VALUES ($1, $2, $3, $4, $5, $6)").unwrap();
    let find = session.prepare("SELECT d, c, v, f, t FROM kelvin_params WHERE k = $1").unwrap();
    let long = "ä".repeat(5000);
    let mut rows = Rows::new();
    for (key, text) in [(1, "short"), (2, ""), (3, long.as_str()), (4, "short again")] {
        let values = [
            Value::Int(key),
            Value::Decimal(Decimal::new(-123_456, 2)),
            Value::Text("abc"),
            Value::Text(text),
            Value::Float(0.1),
            Value::Timestamp(Timestamp(1_709_210_096_789_123)),
        ];
        session.execute(insert, &values, &mut rows).unwrap();
        assert_eq!(rows.affected(), 1);
        session.execute(find, &[Value::Int(key)], &mut rows).unwrap();
        assert_eq!((rows.len(), rows.affected(), rows.decimal(0, 0, 2).unwrap()), (1, 1, -123_456));
        assert_eq!((rows.text(0, 1).unwrap(), rows.text(0, 2).unwrap()), ("abc   ", text));
        assert_eq!(
            (rows.float(0, 3).unwrap(), rows.timestamp(0, 4).unwrap().0),
            (0.1, 1_709_210_096_789_123)
        );
    }
    let nulls = [Value::Int(9), Value::Null, Value::Null, Value::Null, Value::Null, Value::Null];
    session.execute(insert, &nulls, &mut rows).unwrap();
    session.execute(find, &[Value::Int(9)], &mut rows).unwrap();
    assert!((0..5).all(|column| rows.is_null(0, column).unwrap()));
    let twice = session.execute(insert, &nulls, &mut rows).unwrap_err();
    assert_eq!(
        (twice.class(), twice.code().0.starts_with("2627/14")),
        (ErrorClass::Constraint, true),
        "{twice}"
    );
    let update = session.prepare("UPDATE kelvin_params SET f = f + 1 WHERE k <= $1").unwrap();
    session.execute(update, &[Value::Int(4)], &mut rows).unwrap();
    assert_eq!((rows.affected(), rows.len()), (4, 0));
    let error = session
        .prepare("SELECT nothing FROM kelvin_params WHERE k = $1")
        .and_then(|statement| session.execute(statement, &[Value::Int(1)], &mut rows));
    assert_eq!(error.unwrap_err().class(), ErrorClass::Statement);
    session.run("DROP TABLE kelvin_params").unwrap();
}

#[test]
fn transactions_are_whole_however_they_are_sent() {
    let Some(mut session) = connect() else { return };
    fresh(&mut *session, "kelvin_tx", "k int PRIMARY KEY, v int NOT NULL");
    let add = session.prepare("INSERT INTO kelvin_tx VALUES ($1, $2)").unwrap();
    let count = session.prepare("SELECT COUNT(*) FROM kelvin_tx").unwrap();
    let (mut rows, mut results) = (Rows::new(), Vec::new());
    let mut total = |session: &mut dyn Session| {
        session.execute(count, &[], &mut rows).unwrap();
        rows.int(0, 0).unwrap()
    };
    let elsewhere = || connect().unwrap().query("SELECT COUNT(*) FROM kelvin_tx").unwrap().int(0, 0).unwrap();
    for rolls_back in [true, false] {
        session.control(TransactionControl::Begin).unwrap();
        session.execute(add, &[Value::Int(1), Value::Int(1)], &mut Rows::new()).unwrap();
        assert!(session.in_transaction());
        let end = if rolls_back { TransactionControl::Rollback } else { TransactionControl::Commit };
        session.control(end).unwrap();
        assert!(!session.in_transaction());
        assert_eq!(total(&mut *session), i64::from(!rolls_back));
    }
    let batch = |session: &mut dyn Session, keys: &[i64], results: &mut Vec<Rows>| {
        session.queue_control(TransactionControl::Begin).unwrap();
        for key in keys {
            session.queue(add, &[Value::Int(*key), Value::Int(*key)]).unwrap();
        }
        session.queue(count, &[]).unwrap();
        session.queue_control(TransactionControl::Commit).unwrap();
        session.flush(results)
    };
    batch(&mut *session, &[10, 11, 12], &mut results).unwrap();
    assert_eq!(results.len(), 6);
    assert_eq!((results[1].affected(), results[4].int(0, 0).unwrap()), (1, 4));
    assert!(!session.in_transaction());
    // An error in the middle: nothing behind it is committed, nor what was before it.
    let error = batch(&mut *session, &[20, 10, 21], &mut results).unwrap_err();
    assert_eq!(error.class(), ErrorClass::Constraint, "{error}");
    assert!(session.in_transaction() && !session.is_broken());
    assert!(session.run("SELECT 1").is_err());
    session.control(TransactionControl::Rollback).unwrap();
    assert_eq!(total(&mut *session), 4);
    // And the session goes on, with statements that commit by themselves.
    session.execute(add, &[Value::Int(30), Value::Int(1)], &mut Rows::new()).unwrap();
    assert_eq!(elsewhere(), 5);
    batch(&mut *session, &[40], &mut results).unwrap();
    assert_eq!(elsewhere(), 6);
    session.run("DROP TABLE kelvin_tx").unwrap();
}

#[test]
fn procedures_are_called_by_name() {
    let Some(mut session) = connect() else { return };
    session.run("IF OBJECT_ID('kelvin_add') IS NOT NULL DROP PROCEDURE kelvin_add").unwrap();
    session
        .run(
            "CREATE PROCEDURE kelvin_add @a int, @b decimal(12,2), @sum decimal(12,2) OUTPUT, @text nvarchar(20) OUTPUT AS \
             BEGIN SET @sum = @a + @b; SET @text = N'größer'; END",
        )
        .unwrap();
    let call =
        session.prepare("EXEC kelvin_add @a = $1, @b = $2, @sum = $3 OUTPUT, @text = $4 OUTPUT").unwrap();
    let mut rows = Rows::new();
    for _ in 0..2 {
        let amount = Value::Decimal(Decimal::new(125, 2));
        session.execute(call, &[Value::Int(2), amount, Value::Null, Value::Null], &mut rows).unwrap();
        assert_eq!(
            (rows.len(), rows.decimal(0, 0, 2).unwrap(), rows.text(0, 1).unwrap()),
            (1, 325, "größer")
        );
    }
    session.run("DROP PROCEDURE kelvin_add").unwrap();
    session.run("IF OBJECT_ID('kelvin_list') IS NOT NULL DROP PROCEDURE kelvin_list").unwrap();
    session.run("CREATE PROCEDURE kelvin_list @n int AS BEGIN SELECT @n AS n; SELECT 'other'; END").unwrap();
    let list = session.prepare("EXEC kelvin_list $1").unwrap();
    session.execute(list, &[Value::Int(6)], &mut rows).unwrap();
    assert_eq!((rows.len(), rows.int(0, 0).unwrap()), (1, 6));
    // Several in one message.
    let mut results = Vec::new();
    session.queue_control(TransactionControl::Begin).unwrap();
    for value in 0..5 {
        session.queue(list, &[Value::Int(value)]).unwrap();
    }
    session.queue_control(TransactionControl::Commit).unwrap();
    session.flush(&mut results).unwrap();
    for value in 0..5 {
        assert_eq!(results[value + 1].int(0, 0).unwrap(), value as i64);
    }
    session.run("DROP PROCEDURE kelvin_list").unwrap();
}

fn is_babelfish(session: &mut dyn Session) -> bool {
    let product = session.query("SELECT COALESCE(CAST(SERVERPROPERTY('babelfish') AS int), 0)").unwrap();
    product.int(0, 0).unwrap() == 1
}

#[test]
fn tables_are_parameters() {
    let Some(mut session) = connect() else { return };
    session.run("IF OBJECT_ID('kelvin_sum') IS NOT NULL DROP PROCEDURE kelvin_sum").unwrap();
    session.run("IF TYPE_ID('kelvin_lines') IS NOT NULL DROP TYPE kelvin_lines").unwrap();
    // Babelfish reads a decimal of a table with bytes that nobody sent.
    let decimals = !is_babelfish(&mut *session);
    let amount = if decimals { "decimal(12,2)" } else { "int" };
    session
        .run(&format!("CREATE TYPE kelvin_lines AS TABLE (item int, amount {amount}, name nvarchar(20))"))
        .unwrap();
    session
        .run(
            "CREATE PROCEDURE kelvin_sum @lines kelvin_lines READONLY AS \
             SELECT SUM(item), SUM(amount), MAX(name) FROM @lines",
        )
        .unwrap();
    let call = session.prepare("EXEC kelvin_sum @lines = ($1, $2, $3)").unwrap();
    let amounts: Vec<Decimal> = (1..=15).map(|cents| Decimal::new(cents, 2)).collect();
    let items: Vec<i64> = (1..=15).collect();
    let names: Vec<&str> = items.iter().map(|_| "zwölf").collect();
    let mut rows = Rows::new();
    let second = if decimals { Value::DecimalArray(&amounts) } else { Value::IntArray(&items) };
    session.execute(call, &[Value::IntArray(&items), second, Value::TextArray(&names)], &mut rows).unwrap();
    let sum = if decimals { rows.decimal(0, 1, 2) } else { rows.int(0, 1) };
    assert_eq!((rows.int(0, 0).unwrap(), sum.unwrap(), rows.text(0, 2).unwrap()), (120, 120, "zwölf"));
    let short = [Value::IntArray(&items[1..]), Value::DecimalArray(&amounts), Value::TextArray(&names)];
    assert!(session.execute(call, &short, &mut rows).unwrap_err().message().contains("different lengths"));
    session.run("DROP PROCEDURE kelvin_sum; DROP TYPE kelvin_lines").unwrap();
}

#[test]
fn many_rows_are_loaded_and_a_wrong_one_loads_none() {
    let Some(mut session) = connect() else { return };
    fresh(
        &mut *session,
        "kelvin_load",
        "k int NOT NULL PRIMARY KEY, small smallint, big bigint, d decimal(12,2) NOT NULL, c char(9), v varchar(50), \
         n nvarchar(50), t datetime2(6), f float",
    );
    let columns = [
        ("k", ColumnType::Int4),
        ("small", ColumnType::Int2),
        ("big", ColumnType::Int8),
        ("d", ColumnType::Decimal(2)),
        ("c", ColumnType::Text),
        ("v", ColumnType::Text),
        ("n", ColumnType::Text),
        ("t", ColumnType::Timestamp),
    ];
    let table = BulkTable { name: "kelvin_load", columns: &columns };
    let at = Timestamp(1_709_210_096_789_123);
    let row = |key: i64| {
        [
            Value::Int(key),
            if key % 3 == 0 { Value::Null } else { Value::Int(-5) },
            Value::Int(key << 33),
            Value::Decimal(Decimal::new(-key, 2)),
            Value::Text("char"),
            Value::Text("some text that takes room"),
            Value::Text("größer"),
            Value::Timestamp(at),
        ]
    };
    let mut load = session.bulk_load(&table).unwrap();
    for key in 0..5000 {
        load.row(&row(key)).unwrap();
    }
    assert_eq!(load.finish().unwrap(), 5000);
    let rows = session
        .query(
            "SELECT COUNT(*), SUM(big / 8589934592), SUM(d), COUNT(small), MAX(n), MAX(t) FROM kelvin_load",
        )
        .unwrap();
    let total = 4999 * 5000 / 2;
    assert_eq!((rows.int(0, 0).unwrap(), rows.int(0, 1).unwrap()), (5000, total));
    assert_eq!((rows.decimal(0, 2, 2).unwrap(), rows.int(0, 3).unwrap()), (-total, 3333));
    assert_eq!((rows.text(0, 4).unwrap(), rows.timestamp(0, 5).unwrap()), ("größer", at));
    let mut load = session.bulk_load(&table).unwrap();
    for key in [6000, 6001, 1] {
        load.row(&row(key)).unwrap();
    }
    assert_eq!(load.finish().unwrap_err().class(), ErrorClass::Constraint);
    assert_eq!(session.query("SELECT COUNT(*) FROM kelvin_load").unwrap().int(0, 0).unwrap(), 5000);
    // One that is given up leaves nothing either.
    let mut other = connect().unwrap();
    other.bulk_load(&table).unwrap().row(&row(7000)).unwrap();
    assert!(other.is_broken());
    assert_eq!(session.query("SELECT COUNT(*) FROM kelvin_load").unwrap().int(0, 0).unwrap(), 5000);
    session.run("DROP TABLE kelvin_load").unwrap();
}

#[test]
fn statements_are_cancelled_and_text_has_names() {
    let Some(mut session) = connect() else { return };
    // Babelfish has nothing that waits, and does not end what is busy.
    if !is_babelfish(&mut *session) {
        let cancel = session.cancel();
        let thread = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(300));
            cancel.cancel().unwrap();
        });
        let began = Instant::now();
        let error = session.run("WAITFOR DELAY '00:01:00'").unwrap_err();
        thread.join().unwrap();
        assert_eq!(error.class(), ErrorClass::Timeout, "{error}");
        assert!(began.elapsed() < Duration::from_secs(30) && !session.is_broken());
    }
    let mut results = Vec::new();
    session.query_text("SELECT 1 AS one, N'x' AS two; SELECT 3 AS three", &mut results).unwrap();
    assert_eq!(results.len(), 2);
    assert_eq!((results[0].name(1), results[1].int(0, 0).unwrap()), (Some(&b"two"[..]), 3));
    let mut names = Vec::new();
    let statement = session.prepare_text("SELECT $1 + 1 AS more", false, &mut names).unwrap();
    let mut rows = Rows::new();
    session.execute(statement, &[Value::Int(4)], &mut rows).unwrap();
    assert_eq!((rows.int(0, 0).unwrap(), names.as_slice()), (5, &["more".to_owned()][..]));
    let again = session.prepare_text("SELECT $1 + 1 AS more", true, &mut names).unwrap();
    session.execute(again, &[Value::Int(6)], &mut rows).unwrap();
    assert_eq!(rows.int(0, 0).unwrap(), 7);
}

#[test]
fn the_server_says_what_it_is() {
    let Some(engine) = engine() else { return };
    let mut session = engine.connect().unwrap();
    let fingerprint = engine.fingerprint(&mut *session).unwrap();
    assert!(fingerprint.version.starts_with("SQL Server ") || fingerprint.version.starts_with("Babelfish "));
    let value = |name: &str| fingerprint.settings.iter().find(|s| s.name == name).map(|s| s.value.clone());
    if let Some(arithabort) = value("arithabort") {
        assert_eq!(arithabort, "1");
    }
    assert!(engine.size(&mut *session).unwrap() > 1 << 20);
    assert_eq!(engine.home().unwrap().product().unwrap().split('.').count(), 4);
    fresh(&mut *session, "kelvin_table", "k int");
    assert!(engine.home().unwrap().tables().unwrap().contains(&"kelvin_table".to_owned()));
    session.run("DROP TABLE kelvin_table").unwrap();
    let Capabilities { waits_in_fibers, batch_stops_at_error, .. } = engine.capabilities();
    assert!(waits_in_fibers && !batch_stops_at_error);
}

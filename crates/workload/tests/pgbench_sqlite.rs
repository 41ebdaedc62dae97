//! The script language on SQLite: values with their types, every query mode, and eight users that write.

#![allow(clippy::unwrap_used, reason = "a test's helpers fail as its tests do")]

use std::sync::Arc;
use std::time::Duration;

use kelvin_database::sqlite::SqliteEngine;
use kelvin_database::{Engine, ErrorClass, Session, TransactionControl};
use kelvin_measure::Clock;
use kelvin_workload::pgbench::{Options, Pgbench, QueryMode, ScriptChoice};
use kelvin_workload::{UserRange, VirtualUser, Workload};

const MODES: [QueryMode; 3] = [QueryMode::Simple, QueryMode::Extended, QueryMode::Prepared];

fn engine() -> (tempfile::TempDir, SqliteEngine) {
    let directory = tempfile::tempdir().unwrap();
    let engine = SqliteEngine::open(directory.path().join("test.db")).unwrap();
    (directory, engine)
}

fn choice(text: &str) -> ScriptChoice {
    ScriptChoice { name: "test.sql".into(), weight: 1, text: Some(text.into()) }
}

fn workload(text: &str, query_mode: QueryMode) -> Pgbench {
    Pgbench::new(Options { scripts: vec![choice(text)], query_mode, ..Options::default() }).unwrap()
}

fn user(workload: &Pgbench, session: &mut dyn Session) -> Box<dyn VirtualUser> {
    let mut user = workload.users(UserRange::all(1), 1, &Clock::real()).remove(0);
    user.prepare(session).unwrap();
    user
}

#[test]
fn only_own_scripts_without_pipelines_are_taken() {
    let (_directory, engine) = engine();
    let builtin = Pgbench::new(Options::default()).unwrap();
    let error = builtin.check_engine(&engine).unwrap_err().to_string();
    assert!(error.contains("need PostgreSQL, MySQL, MariaDB or SQL Server, not SQLite"), "{error}");
    let pipeline = workload("\\startpipeline\nselect 1;\n\\endpipeline", QueryMode::Prepared);
    let error = pipeline.check_engine(&engine).unwrap_err().to_string();
    assert!(error.contains("test.sql uses a pipeline, which SQLite does not support"), "{error}");

    let mut own = workload("select 1;", QueryMode::Prepared);
    own.check_engine(&engine).unwrap();
    assert!(own.is_built(&engine).unwrap());
    own.inspect(&engine).unwrap();
    own.drop_data(&engine).unwrap();
}

#[test]
fn values_keep_their_types() {
    let (_directory, engine) = engine();
    let mut session = engine.connect().unwrap();
    session.run("create table t(i, d, n, y, s, f, z, k)").unwrap();
    let text = "\
\\set i 7 * 6
\\set d 1.0 / 4
\\set n NULL
\\set y :i = 42
insert into t values (:i, :d, :n, :y, :word, :fraction, :zip, :i + 0);
select i as one, d as two, n as three, 'it' as four, 2.5 as five from t where i + 0 = :i \\gset got_
\\if :got_one = 42 and :got_two = 0.25 and :got_five * 2 = 5 and :got_three is null
insert into t values (:got_one + 1, :got_two, :got_three, 0, :got_four, :got_five, :zip, 0);
\\endif
select 99 as last from t where i > 1000 \\aset
select i as last from t order by i \\aset
update t set k = :last where i = :last;
";
    for mode in MODES {
        session.run("delete from t").unwrap();
        // Where values become part of the text, the script must quote its texts.
        let text = if mode == QueryMode::Simple {
            text.replace(":word", "':word'").replace(":zip", "':zip'").replace(":got_four", "':got_four'")
        } else {
            text.to_owned()
        };
        let define = [("word", "text"), ("fraction", "1.5"), ("zip", "01234")];
        let define = define.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let options =
            Options { scripts: vec![choice(&text)], query_mode: mode, define, ..Options::default() };
        let mut user = user(&Pgbench::new(options).unwrap(), session.as_mut());
        user.next();
        user.execute(session.as_mut()).unwrap();
        let types = "select i, typeof(i) || typeof(d) || typeof(n) || typeof(s) || typeof(f) || typeof(z), y, s, f, k \
             from t order by i";
        let rows = session.query(types).unwrap();
        assert_eq!(rows.len(), 2, "{mode:?}");
        for row in 0..2 {
            assert_eq!(rows.text(row, 1).unwrap(), "integerrealnulltextrealtext", "{mode:?} {row}");
        }
        assert_eq!((rows.int(0, 0).unwrap(), rows.int(0, 2).unwrap(), rows.int(0, 5).unwrap()), (42, 1, 42));
        assert_eq!((rows.int(1, 0).unwrap(), rows.int(1, 5).unwrap()), (43, 43), "{mode:?}");
        assert_eq!((rows.text(1, 3).unwrap(), rows.float(1, 4).unwrap()), ("it", 2.5), "{mode:?}");
    }
}

#[test]
fn errors_are_the_same_as_on_postgresql() {
    let (_directory, engine) = engine();
    for (text, message) in [
        ("select 1 as g union select 2 \\gset", "test.sql:1: \\gset expects one row, got 2"),
        ("select 1 where false \\gset", "expects one row, got 0"),
        ("\n\\set a :b + 1", "test.sql:2: undefined variable \"b\""),
        ("select 'x' as v \\gset\n\\set a :v + 1", "malformed variable \"v\" value: \"x\""),
        ("begin;", "ended inside a transaction"),
        ("select 1;\nselect no_such_column;", "test.sql:2: no such column: no_such_column"),
        ("\\set a 1\nselect :a::int;", "test.sql:2:"),
    ] {
        for mode in MODES {
            let mut session = engine.connect().unwrap();
            let mut user = user(&workload(text, mode), session.as_mut());
            user.next();
            let error = user.execute(session.as_mut()).unwrap_err().to_string();
            assert!(error.contains(message), "{mode:?} {text}: {error}");
        }
    }
}

#[test]
fn rows_that_nobody_reads_may_hold_anything() {
    let (_directory, engine) = engine();
    for mode in MODES {
        let mut session = engine.connect().unwrap();
        let mut user = user(&workload("select x'00ff', 1; select 2 as two \\gset", mode), session.as_mut());
        user.next();
        user.execute(session.as_mut()).unwrap();
    }
}

#[test]
fn a_user_draws_the_same_whichever_generator_drives_it() {
    let (_directory, engine) = engine();
    let mut session = engine.connect().unwrap();
    let workload = workload(
        "\\set value random(1, 1000000000)\ninsert into drawn values (:client_id, :value)",
        QueryMode::Prepared,
    );
    let mut drawn = |ranges: &[(u32, u32)]| {
        session.run("drop table if exists drawn; create table drawn(client int, value int)").unwrap();
        for &(first, end) in ranges {
            let range = UserRange::part(first..end, 8).unwrap();
            for mut user in workload.users(range, 42, &Clock::real()) {
                user.prepare(session.as_mut()).unwrap();
                for _ in 0..20 {
                    user.next();
                    user.execute(session.as_mut()).unwrap();
                }
            }
        }
        let rows = session.query("select client, value from drawn order by client, rowid").unwrap();
        (0..160).map(|row| (rows.int(row, 0).unwrap(), rows.int(row, 1).unwrap())).collect::<Vec<_>>()
    };
    let whole = drawn(&[(0, 8)]);
    assert_eq!(drawn(&[(0, 4), (4, 8)]), whole);
    assert_eq!(drawn(&[(5, 8), (0, 1), (1, 5)]), whole);
    assert_eq!((whole[0].0, whole[159].0), (0, 7));
}

/// Drives `text` with eight users, `count` transactions each, with repetitions as in the driver; returns the
/// number of repetitions.
fn drive(engine: &Arc<SqliteEngine>, text: &str, mode: QueryMode, count: usize) -> u64 {
    let workload = workload(text, mode);
    let threads: Vec<_> = workload
        .users(UserRange::all(8), 5, &Clock::real())
        .into_iter()
        .map(|mut user| {
            let engine = Arc::clone(engine);
            std::thread::spawn(move || {
                let mut session = engine.connect().unwrap();
                session.set_timeout(Some(Duration::from_secs(20))).unwrap();
                user.prepare(session.as_mut()).unwrap();
                let mut repeated = 0;
                for _ in 0..count {
                    user.next();
                    while let Err(error) = user.execute(session.as_mut()) {
                        assert_eq!(error.class(), ErrorClass::LockNotAvailable, "{error}");
                        if session.in_transaction() {
                            session.control(TransactionControl::Rollback).unwrap();
                        }
                        repeated += 1;
                        std::thread::sleep(Duration::from_micros(200));
                    }
                }
                repeated
            })
        })
        .collect();
    threads.into_iter().map(|thread| thread.join().unwrap()).sum()
}

#[test]
fn eight_users_write_without_a_deadlock_and_nothing_is_lost() {
    const TRANSACTIONS: usize = 100;
    let (_directory, engine) = engine();
    let engine = Arc::new(engine);
    let mut session = engine.connect().unwrap();
    session
        .run("create table account(id integer primary key, balance int); create table history(delta int)")
        .unwrap();
    session.run("insert into account values (1, 0), (2, 0), (3, 0)").unwrap();
    let write = "update account set balance = balance + :delta where id = :id;\n\
                 insert into history values (:delta);\n";
    let read = "select balance from account where id = :id;\n";
    let values = "\\set id random(1, 3)\n\\set delta random(-50, 50)\n";
    for mode in MODES {
        // As in pgbench's own script: the first statement writes, and waits for its turn.
        let repeated = drive(&engine, &format!("{values}begin;\n{write}{read}commit;"), mode, TRANSACTIONS);
        assert_eq!(repeated, 0, "{mode:?}: a transaction that writes first never has to be repeated");
        let repeated =
            drive(&engine, &format!("{values}begin immediate;\n{read}{write}end;"), mode, TRANSACTIONS);
        assert_eq!(repeated, 0, "{mode:?}");
        // Values that were read may be out of date at the first write; the transaction is then repeated.
        drive(&engine, &format!("{values}begin;\n{read}{write}commit;"), mode, TRANSACTIONS);
        // Without BEGIN in the script each statement is a transaction.
        drive(&engine, &format!("{values}{write}{read}"), mode, TRANSACTIONS);
    }
    let rows = session
        .query("select (select count(*) from history), (select sum(delta) from history), (select sum(balance) from account)")
        .unwrap();
    assert_eq!(rows.int(0, 0).unwrap(), (8 * TRANSACTIONS * 4 * MODES.len()) as i64);
    assert_eq!(rows.int(0, 1).unwrap(), rows.int(0, 2).unwrap());
}

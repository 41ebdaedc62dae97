//! Statement times, the state after an error, and counting a long history.

#![allow(clippy::unwrap_used, reason = "a test's helpers fail as its tests do")]

mod pgbench_support;

use std::time::Duration;

use kelvin_database::{Engine, Rows, Session, TransactionControl, Value};
use kelvin_measure::Clock;
use kelvin_workload::pgbench::{Options, Pgbench, QueryMode, ScriptChoice};
use kelvin_workload::progress::Quiet;
use kelvin_workload::{Stop, UserRange, Workload};
use pgbench_support::{Server, pgbench};

fn choice(name: &str, text: &str) -> ScriptChoice {
    ScriptChoice { name: name.into(), weight: 1, text: Some(text.into()) }
}

fn timed(text: &str, query_mode: QueryMode) -> Pgbench {
    let scripts = vec![choice("t.sql", text)];
    let options =
        Options { scripts, query_mode, per_statement: true, allow_shell: true, ..Options::default() };
    Pgbench::new(options).unwrap()
}

#[test]
fn each_statement_that_is_waited_for_has_a_kind() {
    let pipeline = "\\startpipeline\nselect 1;\n\\syncpipeline\nselect 2;\n\\endpipeline\nselect 3; select 3;\n\\sleep 1 ms\n\\set a 1\n\\shell true";
    let options = Options {
        scripts: vec![ScriptChoice::builtin("tpcb-like").unwrap(), choice("p.sql", pipeline)],
        query_mode: QueryMode::Prepared,
        per_statement: true,
        allow_shell: true,
        ..Options::default()
    };
    let workload = Pgbench::new(options.clone()).unwrap();
    let kinds: Vec<_> = workload
        .kinds()
        .iter()
        .map(|kind| (kind.name.to_string(), kind.headline, kind.statement_of))
        .collect();
    let expected = [
        ("tpcb-like", true, None),
        ("p.sql", true, None),
        ("tpcb-like:5 BEGIN", false, Some(0)),
        ("tpcb-like:6 UPDATE pgbench_accounts SET abalance = abalance + :delta WHE…", false, Some(0)),
        ("tpcb-like:7 SELECT abalance FROM pgbench_accounts WHERE aid = :aid", false, Some(0)),
        ("tpcb-like:8 UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHER…", false, Some(0)),
        ("tpcb-like:9 UPDATE pgbench_branches SET bbalance = bbalance + :delta WHE…", false, Some(0)),
        ("tpcb-like:10 INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VA…", false, Some(0)),
        ("tpcb-like:11 COMMIT", false, Some(0)),
        ("p.sql:5 \\endpipeline", false, Some(1)),
        ("p.sql:6 select 3", false, Some(1)),
        ("p.sql:6 select 3 (2)", false, Some(1)),
        ("p.sql:7 \\sleep 1 ms", false, Some(1)),
        ("p.sql:9 \\shell true", false, Some(1)),
    ];
    let expected: Vec<_> =
        expected.iter().map(|(name, headline, of)| ((*name).to_owned(), *headline, *of)).collect();
    assert_eq!(kinds, expected);
    assert_eq!(Pgbench::new(Options { per_statement: false, ..options.clone() }).unwrap().kinds().len(), 2);

    let many = "select 1;".repeat(1 << 16);
    let scripts = vec![choice("many.sql", &many)];
    let error =
        Pgbench::new(Options { scripts: scripts.clone(), ..options.clone() }).unwrap_err().to_string();
    assert!(error.contains("more than 65536"), "{error}");
    Pgbench::new(Options { scripts, per_statement: false, ..options }).unwrap();
}

#[test]
fn statement_times_are_those_of_the_last_success() {
    let server = Server::start();
    let mut session = server.unix().connect().unwrap();
    session.run("create table t(a int primary key)").unwrap();
    let text = "select pg_sleep(0.02);\n\\sleep 10 ms\n\\if :client_id = 1\nselect 1;\n\\endif\nselect 2;\n\
                insert into t values (1);";
    for mode in [QueryMode::Simple, QueryMode::Extended, QueryMode::Prepared] {
        session.run("truncate t").unwrap();
        let clock = Clock::real();
        let workload = timed(text, mode);
        let mut user = workload.users(UserRange::all(1), 1, &clock).remove(0);
        user.prepare(session.as_mut()).unwrap();
        assert!(user.statement_times().is_empty());
        user.next();
        let before = clock.now();
        user.execute(session.as_mut()).unwrap();
        let after = clock.now();
        let times = user.statement_times();
        // The branch that was not taken has no times.
        assert_eq!(times.iter().map(|time| time.kind).collect::<Vec<_>>(), [1, 2, 4, 5], "{mode:?}");
        assert!(times[0].took >= 20_000_000 && times[1].took >= 10_000_000, "{times:?}");
        assert!(times.iter().map(|time| time.took).sum::<u64>() <= after - before);
        assert!(times.is_sorted_by_key(|time| time.end));
        assert!(times.iter().all(|time| (before..=after).contains(&time.end)));
        // The second attempt fails at its last statement and has no times.
        user.next();
        assert_eq!(user.execute(session.as_mut()).unwrap_err().code().0, "23505");
        assert!(user.statement_times().is_empty());
        session.run("truncate t").unwrap();
        user.execute(session.as_mut()).unwrap();
        assert_eq!(user.statement_times().len(), 4);
    }
    // The given clock is used: a stopped clock shows no time.
    session.run("truncate t").unwrap();
    let clock = Clock::mock();
    clock.advance(Duration::from_secs(3));
    let mut user = timed(text, QueryMode::Prepared).users(UserRange::all(1), 1, &clock).remove(0);
    user.prepare(session.as_mut()).unwrap();
    user.next();
    user.execute(session.as_mut()).unwrap();
    assert!(user.statement_times().iter().all(|time| (time.took, time.end) == (0, 3_000_000_000)));
}

#[test]
fn the_time_of_a_pipeline_belongs_to_its_end() {
    let server = Server::start();
    let mut session = server.unix().connect().unwrap();
    let text =
        "\\startpipeline\nselect pg_sleep(0.01);\n\\syncpipeline\nselect pg_sleep(0.01);\n\\endpipeline";
    let mut user = timed(text, QueryMode::Prepared).users(UserRange::all(1), 1, &Clock::real()).remove(0);
    user.prepare(session.as_mut()).unwrap();
    user.next();
    user.execute(session.as_mut()).unwrap();
    let times = user.statement_times();
    assert!(times.len() == 1 && times[0].kind == 1 && times[0].took >= 20_000_000, "{times:?}");
}

#[test]
fn a_pipeline_that_is_given_up_sends_nothing_later() {
    let server = Server::start();
    let mut session = server.unix().connect().unwrap();
    session.run("create table t(a int)").unwrap();
    let text = "\\set zero :n - 1\n\\startpipeline\ninsert into t values (1);\n\\set x 1 / :zero\n\\endpipeline\n\\set n :n + 1";
    let options = Options {
        scripts: vec![choice("t.sql", text)],
        query_mode: QueryMode::Prepared,
        define: [("n".to_owned(), "1".to_owned())].into(),
        ..Options::default()
    };
    let mut user = Pgbench::new(options).unwrap().users(UserRange::all(1), 1, &Clock::real()).remove(0);
    user.prepare(session.as_mut()).unwrap();
    user.next();
    let error = user.execute(session.as_mut()).unwrap_err().to_string();
    assert!(error.contains("t.sql:4: division by zero"), "{error}");
    // The session is usable, and the insert was never sent.
    assert_eq!(session.query("select count(*) from t").unwrap().int(0, 0).unwrap(), 0);

    // A table that the script itself creates: the statement is prepared before the pipeline starts.
    let text = "create temp table if not exists own(v int);\n\\startpipeline\ninsert into own values (1);\ninsert into own values (2);\n\\endpipeline";
    let scripts = vec![choice("t.sql", text)];
    let options = Options { scripts, query_mode: QueryMode::Prepared, ..Options::default() };
    let mut user = Pgbench::new(options).unwrap().users(UserRange::all(1), 1, &Clock::real()).remove(0);
    user.prepare(session.as_mut()).unwrap();
    for _ in 0..2 {
        user.next();
        user.execute(session.as_mut()).unwrap();
    }
    assert_eq!(session.query("select sum(v)::int from own").unwrap().int(0, 0).unwrap(), 6);
}

#[test]
fn a_statement_without_rows_has_none_for_gset() {
    let server = Server::start();
    let mut session = server.unix().connect().unwrap();
    session.run("create table t(a int)").unwrap();
    // The same with pgbench.
    let text = "select 1 as a \\; insert into t values (1) \\gset";
    let mut file = tempfile::NamedTempFile::new().unwrap();
    std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
    let output = pgbench(&server, &["-n", "-t", "1", "-f", file.path().to_str().unwrap()]);
    let theirs = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(theirs.contains("expected one row, got 0"), "{theirs}");
    let scripts = vec![choice("t.sql", text)];
    let mut user = Pgbench::new(Options { scripts, ..Options::default() })
        .unwrap()
        .users(UserRange::all(1), 1, &Clock::real())
        .remove(0);
    user.prepare(session.as_mut()).unwrap();
    user.next();
    let error = user.execute(session.as_mut()).unwrap_err().to_string();
    assert!(error.contains("expects one row, got 0"), "{error}");
}

#[test]
fn trial_b9_a_row_without_columns_is_a_row_for_gset() {
    let server = Server::start();
    let mut session = server.unix().connect().unwrap();
    for query_mode in [QueryMode::Simple, QueryMode::Extended, QueryMode::Prepared] {
        for (text, refused) in [("select \\gset", false), ("select from generate_series(1, 3) \\gset", true)]
        {
            let options = Options { scripts: vec![choice("t.sql", text)], query_mode, ..Options::default() };
            let mut user =
                Pgbench::new(options).unwrap().users(UserRange::all(1), 1, &Clock::real()).remove(0);
            user.prepare(session.as_mut()).unwrap();
            user.next();
            let outcome = user.execute(session.as_mut()).map_err(|error| error.to_string());
            match outcome {
                Ok(_) => assert!(!refused, "{text}"),
                Err(error) => assert!(refused && error.contains("expects one row, got 3"), "{error}"),
            }
        }
    }
}

#[test]
fn ignored_rows_are_counted_and_not_kept() {
    let server = Server::start();
    let mut session = server.unix().connect().unwrap();
    let sql = "select n, $1 as given from generate_series(1, $2::int) as n";
    for parse_each_time in [false, true] {
        let kept = session.prepare_text(sql, parse_each_time, &mut Vec::new()).unwrap();
        let ignored = session.prepare_text(sql, parse_each_time, &mut Vec::new()).unwrap();
        session.ignore_rows(ignored);
        let parameters = [Value::Text("x"), Value::Int(5)];
        let mut rows = Rows::new();
        session.execute(ignored, &parameters, &mut rows).unwrap();
        assert_eq!((rows.len(), rows.affected()), (0, 5));
        session.execute(kept, &parameters, &mut rows).unwrap();
        assert_eq!((rows.len(), rows.affected(), rows.text(4, 1).unwrap()), (5, 5, "x"));
        session.queue(ignored, &parameters).unwrap();
        session.queue_sync().unwrap();
        session.queue(kept, &[Value::Null, Value::Int(-1)]).unwrap();
        session.queue(kept, &parameters).unwrap();
        let mut results = Vec::new();
        session.flush(&mut results).unwrap();
        let shape: Vec<_> = results.iter().map(|rows| (rows.len(), rows.affected())).collect();
        assert_eq!(shape, [(0, 5), (0, 0), (0, 0), (5, 5)]);
    }
}

fn rows(session: &mut dyn Session) -> u64 {
    u64::try_from(session.query("select count(*) from pgbench_history").unwrap().int(0, 0).unwrap()).unwrap()
}

#[test]
fn a_long_history_is_counted_exactly() {
    let server = Server::start();
    let engine = server.unix();
    let workload = Pgbench::new(Options::default()).unwrap();
    workload.build(&engine, &Quiet, &Stop::new()).unwrap();
    let mut session = engine.connect().unwrap();
    let add = |session: &mut dyn Session, from: i64, to: i64| {
        session
            .run(&format!(
                "insert into pgbench_history(tid, bid, aid, delta, mtime) \
                 select 1, 1, 1, 1, now() from generate_series({from}, {to})"
            ))
            .unwrap();
    };
    // An empty table, then a large one, with rows of a rolled-back transaction and holes that VACUUM has made
    // reusable.
    assert_eq!(workload.headline_count(session.as_mut()).unwrap(), 0);
    add(session.as_mut(), 1, 300_000);
    session.run("begin").unwrap();
    add(session.as_mut(), 1, 40_000);
    session.control(TransactionControl::Rollback).unwrap();
    add(session.as_mut(), 1, 300_000);
    session.run("delete from pgbench_history where ctid >= '(700,5)' and ctid < '(701,50)'").unwrap();
    session.run("vacuum pgbench_history").unwrap();
    for _ in 0..2 {
        assert_eq!(workload.headline_count(session.as_mut()).unwrap(), rows(session.as_mut()));
    }
    // Several connections fill the holes while the table grows at its end.
    for round in 0..4 {
        let output = pgbench(&server, &["-n", "-c", "4", "-j", "2", "-t", "2000"]);
        assert!(output.status.success());
        let filled = session
            .query("select count(*) from pgbench_history where ctid >= '(700,0)' and ctid < '(702,0)'")
            .unwrap();
        assert_eq!(
            workload.headline_count(session.as_mut()).unwrap(),
            rows(session.as_mut()),
            "round {round}"
        );
        assert!(filled.int(0, 0).unwrap() > 157, "no hole was filled: the test shows nothing");
    }
    // TRUNCATE gives the table a new filenode.
    session.run("truncate pgbench_history").unwrap();
    assert_eq!(workload.headline_count(session.as_mut()).unwrap(), 0);
    add(session.as_mut(), 1, 500_000);
    for _ in 0..3 {
        assert_eq!(workload.headline_count(session.as_mut()).unwrap(), 500_000);
    }
    add(session.as_mut(), 1, 600_000);
    for _ in 0..3 {
        assert_eq!(workload.headline_count(session.as_mut()).unwrap(), 1_100_000);
    }
}

//! The workloads on a real server: Kelvin's tables match pgbench's, either tool can use them, and scripts run
//! in every mode.

#![allow(clippy::unwrap_used, reason = "a test's helpers fail as its tests do")]

mod pgbench_support;

use kelvin_database::{Engine, Session};
use kelvin_workload::pgbench::{Options, Pgbench, QueryMode, ScriptChoice, size_estimate};
use kelvin_workload::progress::Quiet;
use kelvin_workload::{BuildProgress, Stop, UserRange, VirtualUser, Workload};
use pgbench_support::{Server, pgbench};

const MODES: [QueryMode; 3] = [QueryMode::Simple, QueryMode::Extended, QueryMode::Prepared];

/// All properties of the tables that are visible to users or pgbench.
fn shape(session: &mut dyn Session) -> Vec<String> {
    let rows = session
        .query(
            "select format('%s.%s %s %s %s', c.relname, a.attname, format_type(a.atttypid, a.atttypmod), \
             a.attnotnull, c.reloptions) from pg_attribute a join pg_class c on c.oid = a.attrelid \
             where c.relname like 'pgbench%' and a.attnum > 0 and c.relkind = 'r' \
             union all select format('%s %s', conname, pg_get_constraintdef(oid)) from pg_constraint \
             where conname like 'pgbench%' \
             union all select format('%s %s bytes', relname, pg_relation_size(oid)) from pg_class \
             where relname like 'pgbench%' \
             union all select md5(string_agg(a::text, ',' order by aid)) from pgbench_accounts a \
             union all select md5(string_agg(t::text, ',' order by tid)) from pgbench_tellers t \
             union all select md5(string_agg(b::text, ',' order by bid)) from pgbench_branches b order by 1",
        )
        .unwrap();
    (0..rows.len()).map(|row| rows.text(row, 0).unwrap().to_owned()).collect()
}

fn bytes(line: &str) -> Option<f64> {
    line.strip_prefix("pgbench_accounts ")?.strip_suffix(" bytes")?.parse().ok()
}

fn run(user: &mut dyn VirtualUser, session: &mut dyn Session, transactions: usize) {
    for _ in 0..transactions {
        user.next();
        user.execute(session).unwrap();
    }
}

fn workload(options: Options) -> Pgbench {
    Pgbench::new(options).unwrap()
}

fn script(text: &str, mode: QueryMode) -> Pgbench {
    let choice = ScriptChoice { name: "test.sql".into(), weight: 1, text: Some(text.into()) };
    workload(Options { scripts: vec![choice], query_mode: mode, ..Options::default() })
}

#[test]
fn tables_are_those_of_pgbench_and_either_drives_them() {
    let server = Server::start();
    let engine = server.unix();
    let mut session = engine.connect().unwrap();
    for foreign_keys in [false, true] {
        let steps = if foreign_keys { "dtgvpf" } else { "dtgvp" };
        let output = pgbench(&server, &["-i", "-q", "-s", "2", "-F", "90", "-I", steps]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let theirs = shape(session.as_mut());

        let options = Options { scale: Some(2), fillfactor: 90, foreign_keys, ..Options::default() };
        let mut ours = workload(options);
        assert!(ours.is_built(&engine).unwrap());
        ours.inspect(&engine).unwrap();
        let mut user = ours.users(UserRange::all(1), 1, &kelvin_measure::Clock::real()).remove(0);
        user.prepare(session.as_mut()).unwrap();
        run(user.as_mut(), session.as_mut(), 20);

        ours.drop_data(&engine).unwrap();
        assert!(!ours.is_built(&engine).unwrap());
        ours.build(&engine, &Quiet, &Stop::new()).unwrap();
        for (ours, theirs) in shape(session.as_mut()).iter().zip(&theirs) {
            // Two connections that extend a table concurrently leave it a few pages longer.
            match (bytes(ours), bytes(theirs)) {
                (Some(a), Some(b)) => assert!((a / b - 1.0).abs() < 0.01, "{ours}, {theirs}"),
                _ => assert_eq!(ours, theirs),
            }
        }
        assert!(ours.is_built(&engine).unwrap());
        let other = workload(Options { scale: Some(3), ..Options::default() });
        assert!(other.is_built(&engine).unwrap_err().to_string().contains("scale 2"));
    }
    for mode in ["simple", "extended", "prepared"] {
        let output = pgbench(&server, &["-n", "-t", "20", "-c", "2", "-M", mode]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let mut held = true;
    workload(Options { scale: Some(2), ..Options::default() })
        .check(&engine, &Quiet, &Stop::new(), &mut |line| held &= line.holds)
        .unwrap();
    assert!(held);
}

/// Requests a stop at the n-th progress report.
struct StopsAt<'a> {
    stop: &'a Stop,
    what: &'static str,
    left: std::sync::atomic::AtomicU64,
}

impl BuildProgress for StopsAt<'_> {
    fn update(&self, what: &str, _done: u64, _total: u64, _rows: u64) {
        if what == self.what && self.left.fetch_sub(1, std::sync::atomic::Ordering::Relaxed) == 1 {
            self.stop.request();
        }
    }
}

#[test]
fn an_interrupted_build_goes_on_and_the_estimate_is_near() {
    let server = Server::start();
    let engine = server.unix();
    let mut session = engine.connect().unwrap();
    let ours = workload(Options { scale: Some(3), foreign_keys: true, ..Options::default() });
    // Each build resumes from the state that the previous one left.
    let places = [("accounts loaded", 1), ("tables vacuumed", 2), ("keys created", 1), ("keys created", 5)];
    for (what, left) in places {
        let stop = Stop::new();
        let progress = StopsAt { stop: &stop, what, left: left.into() };
        ours.build(&engine, &progress, &stop).unwrap_err();
        assert!(!ours.is_built(&engine).unwrap(), "{what} {left}");
        assert_eq!(Pgbench::shape_in(&engine).unwrap(), None);
        let error = workload(Options { scale: Some(3), ..Options::default() }).inspect(&engine).unwrap_err();
        assert!(error.to_string().contains("no complete set of pgbench tables"), "{error}");
    }
    // The state after a crash that lost one of the tables.
    session.run("drop table pgbench_tellers").unwrap();
    assert!(!ours.is_built(&engine).unwrap());
    ours.build(&engine, &Quiet, &Stop::new()).unwrap();
    assert!(ours.is_built(&engine).unwrap());
    let comments = session.query("select count(*) from pg_description where description like 'kelvin%'");
    assert_eq!(comments.unwrap().int(0, 0).unwrap(), 0);
    let keys = session.query("select count(*) from pg_constraint where conname like 'pgbench%'").unwrap();
    assert_eq!(keys.int(0, 0).unwrap(), 8);
    let size = session
        .query("select sum(pg_relation_size(oid))::bigint from pg_class where relname like 'pgbench%'")
        .unwrap();
    let error = size_estimate(3) as f64 / size.int(0, 0).unwrap() as f64 - 1.0;
    assert!(error.abs() < 0.01, "the estimate is off by {error}");
}

/// Properties that `drop` or `truncate` would change: the tables' OIDs, files and sizes.
fn standing(session: &mut dyn Session) -> Vec<String> {
    let rows = session
        .query(
            "select format('%s %s %s %s', relname, oid, relfilenode, pg_relation_size(oid)) from pg_class \
             where relname like 'pgbench%' order by 1",
        )
        .unwrap();
    (0..rows.len()).map(|row| rows.text(row, 0).unwrap().to_owned()).collect()
}

#[test]
fn data_that_we_did_not_make_are_refused_and_untouched() {
    let server = Server::start();
    let engine = server.unix();
    let mut session = engine.connect().unwrap();
    for (steps, change, lack) in [
        ("dtg", "", "missing primary keys: pgbench_accounts, pgbench_branches, pgbench_tellers"),
        ("dtgp", "drop table pgbench_history", "missing tables: pgbench_history"),
        (
            "dtgp",
            "drop table pgbench_history, pgbench_tellers",
            "missing tables: pgbench_history, pgbench_tellers",
        ),
        ("dtgp", "alter table pgbench_tellers drop constraint pgbench_tellers_pkey", "keys: pgbench_tellers"),
        ("dtgp", "delete from pgbench_accounts where aid > 99000", "pgbench_accounts is 99000; 1 rows in"),
        ("dtgp", "insert into pgbench_accounts values (100001, 1, 0)", "require 100000"),
        ("dtgp", "delete from pgbench_tellers where tid = 3", "pgbench_tellers has 9 rows"),
        ("dtp", "", "pgbench_branches is empty"),
        // One table has Kelvin's mark; the others do not.
        ("dtg", "comment on table pgbench_accounts is 'kelvin: being built'", "missing primary keys"),
        ("dtg", "comment on table pgbench_accounts is 'the shop''s'", "missing primary keys"),
    ] {
        let output = pgbench(&server, &["-i", "-q", "-I", steps]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        session.run(change).unwrap();
        let before = standing(session.as_mut());
        let mut ours = workload(Options::default());
        for error in [
            ours.build(&engine, &Quiet, &Stop::new()).unwrap_err(),
            ours.is_built(&engine).unwrap_err(),
            ours.inspect(&engine).unwrap_err(),
        ] {
            let message = format!("{error} {}", error.help().unwrap_or_default());
            assert!(
                message.contains(lack) && message.contains("kelvin drop pgbench --yes"),
                "{change}: {message}"
            );
        }
        assert_eq!(standing(session.as_mut()), before, "{change}");
    }
    // A user's tables with these names and other columns.
    session.run("drop table pgbench_accounts, pgbench_branches, pgbench_tellers, pgbench_history").unwrap();
    session.run("create table pgbench_accounts(aid int)").unwrap();
    let before = standing(session.as_mut());
    assert!(workload(Options::default()).build(&engine, &Quiet, &Stop::new()).is_err());
    assert_eq!(standing(session.as_mut()), before);
}

#[test]
fn every_mode_keeps_the_balances_and_reads_alike() {
    let server = Server::start();
    let engine = server.unix();
    workload(Options::default()).build(&engine, &Quiet, &Stop::new()).unwrap();
    let mut session = engine.connect().unwrap();
    for query_mode in MODES {
        let scripts = ["tpcb-like", "simple-up@2", "select@0"]
            .map(|name| ScriptChoice::builtin(name).unwrap())
            .to_vec();
        let mut ours = workload(Options { scripts, query_mode, ..Options::default() });
        ours.inspect(&engine).unwrap();
        let before = session.query("select count(*) from pgbench_history").unwrap().int(0, 0).unwrap();
        let mut users = ours.users(UserRange::all(2), 5, &kelvin_measure::Clock::real());
        for user in &mut users {
            user.prepare(session.as_mut()).unwrap();
            run(user.as_mut(), session.as_mut(), 50);
        }
        let after = session.query("select count(*) from pgbench_history").unwrap().int(0, 0).unwrap();
        assert_eq!(after - before, 100);
        let mut lines = Vec::new();
        ours.check(&engine, &Quiet, &Stop::new(), &mut |line| lines.push(line)).unwrap();
        assert!(lines.len() == 2 && lines.iter().all(|line| line.holds), "{lines:?}");
    }
    // The same seed draws the same values in every mode.
    let rows = session
        .query("select count(distinct (tid, bid, aid, delta)), count(*) from pgbench_history")
        .unwrap();
    assert_eq!((rows.int(0, 0).unwrap() * 3, rows.int(0, 1).unwrap()), (300, 300));
    session.run("update pgbench_accounts set abalance = abalance + 1 where aid = 1").unwrap();
    let mut broken = 0;
    workload(Options::default())
        .check(&engine, &Quiet, &Stop::new(), &mut |line| broken += usize::from(!line.holds))
        .unwrap();
    assert!(broken > 0);
}

#[test]
fn scripts_do_what_they_say_in_every_mode() {
    let server = Server::start();
    let engine = server.unix();
    let mut session = engine.connect().unwrap();
    session.run("create table t(a int, b text, c numeric, d date, e jsonb, f float8)").unwrap();
    let text = "\
-- types that the client does not know, and every kind of variable
\\set i 7 * 6
\\set x 1.0 / 3
\\set n NULL
\\if :i > 50
  select 1/0;
\\elif :i = 42
  insert into t values (:i, 'at 12:30:15', :x, '2024-02-29', '{\"k\": 1}', :x);
\\else
  select 1/0;
\\endif
select a as one, b as two, c, d, e, :n::int as nothing from t limit 1 \\gset got_
\\set again :got_one + 1
insert into t(a, b, d) values (:again, :got_two, :got_d);
select a as last from t where a > 1000 \\aset
select a as last from t order by a \\aset
update t set c = :last where a = :last;
\\sleep 1 us
";
    for mode in MODES {
        session.run("truncate t").unwrap();
        // Where values become part of the text, the script must quote its texts.
        let quoted = text.replace(":got_two", "':got_two'").replace(":got_d)", "':got_d')");
        let ours = script(if mode == QueryMode::Simple { &quoted } else { text }, mode);
        let mut user = ours.users(UserRange::all(1), 1, &kelvin_measure::Clock::real()).remove(0);
        user.prepare(session.as_mut()).unwrap();
        run(user.as_mut(), session.as_mut(), 1);
        let rows = session.query("select a, b, c::text, d::text, f::text from t order by a").unwrap();
        assert_eq!(rows.len(), 2, "{mode:?}");
        assert_eq!(rows.text(0, 1).unwrap(), "at 12:30:15", "{mode:?}");
        assert_eq!(rows.text(0, 4).unwrap(), "0.333333333333333", "{mode:?}");
        assert_eq!((rows.int(1, 0).unwrap(), rows.text(1, 1).unwrap()), (43, "at 12:30:15"), "{mode:?}");
        assert_eq!((rows.text(1, 2).unwrap(), rows.text(1, 3).unwrap()), ("43", "2024-02-29"), "{mode:?}");
    }
    for (text, message) in [
        ("select generate_series(1, 2) as g \\gset", "test.sql:1: \\gset expects one row, got 2"),
        ("select 1 as one where false \\gset", "expects one row, got 0"),
        ("\n\\set a :b + 1", "test.sql:2: undefined variable \"b\""),
        ("select 'x' as v \\gset\n\\set a :v + 1", "malformed variable \"v\" value: \"x\""),
        ("\\set a 1 / 0", "division by zero"),
        ("begin;", "ended inside a transaction"),
        ("select 1;\nselect no_such_column;", "test.sql:2: column \"no_such_column\" does not exist"),
    ] {
        for mode in MODES {
            let mut session = engine.connect().unwrap();
            let mut user =
                script(text, mode).users(UserRange::all(1), 1, &kelvin_measure::Clock::real()).remove(0);
            user.prepare(session.as_mut()).unwrap();
            user.next();
            let error = user.execute(session.as_mut()).unwrap_err().to_string();
            assert!(error.contains(message), "{mode:?} {text}: {error}");
        }
    }
}

#[test]
fn combined_statements_and_tables_of_the_script_itself() {
    let server = Server::start();
    let mut session = server.unix().connect().unwrap();
    let text = "select 1 as a \\; select 2 as a, 3 as b \\gset\nselect 10 + :b as c \\; select 5 as d \\aset\n\
                create temp table if not exists own(v int);\ninsert into own values (:a * 100 + :c + :d);";
    let mut user =
        script(text, QueryMode::Simple).users(UserRange::all(1), 1, &kelvin_measure::Clock::real()).remove(0);
    user.prepare(session.as_mut()).unwrap();
    run(user.as_mut(), session.as_mut(), 1);
    assert_eq!(session.query("select v from own").unwrap().int(0, 0).unwrap(), 218);
    session.run("drop table own").unwrap();
    let text = "create temp table if not exists own(v int);\n\\set v 9\ninsert into own values (:v);";
    let mut user = script(text, QueryMode::Prepared)
        .users(UserRange::all(1), 1, &kelvin_measure::Clock::real())
        .remove(0);
    user.prepare(session.as_mut()).unwrap();
    run(user.as_mut(), session.as_mut(), 2);
    assert_eq!(session.query("select sum(v)::int from own").unwrap().int(0, 0).unwrap(), 18);
}

#[test]
fn pipelines_are_sent_as_one_and_synchronise_where_they_say() {
    let server = Server::start();
    let mut session = server.unix().connect().unwrap();
    session.run("create table t(a int primary key)").unwrap();
    let text = "\\set k :client_id\n\\startpipeline\ninsert into t values (:k + 1);\n\\syncpipeline\n\
                insert into t values (:k + 2);\n\\endpipeline\ninsert into t values (:k + 3);";
    for mode in [QueryMode::Extended, QueryMode::Prepared] {
        session.run("truncate t").unwrap();
        let mut user =
            script(text, mode).users(UserRange::all(1), 1, &kelvin_measure::Clock::real()).remove(0);
        user.prepare(session.as_mut()).unwrap();
        run(user.as_mut(), session.as_mut(), 1);
        assert_eq!(session.query("select count(*) from t").unwrap().int(0, 0).unwrap(), 3, "{mode:?}");

        // The first part fails; the statements after the Sync are still executed, and the connection is
        // usable.
        session.run("delete from t where a <> 1").unwrap();
        user.next();
        let error = user.execute(session.as_mut()).unwrap_err();
        assert_eq!(error.code().0, "23505", "{error}");
        if session.in_transaction() {
            session.control(kelvin_database::TransactionControl::Rollback).unwrap();
        }
        assert_eq!(session.query("select sum(a)::int from t").unwrap().int(0, 0).unwrap(), 3, "{mode:?}");
    }
    let choice = ScriptChoice { name: "p".into(), weight: 1, text: Some(text.into()) };
    let options = Options { scripts: vec![choice], ..Options::default() };
    assert!(Pgbench::new(options).unwrap_err().to_string().contains("simple query mode"));
}

#[test]
fn a_repetition_draws_the_same_values() {
    let server = Server::start();
    let mut session = server.unix().connect().unwrap();
    session.run("create table t(a bigint, n int)").unwrap();
    let text = "\\set r random(1, 1000000000)\n\\set n :n + 1\ninsert into t values (:r, :n);";
    let choice = ScriptChoice { name: "t".into(), weight: 1, text: Some(text.into()) };
    let define = [("n".to_owned(), "0".to_owned())].into();
    let ours = workload(Options {
        scripts: vec![choice],
        define,
        query_mode: QueryMode::Prepared,
        ..Options::default()
    });
    let mut user = ours.users(UserRange::all(1), 3, &kelvin_measure::Clock::real()).remove(0);
    user.prepare(session.as_mut()).unwrap();
    user.next();
    for _ in 0..3 {
        user.execute(session.as_mut()).unwrap();
    }
    user.next();
    user.execute(session.as_mut()).unwrap();
    let rows = session.query("select count(distinct a)::int, count(*)::int, max(n) from t").unwrap();
    assert_eq!((rows.int(0, 0).unwrap(), rows.int(0, 1).unwrap(), rows.int(0, 2).unwrap()), (2, 4, 2));
}

#[test]
fn shell_commands_run_only_where_they_are_allowed() {
    let server = Server::start();
    let mut session = server.unix().connect().unwrap();
    let text = "\\set a 20\n\\setshell b expr :a + 22\n\\shell test :b = 42\nselect 1 / (case when :b = 42 then 1 else 0 end);";
    let choice = ScriptChoice { name: "t".into(), weight: 1, text: Some(text.into()) };
    let refused = Options { scripts: vec![choice], ..Options::default() };
    assert!(Pgbench::new(refused.clone()).unwrap_err().to_string().contains("not allowed"));
    let mut user = workload(Options { allow_shell: true, ..refused })
        .users(UserRange::all(1), 1, &kelvin_measure::Clock::real())
        .remove(0);
    user.prepare(session.as_mut()).unwrap();
    run(user.as_mut(), session.as_mut(), 1);
}

#[test]
fn the_examples_of_pgbench_s_documentation_run() {
    let server = Server::start();
    let engine = server.unix();
    workload(Options::default()).build(&engine, &Quiet, &Stop::new()).unwrap();
    let mut session = engine.connect().unwrap();
    let text = "\
\\set ntellers 10 * :scale
\\set aid (1021 * random(1, 100000 * :scale)) % \\
           (100000 * :scale) + 1
\\set x 0
\\set y 5
\\set divx CASE WHEN :x <> 0 THEN :y/:x ELSE NULL END
\\set delta random(-5000, 5000)
\\set size 1000000
\\set r random_zipfian(1, :size, 1.07)
\\set k 1 + permute(:r, :size)
\\set k1 1 + permute(:r, :size, :default_seed + 123)
\\set k2 1 + permute(:r, :size, :default_seed + 321)
\\set r random_zipfian(0, 100000000, 1.07)
\\set k abs(hash(:r)) % 1000000
\\set k1 abs(hash(:r, :default_seed + 123)) % 1000000
\\sleep 10 ms
UPDATE pgbench_accounts
  SET abalance = abalance + :delta
  WHERE aid = :aid
  RETURNING abalance \\gset
-- compound of two queries
SELECT 1 \\;
SELECT 2 AS two, 3 AS three \\gset p_
SELECT 4 AS four \\; SELECT 5 AS five \\aset
\\if :p_two = 2 AND :p_three = 3 AND :four = 4 AND :five = 5 AND :abalance = :delta
\\else
SELECT 1/0;
\\endif
\\if :divx IS NULL
UPDATE pgbench_accounts SET abalance = 0 WHERE aid = :aid;
\\endif
";
    let mut user =
        script(text, QueryMode::Simple).users(UserRange::all(1), 8, &kelvin_measure::Clock::real()).remove(0);
    user.prepare(session.as_mut()).unwrap();
    run(user.as_mut(), session.as_mut(), 5);
}

//! pgbench's tables and scripts on MariaDB, and on SQL Server if one is configured.

#![allow(clippy::unwrap_used, reason = "a test's helpers fail as its tests do")]

mod mysql_databases;
mod sqlserver_databases;

use kelvin_database::{Engine, Session};
use kelvin_measure::Clock;
use kelvin_workload::pgbench::{Options, Pgbench, QueryMode, ScriptChoice};
use kelvin_workload::progress::Quiet;
use kelvin_workload::{BuildProgress, Stop, UserRange, Workload};
use mysql_databases::{database, start};

const MODES: [QueryMode; 3] = [QueryMode::Simple, QueryMode::Extended, QueryMode::Prepared];

fn pgbench(options: Options) -> Pgbench {
    Pgbench::new(options).unwrap()
}

fn builtin(name: &str, query_mode: QueryMode) -> Pgbench {
    let scripts = vec![ScriptChoice::builtin(name).unwrap()];
    pgbench(Options { scripts, query_mode, foreign_keys: true, ..Options::default() })
}

fn run(workload: &Pgbench, session: &mut dyn Session, transactions: usize) {
    let mut user = workload.users(UserRange::all(1), 1, &Clock::real()).remove(0);
    user.prepare(session).unwrap();
    for _ in 0..transactions {
        user.next();
        user.execute(session).unwrap();
        assert!(!session.in_transaction());
    }
}

struct StopsAtOnce<'a>(&'a Stop);

impl BuildProgress for StopsAtOnce<'_> {
    fn update(&self, what: &str, _done: u64, _total: u64, _rows: u64) {
        if what == "accounts loaded" {
            self.0.request();
        }
    }
}

#[test]
fn the_built_in_scripts_run_in_every_mode_and_the_balances_agree() {
    let server = start();
    built_in_scripts(&database(&server, "pgbench"), "innodb_buffer_pool_size");
}

#[test]
fn the_built_in_scripts_run_on_sql_server_and_the_balances_agree() {
    if let Some(engine) = sqlserver_databases::database("pgbench") {
        // The server has no memory limit to compare with.
        built_in_scripts(&engine, "of tables and keys");
    }
}

fn built_in_scripts(engine: &dyn Engine, cache: &str) {
    for (options, what) in [
        (Options { fillfactor: 90, ..Options::default() }, "does not support fill factor"),
        (Options { unlogged_tables: true, ..Options::default() }, "does not support unlogged tables"),
    ] {
        let error = pgbench(options).check_engine(engine).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    }
    let ours = builtin("tpcb-like", QueryMode::Simple);
    let stop = Stop::new();
    ours.build(engine, &StopsAtOnce(&stop), &stop).unwrap_err();
    assert!(!ours.is_built(engine).unwrap());
    ours.build(engine, &Quiet, &Stop::new()).unwrap();
    assert!(ours.is_built(engine).unwrap());
    let shape = Pgbench::shape_in(engine).unwrap().unwrap();
    assert_eq!((shape.scale, shape.foreign_keys), (1, true));
    let larger = pgbench(Options { scale: Some(2), ..Options::default() });
    assert!(larger.is_built(engine).unwrap_err().to_string().contains("scale 1"));

    let mut session = engine.connect().unwrap();
    assert!(ours.is_fresh(session.as_mut()).unwrap());
    let mut written = 0;
    for mode in MODES {
        for name in ["tpcb-like", "simple-update", "select-only"] {
            let mut workload = builtin(name, mode);
            workload.inspect(engine).unwrap();
            run(&workload, session.as_mut(), 20);
            written += if name == "select-only" { 0 } else { 20 };
            let mut lines = Vec::new();
            workload.check(engine, &Quiet, &Stop::new(), &mut |line| lines.push(line)).unwrap();
            assert!(lines.iter().all(|line| line.holds), "{name} {mode:?}: {lines:#?}");
            assert_eq!(lines.is_empty(), name == "select-only");
        }
    }
    assert_eq!(ours.headline_count(session.as_mut()).unwrap(), written);
    assert!(!ours.is_fresh(session.as_mut()).unwrap());
    assert!(ours.working_set(session.as_mut(), None).unwrap().contains(cache));

    session.run("update pgbench_tellers set tbalance = tbalance + 1 where tid = 3").unwrap();
    let mut broken = Vec::new();
    ours.check(engine, &Quiet, &Stop::new(), &mut |line| {
        broken.extend((!line.holds).then_some(line.number));
    })
    .unwrap();
    assert_eq!(broken, [2]);
    session.run("drop table pgbench_history").unwrap();
    let error = ours.is_built(engine).unwrap_err().to_string();
    assert!(error.contains("missing tables: pgbench_history"), "{error}");
    ours.drop_data(engine).unwrap();
    assert_eq!(Pgbench::shape_in(engine).unwrap(), None);
}

#[test]
fn scripts_of_the_users_own_take_variables_results_and_pipelines() {
    let server = start();
    let engine = database(&server, "own");
    let mut session = engine.connect().unwrap();
    session.run("create table t (id int primary key, n int, words varchar(20))").unwrap();
    session.run("insert into t values (1, 0, 'it''s')").unwrap();
    let plain = "\\set d random(1, 1)\nBEGIN;\nUPDATE t SET n = n + :d WHERE id = 1;\n\
                 SELECT n AS seen, words FROM t WHERE id = 1 \\gset got_\n\
                 UPDATE t SET n = :got_seen + 1 WHERE id = 1 AND words = :'got_words';\nCOMMIT;\n";
    let plain = plain.replace(":'got_words'", "'it''s'");
    let pipeline = "\\startpipeline\nBEGIN;\nUPDATE t SET n = n + 2 WHERE id = 1;\nCOMMIT;\n\\endpipeline\n";
    for mode in MODES {
        for text in [plain.as_str(), pipeline] {
            if mode == QueryMode::Simple && text == pipeline {
                continue;
            }
            let before = session.query("select n from t").unwrap().int(0, 0).unwrap();
            let choice = ScriptChoice { name: "own.sql".into(), weight: 1, text: Some(text.into()) };
            let mut own = pgbench(Options { scripts: vec![choice], query_mode: mode, ..Options::default() });
            own.inspect(&engine).unwrap();
            run(&own, session.as_mut(), 5);
            assert_eq!(
                session.query("select n from t").unwrap().int(0, 0).unwrap(),
                before + 10,
                "{mode:?}: {text}"
            );
        }
    }
}

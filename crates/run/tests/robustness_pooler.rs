//! Loads through PgBouncer in transaction mode, which keeps no prepared statements for its clients.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod robustness_support;

use std::sync::Arc;

use kelvin_database::postgres::{Config, PostgresEngine};
use kelvin_database::{Engine, ErrorClass, Rows, TransactionControl, Value};
use kelvin_workload::pgbench::{Options, Pgbench, QueryMode, ScriptChoice};
use kelvin_workload::progress::Quiet;
use kelvin_workload::tproc_c::Calls;
use kelvin_workload::{Stop, UserRange, Workload};
use robustness_support::pooler::Pooler;
use robustness_support::server::{Server, await_statement};
use robustness_support::{
    LIMIT, assert_consistent, calling, load, pause, run, run_until_recovered, run_workload, spec, try_run,
};

#[test]
fn more_users_than_connections_run_through_a_pooler_in_transaction_mode() {
    let server = Server::start();
    load(&server.unix());
    let pooler = Pooler::start(&server, 3);
    let config = pooler.config(false);

    // Named statements cannot work, and the error says what helps.
    let refused = try_run(&pooler.config(true), &spec(), || {}).map(|_| ()).unwrap_err().to_string();
    assert!(refused.contains("prepared_statements=false"), "{refused}");
    assert!(refused.contains("42P05") || refused.contains("26000"), "{refused}");
    let with_options = Config { options: Some("-c work_mem=8MB".into()), ..config.clone() };
    let error = PostgresEngine::new(with_options).connect().map(drop).unwrap_err();
    assert!(error.help().unwrap().contains("for the role"), "{error}");
    // A build must not leave its settings on the pool's connections either.
    let workload = Pgbench::new(Options::default()).unwrap();
    let through = PostgresEngine::new(config.clone());
    let error = workload.build(&through, &Quiet, &Stop::new()).unwrap_err();
    assert!(error.to_string().contains("the server's own address"), "{error}");

    for calls in [Calls::Functions, Calls::Pipelined, Calls::Statements] {
        let mut spec = calling(calls);
        spec.load.users = "8".parse().unwrap();
        spec.load.timeout = "5s".parse().unwrap();
        let ended = run_until_recovered(&config, &spec, || pause(1500)).show("pooler");
        ended.assert_true().assert_no_error();
        // The number depends on the disk; the pooler ensures that each user gets a turn.
        assert!(ended.outcome.points[0].window.client_headline >= 8, "{}", ended.told());
    }
    // A thousand users, few of them active at a time, on two event loops and three connections.
    let mut thousand = calling(Calls::Functions);
    thousand.load.users = "1000".parse().unwrap();
    thousand.load.rate = Some("200".parse().unwrap());
    thousand.load.timeout = "5s".parse().unwrap();
    let ended = run(&config, &thousand, || {}).show("a thousand users");
    ended.assert_true().assert_no_error();
    let schedule = ended.outcome.points[0].window.schedule.unwrap();
    assert!(schedule.due > 150 && schedule.refused == 0, "{schedule:?}");
    assert_consistent(&config);

    // pgbench's own workload, its counts and balances.
    workload.build(&PostgresEngine::new(server.unix()), &Quiet, &Stop::new()).unwrap();
    let engine: Arc<dyn Engine> = Arc::new(through);
    for query_mode in [QueryMode::Prepared, QueryMode::Extended, QueryMode::Simple] {
        let mut workload = Pgbench::new(Options { query_mode, ..Options::default() }).unwrap();
        workload.inspect(&*engine).unwrap();
        let mut spec = spec();
        spec.load.users = "8".parse().unwrap();
        spec.load.duration = "1s".parse().unwrap();
        spec.load.timeout = "5s".parse().unwrap();
        spec.check = true;
        let ended = run_workload(Arc::clone(&engine), Arc::new(workload), &spec, || {}).unwrap();
        let ended = ended.show("pgbench through the pooler");
        ended.assert_true().assert_within(LIMIT).assert_no_error();
        let checks = &ended.outcome.checks;
        assert!(!checks.is_empty() && checks.iter().all(|check| check.holds), "{checks:?}");
    }
    let active =
        server.session().query("SELECT count(*) FROM pg_stat_activity WHERE client_port = -1").unwrap();
    assert!(active.int(0, 0).unwrap() <= 3 + 1, "the pool was not what the users went through");
}

#[test]
fn everything_a_session_does_works_without_named_statements() {
    let server = Server::start();
    let pooler = Pooler::start(&server, 2);
    let engine = PostgresEngine::new(pooler.config(false));
    let mut direct = server.session();
    direct.run("CREATE TABLE t (a int PRIMARY KEY, n numeric(12,2), b text)").unwrap();
    let mut sessions: Vec<_> = (0..6).map(|_| engine.connect().unwrap()).collect();
    // Parameters have the types that the server inferred, even where the value suggests another type.
    let prepared: Vec<_> = sessions
        .iter_mut()
        .map(|s| {
            let insert = s.prepare("INSERT INTO t VALUES ($1, $2, $3) RETURNING a, n, b").unwrap();
            let count = s.prepare("SELECT count(*) FROM t WHERE a >= $1 AND b <> 'x'").unwrap();
            (insert, count)
        })
        .collect();
    let mut rows = Rows::new();
    let mut results = Vec::new();
    for (index, (s, (insert, count))) in sessions.iter_mut().zip(&prepared).enumerate() {
        let key = index as i64;
        s.execute(*insert, &[key.into(), Value::Int(7), "one".into()], &mut rows).unwrap();
        assert_eq!((rows.int(0, 0).unwrap(), rows.decimal(0, 1, 2).unwrap()), (key, 700));
        s.queue_control(TransactionControl::Begin).unwrap();
        s.queue(*insert, &[(key + 100).into(), Value::Null, "two".into()]).unwrap();
        s.queue(*count, &[Value::Int(0)]).unwrap();
        s.queue_control(TransactionControl::Commit).unwrap();
        s.flush(&mut results).unwrap();
        assert_eq!(results[2].int(0, 0).unwrap(), 2 * (key + 1));
        // An error in a batch leaves the session usable.
        s.queue(*insert, &[key.into(), Value::Null, "again".into()]).unwrap();
        s.queue(*count, &[Value::Int(0)]).unwrap();
        assert_eq!(s.flush(&mut results).unwrap_err().class(), ErrorClass::Constraint);
        s.execute(*count, &[Value::Int(100)], &mut rows).unwrap();
        assert_eq!(rows.int(0, 0).unwrap(), key + 1);
        assert!(!s.in_transaction());
    }
    let error = sessions[0].prepare("SELECT nonsense").unwrap_err();
    assert_eq!(error.class(), ErrorClass::Statement, "{error}");

    // A user's script with a pipeline, executed in all sessions in turn.
    let text = "\\set k random(1, 1000000)\n\\startpipeline\nbegin;\nupdate t set n = n + :k where a = 0;\n\
                update t set n = n - :k where a = 0;\ncommit;\n\\endpipeline\n\
                select b as word from t where a = 0 \\gset\ninsert into t(a, b) select max(a) + 1, :word from t;";
    let choice = ScriptChoice { name: "t".into(), weight: 1, text: Some(text.into()) };
    let options = Options { scripts: vec![choice], query_mode: QueryMode::Prepared, ..Options::default() };
    let workload = Pgbench::new(options).unwrap();
    let mut users = workload.users(UserRange::all(6), 1, &kelvin_measure::Clock::real());
    for (user, session) in users.iter_mut().zip(&mut sessions) {
        user.prepare(session.as_mut()).unwrap();
    }
    for _ in 0..5 {
        for (user, session) in users.iter_mut().zip(&mut sessions) {
            user.next();
            user.execute(session.as_mut()).unwrap();
        }
    }
    let rows =
        direct.query("SELECT n::text, (SELECT count(*) FROM t WHERE b = 'one') FROM t WHERE a = 0").unwrap();
    assert_eq!((rows.text(0, 0).unwrap(), rows.int(0, 1).unwrap()), ("7.00", 6 + 30));

    // A cancel request also works through the pooler.
    let cancel = sessions[0].cancel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            await_statement(direct.as_mut(), "SELECT pg_sleep(20)");
            cancel.cancel().unwrap();
        });
        assert_eq!(sessions[0].run("SELECT pg_sleep(20)").unwrap_err().code().0, "57014");
    });
}

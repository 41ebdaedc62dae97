//! Faults of a server under load: kills, restarts, time-outs, deadlocks, serialization failures. Each is
//! counted under its class and code, the load continues, and the counts agree.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod robustness_support;

use std::time::{Duration, Instant};

use kelvin_database::ErrorClass;
use kelvin_database::postgres::Config;
use kelvin_run::spec::Work;
use kelvin_workload::tproc_c::{Calls, Options};
use robustness_support::server::Server;
use robustness_support::{assert_consistent, calling, load, pause, run_until_recovered, spec};

#[test]
fn kills_serialization_failures_and_restarts_are_survived() {
    let mut server = Server::start();
    load(&server.unix());
    let config = server.unix();
    for calls in [Calls::Functions, Calls::Statements] {
        let mut killer = server.session();
        // Kills the users' sessions and not the monitor's.
        let kill = "SELECT count(pg_terminate_backend(pid))::int FROM pg_stat_activity \
                    WHERE application_name LIKE 'kelvin ________' AND pid <> pg_backend_pid() AND backend_type = 'client backend'";
        let mut killed = 0;
        let ended = run_until_recovered(&config, &calling(calls), || {
            for _ in 0..200 {
                pause(300);
                killed += killer.query(kill).unwrap().int(0, 0).unwrap();
                if killed >= 8 {
                    break;
                }
            }
        })
        .show("pg_terminate_backend");
        assert!(killed >= 8, "{killed}");
        ended.assert_true().assert_error("connection lost", "57P01");
    }

    for level in ["repeatable\\ read", "serializable"] {
        for calls in [Calls::Functions, Calls::Pipelined] {
            let options = Some(format!("-c default_transaction_isolation={level}"));
            let isolated = Config { options, ..config.clone() };
            let ended = run_until_recovered(&isolated, &calling(calls), || pause(1500)).show(level);
            ended.assert_true().assert_error("serialization failure", "40001");
            assert!(ended.errors().any(|e| e.retried), "{}", ended.told());
        }
    }

    let ended = run_until_recovered(&config, &spec(), || {
        pause(500);
        server.kill();
        pause(300);
        server.restart();
    })
    .show("restart");
    ended.assert_true().assert_error("connection lost", "");
    assert_consistent(&config);
}

#[test]
fn refusals_of_the_server_are_counted_by_their_codes() {
    let server = Server::start_with("deadlock_timeout='20ms'", "local all all trust\n", |_| {});
    load(&server.unix());
    let config = server.unix();
    let with = |option: &str| {
        let mut config = config.clone();
        config.options = Some(option.to_owned());
        config
    };

    // A row that all but one transaction type need is locked for longer than statements may take.
    let hold = |milliseconds: u64| {
        let mut holder = server.session();
        move || {
            pause(300);
            holder.run("BEGIN; SELECT 1 FROM warehouse FOR UPDATE").unwrap();
            pause(milliseconds);
            holder.run("ROLLBACK").unwrap();
        }
    };
    let mut patient = calling(Calls::Pipelined);
    patient.load.timeout = "10s".parse().unwrap();
    let ended = run_until_recovered(&with("-c statement_timeout=100ms"), &patient, hold(600))
        .show("statement_timeout");
    ended.assert_true().assert_error("time-out", "57014");
    assert!(ended.errors().all(|e| !e.retried), "{}", ended.told());

    let ended = run_until_recovered(&with("-c lock_timeout=50ms"), &patient, hold(300)).show("lock_timeout");
    ended.assert_true().assert_error("lock not available", "55P03");
    assert!(ended.errors().any(|e| e.retried), "{}", ended.told());

    // Longer than the client waits: its own time-out ends the wait and the connection.
    let ended = run_until_recovered(&config, &spec(), hold(900)).show("time-out of the client");
    ended.assert_true().assert_error("time-out", "");
    assert!(ended.errors().any(|e| e.code.is_empty()), "{}", ended.told());

    // Payment locks its district, then the warehouse. The rival locks them in the opposite order.
    let mut payments = calling(Calls::Statements);
    let mix = "1/20/0/0/0".parse().unwrap();
    let Work::TprocC(options) = payments.work else { panic!() };
    payments.work = Work::TprocC(Options { mix, ..options });
    payments.load.timeout = "10s".parse().unwrap();
    let mut rival = server.session();
    let mut lost = 0;
    let ended = run_until_recovered(&config, &payments, || {
        let began = Instant::now();
        for round in 0.. {
            if began.elapsed() > Duration::from_secs(if round < 30 { 60 } else { 1 }) {
                break;
            }
            let locks = "BEGIN; SELECT 1 FROM warehouse FOR UPDATE; SELECT pg_sleep(0.005); \
                         SELECT count(*) FROM (SELECT 1 FROM district FOR UPDATE) d; COMMIT";
            if let Err(error) = rival.run(locks) {
                assert_eq!(error.class(), ErrorClass::Deadlock, "{error}");
                lost += 1;
                rival.run("ROLLBACK").unwrap();
            }
        }
    })
    .show(&format!("deadlock, of which the rival lost {lost}"));
    ended.assert_true().assert_error("deadlock", "40P01");
    assert!(ended.errors().any(|e| e.retried), "{}", ended.told());
    assert_consistent(&config);
}

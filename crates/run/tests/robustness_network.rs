//! A network that delays, stalls, cuts and garbles: counted errors, recovery, an end in time, and no wrong
//! counts.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod robustness_support;

use std::time::Duration;

use kelvin_database::postgres::Config;
use kelvin_workload::tproc_c::Calls;
use robustness_support::proxy::Proxy;
use robustness_support::server::Server;
use robustness_support::{
    LIMIT, assert_consistent, calling, load, pause, run, run_garbled, run_until_recovered, spec,
};

fn through(proxy: &Proxy, server: &Server) -> Config {
    Config { port: proxy.port, connect_timeout: Duration::from_secs(5), ..server.tcp() }
}

#[test]
fn delays_stalls_and_cuts_cost_errors_and_no_truth() {
    let server = Server::start();
    load(&server.unix());
    let proxy = Proxy::start(server.port);
    let config = through(&proxy, &server);

    // Slowness is not an error, except for users that wait too long for a slow user's lock; hence the long
    // time-out.
    let mut patient = calling(Calls::Statements);
    patient.load.timeout = "10s".parse().unwrap();
    let ended = run_until_recovered(&config, &patient, || {
        pause(300);
        proxy.delay(Duration::from_millis(20));
        pause(1000);
        proxy.delay(Duration::ZERO);
    });
    ended.show("delay").assert_true().assert_no_error();

    // Longer than the time-out: every user's statement times out and its connection is given up. New
    // connections get no answer either during the stall.
    for calls in [Calls::Functions, Calls::Statements] {
        let ended = run_until_recovered(&config, &calling(calls), || {
            pause(300);
            proxy.stall(true);
            pause(3000);
            proxy.stall(false);
        })
        .show("stall");
        ended.assert_true().assert_error("time-out", "");
        assert!(ended.outcome.failed() >= 4, "each user failed once: {}", ended.told());
    }

    // A permanent stall: the run ends nevertheless, and does not claim that the counts agree.
    let ended = run(&config, &spec(), || {
        pause(300);
        proxy.stall(true);
    })
    .show("stall for good");
    proxy.stall(false);
    ended.assert_error("time-out", "").assert_within(LIMIT).assert_uncounted();

    for calls in [Calls::Functions, Calls::Pipelined] {
        let ended = run_until_recovered(&config, &calling(calls), || {
            for _ in 0..10 {
                pause(100);
                proxy.cut();
            }
        })
        .show("cut");
        ended.assert_true().assert_error("connection lost", "");
    }
    assert_consistent(&config);
}

#[test]
fn cut_garbled_and_refused_connections_are_errors_and_never_wrong_counts() {
    let server = Server::start();
    load(&server.unix());
    let proxy = Proxy::start(server.port);
    let config = through(&proxy, &server);

    let ended = run_until_recovered(&config, &calling(Calls::Statements), || {
        pause(300);
        proxy.cut_within(true);
        pause(500);
        proxy.cut_within(false);
    })
    .show("cut within a message");
    ended.assert_true().assert_error("connection lost", "");

    let ended = run_until_recovered(&config, &spec(), || {
        pause(300);
        proxy.refuse(true);
        proxy.cut();
        pause(600);
        proxy.refuse(false);
    })
    .show("refused");
    ended.assert_true().assert_error("connection lost", "");
    let refused = ended.errors().any(|e| e.kind.is_none() && e.message.contains("refused"));
    assert!(refused, "{}", ended.told());

    for calls in [Calls::Functions, Calls::Statements, Calls::Pipelined] {
        run_garbled(&config, &proxy, calls).assert_true();
        // Client-side SQL writes back what it has read, and without TLS no client detects a changed number.
        // With functions the server computes the data itself.
        if calls == Calls::Functions {
            assert_consistent(&config);
        }
    }
}

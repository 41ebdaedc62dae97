//! Faults of a MariaDB server and of the network under load: kills, a restart, too many connections, stalls,
//! cuts, garbled packets, a full disk. Each is counted under its class and code, the load continues, and the
//! counts agree.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../database/tests/mysql_support/mod.rs"]
mod mysql_support;
mod robustness_support;

use std::time::Duration;

use kelvin_database::mysql::{Config, MysqlEngine, SslMode};
use kelvin_database::{Engine as _, ErrorClass, Session};
use kelvin_run::spec::Work;
use kelvin_workload::tproc_c::Calls;
use kelvin_workload::{BuildProgress, Stop};
use mysql_support::{Server, give_away};
use robustness_support::disk::Disk;
use robustness_support::proxy::Proxy;
use robustness_support::{
    assert_consistent, calling, load, pause, run_garbled, run_until_recovered, spec, try_run, workload,
};

/// Kills the connections that are executing something. Returns their number.
fn kill_the_load(killer: &mut dyn Session) -> usize {
    let busy = killer
        .query("SELECT id FROM information_schema.processlist WHERE db = 'kelvin' AND command <> 'Sleep' AND id <> connection_id()")
        .unwrap();
    for row in 0..busy.len() {
        // A connection that has ended meanwhile is not an error here.
        let _ = killer.run(&format!("KILL {}", busy.int(row, 0).unwrap()));
    }
    busy.len()
}

#[test]
fn kills_restarts_and_too_many_connections_are_survived() {
    // MariaDB 11.4 generates a TLS key at each start, which takes 2 to 30 s.
    let mut server = Server::start_with(&["--skip-ssl"], |_| {});
    let config = server.unix();
    load(&config);
    for calls in [Calls::Functions, Calls::Pipelined, Calls::Statements] {
        let mut killer = server.session();
        let mut killed = 0;
        let ended = run_until_recovered(&config, &calling(calls), || {
            for _ in 0..3 {
                pause(300);
                killed += kill_the_load(&mut *killer);
            }
        })
        .show("KILL");
        assert!(killed > 0);
        ended.assert_true().assert_error("connection lost", "");
    }

    // Other connections take the slots of the killed ones.
    let mut all = server.session();
    all.run("SET GLOBAL max_connections = 10").unwrap();
    let mut spec = spec();
    let ended = run_until_recovered(&config, &spec, || {
        let mut others = Vec::new();
        for _ in 0..10 {
            pause(100);
            kill_the_load(&mut *all);
            others.extend(std::iter::from_fn(|| MysqlEngine::new(config.clone()).connect().ok()).take(20));
        }
    })
    .show("max_connections");
    ended.assert_true();
    assert!(ended.errors().any(|e| e.class == "server" && e.code.starts_with("1040")), "{}", ended.told());
    spec.load.users = "16".parse().unwrap();
    let refused = try_run(&config, &spec, || {}).err().unwrap().to_string();
    assert!(refused.contains("1040"), "{refused}");

    // Committed transactions must survive the server's end; the tests' servers do not guarantee that by
    // default.
    all.run("SET GLOBAL innodb_flush_log_at_trx_commit = 2").unwrap();
    spec.load.users = "4".parse().unwrap();
    let ended = run_until_recovered(&config, &spec, || {
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
fn stalled_cut_and_garbled_connections_are_errors() {
    let server = Server::start();
    load(&server.unix());
    let proxy = Proxy::start(server.port);
    let config = Config {
        port: proxy.port,
        connect_timeout: Duration::from_secs(5),
        ssl_mode: SslMode::Disable,
        ..server.tcp()
    };

    let ended = run_until_recovered(&config, &calling(Calls::Statements), || {
        pause(300);
        proxy.stall(true);
        pause(3000);
        proxy.stall(false);
    })
    .show("stall");
    ended.assert_true().assert_error("time-out", "");

    for calls in [Calls::Functions, Calls::Pipelined, Calls::Statements] {
        let ended = run_until_recovered(&config, &calling(calls), || {
            pause(200);
            proxy.cut();
            pause(200);
            proxy.cut_within(true);
            pause(300);
            proxy.cut_within(false);
        })
        .show("cut");
        ended.assert_true().assert_error("connection lost", "");
    }
    assert_consistent(&server.unix());

    for calls in [Calls::Statements, Calls::Pipelined, Calls::Functions] {
        // Without TLS a changed number is not detected, not even one that means "rolled back".
        run_garbled(&config, &proxy, calls);
    }
}

/// Fills the disk when the load has reached a certain point.
struct Filling<'a>(&'a Disk);

impl BuildProgress for Filling<'_> {
    fn update(&self, what: &str, _done: u64, _total: u64, rows: u64) {
        if what == "warehouses loaded" && rows > 50_000 && self.0.is_empty() {
            self.0.fill();
        }
    }
}

#[test]
fn a_full_disk_fails_what_needs_room() {
    let disk = Disk::mount(700);
    let place = disk.make("data");
    let server = Server::start_with(&["--innodb-buffer-pool-size=128M"], |directory| {
        let data = directory.join("data");
        std::fs::remove_dir(&data).unwrap();
        std::os::unix::fs::symlink(&place, &data).unwrap();
        give_away(&place);
    });
    let config = server.unix();
    let engine = MysqlEngine::new(config.clone());
    let workload = workload(&spec());
    let error = workload.build(&engine, &Filling(&disk), &Stop::new()).unwrap_err();
    // Rarely the server closes a loader's connection before the error of another one is read.
    assert!(matches!(error.class(), ErrorClass::DiskFull | ErrorClass::ConnectionLost), "{error}");
    disk.empty();
    load(&config);
    assert_consistent(&config);

    let mut spec = calling(Calls::Functions);
    let Work::TprocC(options) = &mut spec.work else { panic!("{spec:?}") };
    options.mix = "20/1/0/0/0".parse().unwrap();
    // MySQL checks for free space once per minute.
    let ended = run_until_recovered(&config, &spec, || {
        pause(300);
        disk.fill();
        pause(4000);
        disk.empty();
    })
    .show("full for a while");
    ended.assert_true();
    // The server returns an error, or waits until there is space.
    assert!(ended.count("disk full", "") + ended.count("time-out", "") > 0, "{}", ended.told());
    assert_consistent(&config);
}

//! A server with a full disk, under the tables or under the WAL.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod robustness_support;

use std::process::Command;
use std::time::Duration;

use kelvin_measure::event::Status;
use kelvin_run::spec::Work;
use kelvin_workload::tproc_c::Options;
use robustness_support::disk::Disk;
use robustness_support::server::{Server, binaries, unprivileged};
use robustness_support::{assert_consistent, load, pause, run, run_until_recovered, spec};

const LOCAL: &str = "local all all trust\n";

#[test]
fn a_full_disk_under_the_tables_fails_what_needs_room() {
    let disk = Disk::mount(200);
    let place = disk.make("tables");
    let server = Server::start_with("", LOCAL, |_| {});
    load(&server.unix());
    let mut session = server.session();
    session.run(&format!("CREATE TABLESPACE small LOCATION '{}'", place.display())).unwrap();
    session.run("ALTER TABLE order_line SET TABLESPACE small").unwrap();
    let config = server.unix();

    let mut spec = spec();
    let ended = run_until_recovered(&config, &spec, || {
        pause(300);
        disk.fill();
        pause(1200);
        disk.empty();
    })
    .show("full for a while");
    ended.assert_true().assert_error("disk full", "53100");

    // Permanently full, with transactions that need space: every user gives up long before the planned end.
    spec.load.duration = "10m".parse().unwrap();
    let mix = "1/0/0/0/0".parse().unwrap();
    spec.work = Work::TprocC(Options { warehouses: Some(1), mix, ..Options::default() });
    let ended = run(&config, &spec, || {
        pause(300);
        disk.fill();
    })
    .show("full for good");
    disk.empty();
    ended.assert_true().assert_error("disk full", "53100").assert_within(Duration::from_secs(30));
    assert_eq!(ended.outcome.status, Status::Failed);
    let error = ended.outcome.error.clone().unwrap();
    // "No space left on device", or "wrote only 4096 of 8192 bytes" where there was space for half a page.
    assert!(error.contains("every user gave up") && error.contains("(53100)"), "{error}");
    assert_consistent(&config);
}

#[test]
fn a_full_disk_under_the_log_stops_the_server_and_not_the_truth() {
    let disk = Disk::mount(600);
    let log = disk.make("log");
    // No checkpoint while the disk is full: the segments that it removes would leave room for the next.
    let settings = "wal_recycle=off\nmin_wal_size=2MB\nmax_wal_size=400MB\n";
    let mut server = Server::start_with(settings, LOCAL, |data| {
        // Small WAL segments: the next one is needed soon, and there is no space for it.
        let mut reset = unprivileged(&binaries().join("pg_resetwal"));
        assert!(reset.args(["--wal-segsize=1", "-D"]).arg(data).output().unwrap().status.success());
        let (from, to) = (data.join("pg_wal"), log.to_str().unwrap());
        let from = from.to_str().unwrap();
        let move_it = format!("cp -a {from}/. {to}/ && rm -r {from} && ln -s {to} {from}");
        assert!(Command::new("sh").args(["-c", &move_it]).status().unwrap().success());
    });
    load(&server.unix());
    let config = server.unix();
    let mut spec = spec();
    let ended = run_until_recovered(&config, &spec, || {
        pause(300);
        disk.fill();
        pause(1500);
        disk.empty();
        server.kill();
        server.restart();
    })
    .show("the log's disk full for a while");
    ended.assert_true().assert_error("connection lost", "");

    // Permanently full: the run ends in time, and does not claim that the counts agree.
    spec.load.duration = "2s".parse().unwrap();
    let ended = run(&config, &spec, || {
        pause(300);
        disk.fill();
    })
    .show("the log's disk full for good");
    ended.assert_error("connection lost", "").assert_within(Duration::from_secs(2 + 5)).assert_uncounted();
    disk.empty();
    server.kill();
    server.restart();
    assert_consistent(&config);
}

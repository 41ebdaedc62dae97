//! Who keeps old row versions on a real PostgreSQL without a session: a prepared transaction, a standby's slot, and a reader's.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod postgres_support;

use std::collections::BTreeSet;
use std::process::Stdio;
use std::time::{Duration, Instant};

use kelvin_database::Engine;
use kelvin_database::postgres::{Config, PostgresEngine};
use kelvin_observe::engine::WatchPlan;
use postgres_support::server::{Server, unprivileged};
use postgres_support::{Watching, occurrences};

const SETTINGS: &str = "wal_level=logical\nmax_prepared_transactions=2";
const HBA: &str = "local all all trust\nlocal replication all trust\nhost all all 127.0.0.1/32 trust\n";

/// A standby with a query that lasts, which then goes away without ending it: the slot keeps what it has asked for.
fn leave_a_slot_behind(server: &Server) {
    let standby = server.socket_directory().join("standby");
    let from = server.socket_directory().to_str().unwrap().to_owned();
    let port = server.port.to_string();
    let copied = unprivileged(&server.binary("pg_basebackup"))
        .args([
            "-h",
            &from,
            "-p",
            &port,
            "-U",
            "kelvin",
            "-R",
            "-C",
            "-S",
            "standby",
            "-c",
            "fast",
            "--no-sync",
            "-D",
        ])
        .arg(&standby)
        .output()
        .unwrap();
    assert!(copied.status.success(), "{}", String::from_utf8_lossy(&copied.stderr));
    // Another directory of the socket, so that the port is no other's.
    let sockets = format!("unix_socket_directories={}", standby.display());
    let mut child = unprivileged(&server.binary("postgres"))
        .args(["-c", &sockets, "-c", "listen_addresses=", "-c", "hot_standby_feedback=on"])
        .args(["-c", "wal_receiver_status_interval=1", "-D"])
        .arg(&standby)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let began = Instant::now();
    let patient = || {
        assert!(began.elapsed() < Duration::from_mins(1), "no xmin of the standby: {}", server.log());
        std::thread::sleep(Duration::from_millis(50));
    };
    let engine = PostgresEngine::new(Config::unix(&standby, server.port, "kelvin", "postgres"));
    let mut query = loop {
        match engine.connect() {
            Ok(session) => break session,
            Err(_) => patient(),
        }
    };
    query.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM stock").unwrap();
    let mut primary = server.session();
    let asked = "SELECT count(xmin)::int8 FROM pg_replication_slots";
    while primary.query(asked).unwrap().int(0, 0).unwrap() == 0 {
        patient();
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn what_holds_the_horizon_without_a_session_is_reported_with_its_name_until_it_is_gone() {
    let server = Server::start_with(SETTINGS, HBA, |_| {});
    let mut session = server.session();
    session.run("CREATE TABLE stock (id int PRIMARY KEY)").unwrap();
    leave_a_slot_behind(&server);
    session.run("SELECT pg_create_logical_replication_slot('reader', 'pgoutput')").unwrap();
    session.run("BEGIN; INSERT INTO stock VALUES (1); PREPARE TRANSACTION 'order 7'").unwrap();
    for id in 2..12 {
        session.run(&format!("INSERT INTO stock VALUES ({id})")).unwrap();
    }
    let mut watching = Watching::start(server.unix(), &WatchPlan::default());
    let holders = |seen: &[_], over: bool| -> BTreeSet<(String, String)> {
        let of = occurrences(seen).filter(|one| one.kind.contains("held") && one.to.is_some() == over);
        of.map(|one| (one.kind.clone(), one.subject.clone())).collect()
    };
    let expected: BTreeSet<(String, String)> = [
        ("held-by-prepared", "prepared transaction order 7, database postgres"),
        ("held-by-slot", "replication slot standby, physical, inactive"),
        ("catalogs-held-by-slot", "replication slot reader, logical, inactive"),
    ]
    .map(|(kind, subject)| (kind.to_owned(), subject.to_owned()))
    .into();
    watching.until("holder", |seen| holders(seen, false).len() >= 3);
    assert_eq!(holders(&watching.seen, false), expected);
    for one in occurrences(&watching.seen).filter(|one| one.kind.contains("held")) {
        assert!(
            one.figures["transactions"] >= 10.0
                && one.figures["seconds"] >= if one.kind.ends_with("by-slot") { 30.0 } else { 5.0 },
            "{one:?}"
        );
    }
    session.run("ROLLBACK PREPARED 'order 7'").unwrap();
    session.run("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots").unwrap();
    watching.until("end", |seen| holders(seen, true).len() >= 3);
    assert_eq!(holders(&watching.seen, true), expected);
    watching.finish();
    assert!(watching.lost().is_empty(), "{:?}", watching.lost());
}

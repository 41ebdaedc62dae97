//! Snapshots and resets from the command line.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::process::Stdio;
use std::time::Duration;

use kelvin_database::Engine;
use kelvin_database::postgres::PostgresEngine;
use support::{Place, Server, text, wait_until};

#[test]
fn a_snapshot_is_saved_listed_restored_and_dropped() {
    let place = Place::new();
    let file = place.path("shop.db");
    let rows = |sql: &str| {
        let database = rusqlite::Connection::open(&file).unwrap();
        database.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap()
    };
    let database = rusqlite::Connection::open(&file).unwrap();
    database
        .execute_batch("pragma journal_mode = wal; create table a (n int); insert into a values (1)")
        .unwrap();
    drop(database);
    let target = "--target=sqlite:shop.db";
    assert!(place.expect(0, &["snapshot", "list", target]).contains("no snapshots"));
    place.expect(0, &["snapshot", "save", "first", target]);
    let refused = place.run(&["snapshot", "save", "first", target]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("snapshot first already exists"), "{}", text(&refused.stderr));
    let listed = place.expect(0, &["snapshot", "list", target]);
    let line = listed.lines().nth(1).unwrap();
    assert!(
        line.starts_with("first  files ") && line.contains("script, the tables of the database"),
        "{listed}"
    );

    // Each run of user scripts starts from the snapshot.
    place.write("own.sql", "insert into a values (2);\n");
    let run = [
        "run",
        "script",
        "own.sql",
        target,
        "-t",
        "5",
        "-c",
        "1",
        "--snapshot",
        "first",
        "--idle-wait",
        "0s",
        "-v",
    ];
    for _ in 0..2 {
        let shown = place.expect(0, &run);
        assert!(shown.contains("reset by files (as it was saved)"), "{shown}");
        assert_eq!(rows("select count(*) from a"), 6);
    }
    let spec = place.expect(0, &[&run[..], &["--print-spec"]].concat());
    assert!(spec.contains("[reset]\nhow = \"auto\"\nsnapshot = \"first\"\n"), "{spec}");

    place.expect(0, &["snapshot", "restore", "first", target, "--yes"]);
    assert_eq!(rows("select count(*) from a"), 1);
    for (args, words) in [
        (["snapshot", "drop", "first", target], "give --yes"),
        (["snapshot", "restore", "first", target], "would replace everything in"),
        (
            ["snapshot", "restore", "second", target],
            "there is no snapshot second of this database; existing snapshots: first",
        ),
        (["snapshot", "save", "../up", target], "is not a valid name for a snapshot"),
        (["snapshot", "list", "--target", "sqlite"], "give one with --target sqlite:FILE"),
    ] {
        let refused = place.run(&args);
        assert_eq!(refused.status.code(), Some(2), "{args:?}");
        assert!(text(&refused.stderr).contains(words), "{}", text(&refused.stderr));
    }
    place.expect(0, &["snapshot", "drop", "first", target, "--yes"]);
    assert_eq!(std::fs::read_dir(place.path("shop.db.snapshots")).unwrap().count(), 0);
}

#[test]
fn a_killed_save_leaves_no_snapshot_and_refusals_are_reported() {
    let server = Server::start();
    let engine = PostgresEngine::new(server.instance.config());
    let mut session = engine.connect().unwrap();
    session.run("create table a (n int)").unwrap();
    session.run("insert into a select generate_series(1, 500000)").unwrap();
    session.run("create role visitor login").unwrap();
    session.run("create database watched").unwrap();
    drop(session);
    let place = Place::new();
    let url = server.url();
    let target = ["--target", url.as_str()];
    let mut config = server.instance.config();
    config.database = "watched".into();
    let mut watch = PostgresEngine::new(config).connect().unwrap();

    let mut child = place
        .command(&[&["snapshot", "save", "one"], &target[..]].concat())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let copying =
        "select count(*) from pg_stat_activity where query like 'CREATE DATABASE %' and state = 'active'";
    wait_until("the copy is being made", || watch.query(copying).unwrap().int(0, 0).unwrap() > 0);
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("the server has noticed", || watch.query(copying).unwrap().int(0, 0).unwrap() == 0);
    assert!(place.expect(0, &[&["snapshot", "list"], &target[..]].concat()).contains("no snapshots"));
    assert_eq!(
        engine.connect().unwrap().query("select count(*) from a").unwrap().int(0, 0).unwrap(),
        500_000
    );
    place.expect(0, &[&["snapshot", "save", "one"], &target[..]].concat());
    let left =
        watch.query("select count(*) from pg_database where datname like 'kelvin\\_unfinished%'").unwrap();
    assert_eq!(left.int(0, 0).unwrap(), 0, "what the killed save left was cleared away");

    engine.connect().unwrap().run("delete from a").unwrap();
    place.expect(0, &[&["snapshot", "restore", "one", "--yes"], &target[..]].concat());
    assert_eq!(
        engine.connect().unwrap().query("select count(*) from a").unwrap().int(0, 0).unwrap(),
        500_000
    );

    // A role that may not create databases gets a remedy, and nothing changes.
    let visitor = url.replace("kelvin@", "visitor@");
    let refused = place.run(&["snapshot", "save", "two", "--target", &visitor, "--how", "template"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("ALTER ROLE … CREATEDB"), "{}", text(&refused.stderr));
    place.expect(0, &[&["snapshot", "drop", "one", "--yes"], &target[..]].concat());
    let left = watch.query("select count(*) from pg_database where datname like 'kelvin\\_%'").unwrap();
    assert_eq!(left.int(0, 0).unwrap(), 0);

    // Kelvin does not wait for a holder of the lock, but for a session that is about to end.
    let config =
        kelvin_database::postgres::Config { database: "postgres".into(), ..server.instance.config() };
    let mut holder = PostgresEngine::new(config).connect().unwrap();
    holder.query("select pg_advisory_lock(x'006b656c76696e53'::bit(64)::bigint)::text").unwrap();
    let save = [&["snapshot", "save", "three"], &target[..]].concat();
    let refused = place.run(&save);
    assert!(
        text(&refused.stderr).contains("another kelvin process is saving or restoring"),
        "{}",
        text(&refused.stderr)
    );
    let leaving = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(800));
        drop(holder);
    });
    place.expect(0, &save);
    leaving.join().unwrap();
}

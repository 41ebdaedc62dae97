//! Loads TPROC-C into PostgreSQL, and checks it.

#![allow(clippy::unwrap_used, clippy::wildcard_imports, reason = "helpers of tests")]

mod load_support;
#[path = "transactions_support/mod.rs"]
mod server;

use kelvin_database::sqlite::SqliteEngine;
use kelvin_database::{Engine, ErrorClass};
use kelvin_workload::tproc_c::{Options, Profile, TprocC};
use kelvin_workload::{BuildProgress, Stop, progress::Quiet};
use load_support::*;

fn database(server: &server::Server, name: &str) -> kelvin_database::postgres::PostgresEngine {
    server.engine("postgres").connect().unwrap().run(&format!("create database {name}")).unwrap();
    server.engine(name)
}

fn int(engine: &dyn Engine, sql: &str) -> i64 {
    engine.connect().unwrap().query(sql).and_then(|rows| rows.int(0, 0)).unwrap()
}

#[test]
fn rows_follow_the_rules_are_those_of_sqlite_and_every_violation_is_found() {
    let server = server::Server::start();
    let one = database(&server, "one");
    let workload = build(&one, Options { foreign_keys: true, ..options(1) });
    initial_data_follow_the_rules(&one, 1);
    assert_eq!(int(&one, "select count(*) from pg_constraint where contype = 'f'"), 10);
    let frozen = "select count(*) from pg_class where relname = 'order_line' and relallvisible = relpages";
    assert_eq!(int(&one, frozen), 1, "the visibility map is set");
    workload.drop_data(&one).unwrap();
    assert_eq!(int(&one, "select count(*) from pg_class where relnamespace = 'public'::regnamespace"), 0);

    let two = database(&server, "two");
    let in_parallel =
        Options { loaders: Some(2), partitions: Some(3), profile: Profile::Hammerdb, ..options(2) };
    let workload = build(&two, in_parallel);
    initial_data_follow_the_rules(&two, 2);
    assert_eq!(violated(&workload, &two), []);
    let directory = tempfile::tempdir().unwrap();
    let sqlite = SqliteEngine::open(directory.path().join("two.db")).unwrap();
    build(&sqlite, options(2));
    assert_eq!(digests(&two), digests(&sqlite));
}

#[test]
fn each_condition_is_found_violated_and_a_database_of_hammerdb_is_recognised_and_left_alone() {
    let server = server::Server::start();
    let engine = database(&server, "one");
    let workload = build(&engine, options(1));
    each_condition_finds_its_violation(&workload, &engine);
    a_database_of_hammerdb_is_recognised_and_left_alone(&database(&server, "theirs"));
}

#[test]
fn a_stopped_build_goes_on() {
    let server = server::Server::start();
    stopped_build_goes_on(&database(&server, "stopped"), &database(&server, "whole"));
}

/// If the server writes no WAL for new tables, they are loaded as a whole. A build that was stopped keeps its
/// complete warehouses, and resumes with what each table lacks.
#[test]
fn tables_are_loaded_as_a_whole_without_wal() {
    let server = server::Server::start_with(&["wal_level=minimal", "max_wal_senders=0"]);
    let engine = database(&server, "minimal");
    let written = || int(&engine, "select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint");
    let before = written();
    let asked = || Options { loaders: Some(2), ..options(2) };
    let workload = TprocC::new(asked()).unwrap();
    let stop = Stop::new();
    let progress = StopAfter { rows: 400_000, stop: stop.clone(), seen: 0.into() };
    let error = workload.build(&engine, &progress, &stop).unwrap_err();
    assert!(error.help().unwrap_or_default().contains("to continue"), "{error}");
    let marks = "select count(*) from kelvin_tproc_c where name like 'table %'";
    assert!((1..8).contains(&int(&engine, marks)), "tables that are there, in whole or in part");
    let kept = "select count(distinct ol_w_id) from order_line";
    assert!((1..3).contains(&int(&engine, kept)), "whole warehouses of the table that was interrupted");
    assert_eq!(int(&engine, "select count(*) from kelvin_tproc_c_loaded where w_id > 0"), 0);
    build(&engine, asked());
    assert_eq!(int(&engine, marks), 0);
    initial_data_follow_the_rules(&engine, 2);
    assert_eq!(violated(&workload, &engine), []);

    let whole = database(&server, "whole");
    let before_whole = written();
    build(&whole, asked());
    assert_eq!(digests(&engine), digests(&whole));
    let (wal, size) = (written() - before_whole, int(&whole, "select pg_database_size('whole')"));
    assert!(wal < size / 4 && before < before_whole, "{wal} bytes of WAL for {size} of data");
    let frozen = "select count(*) from pg_class where relname = 'stock' and relallvisible = relpages";
    assert_eq!(int(&whole, frozen), 1);

    let divided = database(&server, "divided");
    let workload = build(&divided, Options { partitions: Some(2), ..options(1) });
    assert_eq!(violated(&workload, &divided), []);
}

/// Ends all other connections once half of the second warehouse is loaded.
struct Cut<'a>(&'a dyn Engine);

impl BuildProgress for Cut<'_> {
    fn update(&self, what: &str, _done: u64, _total: u64, rows: u64) {
        if what == "warehouses loaded" && rows > 700_000 {
            let cut = "select count(pg_terminate_backend(pid)) from pg_stat_activity \
                       where datname = current_database() and pid <> pg_backend_pid()";
            self.0.connect().unwrap().query(cut).unwrap();
        }
    }
}

#[test]
fn a_build_whose_connections_were_cut_goes_on() {
    let server = server::Server::start();
    let engine = database(&server, "cut");
    let workload = TprocC::new(Options { loaders: Some(2), ..options(2) }).unwrap();
    let error = workload.build(&engine, &Cut(&engine), &Stop::new()).unwrap_err();
    assert_eq!(error.class(), ErrorClass::ConnectionLost, "{error}");
    assert!(error.message().contains("loading warehouse") && error.message().contains("table "), "{error}");
    assert!(!workload.is_built(&engine).unwrap());
    workload.build(&engine, &Quiet, &Stop::new()).unwrap();
    initial_data_follow_the_rules(&engine, 2);
    assert_eq!(violated(&workload, &engine), []);
}

fn a_database_of_hammerdb_is_recognised_and_left_alone(engine: &dyn Engine) {
    let workload = build(engine, Options { profile: Profile::Hammerdb, ..options(1) });
    engine.connect().unwrap().run("drop table kelvin_tproc_c, kelvin_tproc_c_loaded").unwrap();
    assert!(workload.is_built(engine).unwrap());
    workload.build(engine, &Quiet, &Stop::new()).unwrap();
    let spec = TprocC::new(options(1)).unwrap();
    let error = spec.build(engine, &Quiet, &Stop::new()).unwrap_err();
    assert!(error.message().contains("profile hammerdb, not spec"), "{error}");
    let error = workload.drop_data(engine).unwrap_err();
    assert!(error.message().contains("HammerDB"), "{error}");
    assert_eq!(int(engine, "select count(*) from warehouse"), 1);
}

//! Loads TPROC-C into SQLite, and checks it.

#![allow(clippy::unwrap_used, clippy::wildcard_imports, reason = "helpers of tests")]

mod load_support;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use kelvin_database::Engine;
use kelvin_database::sqlite::SqliteEngine;
use kelvin_workload::tproc_c::{Options, TprocC};
use kelvin_workload::{Stop, progress::Quiet};
use load_support::*;

fn engine(directory: &tempfile::TempDir, name: &str) -> SqliteEngine {
    SqliteEngine::open(directory.path().join(name)).unwrap()
}

#[test]
fn one_warehouse_follows_the_rules_and_every_violation_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(&directory, "one.db");
    let workload = build(&engine, Options { foreign_keys: true, ..options(1) });
    initial_data_follow_the_rules(&engine, 1);
    assert_eq!(violated(&workload, &engine), []);
    let mode = engine.connect().unwrap().query("pragma journal_mode").unwrap();
    assert_eq!(mode.text(0, 0).unwrap(), "wal");

    workload_is_refused_when_options_differ(&engine);
}

#[test]
fn each_condition_is_found_violated() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(&directory, "one.db");
    let workload = build(&engine, options(1));
    each_condition_finds_its_violation(&workload, &engine);
    workload.drop_data(&engine).unwrap();
    assert!(!workload.is_built(&engine).unwrap());
    assert_eq!(violated(&workload, &engine).len(), 12, "no table, no condition that holds");
    workload.drop_data(&engine).unwrap();
}

fn workload_is_refused_when_options_differ(engine: &dyn Engine) {
    let other = TprocC::new(options(2)).unwrap();
    assert!(!other.is_built(engine).unwrap());
    let error = other.build(engine, &Quiet, &Stop::new()).unwrap_err();
    assert!(error.message().contains("warehouses 1, not 2"), "{error}");
}

#[test]
fn a_stopped_build_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    stopped_build_goes_on(&engine(&directory, "stopped.db"), &engine(&directory, "whole.db"));
}

#[test]
fn tables_of_others_are_neither_used_nor_removed() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(&directory, "other.db");
    engine.connect().unwrap().run("create table item (x); create table stock (x)").unwrap();
    let workload = TprocC::new(options(1)).unwrap();
    let error = workload.build(&engine, &Quiet, &Stop::new()).unwrap_err();
    assert!(error.message().contains("did not create: item, stock"), "{error}");
    let error = workload.drop_data(&engine).unwrap_err();
    assert!(error.message().contains("does not remove them: item, stock"), "{error}");
}

const CHILD: &str = "KELVIN_TEST_BUILD_HERE";

#[test]
#[ignore = "the child process of the next test"]
fn build_until_killed() {
    let path = std::env::var(CHILD).unwrap();
    build(&SqliteEngine::open(path).unwrap(), options(2));
}

#[test]
fn a_killed_build_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("killed.db");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "build_until_killed", "--ignored"])
        .env(CHILD, &path)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    // Halfway through the second warehouse: the items take 10 MB and each warehouse about 70 MB.
    let deadline = Instant::now() + Duration::from_mins(2);
    while std::fs::metadata(&path).map_or(0, |file| file.len()) < 110_000_000 {
        assert!(
            Instant::now() < deadline && child.try_wait().unwrap().is_none(),
            "the child did not get there"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();

    let engine = SqliteEngine::open(path).unwrap();
    let workload = TprocC::new(options(2)).unwrap();
    assert!(!workload.is_built(&engine).unwrap());
    let whole = engine.connect().unwrap().query("select count(*) from warehouse").unwrap().int(0, 0).unwrap();
    assert!(whole >= 1, "the first warehouse was complete");
    assert_eq!(engine.connect().unwrap().query("pragma integrity_check").unwrap().text(0, 0).unwrap(), "ok");
    build(&engine, options(2));
    initial_data_follow_the_rules(&engine, 2);
    assert_eq!(violated(&workload, &engine), []);
}

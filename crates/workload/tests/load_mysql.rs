//! Loads TPROC-C and pgbench's tables into MariaDB, and checks them.

#![allow(clippy::unwrap_used, clippy::wildcard_imports, reason = "helpers of tests")]

mod load_support;
mod mysql_databases;

use kelvin_database::sqlite::SqliteEngine;
use kelvin_database::{Engine, ErrorClass};
use kelvin_workload::tproc_c::{Options, TprocC};
use kelvin_workload::{BuildProgress, Stop, progress::Quiet};
use load_support::*;
use mysql_databases::{database, start};

fn int(engine: &dyn Engine, sql: &str) -> i64 {
    engine.connect().unwrap().query(sql).and_then(|rows| rows.int(0, 0)).unwrap()
}

/// Ends all other connections to the database once half of the second warehouse is loaded.
struct Cut<'a>(&'a dyn Engine);

impl BuildProgress for Cut<'_> {
    fn update(&self, what: &str, _done: u64, _total: u64, rows: u64) {
        if what == "warehouses loaded" && rows > 700_000 {
            let mut session = self.0.connect().unwrap();
            let others = session
                .query(
                    "select id from information_schema.processlist where db = database() and id <> connection_id()",
                )
                .unwrap();
            for row in 0..others.len() {
                // The connection may have ended meanwhile.
                let _ = session.run(&format!("kill {}", others.int(row, 0).unwrap()));
            }
        }
    }
}

#[test]
fn rows_are_those_of_sqlite_after_a_build_that_was_cut_and_every_violation_is_found() {
    let server = start();
    let engine = database(&server, "cut");
    let shape = Options { loaders: Some(2), partitions: Some(3), ..options(2) };
    let workload = TprocC::new(shape.clone()).unwrap();
    let error = workload.build(&engine, &Cut(&engine), &Stop::new()).unwrap_err();
    assert_eq!(error.class(), ErrorClass::ConnectionLost, "{error}");
    assert!(error.message().contains("loading warehouse") && error.message().contains("table "), "{error}");
    assert!(!workload.is_built(&engine).unwrap());
    let other = TprocC::new(Options { data_seed: Some(9), ..options(2) }).unwrap();
    let refused = other.build(&engine, &Quiet, &Stop::new()).unwrap_err();
    assert!(refused.message().contains("data seed 1, not 9"), "{refused}");

    // A routine of an older version.
    engine.connect().unwrap().run("create procedure kelvin_delivery(home int) select 1").unwrap();
    workload.build(&engine, &Quiet, &Stop::new()).unwrap();
    assert_eq!(workload.lacks(&engine).unwrap(), Vec::<String>::new());
    initial_data_follow_the_rules(&engine, 2);
    let directory = tempfile::tempdir().unwrap();
    let sqlite = SqliteEngine::open(directory.path().join("two.db")).unwrap();
    build(&sqlite, options(2));
    assert_eq!(digests(&engine), digests(&sqlite));
    all_conditions_find_their_violations(&workload, &engine);

    let mut session = engine.connect().unwrap();
    session.run("drop index orders_i2 on orders; drop procedure kelvin_payment").unwrap();
    let lacks = workload.lacks(&engine).unwrap();
    assert!(
        lacks.len() == 2 && lacks[0].contains("orders_i2") && lacks[1].contains("kelvin_payment"),
        "{lacks:?}"
    );
    workload.drop_data(&engine).unwrap();
    let left = "select (select count(*) from information_schema.tables where table_schema = database()) + \
                (select count(*) from information_schema.routines where routine_schema = database())";
    assert_eq!(int(&engine, left), 0);
}

#[test]
fn what_cannot_be_built_is_refused_and_foreign_keys_are_made() {
    let server = start();
    let engine = database(&server, "keyed");
    let refused = |options: Options| {
        TprocC::new(options).unwrap().build(&engine, &Quiet, &Stop::new()).unwrap_err().to_string()
    };
    let both = refused(Options { foreign_keys: true, partitions: Some(2), ..options(1) });
    assert!(both.contains("not support foreign keys on partitioned tables"), "{both}");
    let mut config = server.unix();
    config.database.clear();
    let nowhere = kelvin_database::mysql::MysqlEngine::new(config);
    let error = TprocC::new(options(1)).unwrap().build(&nowhere, &Quiet, &Stop::new()).unwrap_err();
    assert!(error.message().contains("names no database"), "{error}");

    let workload = build(&engine, Options { foreign_keys: true, ..options(1) });
    let keys = "select count(*) from information_schema.table_constraints \
                where constraint_schema = database() and constraint_type = 'FOREIGN KEY'";
    assert_eq!(int(&engine, keys), 10);
    workload.drop_data(&engine).unwrap();
    assert_eq!(
        int(&engine, "select count(*) from information_schema.tables where table_schema = database()"),
        0
    );
}

//! Loads TPROC-C into SQL Server, and checks it; skipped with a message if no server is configured.

#![allow(clippy::unwrap_used, clippy::wildcard_imports, reason = "helpers of tests")]

mod load_support;
mod sqlserver_databases;

use kelvin_database::{Engine, ErrorClass, sqlite::SqliteEngine};
use kelvin_workload::tproc_c::{Options, Profile, TprocC};
use kelvin_workload::{Stop, progress::Quiet};
use load_support::*;
use sqlserver_databases::database;

#[test]
fn a_stopped_build_on_sql_server_goes_on_to_sqlites_rows_and_every_violation_is_found() {
    let Some(engine) = database("stopped") else { return };
    let directory = tempfile::tempdir().unwrap();
    let sqlite = SqliteEngine::open(directory.path().join("two.db")).unwrap();
    stopped_build_goes_on(&engine, &sqlite);
    let workload = TprocC::new(options(2)).unwrap();
    all_conditions_find_their_violations(&workload, &engine);

    let mut session = engine.connect().unwrap();
    session.run("drop index orders_i2 on orders").unwrap();
    session.run("drop procedure kelvin_payment").unwrap();
    let lacks = workload.lacks(&engine).unwrap();
    assert!(
        lacks.len() == 2 && lacks[0].contains("orders_i2") && lacks[1].contains("kelvin_payment"),
        "{lacks:?}"
    );
    workload.drop_data(&engine).unwrap();
    let left =
        session.query("select count(*) from sys.objects where type in ('U', 'P') and is_ms_shipped = 0");
    assert_eq!(left.unwrap().int(0, 0).unwrap(), 0);
}

#[test]
fn what_sql_server_cannot_do_is_refused_and_foreign_keys_are_made() {
    let Some(engine) = database("keyed") else { return };
    let refused = |options: Options| {
        TprocC::new(options).unwrap().build(&engine, &Quiet, &Stop::new()).unwrap_err().to_string()
    };
    let partitions = refused(Options { partitions: Some(2), ..options(1) });
    assert!(partitions.contains("not supported on SQL Server"), "{partitions}");
    let mut session = engine.connect().unwrap();
    let babelfish = session.query("select cast(serverproperty('babelfish') as int)").unwrap();
    if !babelfish.is_null(0, 0).unwrap() && babelfish.int(0, 0).unwrap() == 1 {
        let filled = refused(Options { fill_page: true, ..options(1) });
        assert!(filled.contains("pages of Babelfish"), "{filled}");
    } else {
        let workload = build(&engine, Options { fill_page: true, ..options(1) });
        let pages = "select cast(sum(used_page_count) as int) from sys.dm_db_partition_stats \
                     where object_id = object_id('district') and index_id = 1";
        assert!(session.query(pages).unwrap().int(0, 0).unwrap() >= 10, "a page a district");
        workload.drop_data(&engine).unwrap();
    }
    let workload = build(&engine, Options { foreign_keys: true, ..options(1) });
    assert_eq!(violated(&workload, &engine), []);
    let keys = session.query("select count(*) from sys.foreign_keys").unwrap();
    assert_eq!(keys.int(0, 0).unwrap(), 10);
}

#[test]
fn pages_are_filled_on_sql_server_only() {
    let directory = tempfile::tempdir().unwrap();
    let sqlite = SqliteEngine::open(directory.path().join("kelvin.db")).unwrap();
    let filled = Options { fill_page: true, ..options(1) };
    let error = TprocC::new(filled.clone()).unwrap().build(&sqlite, &Quiet, &Stop::new()).unwrap_err();
    assert_eq!(error.class(), ErrorClass::Usage);
    assert!(error.message().contains("--fill-page is not possible on SQLite"), "{error}");
    let error = TprocC::new(Options { profile: Profile::Hammerdb, ..filled }).unwrap_err();
    assert!(error.message().contains("belongs to the spec profile"), "{error}");
}

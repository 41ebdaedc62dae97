//! A reset restores exactly the same tables with every method, and deletes nothing else.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../run/tests/robustness_support/mod.rs"]
mod robustness_support;
#[allow(unused_imports, reason = "its server is not used here")]
#[path = "../../workload/tests/transactions_support/mod.rs"]
mod transactions_support;

use std::collections::BTreeSet;
use std::path::Path;

use kelvin_database::managed::{Line, Manager, Profile};
use kelvin_database::postgres::PostgresEngine;
use kelvin_database::snapshot::{SnapshotJob, SnapshotMethod, new_name};
use kelvin_database::sqlite::SqliteEngine;
use kelvin_database::target::Target;
use kelvin_database::{DataLocation, Engine, ErrorClass, ServerDirectories};
use kelvin_lab::reset::{OtherError, ResetContext, ResetError, Task, contents, reset};
use kelvin_run::spec::{Build, Reset, ResetMethod, Span};
use kelvin_workload::progress::Quiet;
use kelvin_workload::tproc_c::{Options, TprocC};
use kelvin_workload::{Stop, Workload};
use robustness_support::disk::Disk;
use transactions_support::digests;

/// Builds data without progress output and records the messages.
struct Around<'a> {
    engine: &'a dyn Engine,
    workload: &'a TprocC,
    built: u32,
    messages: Vec<String>,
}

impl ResetContext for Around<'_> {
    fn report(&mut self, text: &str) {
        self.messages.push(text.into());
    }

    fn progress(&mut self, _what: &str, done: u64, total: u64) {
        assert!(done <= total, "{done} of {total}");
    }

    fn end(&mut self) {}

    fn build(&mut self) -> Result<(), OtherError> {
        self.built += 1;
        self.workload.build(self.engine, &Quiet, &Stop::new())?;
        Ok(())
    }
}

fn one_warehouse() -> TprocC {
    TprocC::new(Options { warehouses: Some(1), ..Options::default() }).unwrap()
}

fn by(how: ResetMethod) -> Reset {
    Reset { how, idle_wait: Some(Span::seconds(0)), ..Reset::default() }
}

/// The location of the engine's data; its manager's servers are below the directory.
fn place_of(engine: &dyn Engine, directory: &Path) -> Box<dyn DataLocation> {
    let directories = || {
        let manager = Manager::new(directory.join("servers"));
        Ok(ServerDirectories { manager, dumps: directory.join("dumps") })
    };
    Target::parse(&engine.describe()).unwrap().open(None, &directories, &mut |_| ()).unwrap()
}

/// Resets, and returns the notes for the result, all messages, and how often the data was built.
fn run_reset(
    engine: &dyn Engine,
    place: &dyn DataLocation,
    asked: &Reset,
    build: Build,
) -> Result<(Vec<String>, Vec<String>, u32), ResetError> {
    let workload = one_warehouse();
    let mut around = Around { engine, workload: &workload, built: 0, messages: Vec::new() };
    let stop = Stop::new();
    let task = Task { engine, place, workload: &workload, reset: asked, build, stop: &stop };
    let notes = reset(&task, &mut around)?;
    Ok((notes, around.messages, around.built))
}

/// The changes of a run to the tables, and some that no run makes.
fn change(engine: &dyn Engine) {
    engine
        .connect()
        .unwrap()
        .run(
            "update district set d_next_o_id = d_next_o_id + 1, d_ytd = d_ytd + 1; delete from new_order where no_o_id < 2200; \
             update stock set s_quantity = 11 where s_i_id % 7 = 0; create table left_behind (a int)",
        )
        .unwrap();
}

fn tables(engine: &dyn Engine) -> Vec<(&'static str, usize, u64)> {
    digests(engine.connect().unwrap().as_mut())
}

fn has_left_behind(engine: &dyn Engine) -> bool {
    engine.connect().unwrap().query("select count(*) from left_behind").is_ok()
}

#[test]
fn sqlite_comes_back_exactly_and_a_changed_snapshot_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tpcc.db");
    let engine = SqliteEngine::open(&file).unwrap();
    let place = place_of(&engine, directory.path());
    let error = run_reset(&engine, place.as_ref(), &by(ResetMethod::Auto), Build::Never).unwrap_err();
    assert!(error.to_string().contains("--no-build"), "{error}");

    let (notes, _, built) = run_reset(&engine, place.as_ref(), &by(ResetMethod::Auto), Build::Auto).unwrap();
    assert_eq!((built, notes.len()), (1, 1));
    assert!(notes[0].starts_with("reset by files (SQLite uses a single file)"), "{notes:?}");
    let loaded = tables(&engine);
    change(&engine);
    assert_ne!(tables(&engine), loaded);
    let error =
        run_reset(&engine, place.as_ref(), &by(ResetMethod::Auto), Build::Never).unwrap_err().to_string();
    assert!(
        error.contains("do not belong to the workload (left_behind)") && has_left_behind(&engine),
        "{error}"
    );
    let (_, _, built) = run_reset(&engine, place.as_ref(), &by(ResetMethod::Files), Build::Never).unwrap();
    assert_eq!((built, tables(&engine) == loaded, has_left_behind(&engine)), (0, true, false));

    // Another process has the file open: the error names it, and its data is kept.
    change(&engine);
    let other = engine.connect().unwrap();
    let error =
        run_reset(&engine, place.as_ref(), &by(ResetMethod::Files), Build::Never).unwrap_err().to_string();
    assert!(error.contains("is in use by another session; nothing was changed"), "{error}");
    drop(other);
    assert!(has_left_behind(&engine));

    // An incomplete snapshot, left by a killed save, is not used and does not interfere.
    let snapshots = directory.path().join("tpcc.db.snapshots");
    let all = place.snapshots().unwrap();
    let name = all[0].name.clone();
    let description = snapshots.join(format!("{name}.toml"));
    let text = std::fs::read_to_string(&description).unwrap();
    std::fs::remove_file(&description).unwrap();
    std::fs::write(snapshots.join(format!("{name}.db.saving")), "half").unwrap();
    std::fs::write(&description, &text[..text.len() / 2]).unwrap();
    assert!(place.snapshots().unwrap().is_empty());
    std::fs::remove_file(&description).unwrap();
    let (_, messages, built) =
        run_reset(&engine, place.as_ref(), &by(ResetMethod::Files), Build::Auto).unwrap();
    assert_eq!((built, tables(&engine) == loaded), (1, true));
    assert!(messages.iter().any(|line| line.contains("rebuilding them")), "{messages:?}");

    // A snapshot that was modified, and one of other data.
    let changed =
        std::fs::OpenOptions::new().append(true).open(snapshots.join(format!("{name}.db"))).unwrap();
    changed.set_len(1 << 20).unwrap();
    let error =
        run_reset(&engine, place.as_ref(), &by(ResetMethod::Files), Build::Auto).unwrap_err().to_string();
    assert!(error.contains("was changed"), "{error}");
    let other = text.replace("1 warehouse", "2 warehouses").replace(&name, "other");
    std::fs::write(snapshots.join("other.toml"), other).unwrap();
    let named = Reset { snapshot: Some("other".into()), ..by(ResetMethod::Auto) };
    let error = run_reset(&engine, place.as_ref(), &named, Build::Auto).unwrap_err().to_string();
    assert!(error.contains("\"2 warehouses, seed 1\", not \"1 warehouse, seed 1\""), "{error}");
    let named = Reset { snapshot: Some("none".into()), ..by(ResetMethod::Auto) };
    let error = run_reset(&engine, place.as_ref(), &named, Build::Auto).unwrap_err().to_string();
    assert!(error.contains("there is no snapshot none"), "{error}");
    assert_eq!(tables(&engine), loaded, "refused before anything was changed");
}

#[test]
fn a_full_disk_is_reported_before_the_copy() {
    let disk = Disk::mount(160);
    let file = disk.place().join("tpcc.db");
    let engine = SqliteEngine::open(&file).unwrap();
    let place = place_of(&engine, disk.place());
    let error = run_reset(&engine, place.as_ref(), &by(ResetMethod::Auto), Build::Auto).unwrap_err();
    let ResetError::Database(error) = error else { panic!("{error}") };
    assert_eq!(error.class(), ErrorClass::DiskFull);
    assert!(error.message().contains("does not fit"), "{error}");
    assert!(place.snapshots().unwrap().is_empty());
    assert!(one_warehouse().is_built(&engine).unwrap(), "the data are as they were");
}

#[test]
fn postgres_comes_back_exactly_by_template_by_files_and_by_dump() {
    let directory = tempfile::Builder::new().prefix("kelvin-test-").tempdir_in("/var/tmp").unwrap();
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let server = Managed(Manager::new(directory.path().join("servers")));
    let profile = Profile::parse("mine.conf", "work_mem = 6MB\nshared_buffers = 64MB\n").unwrap();
    let instance = server.0.up_with_profile(None, &profile, &mut |_| ()).unwrap();
    let major = instance.major();
    let config = instance.config();
    let engine = PostgresEngine::new(config.clone());
    let place = place_of(&engine, directory.path());
    let mut session = engine.connect().unwrap();
    // Durability would only make these tests slower.
    session.run("alter system set fsync = off").unwrap();
    session.run("select pg_reload_conf()").unwrap();
    drop(session);

    let (notes, _, built) = run_reset(&engine, place.as_ref(), &by(ResetMethod::Auto), Build::Auto).unwrap();
    assert_eq!(built, 1);
    assert!(
        notes[0].starts_with("reset by template (") && notes[0].contains("by copy of the files"),
        "{notes:?}"
    );
    let loaded = tables(&engine);
    for how in [ResetMethod::Template, ResetMethod::Files, ResetMethod::Dump] {
        if how != ResetMethod::Template {
            save(&engine, place.as_ref(), how);
        }
        change(&engine);
        // A server that was bound to CPUs must still be bound.
        let pid = |process: u32| rustix::process::Pid::from_raw(i32::try_from(process).unwrap());
        let running = || server.0.running(major).unwrap().pid();
        let cpus = || rustix::thread::sched_getaffinity(pid(running())).unwrap();
        let all = cpus();
        let mut one = rustix::thread::CpuSet::new();
        one.set((0..rustix::thread::CpuSet::MAX_CPU).find(|cpu| all.is_set(*cpu)).unwrap());
        rustix::thread::sched_setaffinity(pid(running()), &one).unwrap();
        let (notes, _, built) = run_reset(&engine, place.as_ref(), &by(how), Build::Never).unwrap();
        assert_eq!(cpus(), one, "{how}");
        rustix::thread::sched_setaffinity(pid(running()), &all).unwrap();
        assert_eq!(rustix::thread::sched_getaffinity(None).unwrap(), all, "this process is where it was");
        assert_eq!(server.0.profile(major).unwrap().name, "mine.conf");
        assert_eq!((built, tables(&engine) == loaded), (0, true), "{how}: {notes:?}");
        // A dump restores its contents and leaves other tables alone.
        assert_eq!(has_left_behind(&engine), how == ResetMethod::Dump, "{how}");
        let settings = engine
            .connect()
            .unwrap()
            .query("select current_setting('fsync') || ' ' || current_setting('work_mem')")
            .unwrap();
        assert_eq!(settings.text(0, 0).unwrap(), "off 6MB", "settings are no data");
    }
    let mut kept: Vec<SnapshotMethod> = place.snapshots().unwrap().iter().map(|about| about.way).collect();
    kept.sort_by_key(|way| way.as_str());
    assert_eq!(kept, [SnapshotMethod::Dump, SnapshotMethod::Files, SnapshotMethod::Template]);

    // Ready to run: frozen, counted, and visible to index-only scans without another vacuum.
    run_reset(&engine, place.as_ref(), &by(ResetMethod::Template), Build::Never).unwrap();
    let mut session = engine.connect().unwrap();
    let stale = "select count(*) from pg_class where relkind = 'r' and relpages > 0 and (relallvisible < relpages or reltuples < 0) \
                 and relnamespace = 'public'::regnamespace";
    assert_eq!(session.query(stale).unwrap().int(0, 0).unwrap(), 0);

    // Other sessions stay connected, and the error names them.
    session.run("set application_name = 'a colleague'; create table mine ()").unwrap();
    std::thread::scope(|scope| {
        for how in [ResetMethod::Template, ResetMethod::Files] {
            let (engine, place) = (&engine, place.as_ref());
            scope.spawn(move || {
                let error = run_reset(engine, place, &by(how), Build::Never).unwrap_err().to_string();
                assert!(error.contains("(a colleague, user kelvin)"), "{how}: {error}");
                assert!(error.contains("nothing was changed"), "{how}: {error}");
            });
        }
    });
    session.run("select * from mine").unwrap();
}

/// MariaDB, or the product below `KELVIN_MYSQL_BASE`; its programs are then in the path.
#[test]
fn a_managed_mariadb_comes_back_exactly_by_files_and_by_dump() {
    use kelvin_database::mysql::managed;
    use kelvin_database::mysql::{MysqlEngine, Product, snapshot};

    let base = std::env::var_os("KELVIN_MYSQL_BASE").map(std::path::PathBuf::from);
    let product = if base.as_ref().is_some_and(|base| base.join("bin/mysqld").is_file()) {
        Product::Mysql
    } else {
        Product::Mariadb
    };
    // MySQL's server may be installed without its client programs.
    let dumps = product == Product::Mariadb || snapshot::programs(product, base.as_deref()).is_some();

    let directory = tempfile::Builder::new().prefix("kelvin-test-").tempdir_in("/var/tmp").unwrap();
    std::fs::set_permissions(directory.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let server = ManagedMariadb(Manager::new(directory.path().join("servers")));
    let small = Profile {
        name: "mine.cnf".into(),
        lines: [
            ("innodb_log_file_size", "96M"),
            ("innodb_buffer_pool_size", "128M"),
            // Durability would only make these tests slower.
            ("innodb_flush_log_at_trx_commit", "0"),
        ]
        .map(|(name, value)| Line::new(name, value, ""))
        .into(),
        cautions: Vec::new(),
    };
    let instance = managed::up(&server.0, product, Some(&small), &mut |_| ()).unwrap();
    let engine = MysqlEngine::new(instance.config.clone());
    let place = place_of(&engine, directory.path());
    let (notes, _, built) = run_reset(&engine, place.as_ref(), &by(ResetMethod::Auto), Build::Auto).unwrap();
    assert_eq!(built, 1);
    assert!(notes[0].starts_with("reset by files (the files of the stopped server are copied)"), "{notes:?}");
    let loaded = tables(&engine);
    let ways = if dumps { &[ResetMethod::Files, ResetMethod::Dump][..] } else { &[ResetMethod::Files] };
    for &how in ways {
        if how == ResetMethod::Dump {
            save(&engine, place.as_ref(), how);
        }
        change(&engine);
        let (notes, _, built) = run_reset(&engine, place.as_ref(), &by(how), Build::Never).unwrap();
        assert_eq!((built, tables(&engine) == loaded), (0, true), "{how}: {notes:?}");
        // A dump restores its contents and leaves other tables alone.
        assert_eq!(has_left_behind(&engine), how == ResetMethod::Dump, "{how}");
        assert_eq!(managed::status(&server.0)[0].profile, "mine.cnf");
    }
    let all = place.snapshots().unwrap();
    let kept: BTreeSet<String> = all.iter().map(|about| about.way.to_string()).collect();
    assert_eq!(kept, ways.iter().map(ToString::to_string).collect());
    assert!(all.iter().all(|about| about.contents.engine.starts_with(&product.to_string())), "{all:?}");
    // The redo log has its previous size on disk again.
    let data = managed::status(&server.0).remove(0).data_directory;
    let redo = ["ib_logfile0", "#innodb_redo"].map(|name| data.join(name));
    let redo = redo.iter().find(|path| path.exists()).unwrap();
    let files: Vec<_> = if redo.is_dir() {
        std::fs::read_dir(redo).unwrap().map(|entry| entry.unwrap().path()).collect()
    } else {
        vec![redo.clone()]
    };
    for file in files {
        let redo = std::fs::metadata(&file).unwrap();
        assert!(std::os::unix::fs::MetadataExt::blocks(&redo) * 512 >= redo.len(), "{file:?}: {redo:?}");
    }

    // Without the product's programs there is no dump; those of the other product are not used.
    if !dumps {
        let error =
            run_reset(&engine, place.as_ref(), &by(ResetMethod::Dump), Build::Never).unwrap_err().to_string();
        assert!(error.contains("the client programs of MySQL"), "{error}");
    }

    // Other sessions stay connected, and the error names them.
    let mut session = engine.connect().unwrap();
    let error =
        run_reset(&engine, place.as_ref(), &by(ResetMethod::Files), Build::Never).unwrap_err().to_string();
    assert!(error.contains("other sessions are active"), "{error}");
    if dumps {
        let error =
            run_reset(&engine, place.as_ref(), &by(ResetMethod::Dump), Build::Never).unwrap_err().to_string();
        assert!(error.contains("(user kelvin)") && error.contains("nothing was changed"), "{error}");
    }
    session.run("select 1").unwrap();
}

/// A manager whose servers are always stopped at the end.
struct ManagedMariadb(Manager);

impl Drop for ManagedMariadb {
    fn drop(&mut self) {
        let _ = kelvin_database::mysql::managed::down(&self.0, None);
    }
}

/// Saves the data, which is as built, under the name that a reset searches for.
fn save(engine: &dyn Engine, place: &dyn DataLocation, how: ResetMethod) {
    let way = if how == ResetMethod::Files { SnapshotMethod::Files } else { SnapshotMethod::Dump };
    let workload = one_warehouse();
    let data = workload.data(engine).unwrap();
    let contents = contents(engine, "tproc-c", data.as_ref(), true).unwrap();
    let mut job = SnapshotJob { progress: &mut |_, done, total| assert!(done <= total), stop: &|| false };
    let keeper = place.snapshot_store(way).unwrap().unwrap();
    keeper.save(&new_name(&contents, way), &contents, &mut job).unwrap();
}

/// A manager whose servers are always stopped at the end.
struct Managed(Manager);

impl Drop for Managed {
    fn drop(&mut self) {
        let _ = self.0.down(None);
    }
}

#[test]
fn a_stop_before_the_copy_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tpcc.db");
    let engine = SqliteEngine::open(&file).unwrap();
    let place = place_of(&engine, directory.path());
    let workload = one_warehouse();
    workload.build(&engine, &Quiet, &Stop::new()).unwrap();
    let stop = Stop::new();
    stop.request();
    let mut around = Around { engine: &engine, workload: &workload, built: 0, messages: Vec::new() };
    let asked = by(ResetMethod::Auto);
    let task = Task {
        engine: &engine,
        place: place.as_ref(),
        workload: &workload,
        reset: &asked,
        build: Build::Auto,
        stop: &stop,
    };
    let error = reset(&task, &mut around).unwrap_err();
    assert!(matches!(error, ResetError::Interrupted(_)), "{error}");
    assert!(!Path::new(&format!("{}.snapshots", file.display())).exists());
}

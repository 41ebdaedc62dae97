//! Managed PostgreSQL instances, made from the binaries installed on this host.

#![allow(clippy::unwrap_used)]

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::Duration;

use kelvin_database::managed::Manager;
use kelvin_database::postgres::PostgresEngine;
use kelvin_database::postgres::managed::{Instance, installed};
use kelvin_database::{Engine, ErrorClass, LoadSettings};

/// Durability costs these tests seconds without any benefit.
const FAST: &[(&str, &str)] = &[("fsync", "off"), ("shared_buffers", "32MB")];

/// A manager in a separate directory, whose servers are stopped at the end in every case.
struct Place {
    manager: Manager,
    directory: tempfile::TempDir,
}

impl Place {
    /// `None` where no server is installed, unless the environment requires one.
    fn new() -> Option<Self> {
        if installed().is_empty() {
            assert!(
                std::env::var_os("KELVIN_REQUIRE_SERVERS").is_none(),
                "no PostgreSQL server is installed"
            );
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        Some(Self { manager: Manager::new(directory.path().join("base")), directory })
    }

    fn up(&self) -> Instance {
        self.manager.up_with_settings(None, FAST, &mut |_| ()).unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.manager.down(None).unwrap();
    }
}

fn ask(instance: &Instance, sql: &str) -> String {
    let engine = PostgresEngine::new(instance.config());
    let rows = engine.connect().unwrap().query(sql).unwrap();
    rows.text(0, 0).unwrap().to_owned()
}

fn kill(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

fn is_gone(pid: u32) -> bool {
    // A zombie process keeps its PID, but not its directory.
    std::fs::read_link(format!("/proc/{pid}/cwd")).is_err()
}

#[test]
fn an_instance_is_made_reused_stopped_and_started_again() {
    let Some(place) = Place::new() else { return };
    let mut steps = Vec::new();
    let first = place.manager.up_with_settings(None, FAST, &mut |step| steps.push(step.to_owned())).unwrap();
    assert!(!first.was_running());
    assert!(steps[0].starts_with("creating a PostgreSQL ") && steps[1].starts_with("starting"), "{steps:?}");
    assert_eq!(ask(&first, "SELECT current_database() || ' ' || current_user"), "kelvin kelvin");
    assert_eq!(ask(&first, "SELECT current_setting('fsync') || current_setting('listen_addresses')"), "off");
    let loaded = "SELECT ((current_setting('shared_preload_libraries') = 'pg_stat_statements') = EXISTS (SELECT FROM \
                  pg_available_extensions WHERE name = 'pg_stat_statements'))::text";
    assert_eq!(ask(&first, loaded), "true", "loaded where it is installed");
    assert_ne!(std::fs::metadata(first.data_directory()).unwrap().uid(), 0, "never as root");
    let socket = first.data_directory().with_file_name("run");
    assert_eq!(std::fs::metadata(socket).unwrap().mode() & 0o777, 0o700);

    PostgresEngine::new(first.config()).connect().unwrap().run("CREATE TABLE kept (k int)").unwrap();
    let again = place.manager.up(None, &mut |step| panic!("nothing to do, yet: {step}")).unwrap();
    assert!(again.was_running() && again.pid() == first.pid());
    let error = place.manager.up_with_settings(None, &[("fsync", "on")], &mut |_| ()).unwrap_err();
    assert!(error.message().contains("other settings"), "{error}");

    let status = place.manager.status().unwrap();
    assert_eq!((status.len(), status[0].pid, status[0].major), (1, Some(first.pid()), first.major()));
    assert!(status[0].answers && status[0].size > 10_000_000 && status[0].version.contains("PostgreSQL"));
    assert!(status[0].uptime.unwrap() < Duration::from_mins(5));

    assert_eq!(place.manager.down(None).unwrap(), [first.major()]);
    assert!(is_gone(first.pid()));
    assert_eq!(place.manager.down(None).unwrap(), [] as [u32; 0]);
    let status = place.manager.status().unwrap();
    assert_eq!((status[0].pid, status[0].answers, status[0].uptime), (None, false, None));

    let instance = place.manager.up(Some(first.major()), &mut |_| ()).unwrap();
    assert_eq!(ask(&instance, "SELECT current_setting('fsync')"), "on", "the defaults are durable");
    assert_eq!(ask(&instance, "SELECT count(*)::text FROM kept"), "0");
}

#[test]
fn an_instance_has_settings_for_a_load_while_it_loads() {
    let Some(place) = Place::new() else { return };
    let first = place.up();
    let version = first.major();
    let level = |instance: &Instance| ask(instance, "SELECT current_setting('wal_level')");
    let file = first.data_directory().join("postgresql.conf");
    let own = std::fs::read_to_string(&file).unwrap();
    let begin = || {
        let mut messages = Vec::new();
        let loading = place.manager.begin_load(version, &mut |text| messages.push(text.to_owned())).unwrap();
        (loading, messages)
    };
    {
        let _other = PostgresEngine::new(first.config()).connect().unwrap();
        let (refused, messages) = begin();
        assert!(refused.is_none() && messages[0].contains("other sessions are active"), "{messages:?}");
        assert_eq!(
            (level(&first).as_str(), std::fs::read_to_string(&file).unwrap()),
            ("replica", own.clone())
        );
    }
    let loading = begin().0.unwrap();
    let loads = std::fs::read_to_string(&file).unwrap();
    assert_eq!(level(&place.manager.up(None, &mut |_| ()).unwrap()), "minimal", "left alone by others");
    assert!(begin().0.is_none(), "one load at a time");
    Box::new(loading).end(&mut |_| ()).unwrap();
    let after = place.manager.running(version).unwrap();
    assert_eq!((level(&after).as_str(), std::fs::read_to_string(&file).unwrap()), ("replica", own.clone()));

    // As a process leaves it that is killed while it loads.
    std::fs::write(&file, loads).unwrap();
    assert_eq!(level(&place.manager.restart(version, &mut |_| ()).unwrap()), "minimal");
    assert_eq!(level(&place.manager.up(None, &mut |_| ()).unwrap()), "replica");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), own);
}

#[test]
fn a_crash_leaves_nothing_in_the_way() {
    let Some(place) = Place::new() else { return };
    let first = place.up();
    let socket = first.data_directory().with_file_name("run");
    kill(first.pid(), rustix::process::Signal::KILL);
    // Its children end by themselves when they notice, and hold the shared memory until then.
    while !is_gone(first.pid()) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let pid_file = first.data_directory().join("postmaster.pid");
    assert!(pid_file.exists() && socket.read_dir().unwrap().count() > 0);
    // The worst case: another process has got the number meanwhile.
    let text = std::fs::read_to_string(&pid_file).unwrap();
    let rest = text.split_once('\n').unwrap().1;
    std::fs::write(&pid_file, format!("{}\n{rest}", std::process::id())).unwrap();
    assert_eq!(place.manager.status().unwrap()[0].pid, None);
    assert_eq!(place.manager.down(None).unwrap(), [] as [u32; 0], "this process is not to be stopped");

    let second = place.up();
    assert!(!second.was_running() && second.pid() != first.pid());
    assert_eq!(ask(&second, "SELECT 'well'"), "well");
}

#[test]
fn what_was_kept_can_be_lost_damaged_or_wrong() {
    let Some(place) = Place::new() else { return };
    let instance = place.up();
    let base = place.manager.base_dir();
    let state = base.join(format!("postgres-{}.toml", instance.major()));
    // An instance with hardly any files left, and without its binaries.
    std::fs::create_dir_all(base.join("postgres-99/data")).unwrap();
    std::fs::write(base.join("postgres-99/data/PG_VERSION"), "99\n").unwrap();
    let kept = std::fs::read_to_string(&state).unwrap();
    let elsewhere = kept.replace("/run\"", "/nowhere\"");
    assert_ne!(kept, elsewhere);
    for damage in [None, Some(&kept[..kept.len() / 2]), Some("port = \"x\""), Some(elsewhere.as_str())] {
        match damage {
            None => std::fs::remove_file(&state).unwrap(),
            Some(text) => std::fs::write(&state, text).unwrap(),
        }
        let status = place.manager.status().unwrap();
        assert_eq!(status.len(), 2, "{status:?}");
        assert_eq!((status[0].pid, status[0].answers), (Some(instance.pid()), true), "{damage:?}");
        assert!(status[0].version.contains("PostgreSQL"));
        assert_eq!((status[1].major, status[1].pid, status[1].version.as_str()), (99, None, ""));
        let again = place.manager.up(None, &mut |step| panic!("it runs already: {step}")).unwrap();
        assert_eq!(ask(&again, "SELECT 'well'"), "well");
        if damage != Some(elsewhere.as_str()) {
            assert_eq!(std::fs::read_to_string(&state).unwrap(), kept, "written anew");
        }
    }
    std::fs::remove_file(&state).unwrap();
    assert_eq!(place.manager.down(None).unwrap(), [instance.major()]);
    assert!(is_gone(instance.pid()));
}

#[test]
fn the_configuration_is_replaced_and_its_text_is_no_error() {
    let Some(place) = Place::new() else { return };
    let first = place.up();
    place.manager.down(None).unwrap();
    let file = first.data_directory().join("postgresql.conf");
    let mut text = std::fs::read_to_string(&file).unwrap();
    text.push_str("# ERROR: FATAL: only words\n");
    std::fs::write(&file, &text).unwrap();
    let before = std::fs::metadata(&file).unwrap();
    place.manager.up_with_settings(None, &[("work_mem", "5MB")], &mut |_| ()).unwrap();
    let after = std::fs::metadata(&file).unwrap();
    assert_ne!(before.ino(), after.ino(), "another file under the same name");
    assert_eq!((after.uid(), after.mode() & 0o777), (before.uid(), 0o600));
    assert!(std::fs::read_to_string(&file).unwrap().ends_with("# ERROR: FATAL: only words\n"));
    assert!(!first.data_directory().join("postgresql.conf.new").exists());
}

#[test]
fn two_starts_at_once_make_one_server() {
    let Some(place) = Place::new() else { return };
    let pids: Vec<u32> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(|| place.up().pid())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(pids.windows(2).all(|pair| pair[0] == pair[1]), "{pids:?}");
}

#[test]
fn a_long_path_moves_only_the_socket() {
    let Some(mut place) = Place::new() else { return };
    place.manager = Manager::new(place.directory.path().join("a-long-name/".repeat(8)));
    let instance = place.up();
    let status = place.manager.status().unwrap().remove(0);
    assert!(status.socket_directory.starts_with("/tmp") && status.answers, "{status:?}");
    assert!(status.data_directory.starts_with(place.directory.path()));
    assert_eq!(ask(&instance, "SELECT 'well'"), "well");
    place.manager.down(None).unwrap();
    std::fs::remove_dir_all(status.socket_directory).unwrap();
}

#[test]
fn what_prevents_a_start_is_reported() {
    let Some(place) = Place::new() else { return };
    let up = |manager: &Manager| manager.up(None, &mut |_| ()).unwrap_err();
    assert!(
        place.manager.up(Some(11), &mut |_| ()).unwrap_err().message().contains("no PostgreSQL 11 server")
    );

    let file = place.directory.path().join("file");
    std::fs::write(&file, "").unwrap();
    assert_eq!(up(&Manager::new(&file)).class(), ErrorClass::Usage);
    if rustix::process::geteuid().is_root() {
        let closed = place.directory.path().join("closed");
        std::fs::create_dir(&closed).unwrap();
        std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o700)).unwrap();
        let error = up(&Manager::new(closed.join("base")));
        assert!(error.message().contains("cannot access"), "{error}");
    }
    // A setting that PostgreSQL refuses: its message is in the help.
    let error = place.manager.up_with_settings(None, &[("work_mem", "plenty")], &mut |_| ()).unwrap_err();
    assert!(error.help().unwrap().contains("work_mem"), "{error}");
    // And it does not stick.
    place.up();
}

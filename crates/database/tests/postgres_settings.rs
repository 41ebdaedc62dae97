//! Settings of a real server: changed, restored, compared; and profiles of managed servers. One server for all.

#![allow(clippy::unwrap_used)]

use std::os::unix::fs::PermissionsExt;

use kelvin_database::managed::{HostResources, ManagedServer, Manager, Profile, ProfileLoad};
use kelvin_database::postgres::PostgresEngine;
use kelvin_database::postgres::managed::{Instance, PostgresServer};
use kelvin_database::postgres::settings::{PostgresSettings, before, change, put_back};
use kelvin_database::settings::{ChangeTime, PreviousSettings, ServerSettings};
use kelvin_database::{Engine, Session};

/// A manager in a separate directory, whose servers are stopped at the end in every case.
struct Place {
    manager: Manager,
    _directory: tempfile::TempDir,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.manager.down(None).unwrap();
    }
}

fn session(instance: &Instance) -> Box<dyn Session> {
    PostgresEngine::new(instance.config()).connect().unwrap()
}

fn show(instance: &Instance, name: &str) -> String {
    session(instance).query(&format!("SHOW {name}")).unwrap().text(0, 0).unwrap().to_owned()
}

fn auto_conf(instance: &Instance) -> String {
    let text = std::fs::read_to_string(instance.data_directory().join("postgresql.auto.conf")).unwrap();
    text.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n")
}

/// A small profile with low requirements.
fn small(lines: &str) -> Profile {
    Profile::parse(
        "small.conf",
        &format!("shared_buffers = 24MB\nfsync = off\nmax_connections = 20\n{lines}"),
    )
    .unwrap()
}

#[test]
fn settings_are_changed_and_put_back_and_profiles_kept() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let place = Place { manager: Manager::new(directory.path().join("base")), _directory: directory };
    let manager = &place.manager;
    let instance = manager.up_with_profile(None, &small("work_mem = 5MB # sorts"), &mut |_| ()).unwrap();
    let major = instance.major();

    settings_change_at_once_and_at_a_restart(manager, &instance);
    what_the_server_refuses_changes_nothing(&instance);
    let instance = what_does_not_start_is_put_back(manager, major);
    profiles_change_a_running_server(manager, &instance);
}

fn settings_change_at_once_and_at_a_restart(manager: &Manager, instance: &Instance) {
    let mut session = session(instance);
    change(&mut *session, &[("maintenance_work_mem", "65MB")]).unwrap();
    let names = ["synchronous_commit", "shared_buffers", "maintenance_work_mem", "session_preload_libraries"];
    let old = before(&mut *session, &names).unwrap();
    assert_eq!(old.settings[2].value.as_deref(), Some("65MB"));
    let kept = auto_conf(instance);
    let changes = [
        ("synchronous_commit", "off"),
        ("Shared_Buffers", "32MB"),
        ("maintenance_work_mem", "70MB"),
        ("session_preload_libraries", "plpgsql"),
    ];
    let waiting = change(&mut *session, &changes).unwrap();
    assert_eq!(waiting, ["shared_buffers"]);
    let shown =
        ["synchronous_commit", "shared_buffers", "maintenance_work_mem"].map(|name| show(instance, name));
    assert_eq!(shown, ["off", "24MB", "70MB"]);
    let again = manager.restart(instance.major(), &mut |_| ()).unwrap();
    assert_ne!(again.pid(), instance.pid());
    assert_eq!(show(&again, "shared_buffers"), "32MB");

    // As stored in a journal.
    let old: PreviousSettings = toml::from_str(&toml::to_string(&old).unwrap()).unwrap();
    let mut session = self::session(&again);
    assert_eq!(put_back(&mut *session, &old).unwrap(), ["shared_buffers"]);
    assert_eq!(auto_conf(instance), kept);
    let again = manager.restart(instance.major(), &mut |_| ()).unwrap();
    assert_eq!(show(&again, "shared_buffers"), "24MB");
    assert_eq!(
        put_back(&mut *self::session(&again), &old).unwrap(),
        [] as [&str; 0],
        "nothing is left to do"
    );
}

fn what_the_server_refuses_changes_nothing(instance: &Instance) {
    let mut session = session(&manager_view(instance));
    let kept = auto_conf(instance);
    for (changes, expected) in [
        (&[("synchronous_commit", "off"), ("work_mem", "plenty")][..], "cannot set work_mem to \"plenty\""),
        (&[("no_such_setting", "1")], "the server has no setting no_such_setting"),
        (&[("port", "1")], "port defines where the server is"),
        (&[("work_mem; x", "1")], "not the name of a PostgreSQL setting"),
        (&[("work_mem", "1\n2")], "control character"),
    ] {
        let error = change(&mut *session, changes).unwrap_err();
        assert!(error.message().contains(expected), "{error}");
        assert_eq!(auto_conf(instance), kept, "{changes:?}");
    }
    let present = PostgresSettings.read(&mut *session, &["work_mem"]).unwrap();
    assert!(present[0].has_value("5120kB") && present[0].has_value("5MB") && !present[0].has_value("6MB"));
}

/// The instance as it runs now.
fn manager_view(instance: &Instance) -> Instance {
    let base = instance.data_directory().parent().and_then(std::path::Path::parent).unwrap();
    Manager::new(base).running(instance.major()).unwrap()
}

fn what_does_not_start_is_put_back(manager: &Manager, major: u32) -> Instance {
    let instance = manager.running(major).unwrap();
    let mut session = session(&instance);
    let old = before(&mut *session, &["shared_buffers"]).unwrap();
    let kept = auto_conf(&instance);
    // More than any host has.
    assert_eq!(change(&mut *session, &[("shared_buffers", "7TB")]).unwrap(), ["shared_buffers"]);
    drop(session);
    let error = PostgresServer::new(manager.clone(), Some(major))
        .unwrap()
        .restart_or_put_back(&old, &mut |_| ())
        .unwrap_err();
    assert!(
        error.message().contains("does not start with the new settings; the old ones were restored"),
        "{error}"
    );
    assert!(error.help().unwrap().contains("shared memory"), "{error}");
    let instance = manager.running(major).unwrap();
    assert_eq!((show(&instance, "shared_buffers"), auto_conf(&instance)), ("24MB".into(), kept));
    assert!(manager.put_back_stopped(major, &old).is_err(), "it runs");
    instance
}

fn profiles_change_a_running_server(manager: &Manager, instance: &Instance) {
    let major = instance.major();
    let has = |wanted: &str| {
        let now = manager.running(major).unwrap();
        assert_eq!(show(&now, "work_mem"), wanted);
        assert_eq!(manager.profile(major).unwrap().name, "small.conf");
        now
    };
    has("5MB");
    // Without a restart where none is needed, and with one where it is.
    manager.up_with_profile(None, &small("work_mem = 6MB"), &mut |_| ()).unwrap();
    assert_eq!(has("6MB").pid(), instance.pid());
    let text = "work_mem = 7MB\nmax_wal_senders = 3\n";
    let others = session(instance);
    let error = manager.up_with_profile(None, &small(text), &mut |_| ()).unwrap_err();
    assert!(error.message().contains("other sessions are active"), "{error}");
    drop(others);
    has("6MB");
    let again = manager.up_with_profile(None, &small(text), &mut |_| ()).unwrap();
    assert_ne!(again.pid(), instance.pid());
    has("7MB");
    // A setting that only a restart changes is removed from the profile.
    manager.up_with_profile(None, &small("work_mem = 7MB"), &mut |_| ()).unwrap();
    assert_eq!(show(&has("7MB"), "max_wal_senders"), "10");
    for (bad, expected) in [
        ("work_mem = plenty", "rejects the setting work_mem"),
        ("no_such_setting = 1", "rejects the setting no_such_setting"),
        ("max_wal_senders = 300", "does not start with the new settings; the old ones were restored"),
    ] {
        // The last one is incompatible with a wal_level without WAL senders.
        let error = manager
            .up_with_profile(None, &small(&format!("wal_level = minimal\n{bad}")), &mut |_| ())
            .unwrap_err();
        assert!(error.message().contains(expected), "{error}");
        has("7MB");
    }
    // The profile is still there after a stop.
    manager.down(None).unwrap();
    manager.up(None, &mut |_| ()).unwrap();
    has("7MB");
    assert_eq!(manager.status().unwrap()[0].profile.as_deref(), Some("small.conf"));

    let lines =
        Profile::parse("x", "work_mem = 7168kB\nfsync = on # safe\nshared_buffers = 1GB\nnone.such = 1\n")
            .unwrap();
    let found = PostgresSettings.differences(&mut *session(&has("7MB")), &lines.lines).unwrap();
    let seen: Vec<(&str, Option<&str>, bool)> = found
        .iter()
        .map(|one| (one.name.as_str(), one.server.as_deref(), one.when == ChangeTime::AfterRestart))
        .collect();
    let expected =
        [("fsync", Some("off"), false), ("shared_buffers", Some("24MB"), true), ("none.such", None, false)];
    assert_eq!(seen, expected);
    assert_eq!(found[0].reason, "safe");

    // This server knows all names and values of kelvin's profiles.
    let host = HostResources::read(instance.data_directory());
    for profile in
        [Profile::standard(host), Profile::durable(host), Profile::steady(host, &ProfileLoad::default())]
    {
        let mut session = session(&has("7MB"));
        for one in PostgresSettings.differences(&mut *session, &profile.lines).unwrap() {
            assert!(one.server.is_some(), "{} of {}", one.name, profile.name);
        }
        let names: Vec<&str> = profile.lines.iter().map(|line| line.name.as_str()).collect();
        let old = before(&mut *session, &names).unwrap();
        let changes: Vec<(&str, &str)> =
            profile.lines.iter().map(|line| (line.name.as_str(), line.value.as_str())).collect();
        change(&mut *session, &changes).unwrap();
        put_back(&mut *session, &old).unwrap();
    }
}

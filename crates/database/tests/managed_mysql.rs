//! A managed MariaDB from its creation to its removal.
#![allow(clippy::unwrap_used)]

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use kelvin_database::managed::{Line, ManagedServer, Manager, ProfileLoad, Profiles};
use kelvin_database::mysql::managed as mysql;
use kelvin_database::mysql::{MysqlEngine, MysqlProfiles, Product};
use kelvin_database::{Engine, ErrorClass};

/// A place that an unprivileged user can reach.
fn place() -> (tempfile::TempDir, Manager) {
    let directory = tempfile::Builder::new().prefix("kelvin-managed-").tempdir().unwrap();
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let manager = Manager::new(directory.path().join("base"));
    (directory, manager)
}

fn ask(instance: &mysql::Instance, sql: &str) -> String {
    let rows = MysqlEngine::new(instance.config.clone()).connect().unwrap().query(sql).unwrap();
    rows.text(0, 0).unwrap().to_owned()
}

#[test]
fn a_server_is_made_used_again_given_profiles_and_stopped() {
    let (_directory, manager) = place();
    let mut steps = Vec::new();
    let first = mysql::up(&manager, Product::Mariadb, None, &mut |step| steps.push(step.to_owned())).unwrap();
    assert!(!first.was_running);
    assert!(steps[0].starts_with("creating a MariaDB ") && steps[1].starts_with("starting"), "{steps:?}");
    assert_eq!(ask(&first, "SELECT concat(current_user(), ' ', database())"), "kelvin@localhost kelvin");
    assert_eq!(ask(&first, "SELECT cast(@@innodb_flush_log_at_trx_commit AS CHAR)"), "1");
    MysqlEngine::new(first.config.clone()).connect().unwrap().run("CREATE TABLE kept (k INT)").unwrap();
    let status = mysql::status(&manager).remove(0);
    assert_eq!((status.pid, status.profile.as_str()), (Some(first.pid), "default"));
    assert!(status.name.starts_with("mariadb-") && status.size > 1_000_000, "{status:?}");
    assert_ne!(std::fs::metadata(&status.data_directory).unwrap().uid(), 0, "never as root");
    assert_eq!(std::fs::metadata(status.socket.parent().unwrap()).unwrap().mode() & 0o777, 0o700);

    let again = mysql::up(&manager, Product::Mariadb, None, &mut |step| panic!("nothing to do, yet: {step}"))
        .unwrap();
    assert!(again.was_running && again.pid == first.pid);

    let (installation, host) = mysql::installation(&manager, Product::Mariadb).unwrap();
    let profiles = MysqlProfiles { product: Product::Mariadb, series: installation.series };
    let load = ProfileLoad { seconds: 60.0, ..ProfileLoad::default() };
    let of = |name: &str| profiles.built_in(name, host, &load).unwrap();
    // The server has every setting of its profile, and of its product.
    let managed = mysql::MysqlServer::new(manager.clone(), Product::Mariadb).unwrap();
    let differing = |lines: &[Line]| {
        let mut session = managed.running().unwrap().connect().unwrap();
        managed.settings().unwrap().differences(&mut *session, lines).unwrap()
    };
    let has_its_own = |name: &str| {
        let kept = managed.profile().unwrap();
        assert_eq!((kept.name.as_str(), kept.lines.len()), (name, of(name).lines.len()));
        assert_eq!(differing(&kept.lines), []);
    };
    has_its_own("default");
    let steady = differing(&of("steady").lines);
    assert!(!steady.is_empty() && steady.iter().all(|one| one.server.is_some()), "{steady:?}");
    // Not over the heads of others.
    let mut other = MysqlEngine::new(first.config.clone()).connect().unwrap();
    other.run("DO 1").unwrap();
    let error = mysql::up(&manager, Product::Mariadb, Some(&of("steady")), &mut |_| ()).unwrap_err();
    assert!(error.message().contains("other sessions are active"), "{error}");
    drop(other);
    let steady = mysql::up(&manager, Product::Mariadb, Some(&of("steady")), &mut |_| ()).unwrap();
    assert!(!steady.was_running && steady.pid != first.pid);
    assert_eq!(ask(&steady, "SELECT cast(@@innodb_flush_log_at_trx_commit AS CHAR)"), "0");
    assert_eq!(ask(&steady, "SELECT cast(count(*) AS CHAR) FROM kept"), "0");

    // A profile stays, also after a crash.
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(steady.pid as i32).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
    while mysql::status(&manager)[0].pid.is_some() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let kept = mysql::up(&manager, Product::Mariadb, None, &mut |_| ()).unwrap();
    has_its_own("steady");
    assert_eq!(ask(&kept, "SELECT cast(@@innodb_flush_log_at_trx_commit AS CHAR)"), "0");
    let durable = mysql::up(&manager, Product::Mariadb, Some(&of("durable")), &mut |_| ()).unwrap();
    assert_eq!(ask(&durable, "SELECT cast(@@sync_binlog AS CHAR)"), "1");
    has_its_own("durable");

    // One that the server does not start with does not stay.
    let mut bad = of("default");
    bad.lines.push(Line::new("no_such_setting", "1", "a mistake"));
    let error = mysql::up(&manager, Product::Mariadb, Some(&bad), &mut |_| ()).unwrap_err();
    assert!(error.help().unwrap().contains("no_such_setting"), "{error}");
    let back = mysql::up(&manager, Product::Mariadb, None, &mut |_| ()).unwrap();
    assert_eq!(ask(&back, "SELECT cast(@@sync_binlog AS CHAR)"), "1");

    assert_eq!(mysql::down(&manager, Some(Product::Mysql)).unwrap(), [] as [String; 0]);
    assert_eq!(mysql::down(&manager, None).unwrap(), [status.name]);
    assert_eq!(mysql::down(&manager, None).unwrap(), [] as [String; 0]);
    assert_eq!(mysql::status(&manager)[0].pid, None);
}

#[test]
fn what_is_not_installed_is_said_with_what_is() {
    let (_directory, manager) = place();
    // Debian has MariaDB only; where MySQL is installed this finds it.
    match mysql::installation(&manager, Product::Mysql) {
        Ok((found, _)) => assert_eq!(found.product, Product::Mysql),
        Err(error) => {
            assert_eq!(error.class(), ErrorClass::Usage);
            assert!(error.message().contains("--target mariadb"), "{error}");
        }
    }
}

//! Settings of a server that is somebody else's, MariaDB or the one below `KELVIN_MYSQL_BASE`: changed by statements, and put back.
#![allow(clippy::unwrap_used)]

mod mysql_support;

use kelvin_database::managed::Line;
use kelvin_database::mysql::settings::SessionSettings;
use kelvin_database::settings::{ChangeTime, ServerSettings};
use mysql_support::{Server, is_mariadb};

#[test]
fn settings_are_changed_by_statements_and_put_back() {
    let server = Server::start();
    let mut session = server.session();
    let session = &mut *session;
    let all = SessionSettings;
    let show = |session: &mut dyn kelvin_database::Session, name: &str| {
        let sql = format!("SELECT CAST(@@GLOBAL.{name} AS CHAR)");
        session.query(&sql).unwrap().text(0, 0).unwrap().to_owned()
    };
    let lines = [
        Line::new("innodb-buffer-pool-size", "65536K", ""),
        Line::new("innodb_io_capacity", "3K", "why"),
        Line::new("skip_log_bin", "ON", ""),
        Line::new("innodb_read_only", "ON", ""),
        Line::new("no_such_setting", "1", ""),
    ];
    let found = all.differences(session, &lines).unwrap();
    let later = if is_mariadb() { ChangeTime::InItsFiles } else { ChangeTime::AfterRestart };
    let short: Vec<_> = found.iter().map(|one| (one.name.as_str(), one.server.is_some(), one.when)).collect();
    let mut expected = vec![
        ("innodb_io_capacity", true, ChangeTime::Now),
        ("skip_log_bin", true, later),
        ("innodb_read_only", true, later),
        ("no_such_setting", false, ChangeTime::Now),
    ];
    // MySQL writes a binary log by default.
    expected.retain(|(name, ..)| *name != "skip_log_bin" || !is_mariadb());
    assert_eq!(short, expected);

    let names = ["innodb_io_capacity", "sync_binlog"];
    let before = all.before(session, &names).unwrap();
    let old = names.map(|name| show(session, name));
    let waiting = all.change(session, &[("innodb_io_capacity", "1K"), ("sync_binlog", "7")]).unwrap();
    assert_eq!(waiting, [] as [String; 0]);
    assert_eq!(names.map(|name| show(session, name)), ["1024", "7"].map(str::to_owned));
    for refused in
        [[("sync_binlog", "x"), ("innodb_io_capacity", "1")], [("port", "1"), ("innodb_io_capacity", "1")]]
    {
        assert!(all.change(session, &refused).is_err());
    }
    assert!(all.change(session, &[("innodb_io_capacity", "4K"), ("no_such_setting", "1")]).is_err());
    assert_eq!(names.map(|name| show(session, name)), ["1024", "7"].map(str::to_owned), "all or nothing");
    assert_eq!(all.put_back(session, &before).unwrap(), [] as [String; 0]);
    assert_eq!(all.put_back(session, &before).unwrap(), [] as [String; 0]);
    assert_eq!(names.map(|name| show(session, name)), old);

    // One that another bounds, in the wrong order.
    let bounded = [("innodb_io_capacity", "30K"), ("innodb_io_capacity_max", "40K")];
    let before = all.before(session, &bounded.map(|(name, _)| name)).unwrap();
    all.change(session, &bounded).unwrap();
    assert_eq!(bounded.map(|(name, _)| show(session, name)), ["30720", "40960"].map(str::to_owned));
    all.put_back(session, &before).unwrap();
    assert_eq!(show(session, "innodb_io_capacity"), old[0]);

    // What a restart brings: MySQL keeps it for then, MariaDB refuses it.
    let change = [("innodb_doublewrite_files", "4")];
    if is_mariadb() {
        let error = all.change(session, &[("innodb_read_only", "ON")]).unwrap_err();
        assert!(error.message().contains("cannot be changed by a statement"), "{error}");
        return;
    }
    let before = all.before(session, &["innodb_doublewrite_files"]).unwrap();
    assert_eq!(all.change(session, &change).unwrap(), ["innodb_doublewrite_files"]);
    assert!(all.read(session, &["innodb_doublewrite_files"]).unwrap()[0].pending_restart);
    // Nothing has to be undone by a restart that there was none of.
    assert_eq!(all.put_back(session, &before).unwrap(), [] as [String; 0]);
    assert!(!all.read(session, &["innodb_doublewrite_files"]).unwrap()[0].pending_restart);
    let kept = "SELECT CAST(COUNT(*) AS SIGNED) FROM performance_schema.persisted_variables";
    assert_eq!(session.query(kept).unwrap().int(0, 0).unwrap(), 0);
}

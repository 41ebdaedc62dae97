//! Settings of a managed MariaDB as factors: applied with and without a restart, reverted in the normal case and
//! after a kill.

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use kelvin_database::Engine;
use kelvin_database::managed::{Manager, Profile};
use kelvin_database::mysql::managed as mysql;
use kelvin_database::mysql::{MysqlEngine, Product};
use kelvin_lab::conditions::{CellConditions, DesignCell, FactorSetting};
use kelvin_lab::factor::{Access, Applier, Consent, Factor, recover};
use kelvin_run::Spec;
use kelvin_run::spec::WorkloadName;

/// A manager whose servers are always stopped at the end.
struct Managed(Manager);

impl Drop for Managed {
    fn drop(&mut self) {
        let _ = mysql::down(&self.0, None);
    }
}

impl Managed {
    fn show(&self, name: &str) -> String {
        let instance = mysql::up(&self.0, Product::Mariadb, None, &mut |_| ()).unwrap();
        let mut session = MysqlEngine::new(instance.config).connect().unwrap();
        session
            .query(&format!("SELECT CAST(@@GLOBAL.{name} AS CHAR)"))
            .unwrap()
            .text(0, 0)
            .unwrap()
            .to_owned()
    }

    fn all(&self) -> [String; 3] {
        ["innodb_io_capacity", "back_log", "log_bin"].map(|name| self.show(name))
    }
}

fn factors() -> Vec<Factor> {
    #[derive(serde::Deserialize)]
    struct File {
        factor: Vec<Factor>,
    }
    let text = r#"
        [[factor]]
        name = "capacity"
        levels = { little = "300", much = "3K", wrong = "x" }
        setting = "innodb_io_capacity"
        [[factor]]
        name = "queue"
        levels = { many = "90", few = "70" }
        setting = "back_log"
        [[factor]]
        name = "binlog"
        levels = ["OFF", "ON"]
        setting = "log_bin"
    "#;
    toml::from_str::<File>(text).unwrap().factor
}

fn cell(levels: [&str; 3]) -> DesignCell {
    let names = ["capacity", "queue", "binlog"];
    let one = |(factor, level): (&str, &str)| FactorSetting { factor: factor.into(), level: level.into() };
    DesignCell(names.into_iter().zip(levels).map(one).collect())
}

#[test]
fn settings_are_put_on_and_taken_off_also_after_a_kill() {
    let directory = tempfile::Builder::new().prefix("kelvin-test-").tempdir_in("/var/tmp").unwrap();
    std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let server = Managed(Manager::new(directory.path().join("servers")));
    let lines = [
        ("innodb_log_file_size", "96M"),
        ("innodb_io_capacity", "200"),
        ("back_log", "90"),
        ("skip_log_bin", "ON"),
    ];
    let small = Profile {
        name: "mine.cnf".into(),
        lines: lines.map(|(name, value)| kelvin_database::managed::Line::new(name, value, "")).into(),
        cautions: Vec::new(),
    };
    let up = || mysql::up(&server.0, Product::Mariadb, None, &mut |_| ()).unwrap();
    mysql::up(&server.0, Product::Mariadb, Some(&small), &mut |_| ()).unwrap();
    let file = mysql::status(&server.0)[0].data_directory.with_file_name("my.cnf");
    let written = std::fs::read_to_string(&file).unwrap();
    let before = server.all();
    assert_eq!(before, ["200", "90", "OFF"].map(str::to_owned));

    let journal = directory.path().join("undo.journal");
    let access = || Access::new(server.0.clone());
    let consent = Consent { commands: false, settings: true };
    let begin = || Applier::new(factors(), &journal, access(), consent).unwrap();
    let mut spec = Spec::new(WorkloadName::TprocC);
    spec.target = "mariadb".parse().unwrap();

    let mut applier = begin();
    let pid = up().pid;
    applier.apply(&cell(["much", "many", "OFF"]), &mut spec).unwrap();
    assert_eq!((server.show("innodb_io_capacity").as_str(), up().pid), ("3072", pid), "at once");
    applier.apply(&cell(["little", "few", "ON"]), &mut spec).unwrap();
    assert_eq!(server.all(), ["300", "70", "ON"].map(str::to_owned));
    assert_ne!(up().pid, pid, "restarted");
    // A value that the server rejects: nothing remains changed.
    let error = applier.apply(&cell(["wrong", "few", "ON"]), &mut spec).unwrap_err().to_string();
    assert!(error.contains("innodb_io_capacity") && error.contains("\"capacity\" at \"wrong\""), "{error}");
    assert_eq!((server.all(), std::fs::read_to_string(&file).unwrap()), (before.clone(), written.clone()));
    drop(applier);

    // The state after a kill, with the server running, and with it stopped.
    for stop in [false, true] {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "put_on_in_a_process_that_is_killed", "--nocapture"])
            .env("KELVIN_TEST_FACTORS", directory.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let put_on = lines.map_while(Result::ok).any(|line| line.contains("it is on"));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(put_on, "the child put nothing on");
        assert_eq!(server.all(), ["3072", "70", "ON"].map(str::to_owned));
        if stop {
            mysql::down(&server.0, None).unwrap();
        }
        let undone = recover(&journal, &access(), &mut |_| ()).unwrap();
        assert!(undone.changes[0].contains("innodb_io_capacity"), "{undone:?}");
        assert_eq!(
            (server.all(), std::fs::read_to_string(&file).unwrap()),
            (before.clone(), written.clone())
        );
    }
}

#[test]
#[ignore = "run by the test above, and killed by it"]
fn put_on_in_a_process_that_is_killed() {
    let directory = PathBuf::from(std::env::var_os("KELVIN_TEST_FACTORS").unwrap());
    let access = Access::new(Manager::new(directory.join("servers")));
    let consent = Consent { commands: false, settings: true };
    let mut applier = Applier::new(factors(), &directory.join("undo.journal"), access, consent).unwrap();
    let mut spec = Spec::new(WorkloadName::TprocC);
    spec.target = "mariadb".parse().unwrap();
    applier.apply(&cell(["much", "few", "ON"]), &mut spec).unwrap();
    println!("it is on");
    std::thread::sleep(std::time::Duration::from_mins(1));
}

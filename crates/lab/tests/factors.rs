//! Factors on a real server: they are applied, and reverted in the normal case, after a failure, and after a kill.

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use kelvin_database::Engine;
use kelvin_database::managed::Manager;
use kelvin_database::postgres::PostgresEngine;
use kelvin_database::postgres::managed::Instance;
use kelvin_lab::conditions::{CellConditions, DesignCell, FactorSetting};
use kelvin_lab::factor::{Access, Applier, Consent, Factor, recover};
use kelvin_run::Spec;
use kelvin_run::spec::WorkloadName;

const ALL: Consent = Consent { commands: true, settings: true };

/// A managed server in a separate directory. It is always stopped at the end.
struct Place {
    manager: Manager,
    directory: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let place = Self { manager: Manager::new(directory.path().join("base")), directory };
        let fast = [("fsync", "off"), ("shared_buffers", "24MB"), ("max_connections", "20")];
        place.manager.up_with_settings(None, &fast, &mut |_| ()).unwrap();
        place
    }

    fn instance(&self) -> Instance {
        self.manager.running(self.manager.version(None).unwrap()).unwrap()
    }

    fn show(&self, setting: &str) -> String {
        let mut session = PostgresEngine::new(self.instance().config()).connect().unwrap();
        session.query(&format!("SHOW {setting}")).unwrap().text(0, 0).unwrap().to_owned()
    }

    fn run(&self, sql: &str) {
        PostgresEngine::new(self.instance().config()).connect().unwrap().run(sql).unwrap();
    }

    /// The settings made by `ALTER SYSTEM`.
    fn set_by_system(&self) -> Vec<String> {
        let file = self.instance().data_directory().join("postgresql.auto.conf");
        let text = std::fs::read_to_string(file).unwrap();
        text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
    }

    fn journal(&self) -> PathBuf {
        self.directory.path().join("undo.journal")
    }

    fn marker(&self) -> PathBuf {
        self.directory.path().join("noise")
    }

    fn access(&self) -> Access {
        Access::new(self.manager.clone())
    }

    fn applier(&self) -> Applier {
        applier(self.directory.path())
    }

    /// Asserts that everything is as it was before the first factor.
    fn is_as_before(&self, cpus: &str) {
        assert_eq!(self.set_by_system(), ["work_mem = '5MB'"]);
        let shown = ["work_mem", "synchronous_commit", "shared_buffers"].map(|name| self.show(name));
        assert_eq!(shown, ["5MB", "on", "24MB"]);
        assert_eq!(self.server_cpus(), [cpus]);
        assert_eq!(cpus_of("self"), cpus);
        assert!(!self.marker().exists() && !self.journal().exists());
    }

    /// The CPU lists of the server's processes, without duplicates.
    fn server_cpus(&self) -> Vec<String> {
        let pid = self.instance().pid();
        let mut all: Vec<String> = std::fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter(|one: &u32| {
                let stat = std::fs::read_to_string(format!("/proc/{one}/stat")).unwrap_or_default();
                let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1));
                *one == pid || parent == Some(&pid.to_string())
            })
            .map(|one| cpus_of(&one.to_string()))
            .filter(|list| !list.is_empty())
            .collect();
        all.sort();
        all.dedup();
        all
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.manager.down(None).unwrap();
    }
}

fn cpus_of(process: &str) -> String {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// The first CPU that this process may use, and all of them.
fn some_cpus() -> (String, String) {
    let all = cpus_of("self");
    (all.split(['-', ',']).next().unwrap().to_owned(), all)
}

/// Settings with and without a restart, bindings of both sides, a value of the specification, and a command.
fn factors(directory: &Path) -> Vec<Factor> {
    #[derive(serde::Deserialize)]
    struct File {
        factor: Vec<Factor>,
    }
    let (one, all) = some_cpus();
    let marker = directory.join("noise");
    let text = format!(
        r#"
        [[factor]]
        name = "commit"
        levels = ["on", "off"]
        setting = "synchronous_commit"
        [[factor]]
        name = "memory"
        levels = ["5MB", "7MB"]
        setting = "work_mem"
        [[factor]]
        name = "buffers"
        levels = {{ small = "24MB", large = "32768kB", absurd = "7TB", wrong = "900TB" }}
        setting = "shared_buffers"
        [[factor]]
        name = "server"
        levels = {{ all = "{all}", one = "{one}", absent = "{one},1001" }}
        bind = "server.cpus"
        [[factor]]
        name = "client"
        levels = {{ all = "{all}", one = "{one}", never = "1002" }}
        bind = "client.cpus"
        [[factor]]
        name = "users"
        levels = [4, 16]
        spec = "load.users"
        [[factor]]
        name = "noise"
        levels = {{ none = {{}}, some = {{ apply = "touch {marker}", undo = "rm -f {marker}" }}, bad = {{ apply = "echo no; false", undo = "true" }} }}
        command = true
        "#,
        marker = marker.display()
    );
    toml::from_str::<File>(&text).unwrap().factor
}

fn applier(directory: &Path) -> Applier {
    let access = Access::new(Manager::new(directory.join("base")));
    // On a single CPU the levels of a binding are equal, which a study does not allow.
    Applier::new(factors(directory), &directory.join("undo.journal"), access, ALL).unwrap()
}

fn cell(levels: [&str; 7]) -> DesignCell {
    let names = ["commit", "memory", "buffers", "server", "client", "users", "noise"];
    let each = names.into_iter().zip(levels);
    DesignCell(
        each.map(|(factor, level)| FactorSetting { factor: factor.into(), level: level.into() }).collect(),
    )
}

const BASE: [&str; 7] = ["on", "5MB", "small", "all", "all", "4", "none"];
const WITHOUT_RESTART: [&str; 7] = ["off", "7MB", "small", "one", "one", "16", "some"];
const OTHER: [&str; 7] = ["off", "7MB", "large", "one", "one", "16", "some"];

fn spec() -> Spec {
    let mut spec = Spec::new(WorkloadName::TprocC);
    spec.target = "postgres".parse().unwrap();
    spec
}

#[test]
fn factors_are_put_on_hold_and_are_taken_off_however_it_ends() {
    let place = Place::new();
    let (one, all) = some_cpus();
    assert_ne!(one, all, "this test needs two CPUs");
    // A change by the user, which must be restored at the end.
    place.run("ALTER SYSTEM SET work_mem = '5MB'");
    place.run("SELECT pg_reload_conf()");

    put_on_and_taken_off(&place, &one, &all);
    failures_leave_nothing(&place, &all);
    a_kill_is_recovered_from(&place, &one, &all);
    another_server_is_changed_with_consent_only(&place, &all);
    the_kernels_part_is_given_back(&place, &all);
    a_crashed_server_is_put_right(&place, &all);
}

fn put_on_and_taken_off(place: &Place, one: &str, all: &str) {
    let mut applier = place.applier();
    let commit = factors(place.directory.path()).drain(..1).collect();
    let mut changed = spec();
    let pid = place.instance().pid();
    applier.apply(&cell(BASE), &mut changed).unwrap();
    assert_eq!(changed.load.users.numbers(), [4]);
    assert_eq!(place.instance().pid(), pid, "the base is what there is: no restart");

    applier.apply(&cell(OTHER), &mut changed).unwrap();
    assert_eq!(changed.load.users.numbers(), [16]);
    let shown = ["work_mem", "synchronous_commit", "shared_buffers"].map(|name| place.show(name));
    assert_eq!(shown, ["7MB", "off", "32MB"]);
    assert_eq!((place.server_cpus(), cpus_of("self")), (vec![one.to_owned()], one.to_owned()));
    assert!(place.marker().exists());
    // Another study would take this study's settings for the previous state, and restore them.
    let second = place.directory.path().join("second.journal");
    let mut another = Applier::new(commit, &second, place.access(), ALL).unwrap();
    let level = FactorSetting { factor: "commit".into(), level: "on".into() };
    let error = another.apply(&DesignCell(vec![level]), &mut spec()).unwrap_err().to_string();
    assert!(error.contains("another kelvin process has changed settings"), "{error}");
    drop(another);
    assert_eq!(place.show("work_mem"), "7MB");
    let pid = place.instance().pid();
    applier.apply(&cell(OTHER), &mut changed).unwrap();
    assert_eq!(place.instance().pid(), pid, "what is on is left alone");

    // The server is started by a bound process, but must not be bound by that.
    let [_, _, small, all_cpus, ..] = BASE;
    applier.apply(&cell(["off", "7MB", small, all_cpus, "one", "16", "none"]), &mut changed).unwrap();
    assert_eq!((place.server_cpus(), cpus_of("self")), (vec![all.to_owned()], one.to_owned()));
    assert!(place.instance().pid() != pid && !place.marker().exists());

    applier.undo().unwrap();
    place.is_as_before(all);
    applier.undo().unwrap();
    // Dropping the applier restores everything, in case the caller forgets it.
    applier.apply(&cell(WITHOUT_RESTART), &mut changed).unwrap();
    drop(applier);
    place.is_as_before(all);
}

fn failures_leave_nothing(place: &Place, all: &str) {
    let mut applier = place.applier();
    let mut changed = spec();
    let mut with = |index: usize, level: &'static str| {
        let mut levels = WITHOUT_RESTART;
        levels[index] = level;
        let error = applier.apply(&cell(levels), &mut changed).unwrap_err().to_string();
        assert_eq!(changed, spec(), "a specification of no cell");
        place.is_as_before(all);
        error
    };
    let error = with(2, "wrong");
    assert!(error.contains("factor \"buffers\" at \"wrong\"") && error.contains("900TB"), "{error}");
    let error = with(2, "absurd");
    assert!(error.contains("factor \"buffers\" at \"absurd\": restart to apply shared_buffers"), "{error}");
    assert!(error.contains("the old ones were restored") && error.contains("shared memory"), "{error}");
    let error = with(3, "absent");
    assert!(error.contains("\"server\" at \"absent\"") && error.contains("only"), "{error}");
    let error = with(4, "never");
    assert!(error.contains("none of the CPUs 1002 can be used"), "{error}");
    let error = with(6, "bad");
    assert!(error.contains("failed (exit status: 1): no"), "{error}");
    assert!(with(5, "17").contains("has no level \"17\"; its levels are 4, 16"));

    // A level that something else overrides is not in effect.
    place.run("ALTER DATABASE kelvin SET work_mem = '9MB'");
    let error = applier.apply(&cell(WITHOUT_RESTART), &mut changed).unwrap_err().to_string();
    place.run("ALTER DATABASE kelvin RESET work_mem");
    assert!(error.contains("\"memory\"") && error.contains("the server has 9MB (database)"), "{error}");
    place.is_as_before(all);

    // Without consent no command runs.
    let none = Consent::default();
    let factors = factors(place.directory.path());
    let refused = Applier::new(factors, &place.journal(), place.access(), none).err().unwrap().to_string();
    assert!(refused.contains("--allow-commands"), "{refused}");
    assert!(!place.journal().exists());
}

fn a_kill_is_recovered_from(place: &Place, one: &str, all: &str) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "put_on_in_a_process_that_is_killed", "--nocapture"])
        .env("KELVIN_TEST_FACTORS", place.directory.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let put_on = lines.map_while(Result::ok).any(|line| line.contains("it is on"));
    let error = recover(&place.journal(), &place.access(), &mut |_| ()).map(|_| ());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(put_on, "the child put nothing on");
    let error = error.unwrap_err().to_string();
    assert!(error.contains(&format!("still running (process {})", child.id())), "{error}");
    assert_eq!((place.show("shared_buffers"), place.server_cpus()), ("32MB".into(), vec![one.to_owned()]));
    assert!(place.marker().exists());
    let error =
        Applier::new(factors(place.directory.path()), &place.journal(), place.access(), ALL).err().unwrap();
    assert!(error.to_string().contains("never reverted"), "{error}");

    let undone = recover(&place.journal(), &place.access(), &mut |_| ()).unwrap();
    assert_eq!((undone.changes.len(), undone.left.len()), (3, 0), "{undone:?}");
    place.is_as_before(all);
    assert_eq!(recover(&place.journal(), &place.access(), &mut |_| ()).unwrap().changes.len(), 0);
}

fn another_server_is_changed_with_consent_only(place: &Place, all: &str) {
    // Named by its address, it is an external server.
    let mut of_others = spec();
    of_others.target = place.instance().config().to_string().parse().unwrap();
    let some = |consent: Consent| {
        let factors = factors(place.directory.path())
            .into_iter()
            .filter(|factor| ["commit", "buffers"].contains(&factor.name()));
        Applier::new(factors.collect(), &place.journal(), place.access(), consent).unwrap()
    };
    let cell = |commit: &str, buffers: &str| {
        let pairs = [("commit", commit), ("buffers", buffers)];
        DesignCell(
            pairs
                .map(|(factor, level)| FactorSetting { factor: factor.into(), level: level.into() })
                .to_vec(),
        )
    };
    let error =
        some(Consent::default()).apply(&cell("off", "small"), &mut of_others).unwrap_err().to_string();
    assert!(error.contains("which kelvin does not manage") && error.contains("--allow-settings"), "{error}");
    let mut applier = some(ALL);
    applier.apply(&cell("off", "small"), &mut of_others).unwrap();
    assert_eq!(place.show("synchronous_commit"), "off");
    let error = applier.apply(&cell("off", "large"), &mut of_others).unwrap_err().to_string();
    assert!(error.contains("shared_buffers takes effect only after a restart"), "{error}");
    place.is_as_before(all);
}

fn the_kernels_part_is_given_back(place: &Place, all: &str) {
    const PAGES: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
    const INTERVAL: &str = "/proc/sys/vm/stat_interval";
    #[derive(serde::Deserialize)]
    struct File {
        factor: Vec<Factor>,
    }
    let text = r#"
        [[factor]]
        name = "pages"
        levels = ["off", "2M"]
        huge-pages = true
        [[factor]]
        name = "interval"
        levels = [1, 7]
        kernel = "vm.stat_interval"
        "#;
    let read = |file: &str| std::fs::read_to_string(file).unwrap_or_default();
    let before = (read(PAGES), read(INTERVAL));
    let factors = toml::from_str::<File>(text).unwrap().factor;
    let mut applier = Applier::new(factors, &place.journal(), place.access(), Consent::default()).unwrap();
    let level = |factor: &str, level: &str| FactorSetting { factor: factor.into(), level: level.into() };
    let outcome = applier.apply(&DesignCell(vec![level("pages", "2M"), level("interval", "7")]), &mut spec());
    match outcome {
        Ok(()) => {
            assert_eq!((place.show("huge_pages").as_str(), read(INTERVAL).trim()), ("on", "7"));
            let pages = |text: &str| text.trim().parse::<u64>().unwrap();
            // 24 MB of buffers plus the server's other shared memory.
            let reserved = pages(&read(PAGES)) - pages(&before.0);
            assert!((12..200).contains(&reserved), "{reserved}");
        }
        // Without root, or if no contiguous memory is available.
        Err(error) => {
            let error = error.to_string();
            assert!(
                ["requires root", "huge pages: free memory", "this kernel has no"]
                    .iter()
                    .any(|why| error.contains(why)),
                "{error}"
            );
        }
    }
    applier.undo().unwrap();
    assert_eq!((read(PAGES), read(INTERVAL)), before);
    assert_eq!(place.show("huge_pages"), "try");
    place.is_as_before(all);
}

fn a_crashed_server_is_put_right(place: &Place, all: &str) {
    let mut applier = place.applier();
    applier.apply(&cell(WITHOUT_RESTART), &mut spec()).unwrap();
    let instance = place.instance();
    let pid = i32::try_from(instance.pid()).ok().and_then(rustix::process::Pid::from_raw).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    while place.manager.running(instance.major()).is_ok() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    applier.undo().unwrap();
    place.manager.up(None, &mut |_| ()).unwrap();
    // Its next start has the previous settings again, and not those applied at the beginning of this test.
    assert_eq!(place.set_by_system(), ["work_mem = '5MB'"]);
    assert_eq!((place.server_cpus(), cpus_of("self")), (vec![all.to_owned()], all.to_owned()));
    assert!(!place.marker().exists() && !place.journal().exists());
}

#[test]
#[ignore = "run by the test above in a process of its own"]
fn put_on_in_a_process_that_is_killed() {
    let directory = PathBuf::from(std::env::var_os("KELVIN_TEST_FACTORS").unwrap());
    let mut applier = applier(&directory);
    applier.apply(&cell(OTHER), &mut spec()).unwrap();
    println!("it is on");
    std::thread::sleep(std::time::Duration::from_mins(2));
    panic!("nobody has killed this process");
}

/// The scheduler and the read-ahead of a loop device without a file, which is unused.
#[test]
fn a_disks_queue_is_changed_and_given_back() {
    #[derive(serde::Deserialize)]
    struct File {
        factor: Vec<Factor>,
    }
    let unused = (0..64).rev().map(|number| format!("/sys/block/loop{number}")).find(|disk| {
        let read = |file: &str| std::fs::read_to_string(format!("{disk}/{file}")).unwrap_or_default();
        read("size").trim() == "0" && read("queue/scheduler").starts_with("[none] mq-deadline")
    });
    let (Some(disk), true) = (unused, rustix::process::geteuid().is_root()) else {
        println!("not root, or no loop device with the scheduler mq-deadline: not tested");
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let file: File = toml::from_str(&format!(
        "[[factor]]\nname = \"scheduler\"\nlevels = [\"none\", \"mq-deadline\"]\nkernel = \"{disk}/queue/scheduler\"\n\
         [[factor]]\nname = \"ahead\"\nlevels = [64, 4096]\nkernel = \"{disk}/queue/read_ahead_kb\"\n"
    ))
    .unwrap();
    let access = || Access::new(Manager::new(directory.path().join("base")));
    let journal = directory.path().join("undo.journal");
    let read = |name: &str| std::fs::read_to_string(format!("{disk}/queue/{name}")).unwrap();
    let default = read("nr_requests");
    std::fs::write(format!("{disk}/queue/nr_requests"), "64").unwrap();
    let before = (read("scheduler"), read("read_ahead_kb"), read("nr_requests"));
    let mut applier = Applier::new(file.factor, &journal, access(), Consent::default()).unwrap();
    let level = |factor: &str, level: &str| FactorSetting { factor: factor.into(), level: level.into() };
    let cell = DesignCell(vec![level("scheduler", "mq-deadline"), level("ahead", "4096")]);
    for _again in 0..2 {
        applier.apply(&cell, &mut spec()).unwrap();
        assert!(read("scheduler").contains("[mq-deadline]"), "{}", read("scheduler"));
        assert_eq!(read("read_ahead_kb").trim(), "4096");
    }
    // The first scheduler again, as for the other side of a comparison.
    let first = DesignCell(vec![level("scheduler", "none"), level("ahead", "64")]);
    applier.apply(&first, &mut spec()).unwrap();
    assert_eq!((read("scheduler"), read("nr_requests")), (before.0.clone(), before.2.clone()));
    applier.apply(&cell, &mut spec()).unwrap();
    applier.undo().unwrap();
    let after = (read("scheduler"), read("read_ahead_kb"), read("nr_requests"));
    std::fs::write(format!("{disk}/queue/nr_requests"), default.trim()).unwrap();
    assert_eq!(after, before);
}

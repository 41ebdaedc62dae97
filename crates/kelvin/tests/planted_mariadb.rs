//! Faults planted on purpose on a real MariaDB (or the server below `KELVIN_MYSQL_BASE`): each run has the red finding
//! that names its fault, and the run of a healthy server has none of them. Other red findings depend on the machine.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking, and draws say what they saw"
)]

#[path = "support/disturbance.rs"]
mod disturbance;
#[path = "planted_mariadb/drawn.rs"]
mod drawn;
#[path = "planted_mariadb/indexes.rs"]
mod indexes;
#[path = "planted_mariadb/misestimates.rs"]
mod misestimates;
#[path = "../../database/tests/mysql_support/mod.rs"]
mod mysql_support;
#[path = "one_answer/walk.rs"]
mod one_answer;
#[path = "planted_faults/results.rs"]
mod results;
#[path = "support/slow_flush.rs"]
mod slow_flush;
#[path = "planted_mariadb/spills_and_storms.rs"]
mod spills_and_storms;
#[path = "support/mod.rs"]
mod support;

use std::any::Any;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use disturbance::Throttle;
use kelvin_database::mysql::{Config, MysqlEngine};
use kelvin_database::{Engine as _, Session};
use kelvin_diagnose::{
    BottleneckOutcome, Class, Evidence, Finding, Severity, findings_for, is_client, metric, verdict,
};
use kelvin_store::Store;
use mysql_support::Server;
use support::{Place, text, wait_until};

/// Findings about the server's settings or its users' waits, which do not depend on the machine's speed.
const OF_THE_SERVER: [&str; 6] = [
    "durability-off",
    "redo-log-too-small",
    "hot-rows",
    "buffers-too-small",
    "history-list",
    "scan-without-index",
];

/// Only one run at a time uses the machine. The next server is prepared meanwhile, which is half of the time.
static MACHINE: Mutex<()> = Mutex::new(());

/// Changes a row that all users share, and does other work before the commit.
const ONE_ROW: &str = "\\set id random(1, 8192)\nbegin;\nupdate h set v = v + 1 where id = 1;\n\
     select v from h where id = :id;\nselect count(*) from h where id between :id and :id + 20;\n\
     select v from h where id = 7;\ncommit;\n";
/// Each user changes different rows.
const MANY_ROWS: &str = "\\set id random(1, 8192)\nbegin;\nupdate h set v = v + 1 where id = :id;\ncommit;\n";
/// Reads rows that are all in memory.
const READS: &str = "\\set id random(1, 8000)\nselect sum(v) from h where id between :id and :id + 100;\n";
/// Writes at least 100 kB of redo log.
const MUCH_LOG: &str = "\\set id random(1, 8192)\n\\set c random(1, 1000000)\nbegin;\n\
     update h set pad = repeat(:c, 30) where id between :id and :id + 400;\ncommit;\n";

/// Runs a script on a server with these settings and returns the observations.
fn run(settings: &[&str], script: &str, users: &str) -> (Evidence, Vec<&'static str>) {
    run_with(settings, |_| {}, script, users, &[])
}

/// As [`run`], with files in the server's directory and further flags.
fn run_with(
    settings: &[&str],
    prepare: impl FnOnce(&Path),
    script: &str,
    users: &str,
    more: &[&str],
) -> (Evidence, Vec<&'static str>) {
    let words = ["--users", users, "--ramp-up", "2s", "--duration", "6s"];
    let words = [&words[..], more].concat();
    let (evidence, findings) = load(&Load { settings, powers: 13, words: &words }, prepare, |_, place| {
        Beside::script(place, script)
    });
    let red = findings.into_iter().filter(|one| one.severity == Severity::Red).map(|one| one.id).collect();
    (evidence, red)
}

/// A server, and the load on it.
struct Load<'a> {
    settings: &'a [&'a str],
    /// Two to this power is the number of rows of the table.
    powers: u32,
    words: &'a [&'a str],
}

/// What runs beside a load until the load has ended.
struct Beside {
    /// The arguments that select the load.
    load: Vec<String>,
    /// The server's URL, if it is not that of its socket.
    url: Option<String>,
    /// A CPU limit on the load generator.
    throttle: Option<Throttle>,
    /// Other activity, which ends when dropped.
    #[allow(dead_code, reason = "it is only kept")]
    held: Option<Box<dyn Any>>,
}

impl Beside {
    fn script(place: &Place, script: &str) -> Self {
        let file = place.write("load.sql", script).to_str().unwrap().to_owned();
        Self { load: vec!["script".into(), file], url: None, throttle: None, held: None }
    }
}

fn url_of(server: &Server) -> String {
    format!("mysql://root@/kelvin?socket={}", server.socket().display())
}

/// Runs a load; `beside` starts what runs beside it.
fn load(
    of: &Load<'_>,
    prepare: impl FnOnce(&Path),
    beside: impl FnOnce(&Server, &Place) -> Beside,
) -> (Evidence, Vec<Finding>) {
    let server = start(of, prepare);
    let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let place = Place::new();
    let beside = beside(&server, &place);
    measure(&server, &place, beside, of.words)
}

/// Starts the server and creates its table.
fn start(of: &Load<'_>, prepare: impl FnOnce(&Path)) -> Server {
    let server = Server::start_with(of.settings, prepare);
    let mut session = server.session();
    session.run("CREATE TABLE h (id INT PRIMARY KEY, v INT, pad VARCHAR(250)); INSERT INTO h VALUES (1, 0, repeat('x', 200))").unwrap();
    for power in 0..of.powers {
        session.run(&format!("INSERT INTO h SELECT id + {}, 0, pad FROM h", 1 << power)).unwrap();
    }
    drop(session);
    server
}

fn measure(server: &Server, place: &Place, beside: Beside, words: &[&str]) -> (Evidence, Vec<Finding>) {
    let url = beside.url.clone().unwrap_or_else(|| url_of(server));
    let mut command = place.command(&["run"]);
    command.args(&beside.load).args(["--target", &url, "--observe-interval", "200ms", "-q"]).args(words);
    if let Some(throttle) = &beside.throttle {
        command = throttle.around(&command);
    }
    let output = command.output().unwrap();
    drop(beside);
    assert!(matches!(output.status.code(), Some(0 | 1 | 3)), "{}", text(&output.stderr));
    assert!(!text(&output.stderr).contains("could not be written"), "{}", text(&output.stderr));
    let store = Store::open_read_only(place.store()).unwrap();
    let run = store.find("last").unwrap();
    let evidence = Evidence::from_run(&store.load(run).unwrap()).unwrap();
    one_answer::Lists::read(place).hold_together("planted fault", &store, run);
    let findings = findings_for(&evidence);
    (evidence, findings)
}

#[test]
fn commits_that_wait_for_no_disk_and_sixteen_users_on_one_row() {
    let (evidence, red) = run(&["--innodb-flush-log-at-trx-commit=0"], ONE_ROW, "16");
    assert!(red.contains(&"durability-off") && red.contains(&"hot-rows"), "{red:?}");
    // The evidence has the blocked sessions and the table.
    assert_eq!(evidence.row_waits(0).first().map(|(table, _)| table.as_str()), Some("kelvin.h"));
    let blockers: Vec<_> = evidence.blockers(0).iter().flat_map(|(_, blockers)| blockers).collect();
    assert!(blockers.iter().any(|one| !one.waiting.is_empty()), "{blockers:?}");
    let is_named = blockers
        .iter()
        .any(|one| one.lock == "row of kelvin.h" && one.waiting_statement.starts_with("update h"));
    assert!(is_named, "{blockers:?}");
    is_limited_by(&evidence, Class::Locks);
}

/// Asserts the main class of the sessions, and of the verdict if it names one: other activity of the machine can
/// prevent that.
#[track_caller]
fn is_limited_by(evidence: &Evidence, class: Class) {
    let verdict = verdict(evidence, 0, &findings_for(evidence)).unwrap();
    assert_eq!(verdict.shares.first().map(|share| share.class.as_str()), Some(class.label()), "{verdict:?}");
    if let BottleneckOutcome::Bound { class: named } = &verdict.outcome {
        assert_eq!(named, class.label());
    }
}

#[test]
fn commits_on_a_disk_that_takes_its_time() {
    let slow = |directory: &Path| slow_flush::build(&directory.join("preload.so"), Duration::from_millis(5));
    let settings = ["--innodb-flush-log-at-trx-commit=1"];
    let (evidence, _) = run_with(&settings, slow, MANY_ROWS, "8", &[]);
    is_limited_by(&evidence, Class::Log);
}

#[test]
fn all_in_memory_without_a_disk_to_wait_for_and_the_server_asked_for_all_it_has() {
    let settings = ["--innodb-flush-log-at-trx-commit=0", "--performance-schema=ON"];
    let (evidence, _) = run_with(&settings, |_| {}, READS, "4", &["--observe", "deep"]);
    is_limited_by(&evidence, Class::Cpu);
    let notes = evidence.context.notes.join("\n");
    assert!(notes.contains("instruments and") && notes.contains("switched on for this run"), "{notes}");
    assert!(!evidence.absent().iter().any(|one| one.what == "latches by name"), "{:?}", evidence.absent());
    // The statement has a plan, with or without a sample of its text.
    let (statements, _) = evidence.statements(0).unwrap();
    let plan = statements.iter().find(|one| one.text.contains("`h`")).unwrap().plan.as_ref().unwrap();
    let scan = &plan.scans[0];
    assert_eq!((scan.relation.as_str(), scan.index.as_deref()), ("h", Some("PRIMARY")), "{plan:?}");
}

#[test]
fn a_redo_log_that_comes_round_all_the_time() {
    let settings = [
        "--innodb-log-file-size=4M",
        "--innodb-buffer-pool-size=128M",
        // Pages are flushed only when the redo log is nearly full.
        "--innodb-adaptive-flushing=OFF",
        "--innodb-io-capacity=100",
    ];
    let (evidence, red) = run(&settings, MUCH_LOG, "4");
    assert!(
        red.contains(&"redo-log-too-small"),
        "{red:?} {:?}",
        evidence.all_occurrences().collect::<Vec<_>>()
    );
}

#[test]
fn a_healthy_server_is_seen_whole_and_has_no_red_finding_of_its_own() {
    for settings in [&[][..], &["--performance-schema=ON"]] {
        healthy(&[&["--innodb-flush-log-at-trx-commit=1"], settings].concat());
    }
}

fn healthy(settings: &[&str]) {
    let (evidence, red) = run(settings, MANY_ROWS, "2");
    let of_the_server: Vec<_> = red.iter().filter(|id| OF_THE_SERVER.contains(id)).collect();
    assert!(of_the_server.is_empty(), "{red:?}");
    // Findings whose cost is proportional to their cause must be absent.
    let costs = ["connection-storm", "temporary-files", "duplicate-index", "unused-index"];
    let found: Vec<_> = findings_for(&evidence).into_iter().filter(|one| costs.contains(&one.id)).collect();
    assert!(found.is_empty(), "{found:#?}");
    let counted = |names: &[&str]| evidence.mean_of_first_known(0, names).is_some_and(|rate| rate > 0.0);
    assert!(counted(metric::COMMITS) && counted(metric::LOG_BYTES) && counted(metric::LOG_SYNCS));
    assert!(counted(metric::BUFFER_HITS) && counted(&[metric::CHECKPOINT_AGE]));
    // The server is identified as a process of this host by the thread that serves the watcher.
    assert!(counted(&["host.process.server.cpu.user"]) && evidence.file_location("wal").is_some());
    let active = evidence.active(0, |_| true);
    assert!(active.looks > 0 && active.sessions() > 0.1, "{active:?}");
    // All sessions are the load's: the watchers' sessions are excluded, and commits are recognised.
    assert!(active.groups.iter().all(|(group, _)| is_client(group)), "{active:?}");
    assert!(evidence.lost().is_empty(), "{:?}", evidence.lost());
}

/// Two kelvin processes that drive one server under one account; by default, MariaDB shows only the account.
#[test]
fn another_kelvin_of_the_same_account_is_a_red_finding_and_another_client_an_amber_one() {
    let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    for settings in [&[][..], &["--performance-schema=ON"]] {
        let server = Server::start_with(settings, |_| {});
        let url = format!("mysql://root@/kelvin?socket={}", server.socket().display());
        let begin = |place: &Place, seconds: &str| {
            place.write("sleep.sql", "select sleep(0.05);\n");
            let args = ["run", "script", "sleep.sql", "--target", &url, "-u", "2", "--ramp-up", "0", "-q"];
            let mut command = place.command(&[&args[..], &["-d", seconds]].concat());
            command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
        };
        let found = |place: &Place| {
            assert!(matches!(begin(place, "4s").wait().unwrap().code(), Some(0 | 1)));
            let run = place.report("last");
            let findings = run["findings"].as_array().unwrap().clone();
            findings.into_iter().find(|one| one["id"] == "foreign-sessions")
        };
        let working = |session: &mut dyn Session| {
            let asked = "SELECT CAST(COUNT(*) AS SIGNED) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'select sleep(0.05)%'";
            session.query(asked).unwrap().int(0, 0).unwrap() > 0
        };
        let place = Place::new();
        assert_eq!(found(&place), None, "alone: {settings:?}");

        // A session of this test's process, which is not a Kelvin.
        let config = Config::parse(&url).unwrap();
        let mut client = MysqlEngine::new(config).connect().unwrap();
        let stop = std::sync::atomic::AtomicBool::new(false);
        let (alone, client) = std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    client.query("select sleep(0.2)").unwrap();
                }
                client
            });
            let found = found(&place);
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            (found.unwrap(), other.join().unwrap())
        });
        // The client's socket belongs to this process, and so does its name. Without names, which MariaDB lacks by
        // default and MySQL has, it counts as another client.
        let mut client = client;
        let named = client.query("select @@performance_schema").unwrap().int(0, 0).unwrap() == 1;
        let expected = if named { "red" } else { "amber" };
        assert_eq!(alone["severity"], expected, "{settings:?}: {alone}");

        let beside = Place::new();
        let mut other = begin(&beside, "20s");
        wait_until("the other one is at work", || working(&mut *client));
        let seen = found(&place).unwrap();
        other.kill().unwrap();
        other.wait().unwrap();
        assert_eq!(seen["severity"], "red", "{settings:?}: {seen}");
        assert!(seen["title"].as_str().unwrap().contains("another Kelvin"), "{seen}");
    }
}

//! Faults planted on purpose, each in a real run on a real PostgreSQL: the finding that names the fault is red, and no
//! other is.
//!
//! Other red findings depend on the machine as much as on the run. `cargo xtask machine` judges them, and runs all of
//! these tests on a quiet machine, one at a time ([`alone`]). The regular tests plant the faults that do not depend on
//! the machine, run beside others, and check for their finding.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a test fails by panicking, and says what it saw"
)]

#[path = "../support/disturbance.rs"]
mod disturbance;
#[path = "../one_answer/walk.rs"]
mod one_answer;
#[path = "../support/slow_flush.rs"]
mod slow_flush;
#[path = "../support/mod.rs"]
mod support;

mod drawn;
mod faults;
mod plants;
mod results;

use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kelvin_database::Engine;
use kelvin_database::postgres::{Config, PostgresEngine};
use kelvin_diagnose::{Evidence, Finding, Severity, findings_for, verdict};
use kelvin_store::Store;
use one_answer::Lists;
use support::{Place, Server, text};

/// Findings that spoil a run without being a fault of the database: other users of the machine, and a server that was
/// just started and has not reached its steady state when the window opens. The recommended action for the latter is
/// another run, which is made: by then the caches and the WAL files are warm.
const SPOILING_FINDINGS: [&str; 3] = ["steal", "noisy-neighbour", "ramp-up-too-short"];

/// Whether the machine is quiet, as declared by the caller of the tests: `cargo xtask machine` sets it.
fn judges_the_machine() -> bool {
    std::env::var_os("KELVIN_QUIET_MACHINE").is_some()
}

static MACHINE: Mutex<()> = Mutex::new(());

fn alone() -> Option<MutexGuard<'static, ()>> {
    judges_the_machine().then(|| MACHINE.lock().unwrap_or_else(PoisonError::into_inner))
}

/// A place with a server, and TPROC-C on it.
struct Bench {
    place: Place,
    server: Server,
    _alone: Option<MutexGuard<'static, ()>>,
}

impl Bench {
    fn with(settings: &[(&str, &str)]) -> Self {
        let alone = alone();
        Self { place: Place::new(), server: Server::start_with(settings), _alone: alone }
    }

    fn build(self, warehouses: &str) -> Self {
        let url = self.server.url();
        self.place.expect(
            0,
            &["build", "tproc-c", "--target", &url, "--warehouses", warehouses, "--no-check", "-q"],
        );
        // Remains of the load are not part of the run: dead rows, dirty pages, WAL since the last checkpoint.
        self.sql("vacuum analyze");
        self.sql("checkpoint");
        self
    }

    /// With the server's counts of each statement, for which it was started with the library.
    fn counted(self) -> Self {
        self.sql("create extension pg_stat_statements");
        self
    }

    /// Statements one by one: VACUUM must not be within a transaction, which several at once would be.
    fn sql(&self, sql: &str) {
        let mut session = PostgresEngine::new(self.server.instance.config()).connect().unwrap();
        for one in sql.split(';').map(str::trim).filter(|one| !one.is_empty()) {
            session.run(one).unwrap();
        }
    }

    /// A run of TPROC-C that is healthy on two cores but for these flags: few enough users not to queue, one warehouse each.
    fn tproc_c(&self, more: &[&str]) -> Command {
        self.tproc_c_at(&self.server.url(), more)
    }

    fn tproc_c_at(&self, url: &str, more: &[&str]) -> Command {
        self.command_at(url, &[&["tproc-c"], more].concat())
    }

    /// A run of this script.
    fn script(&self, script: &str, more: &[&str]) -> Command {
        let file = self.place.write("load.sql", script);
        self.command(&[&["script", file.to_str().unwrap()], more].concat())
    }

    /// A run of a workload.
    fn command(&self, words: &[&str]) -> Command {
        self.command_at(&self.server.url(), words)
    }

    fn command_at(&self, url: &str, words: &[&str]) -> Command {
        let mut command = self.place.command(&["run"]);
        command.args(words).args(["--target", url, "-q"]);
        for (flag, value) in [("--users", "2"), ("--ramp-up", "4s"), ("--duration", "12s")] {
            if !words.contains(&flag) {
                command.args([flag, value]);
            }
        }
        command
    }

    fn run(&self, mut command: Command) -> Found {
        if std::env::var_os("KELVIN_FAULTS_ACCEPT_NOISE").is_some() {
            command.arg("--accept-noise");
        }
        let output = command.output().unwrap();
        let code = output.status.code();
        assert!(matches!(code, Some(0 | 1 | 3)), "{code:?} {}", text(&output.stderr));
        let store = Store::open_read_only(self.place.store()).unwrap();
        let run = store.find("last").unwrap();
        let evidence = Evidence::from_run(&store.load(run).unwrap()).unwrap();
        if !drawn::is_drawing() {
            let mut lists = Lists::of(&self.place);
            lists.hold_together("planted fault", &store, run);
            assert!(lists.compared.headlines + lists.compared.verdicts == 2, "{:?}", lists.compared);
        }
        let findings = findings_for(&evidence);
        Found { evidence, findings, shown: text(&output.stdout) }
    }
}

struct Found {
    evidence: Evidence,
    findings: Vec<Finding>,
    shown: String,
}

impl Found {
    fn of(&self, severity: Severity) -> Vec<&'static str> {
        let of = self.findings.iter().filter(|finding| finding.severity == severity);
        let mut ids: Vec<_> = of.map(|finding| finding.id).collect();
        ids.dedup();
        ids
    }

    fn red(&self) -> Vec<&'static str> {
        self.of(Severity::Red)
    }

    /// Transactions a second.
    fn per_second(&self) -> Option<f64> {
        let seconds = self.evidence.points().next()?.throughput();
        (!seconds.is_empty()).then(|| seconds.iter().sum::<f64>() / seconds.len() as f64)
    }

    /// Half of their 95 % interval, as a share of them.
    fn precision(&self) -> Option<f64> {
        let known = kelvin_stats::ess::precision(&self.evidence.points().next()?.throughput())?;
        known.half_width(0.95).map(|half| half / known.mean)
    }

    fn amber(&self) -> Vec<&'static str> {
        self.of(Severity::Amber)
    }

    /// Whether something that was not planted spoilt the run.
    fn is_spoilt(&self, planted: &[&str]) -> bool {
        self.red().iter().any(|id| SPOILING_FINDINGS.contains(id) && !planted.contains(id))
    }

    /// The one red finding, or all findings.
    #[track_caller]
    fn expect(&self, ids: &[&str]) {
        let red = self.red();
        let as_expected =
            if judges_the_machine() { red == ids } else { ids.iter().all(|id| red.contains(id)) };
        if !as_expected {
            self.explain();
            panic!("red is {red:?}, expected {ids:?}");
        }
    }

    fn explain(&self) {
        for finding in &self.findings {
            eprintln!("{finding:#?}");
        }
        eprintln!("{:#?}\n{}", verdict(&self.evidence, 0, &self.findings), self.shown);
    }
}

#[test]
fn a_storm_of_checkpoints() {
    plants::forced_checkpoints(64).expect();
}

#[test]
fn autovacuum_within_the_window() {
    plants::autovacuum_in_window(50).expect();
}

#[test]
fn fsync_off() {
    plants::fsync_off().expect();
}

#[test]
fn one_warehouse_and_sixteen_users() {
    plants::hot_rows(16).expect();
}

#[test]
fn an_index_that_is_gone() {
    // Each New-Order looks ten items up, of 100,000.
    plants::missing_index("item").expect();
}

#[test]
fn a_forgotten_transaction() {
    let fault = plants::lock_holder(7);
    let shown = fault.expect().place.expect(0, &["show", "last", "--all"]);
    // Who held what, with the statements of both, and whose snapshot kept row versions is seen, too.
    for part in [
        "row of public.warehouse",
        "its statement: update warehouse set w_ytd",
        "statement that waited for it: ",
    ] {
        assert!(shown.contains(part), "{part} is not in\n{shown}");
    }
}

mod machine {
    use super::*;

    /// Advice from the list to the answer: the right change is first and confirmed, another one is not, and nothing is left.
    #[test]
    #[ignore = "runs for minutes: cargo xtask machine"]
    fn advice_on_a_missing_index_is_proved_and_everything_is_put_back() {
        let bench = Bench::with(&[("shared_preload_libraries", "pg_stat_statements")]).build("2");
        let url = bench.server.url();
        bench.sql("create extension pg_stat_statements");
        bench.sql("alter table item drop constraint item_i1");
        let words = ["run", "tproc-c", "--target", &url, "-q", "--users", "2", "--calls", "statements"];
        let load = ["--ramp-up", "2s", "--duration", "6s"];
        let run = bench.place.command(&[&words[..], &load].concat()).output().unwrap();
        assert!(matches!(run.status.code(), Some(0 | 1)), "{}", text(&run.stderr));
        let list = bench.place.expect(0, &["advise", "1"]);
        eprintln!("{list}");
        let first = list.lines().find(|line| line.starts_with("  1  ")).unwrap();
        assert!(first.contains("index on public.item (i_id)"), "{list}");
        let last = list.lines().find(|line| line.contains("wal_compression = pglz")).unwrap();
        let last = last.split_whitespace().next().unwrap();
        let state = || {
            let mut session = PostgresEngine::new(bench.server.instance.config()).connect().unwrap();
            let sql = "select (select count(*) from pg_indexes where tablename = 'item'), (select count(*) from orders), \
                (select sum(hashtext(s::text)::int8) from stock as s)::int8, current_setting('wal_compression') = 'off', \
                (select count(*) from pg_database where datname like 'kelvin_snapshot%')";
            let rows = session.query(sql).unwrap();
            (0..5).map(|column| rows.int(0, column).unwrap()).collect::<Vec<_>>()
        };
        let before = state();
        let chosen = format!("1,{last}");
        let words = ["advise", "1", "--prove", &chosen, "--blocks", "4", "--allow-settings", "--yes"];
        let more = ["--duration", "3s", "--ramp-up", "1s"];
        let answer = bench.place.expect(0, &[&words[..], &more].concat());
        eprintln!("{answer}");
        let steps: Vec<&str> = answer.split("\n  2  ").collect();
        assert!(
            steps[0].contains("confirmed, +") && steps[0].contains("kept for the next changes"),
            "{answer}"
        );
        let shown = ["refuted", "no change shown", "worse"].iter().any(|verdict| steps[1].contains(verdict));
        assert!(shown && !steps[1].contains("could not be tried"), "{answer}");
        assert_eq!(state(), before, "indexes, orders, stock, wal_compression, snapshots");
        assert_eq!(
            bench.place.expect(0, &["server", "restore", "--target", &url]).trim(),
            "nothing to revert"
        );
        let again = bench.place.expect(0, &["advise", "1"]);
        assert!(again.contains("tried in group 1: confirmed"), "{again}");
        // In the run, too.
        let tried = &bench.place.report("1")["tried"];
        assert_eq!(tried.as_array().map(Vec::len), Some(2), "{tried}");
        assert!(tried[0]["answer"].as_str().unwrap().starts_with("confirmed, +"), "{tried}");
        let page = bench.place.expect(0, &["report", "1", "-o", "-"]);
        assert!(page.contains("Changes that were tried") && page.contains("16 runs in "), "{tried}");
    }

    /// Step 2 of a published tuning study: the largest wait is taken away, and nothing is gained, as the sessions wait for the
    /// CPUs instead.
    #[test]
    #[ignore = "runs for minutes: cargo xtask machine"]
    fn the_largest_wait_that_limits_nothing_is_said_to_be_none() {
        let bench = Bench::with(&[]);
        bench.sql(
            "create table parts (id int primary key, v int); \
             insert into parts select id, id from generate_series(1, 50000) as id; vacuum analyze parts",
        );
        let _slow = faults::SlowFlush::of(&bench.server, Duration::from_millis(4));
        // Enough users that the CPUs are busy while others wait for the log.
        let script = "\\set id random(1, 40000)\nselect sum(v) from parts where id between :id and :id + 6000;\n\
            update parts set v = v + 1 where id = :id;\n";
        let run = bench.script(script, &["--users", "16", "--duration", "6s"]).output().unwrap();
        assert!(matches!(run.status.code(), Some(0 | 1)), "{}", text(&run.stderr));
        let words = ["advise", "1", "--prove", "waits", "--blocks", "4", "--allow-settings", "--yes"];
        let more = ["--duration", "4s", "--ramp-up", "1s"];
        let answer = bench.place.expect(0, &[&words[..], &more].concat());
        eprintln!("{answer}");
        assert!(answer.contains("synchronous_commit = off") && !answer.contains("confirmed"), "{answer}");
        let flat = answer.split_whitespace().collect::<Vec<_>>().join(" ");
        let log = flat.split("log: ").nth(1).unwrap();
        assert!(log.contains("it was no limit"), "{answer}");
    }

    #[test]
    #[ignore = "runs for a minute: cargo xtask machine"]
    fn ctrl_c_within_a_proof_puts_everything_back() {
        let bench = Bench::with(&[("work_mem", "4MB")]).build("1");
        let url = bench.server.url();
        let run = bench.tproc_c(&["--ramp-up", "0s", "--duration", "2s"]).output().unwrap();
        assert!(matches!(run.status.code(), Some(0 | 1)), "{}", text(&run.stderr));
        let state = || {
            let mut session = PostgresEngine::new(bench.server.instance.config()).connect().unwrap();
            let sql = "select (select count(*) from orders), (select sum(hashtext(s::text)::int8) from stock as s)::int8, \
                pg_size_bytes(current_setting('work_mem')), \
                (select count(*) from pg_database where datname like 'kelvin_snapshot%')";
            let rows = session.query(sql).unwrap();
            (0..4).map(|column| rows.int(0, column).unwrap()).collect::<Vec<_>>()
        };
        let before = state();
        let words = ["advise", "1", "--try", "work_mem=8MB", "--prove", "try", "--allow-settings", "--yes"];
        let more = ["--duration", "5s", "--ramp-up", "0s"];
        let mut proof = bench.place.command(&[&words[..], &more].concat());
        let mut proof = proof.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // From another database: a session in this one would keep its data from being replaced.
        let other = Config { database: "postgres".into(), ..bench.server.instance.config() };
        let changed = || {
            assert!(proof.try_wait().unwrap().is_none(), "it ended before the setting was changed");
            let mut session = PostgresEngine::new(other.clone()).connect().unwrap();
            let size = "select pg_size_bytes(current_setting('work_mem'))";
            session.query(size).unwrap().int(0, 0).unwrap() == 8 << 20
        };
        support::wait_until("the setting is changed", Duration::from_mins(3), changed);
        let pid = proof.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        let output = proof.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
        assert_eq!(state(), before, "orders, stock, work_mem, snapshots: {}", text(&output.stderr));
        assert_eq!(
            bench.place.expect(0, &["server", "restore", "--target", &url]).trim(),
            "nothing to revert"
        );
    }

    #[test]
    #[ignore = "judges the machine: cargo xtask machine"]
    fn a_healthy_run_has_no_red_finding() {
        // Others: cargo xtask faults.
        plants::nothing().expect();
    }

    #[test]
    #[ignore = "judges the machine: cargo xtask machine"]
    fn a_hog_on_the_cpus() {
        let fault = plants::cpu_hog(4, 0);
        let shown = fault.expect().place.expect(0, &["show", "last", "--all"]);
        assert!(shown.contains("used by sh"), "{shown}");
    }

    #[test]
    #[ignore = "judges the machine: cargo xtask machine"]
    fn a_client_throttled_to_a_fifth_of_a_cpu() {
        plants::throttled_client(20).expect();
    }

    #[test]
    #[ignore = "judges the machine: cargo xtask machine"]
    fn a_log_whose_flushes_are_slow() {
        plants::slow_log(15).expect();
    }

    #[test]
    #[ignore = "judges the machine: cargo xtask machine"]
    fn tiny_buffers_and_data_beyond_them() {
        plants::tiny_buffers(2).expect();
    }

    #[test]
    #[ignore = "judges the machine: cargo xtask machine"]
    fn a_slow_network() {
        plants::slow_network(3).expect();
    }

    #[test]
    #[ignore = "judges the machine: cargo xtask machine"]
    fn a_ramp_up_that_is_too_short() {
        plants::short_ramp_up(20).expect();
    }
}

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
mod speed;

use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kelvin_database::Engine;
use kelvin_database::postgres::PostgresEngine;
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

/// A directory with a server that has TPROC-C's data.
struct Bench {
    place: Place,
    server: Server,
    _alone: Option<MutexGuard<'static, ()>>,
}

impl Bench {
    fn start(settings: &[(&str, &str)]) -> Self {
        let alone = alone();
        Self { place: Place::new(), server: Server::start_with(settings), _alone: alone }
    }

    fn build(self, warehouses: &str) -> Self {
        let url = self.server.url();
        self.place.expect(
            0,
            &["build", "tproc-c", "--target", &url, "--warehouses", warehouses, "--no-check", "-q"],
        );
        // Remains of loading must not affect the run: dead rows, dirty pages, WAL since the last checkpoint.
        self.sql("vacuum analyze");
        self.sql("checkpoint");
        self
    }

    /// Enables statement counters; the server was started with the library.
    fn counted(self) -> Self {
        self.sql("create extension pg_stat_statements");
        self
    }

    /// Runs statements one by one: several at once would be one transaction, in which VACUUM fails.
    fn sql(&self, sql: &str) {
        let mut session = PostgresEngine::new(self.server.instance.config()).connect().unwrap();
        for one in sql.split(';').map(str::trim).filter(|one| !one.is_empty()) {
            session.run(one).unwrap();
        }
    }

    /// A run of TPROC-C that is healthy on two cores except for these flags: few enough users to avoid queues, with one
    /// warehouse each.
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
            let mut lists = Lists::read(&self.place);
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
    fn ids(&self, severity: Severity) -> Vec<&'static str> {
        let of = self.findings.iter().filter(|finding| finding.severity == severity);
        let mut ids: Vec<_> = of.map(|finding| finding.id).collect();
        ids.dedup();
        ids
    }

    fn red(&self) -> Vec<&'static str> {
        self.ids(Severity::Red)
    }

    /// Transactions per second.
    fn per_second(&self) -> Option<f64> {
        let seconds = self.evidence.points().next()?.throughput();
        (!seconds.is_empty()).then(|| seconds.iter().sum::<f64>() / seconds.len() as f64)
    }

    /// Half of the 95 % interval of the throughput, as a share of it.
    fn precision(&self) -> Option<f64> {
        let known = kelvin_stats::ess::precision(&self.evidence.points().next()?.throughput())?;
        known.half_width(0.95).map(|half| half / known.mean)
    }

    fn amber(&self) -> Vec<&'static str> {
        self.ids(Severity::Amber)
    }

    /// Whether another cause than the planted fault spoilt the run.
    fn is_spoilt(&self, planted: &[&str]) -> bool {
        self.red().iter().any(|id| SPOILING_FINDINGS.contains(id) && !planted.contains(id))
    }

    /// Asserts that exactly these findings are red; prints all findings otherwise.
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
    // Each New-Order looks up ten of 100,000 items.
    plants::missing_index("item").expect();
}

#[test]
fn a_forgotten_transaction() {
    let fault = plants::lock_holder(7000);
    let shown = fault.expect().place.expect(0, &["show", "last", "--all"]);
    // The finding names the holder of each lock, with the statements of both sessions, and the session whose snapshot kept
    // row versions.
    for part in
        ["row of public.warehouse", "its statement: update warehouse set w_ytd", "statement waiting for it: "]
    {
        assert!(shown.contains(part), "{part} is not in\n{shown}");
    }
}

mod machine {
    use super::*;

    mod proofs;

    #[test]
    #[ignore = "judges the machine: cargo xtask machine"]
    fn a_healthy_run_has_no_red_finding() {
        // `cargo xtask faults` has further healthy loads.
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
        plants::slow_log(15_000).expect();
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

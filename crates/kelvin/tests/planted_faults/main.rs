//! Faults planted on purpose, each in a real run on a real PostgreSQL: the finding that names the fault is red, and no
//! other is.
//!
//! Other red findings depend on the machine as much as on the run. `cargo xtask machine` judges them, and runs all of
//! these tests on a quiet machine, one at a time ([`alone`]). The regular tests plant the faults that do not depend on
//! the machine, run beside others, and check for their finding.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says what it saw"
)]

#[path = "../one_answer/walk.rs"]
mod one_answer;
#[path = "../support/slow_flush.rs"]
mod slow_flush;
#[path = "../support/mod.rs"]
mod support;

mod faults;

use std::sync::{Mutex, MutexGuard, PoisonError};

use faults::{CpuHog, Delay, SlowFlush, Throttle, forgotten_transaction};
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

    fn sql(&self, sql: &str) {
        PostgresEngine::new(self.server.instance.config()).connect().unwrap().run(sql).unwrap();
    }

    /// The arguments of a run that is healthy on two cores: few enough users not to queue, one warehouse each.
    fn words<'a>(url: &'a str, more: &[&'a str]) -> Vec<&'a str> {
        let mut words = vec!["run", "tproc-c", "--target", url, "-q"];
        for (flag, value) in [("--users", "2"), ("--ramp-up", "4s"), ("--duration", "12s")] {
            if !more.contains(&flag) {
                words.extend([flag, value]);
            }
        }
        words.extend(more);
        words
    }

    /// Runs; `red` are the findings that must be red, and no others may be.
    #[track_caller]
    fn expect(&self, red: &[&str], url: &str, more: &[&str]) {
        self.expect_of(red, || self.place.command(&Self::words(url, more)));
    }

    /// The same for any command. If a run is spoilt, which a finding shows, it is repeated, twice at most: the test is
    /// for the planted fault's finding, and not for a quiet machine.
    #[track_caller]
    fn expect_of(&self, red: &[&str], command: impl Fn() -> std::process::Command) {
        for attempt in 1..=3 {
            let found = self.run(command());
            let not_planted = |id: &&str| SPOILING_FINDINGS.contains(id) && !red.contains(id);
            let spoilt = judges_the_machine() && found.red().iter().any(not_planted);
            if spoilt && attempt < 3 {
                eprintln!("attempt {attempt} was spoilt: {:?}", found.red());
                continue;
            }
            return found.expect(red);
        }
    }

    fn run(&self, mut command: std::process::Command) -> Found {
        let output = command.output().unwrap();
        let code = output.status.code();
        assert!(matches!(code, Some(0 | 1 | 3)), "{code:?} {}", text(&output.stderr));
        let store = Store::open_read_only(self.place.store()).unwrap();
        let run = store.find("last").unwrap();
        let evidence = Evidence::from_run(&store.load(run).unwrap()).unwrap();
        let mut lists = Lists::of(&self.place);
        lists.hold_together("planted fault", &store, run);
        assert!(lists.compared.headlines + lists.compared.verdicts == 2, "{:?}", lists.compared);
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
    fn red(&self) -> Vec<&'static str> {
        let red = self.findings.iter().filter(|finding| finding.severity == Severity::Red);
        let mut ids: Vec<_> = red.map(|finding| finding.id).collect();
        ids.dedup();
        ids
    }

    /// The one red finding, or all findings.
    #[track_caller]
    fn expect(&self, ids: &[&str]) {
        let red = self.red();
        let as_expected =
            if judges_the_machine() { red == ids } else { ids.iter().all(|id| red.contains(id)) };
        if !as_expected {
            for finding in &self.findings {
                eprintln!("{finding:#?}");
            }
            eprintln!("{:#?}\n{}", verdict(&self.evidence, 0, &self.findings), self.shown);
            panic!("red is {red:?}, expected {ids:?}");
        }
    }
}

#[test]
fn a_storm_of_checkpoints() {
    let bench = Bench::with(&[("max_wal_size", "64MB"), ("min_wal_size", "32MB")]).build("2");
    bench.expect(&["wal-forced-checkpoint"], &bench.server.url(), &[]);
}

#[test]
fn autovacuum_within_the_window() {
    let bench = Bench::with(&[
        ("autovacuum", "on"),
        ("autovacuum_naptime", "1s"),
        ("autovacuum_vacuum_threshold", "50"),
        ("autovacuum_vacuum_scale_factor", "0"),
        ("autovacuum_vacuum_cost_delay", "0"),
    ])
    .build("2");
    bench.expect(&["autovacuum-in-window"], &bench.server.url(), &[]);
}

#[test]
fn fsync_off() {
    let bench = Bench::with(&[("fsync", "off")]).build("2");
    // The first WAL files are created here, too, and there is no other wait.
    bench.expect(&["fsync-off"], &bench.server.url(), &["--ramp-up", "10s"]);
}

#[test]
fn one_warehouse_and_sixteen_users() {
    let bench = Bench::with(&[]).build("1");
    // A server that was just started creates its first WAL files, which takes some seconds of such a load.
    bench.expect(&["hot-rows"], &bench.server.url(), &["--users", "16", "--ramp-up", "10s"]);
}

#[test]
fn an_index_that_is_gone() {
    let bench = Bench::with(&[]).build("2");
    // Each New-Order looks ten items up, of 100,000.
    bench.sql("alter table item drop constraint item_i1");
    bench.expect(&["scan-without-index"], &bench.server.url(), &[]);
}

#[test]
fn a_forgotten_transaction() {
    let bench = Bench::with(&[]).build("2");
    let url = bench.server.url();
    let more = ["--ramp-up", "0s", "--duration", "10s"];
    // Half of the users need this warehouse's row.
    let sql = "update warehouse set w_ytd = w_ytd where w_id = 1";
    let hold = || forgotten_transaction(&bench.server, sql, std::time::Duration::from_secs(7));
    bench.expect_of(&["lock-holder"], || {
        hold();
        bench.place.command(&Bench::words(&url, &more))
    });
    let shown = bench.place.expect(0, &["show", "last", "--all"]);
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
    }

    #[test]
    #[ignore = "judges the machine: cargo xtask machine"]
    fn a_healthy_run_has_no_red_finding() {
        let bench = Bench::with(&[]).build("2");
        // The others of ten: cargo xtask bench observe healthy.
        bench.expect(&[], &bench.server.url(), &[]);
    }

    #[test]
    #[ignore = "judges the machine: cargo xtask machine"]
    fn a_hog_on_the_cpus() {
        let bench = Bench::with(&[]).build("2");
        let _hog = CpuHog::start(4);
        bench.expect(&["noisy-neighbour"], &bench.server.url(), &[]);
    }

    #[test]
    #[ignore = "judges the machine: cargo xtask machine"]
    fn a_client_throttled_to_a_fifth_of_a_cpu() {
        let bench = Bench::with(&[]);
        let url = bench.server.url();
        // Short transactions: with TPROC-C's the client needs less than that.
        let load = ["-S", "-M", "prepared", "--users", "8", "--ramp-up", "4s", "--duration", "12s", "-q"];
        bench.place.expect(0, &["build", "pgbench", "--target", &url, "-s", "5", "-q"]);
        bench.sql("checkpoint");
        let throttle = Throttle::cpu(0.2);
        let words: Vec<_> = ["run", "pgbench", "--target", &url].into_iter().chain(load).collect();
        bench.expect_of(&["client-saturated"], || throttle.around(&bench.place.command(&words)));
    }

    #[test]
    #[ignore = "judges the machine: cargo xtask machine"]
    fn a_log_whose_flushes_are_slow() {
        let bench = Bench::with(&[]).build("2");
        let slow = SlowFlush::of(&bench.server, std::time::Duration::from_millis(15));
        bench.expect(&["log-write-latency"], &bench.server.url(), &[]);
        drop(slow);
    }

    #[test]
    #[ignore = "judges the machine: cargo xtask machine"]
    fn tiny_buffers_and_data_beyond_them() {
        let bench = Bench::with(&[("shared_buffers", "2MB")]).build("4");
        bench.expect(&["buffers-too-small"], &bench.server.url(), &[]);
    }

    #[test]
    #[ignore = "judges the machine: cargo xtask machine"]
    fn a_slow_network() {
        let bench = Bench::with(&[]).build("2");
        let delay = Delay::before(&bench.server, std::time::Duration::from_millis(3));
        bench.expect(&["network-round-trips"], &delay.url(), &["--calls", "statements"]);
    }

    #[test]
    #[ignore = "judges the machine: cargo xtask machine"]
    fn a_ramp_up_that_is_too_short() {
        let bench = Bench::with(&[]).build("2");
        // The users key in for 18 s before their first New-Order reaches the database.
        let more = ["--users", "20", "--ramp-up", "0s", "--duration", "60s", "--keying-and-thinking"];
        bench.expect(&["ramp-up-too-short"], &bench.server.url(), &more);
    }
}

//! The workspace's tests, three executables at a time, and its lints.
//!
//! `cargo test` runs one executable after the other, and most of this workspace's executables mostly wait for a server. Tests
//! that judge the machine run alone, after the others.
//!
//! clippy's driver compiles the tests: it is the compiler with additional lints. A separate `cargo clippy` would compile all
//! crates and dependencies again, which took five minutes of CPU. cargo-nextest is not used: it compiles by itself, does not
//! accept these executables, and starts a process for each test, and with it the servers that tests share.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// Number of executables that run concurrently: one more than CI has cores, because some wait.
const AT_ONCE: usize = 3;

/// Tests that judge measurements of the machine: package and executable.
const ALONE: &[(&str, &str)] = &[("kelvin-observe", "postgres_waits"), ("kelvin-observe", "sampler_live")];

/// Tests with a statement timeout of half a second. They run concurrently with each other, because they mostly wait, but not
/// with other tests.
const IMPATIENT: &[(&str, &str)] =
    &[("kelvin-run", "robustness_network"), ("kelvin-run", "robustness_mysql")];

/// The longest executable, whose tests mostly wait for agents, windows and timeouts. Three of its tests run concurrently,
/// instead of one per core.
const WAITING: (&str, &str) = ("kelvin-bench", "fleet");

/// The package whose tests create and compare data: they compute most of the time, while other tests mostly wait.
const COMPUTING: &str = "kelvin-workload";

/// Packages in the order of their longest tests, so that no long test starts last.
const FIRST: &[&str] = &["kelvin-bench", "kelvin-run", "kelvin-lab"];

/// An executable with tests.
#[derive(Debug)]
struct Suite {
    package: String,
    name: String,
    executable: PathBuf,
    /// The working directory that cargo would use: tests name their files relative to it.
    directory: PathBuf,
}

impl Suite {
    /// Parses a line of cargo's JSON; `None` unless it names a test executable.
    fn parse(message: &Value) -> Option<Self> {
        if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
            return None;
        }
        let directory = Path::new(message["manifest_path"].as_str()?).parent()?;
        Some(Self {
            package: package(message["package_id"].as_str()?, directory)?,
            name: message["target"]["name"].as_str()?.to_owned(),
            executable: message["executable"].as_str()?.into(),
            directory: directory.to_owned(),
        })
    }

    /// The command with the environment that cargo would set, instead of that of xtask.
    fn command(&self) -> Command {
        let mut command = Command::new(&self.executable);
        command.current_dir(&self.directory);
        command.env("CARGO_MANIFEST_DIR", &self.directory).env("CARGO_PKG_NAME", &self.package);
        if self.is_among(&[WAITING]) {
            command.env("RUST_TEST_THREADS", "3");
        }
        command
    }

    fn is_among(&self, some: &[(&str, &str)]) -> bool {
        some.contains(&(self.package.as_str(), self.name.as_str()))
    }
}

/// `path+file:///…/crates/lab#kelvin-lab@0.1.0`, or `…/xtask#0.1.0` if package and directory have the same name.
fn package(id: &str, directory: &Path) -> Option<String> {
    let end = id.rsplit_once('#')?.1;
    match end.split_once('@') {
        Some((name, _version)) => Some(name.to_owned()),
        None => Some(directory.file_name()?.to_string_lossy().into_owned()),
    }
}

/// The result of an executable.
struct Run {
    suite: Suite,
    passed: bool,
    time: Duration,
}

/// All test executables of the workspace.
pub(crate) struct Suites {
    suites: Vec<Suite>,
    /// Number of warnings of the compiler and clippy, which were printed.
    pub(crate) warnings: usize,
}

impl Suites {
    /// The commands of all executables.
    pub(crate) fn commands(&self) -> impl Iterator<Item = Command> {
        self.suites.iter().map(Suite::command)
    }

    /// Runs all executables; returns whether all passed.
    pub(crate) fn run(self, top: &Path) -> Result<bool> {
        let (alone, others): (Vec<_>, Vec<_>) =
            self.suites.into_iter().partition(|suite| suite.is_among(ALONE));
        let (impatient, others): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|suite| suite.is_among(IMPATIENT));
        let mut runs = run_some(mixed(others), AT_ONCE)?;
        runs.extend(run_some(impatient, IMPATIENT.len())?);
        runs.extend(run_some(alone, 1)?);
        let documented =
            cargo(top).args(["test", "--workspace", "-j2", "--doc", "--no-fail-fast"]).status()?.success();
        print_summary(&mut runs, documented);
        Ok(documented && runs.iter().all(|run| run.passed))
    }
}

/// Orders the executables: one that computes, then two that wait, and so on. If three that compute ran concurrently, cores
/// would be idle later.
fn mixed(suites: Vec<Suite>) -> Vec<Suite> {
    let (computing, mut waiting): (Vec<_>, Vec<_>) =
        suites.into_iter().partition(|suite| suite.package == COMPUTING);
    waiting.sort_by_key(|suite| FIRST.iter().position(|name| suite.package == *name).unwrap_or(FIRST.len()));
    let (mut computing, mut waiting) = (computing.into_iter(), waiting.into_iter());
    let mut order = Vec::new();
    loop {
        let before = order.len();
        order.extend(computing.next());
        order.extend(waiting.by_ref().take(AT_ONCE - 1));
        if order.len() == before {
            return order;
        }
    }
}

fn print_summary(runs: &mut [Run], documented: bool) {
    runs.sort_by_key(|run| std::cmp::Reverse(run.time));
    println!("\nThe longest of {} test executables:", runs.len());
    for run in runs.iter().take(12) {
        println!("{:>8.1} s  {} {}", run.time.as_secs_f64(), run.suite.package, run.suite.name);
    }
    for run in runs.iter().filter(|run| !run.passed) {
        println!("FAILED: {} {}", run.suite.package, run.suite.name);
    }
    if !documented {
        println!("FAILED: the documentation examples");
    }
}

fn cargo(top: &Path) -> Command {
    let mut command = crate::test::cargo();
    command.current_dir(top).env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver");
    command
}

/// Builds and lints the tests of the workspace at `top`, or those that the arguments `which` name. `None` if that fails and
/// cargo has printed the reason.
pub(crate) fn build(top: &Path, which: &[&str]) -> Result<Option<Suites>> {
    let output = cargo(top)
        .args(["test", "--workspace", "-j2", "--no-run", "--message-format=json"])
        .args(which)
        .stderr(Stdio::inherit())
        .output()
        .context("failed to run cargo test --no-run")?;
    let text = String::from_utf8(output.stdout).context("the output of cargo is not text")?;
    let (mut suites, mut warnings) = (Vec::new(), 0);
    for line in text.lines() {
        let message: Value = serde_json::from_str(line).with_context(|| format!("cargo printed {line:?}"))?;
        suites.extend(Suite::parse(&message));
        if message["reason"] == "compiler-message" {
            eprint!("{}", message["message"]["rendered"].as_str().unwrap_or_default());
            warnings += usize::from(message["message"]["level"] == "warning");
        }
    }
    if !output.status.success() {
        return Ok(None);
    }
    if suites.is_empty() {
        bail!("cargo reported no test executables");
    }
    Ok(Some(Suites { suites, warnings }))
}

/// Runs executables, `at_once` at a time; the output of each is printed as a whole when it ends.
fn run_some(suites: Vec<Suite>, at_once: usize) -> Result<Vec<Run>> {
    let left = Mutex::new(VecDeque::from(suites));
    std::thread::scope(|scope| {
        let worker = || -> Result<Vec<Run>> {
            let mut runs = Vec::new();
            loop {
                let next = left.lock().unwrap_or_else(std::sync::PoisonError::into_inner).pop_front();
                let Some(suite) = next else { return Ok(runs) };
                runs.push(run_one(suite)?);
            }
        };
        let workers: Vec<_> = (0..at_once).map(|_| scope.spawn(worker)).collect();
        let mut runs = Vec::new();
        for worker in workers {
            let Ok(ran) = worker.join() else { bail!("a thread that ran tests panicked") };
            runs.extend(ran?);
        }
        Ok(runs)
    })
}

fn run_one(suite: Suite) -> Result<Run> {
    // Printed immediately, so that a test that hangs can be identified.
    println!("starting {} {}", suite.package, suite.name);
    let began = Instant::now();
    let Output { status, stdout, stderr } = suite
        .command()
        // A test that is skipped for lack of a server would count as passed.
        .env("KELVIN_REQUIRE_SERVERS", "1")
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("failed to run {}", suite.executable.display()))?;
    let text = [stdout, stderr].concat();
    println!(
        "\n     Running {} {} ({})\n{}",
        suite.package,
        suite.name,
        suite.executable.display(),
        String::from_utf8_lossy(&text).trim_end()
    );
    if !status.success() {
        println!("error: test failed: {} {}: {status}", suite.package, suite.name);
    }
    Ok(Run { passed: status.success(), suite, time: began.elapsed() })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn artifact(id: &str, test: bool) -> Value {
        serde_json::json!({
            "reason": "compiler-artifact", "package_id": id, "manifest_path": "/top/crates/observe/Cargo.toml",
            "target": {"name": "scrape"}, "profile": {"test": test}, "executable": "/top/target/debug/deps/scrape-1",
        })
    }

    #[test]
    fn executables_with_tests_are_read_from_cargos_messages() {
        let suite =
            Suite::parse(&artifact("path+file:///top/crates/observe#kelvin-observe@0.1.0", true)).unwrap();
        assert_eq!((suite.package.as_str(), suite.name.as_str()), ("kelvin-observe", "scrape"));
        assert_eq!(suite.directory, Path::new("/top/crates/observe"));
        assert!(suite.is_among(&[("kelvin-bench", "page"), ("kelvin-observe", "scrape")]));
        assert!(
            Suite::parse(&artifact("path+file:///top/crates/observe#kelvin-observe@0.1.0", false)).is_none()
        );
    }

    #[test]
    fn a_package_called_like_its_directory_has_no_name_in_cargos_identifier() {
        let suite = Suite::parse(&artifact("path+file:///top/crates/observe#0.1.0", true)).unwrap();
        assert_eq!(suite.package, "observe");
    }

    #[test]
    fn tests_that_compute_are_spread_among_those_that_wait() {
        let suite = |name: &str| Suite {
            package: format!("kelvin-{name}"),
            name: name.to_owned(),
            executable: PathBuf::new(),
            directory: PathBuf::new(),
        };
        let all = ["stats", "workload", "lab", "workload", "bench", "store"].map(suite).into();
        let order: Vec<String> = mixed(all).into_iter().map(|suite| suite.name).collect();
        assert_eq!(order, ["workload", "bench", "lab", "workload", "stats", "store"]);
        assert!(mixed(Vec::new()).is_empty());
    }

    /// `doctest = false` saves rustdoc's pass over a crate. `-p` instead would build the dependencies again, with the
    /// features that those packages alone need.
    #[test]
    fn exactly_the_crates_without_examples_are_left_out_of_the_documentation_tests() {
        let crates = crate::test::top().unwrap().join("crates");
        for directory in std::fs::read_dir(crates).unwrap().map(|entry| entry.unwrap().path()) {
            let manifest = std::fs::read_to_string(directory.join("Cargo.toml")).unwrap();
            let is_left_out = manifest.contains("doctest = false");
            let is_library = directory.join("src/lib.rs").exists();
            assert_eq!(is_left_out, is_library && !has_example(&directory.join("src")), "{directory:?}");
        }
    }

    /// Whether a block of code in the documentation below `path` is in Rust, as one without a language is.
    fn has_example(path: &Path) -> bool {
        if path.is_dir() {
            return std::fs::read_dir(path).unwrap().any(|entry| has_example(&entry.unwrap().path()));
        }
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let documentation = text
            .lines()
            .filter_map(|line| line.trim().strip_prefix("///").or(line.trim().strip_prefix("//!")));
        let mut fences = documentation.filter_map(|line| line.trim().strip_prefix("```")).step_by(2);
        fences.any(|language| !["text", "toml", "ignore"].contains(&language))
    }
}

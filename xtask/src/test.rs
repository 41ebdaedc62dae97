//! `cargo xtask test`: all checks that must pass before a change is merged.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::{axe, kubernetes, packages, suite, versions};

/// One check: its name and cargo's arguments.
struct Step {
    name: &'static str,
    arguments: &'static [&'static str],
}

const FORMAT: Step = Step { name: "format", arguments: &["fmt", "--all", "--", "--check"] };
const DEPENDENCIES: Step =
    Step { name: "dependencies", arguments: &["deny", "check", "licenses", "bans", "sources"] };
const FETCH_ADVISORIES: Step = Step { name: "advisories' fetch", arguments: &["deny", "fetch", "db"] };
const ADVISORIES: Step =
    Step { name: "advisories", arguments: &["deny", "check", "--disable-fetch", "advisories"] };

enum Outcome {
    Passed,
    Failed,
    Skipped(&'static str),
}

/// Runs every step, even after one has failed, and prints a table of them.
pub(crate) fn run() -> Result<ExitCode> {
    packages::ensure()?;
    let mut outcomes = vec![measure(&FORMAT)?];
    if let Err(error) = axe::fetch_for_tests(&top()?) {
        eprintln!("{error:#}");
        outcomes.push(("accessibility", Outcome::Skipped("axe-core cannot be fetched"), Duration::ZERO));
    }
    if let Err(error) = versions::fetch_for_tests(&top()?) {
        eprintln!("{error:#}");
        let why = "PostgreSQL 13 and 18 cannot be fetched";
        outcomes.push(("versions", Outcome::Skipped(why), Duration::ZERO));
    }
    if let Err(error) = kubernetes::fetch_for_tests(&top()?) {
        eprintln!("{error:#}");
        let why = "the schemas of Kubernetes cannot be fetched";
        outcomes.push(("manifests", Outcome::Skipped(why), Duration::ZERO));
    }
    // All tests run even after a failure, so that one run reports everything.
    println!("\n== tests");
    let began = Instant::now();
    let top = top()?;
    match suite::build(&top, &[])? {
        None => outcomes.push(("tests", Outcome::Failed, began.elapsed())),
        Some(suites) => {
            let clean = if suites.warnings == 0 { Outcome::Passed } else { Outcome::Failed };
            println!("== tests and lints are compiled: {:.1} s", began.elapsed().as_secs_f64());
            outcomes.push(("lints", clean, began.elapsed()));
            let began = Instant::now();
            let outcome = if suites.run(&top)? { Outcome::Passed } else { Outcome::Failed };
            println!("== tests: {:.1} s", began.elapsed().as_secs_f64());
            outcomes.push(("tests", outcome, began.elapsed()));
        }
    }
    let skipped = |step: &Step, why| (step.name, Outcome::Skipped(why), Duration::ZERO);
    if packages::in_path("cargo-deny") {
        outcomes.push(measure(&DEPENDENCIES)?);
        outcomes.push(match measure(&FETCH_ADVISORIES)? {
            (_, Outcome::Passed, _) => measure(&ADVISORIES)?,
            _ => skipped(&ADVISORIES, "the advisories could not be fetched"),
        });
    } else {
        outcomes.push(skipped(&DEPENDENCIES, "cargo-deny is not installed: cargo install cargo-deny"));
    }
    println!();
    let mut counts = [0; 3];
    for (name, outcome, time) in &outcomes {
        let (index, word) = match outcome {
            Outcome::Passed => (0, "passed".to_owned()),
            Outcome::Failed => (1, "FAILED".to_owned()),
            Outcome::Skipped(reason) => (2, format!("skipped ({reason})")),
        };
        counts[index] += 1;
        println!("{name:<14}{:>8.1} s  {word}", time.as_secs_f64());
    }
    let [passed, failed, skipped] = counts;
    println!("{passed} passed, {failed} failed, {skipped} skipped");
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The cargo command. A single build, as in CI, needs no incremental data or debug information.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    if std::env::var_os("CI").is_some() {
        command.env("CARGO_INCREMENTAL", "0").env("CARGO_PROFILE_DEV_DEBUG", "0");
    }
    command
}

/// The workspace's directory.
pub(crate) fn top() -> Result<PathBuf> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask has no directory above it")?;
    Ok(top.to_owned())
}

fn measure(step: &Step) -> Result<(&'static str, Outcome, Duration)> {
    println!("\n== {}: cargo {}", step.name, step.arguments.join(" "));
    let began = Instant::now();
    let status = cargo()
        .args(step.arguments)
        .current_dir(top()?)
        .status()
        .with_context(|| format!("failed to run cargo {}", step.arguments.join(" ")))?;
    let outcome = if status.success() { Outcome::Passed } else { Outcome::Failed };
    println!("== {}: {:.1} s", step.name, began.elapsed().as_secs_f64());
    Ok((step.name, outcome, began.elapsed()))
}

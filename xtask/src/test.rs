//! `cargo xtask test`: everything that has to hold before a change is merged.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::{axe, packages, suite, versions};

/// One check: its name and cargo's arguments.
struct Step {
    name: &'static str,
    arguments: &'static [&'static str],
}

const FORMAT: Step = Step { name: "format", arguments: &["fmt", "--all", "--", "--check"] };
const LINTS: Step = Step {
    name: "lints",
    arguments: &["clippy", "--workspace", "--all-targets", "-j2", "--", "-D", "warnings"],
};
const DEPENDENCIES: Step = Step { name: "dependencies", arguments: &["deny", "check"] };

enum Outcome {
    Passed,
    Failed,
    Skipped(&'static str),
}

/// Runs every step, also after one has failed, and prints a table of them.
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
    // All of them, whatever fails: one run reports everything.
    println!("\n== tests");
    let began = Instant::now();
    let top = top()?;
    match suite::build(&top, &[])? {
        None => {
            outcomes.push(("tests", Outcome::Failed, began.elapsed()));
            outcomes.push(measure(&LINTS)?);
        }
        Some(suites) => {
            // Most tests wait for a server most of the time, which the lints' compiler uses; those that judge the machine
            // wait for its end.
            let (passed, lints) = std::thread::scope(|scope| {
                let lints = scope.spawn(|| measure_beside(&LINTS));
                let mut ended = None;
                let passed = suites.run(&top, || ended = Some(lints.join()));
                (passed, ended)
            });
            println!("== tests: {:.1} s", began.elapsed().as_secs_f64());
            let outcome = if passed? { Outcome::Passed } else { Outcome::Failed };
            outcomes.push(("tests", outcome, began.elapsed()));
            match lints {
                Some(Ok(lints)) => outcomes.push(lints?),
                _ => bail!("the lint thread panicked"),
            }
        }
    }
    outcomes.push(if packages::in_path("cargo-deny") {
        measure(&DEPENDENCIES)?
    } else {
        (
            DEPENDENCIES.name,
            Outcome::Skipped("cargo-deny is not installed: cargo install cargo-deny"),
            Duration::ZERO,
        )
    });
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

/// Like [`measure`], with what the other work leaves of the CPUs; the output is printed whole when it ends.
fn measure_beside(step: &Step) -> Result<(&'static str, Outcome, Duration)> {
    let began = Instant::now();
    let cargo = cargo();
    let mut nice = Command::new("nice");
    nice.args(["-n", "10"]).arg(cargo.get_program()).args(step.arguments).current_dir(top()?);
    let variables = cargo.get_envs().filter_map(|(name, value)| Some((name, value?)));
    let Output { status, stdout, stderr } = nice
        .envs(variables)
        .output()
        .with_context(|| format!("failed to run nice cargo {}", step.arguments.join(" ")))?;
    let outcome = if status.success() { Outcome::Passed } else { Outcome::Failed };
    let time = began.elapsed();
    let text = [stdout, stderr].concat();
    println!("\n== {}: cargo {}", step.name, step.arguments.join(" "));
    println!("{}", String::from_utf8_lossy(&text).trim_end());
    println!("== {}: {:.1} s", step.name, time.as_secs_f64());
    Ok((step.name, outcome, time))
}

/// Cargo. What is built once, as in CI, gains nothing from what a second build would need.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    if std::env::var_os("CI").is_some() {
        command.env("CARGO_INCREMENTAL", "0");
    }
    command
}

/// The workspace's own directory.
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

//! `cargo xtask faults`: plants every fault with random parameters, and makes healthy runs. The faults are those of the
//! tests, such as crates/kelvin/tests/planted_faults.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

use crate::packages;

/// The files with the results of all slices, one per engine.
const RESULTS: [&str; 2] = ["target/faults.jsonl", "target/faults-mariadb.jsonl"];

/// Parses the options and makes the runs one at a time. Runs in the file of results are not repeated.
pub(crate) fn run(words: &[&str]) -> Result<ExitCode> {
    let (tests, environment) = environment(words)?;
    packages::ensure()?;
    let arguments = [
        "test",
        "-p",
        "kelvin-bench",
        "-j2",
        "--test",
        tests,
        "--",
        "--ignored",
        "--exact",
        "drawn::faults_with_random_parameters",
        "--nocapture",
    ];
    let status = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(arguments)
        .envs(environment)
        .status()
        .context("failed to run cargo")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The test file, and its options as environment variables.
fn environment(words: &[&str]) -> Result<(&'static str, Vec<(&'static str, String)>)> {
    let mut tests = "planted_faults";
    let mut environment = vec![("KELVIN_REQUIRE_SERVERS", "1".to_owned())];
    let mut results = None;
    let mut words = words.iter();
    while let Some(&word) = words.next() {
        let name = match word {
            "--draws" => "KELVIN_FAULTS_DRAWS",
            "--healthy" => "KELVIN_FAULTS_HEALTHY",
            "--seed" => "KELVIN_FAULTS_SEED",
            "--minutes" => "KELVIN_FAULTS_MINUTES",
            "--only" => "KELVIN_FAULTS_ONLY",
            "--results" => {
                results = Some(*words.next().context("--results needs a file")?);
                continue;
            }
            "--engine" => {
                tests = match words.next() {
                    Some(&"postgres") => "planted_faults",
                    Some(&"mariadb") => "planted_mariadb",
                    _ => bail!("--engine takes postgres or mariadb"),
                };
                continue;
            }
            "--strength" => {
                environment.push(("KELVIN_FAULTS_STRENGTH", "1".into()));
                continue;
            }
            "--weak" => {
                environment.push(("KELVIN_FAULTS_WEAK", "1".into()));
                continue;
            }
            "--accept-noise" => {
                environment.push(("KELVIN_FAULTS_ACCEPT_NOISE", "1".into()));
                continue;
            }
            _ => bail!(
                "there is no option {word}: --engine postgres|mariadb, --draws N, --healthy N, --seed N, --only NAME,…, --minutes N, --results FILE, \
                 --strength, --weak, --accept-noise"
            ),
        };
        let value = words.next().with_context(|| format!("{word} needs a value"))?;
        if word != "--only" && value.parse::<u64>().is_err() {
            bail!("{word} takes a whole number, not {value:?}");
        }
        environment.push((name, (*value).to_owned()));
    }
    let only_postgres = ["KELVIN_FAULTS_HEALTHY", "KELVIN_FAULTS_STRENGTH", "KELVIN_FAULTS_WEAK"];
    if tests == "planted_mariadb" && environment.iter().any(|(name, _)| only_postgres.contains(name)) {
        bail!(
            "--healthy, --strength and --weak are for PostgreSQL; --only mariadb-healthy makes healthy runs on MariaDB"
        );
    }
    let results = results.unwrap_or(RESULTS[usize::from(tests == "planted_mariadb")]);
    // An absolute path, because the tests run in another directory.
    let results = std::env::current_dir().context("no current directory")?.join(results);
    environment.push(("KELVIN_FAULTS_RESULTS", results.display().to_string()));
    Ok((tests, environment))
}

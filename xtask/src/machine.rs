//! `cargo xtask machine`: the tests that judge the machine as much as the code, which is why no change waits for them.
//!
//! They are in modules called `machine` and are ignored otherwise: they ask for a quiet machine, for root, or for a disk
//! with a cache that is flushed.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use crate::packages;

const RUNS: [&[&str]; 2] = [
    &[
        "test",
        "--workspace",
        "-j2",
        "--no-fail-fast",
        "--tests",
        "--",
        "--ignored",
        "machine::",
        "--test-threads=1",
    ],
    // Those of every day, strictly: the planted fault's finding is red, and no other is.
    &[
        "test",
        "--workspace",
        "-j2",
        "--test",
        "planted_faults",
        "--",
        "--skip",
        "machine::",
        "--test-threads=1",
    ],
];

/// Runs them one at a time; both parts, also after one has failed.
pub(crate) fn run() -> Result<ExitCode> {
    packages::ensure()?;
    let mut passed = true;
    for arguments in RUNS {
        let status = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
            .args(arguments)
            .env("KELVIN_QUIET_MACHINE", "1")
            .env("KELVIN_REQUIRE_SERVERS", "1")
            .status()
            .with_context(|| format!("failed to run cargo {}", arguments.join(" ")))?;
        passed &= status.success();
    }
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

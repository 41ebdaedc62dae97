//! `cargo xtask machine`: tests whose results depend on the machine as much as on the code. Changes are merged without
//! them.
//!
//! These tests are in modules called `machine` and are otherwise ignored. They need a quiet machine, root, or a disk
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
    // Regular tests in strict mode: the planted fault's finding must be red, and no other.
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

/// Runs the tests one at a time. The second part runs even if the first has failed.
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

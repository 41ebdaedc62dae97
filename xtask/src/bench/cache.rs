//! Sampling a recording of 100 million requests: time and peak memory, in a release build.

use std::process::Command;

use anyhow::{Context, Result, bail};

/// Runs the test that generates, samples and judges.
pub(super) fn cache() -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments = [
        "test",
        "--release",
        "-j2",
        "-p",
        "kelvin-trace",
        "--lib",
        "--",
        "--ignored",
        "--nocapture",
        "sampler",
    ];
    let status = Command::new(cargo).args(arguments).status();
    let status = status.with_context(|| format!("failed to run cargo {}", arguments.join(" ")))?;
    if !status.success() {
        bail!("100 million requests at 1 % take more than 60 s or 500 MB");
    }
    Ok(())
}

//! Ignored tests of `kelvin-trace` that measure and judge a release build.

use std::process::Command;

use anyhow::{Context, Result, bail};

/// Runs the tests of this name; `missed` describes a failure.
pub(super) fn judged(name: &str, missed: &str) -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments =
        ["test", "--release", "-j2", "-p", "kelvin-trace", "--lib", "--", "--ignored", "--nocapture", name];
    let status = Command::new(cargo).args(arguments).status();
    let status = status.with_context(|| format!("failed to run cargo {}", arguments.join(" ")))?;
    if !status.success() {
        bail!("{missed}");
    }
    Ok(())
}

//! Whether the JSON of fio and of Kelvin agrees for the jobs of `crates/fio/tests/jobs`, by the comparison of the
//! test `io` of kelvin-bench, which has a dozen further jobs.

use std::process::Command;

use anyhow::{Context, Result, bail};

/// Compares the jobs of all files, or of those named.
pub(crate) fn fio_json(files: &[&str]) -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args([
            "test",
            "--package",
            "kelvin-bench",
            "--test",
            "io",
            "--",
            "--ignored",
            "--exact",
            "--nocapture",
        ])
        .arg("fio_json::corpus::a_hundred_jobs_have_the_json_of_fio")
        .env("KELVIN_FIO_JSON", files.join(","))
        .status()
        .context("cannot run cargo")?;
    if !status.success() {
        bail!("the JSON differs from fio's");
    }
    Ok(())
}

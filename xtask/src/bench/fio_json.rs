//! Compares the JSON of fio and Kelvin for the jobs of `crates/fio/tests/jobs`, with the comparison of
//! kelvin-bench's test `io`, which has a dozen further jobs.

use std::process::Command;

use anyhow::{Context, Result, bail};

/// Compares the jobs of all files, or of the named ones.
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

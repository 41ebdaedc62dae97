//! Whether jobs do as much as the installed fio: random jobs, their I/Os and bytes. The cases, and what is compared, are
//! those of the test `totals` of kelvin-storage, which compares only when it is asked to.

use std::process::Command;

use anyhow::{Context, Result, bail};

/// Runs so many cases from a seed.
pub(crate) fn fio_totals(words: &[&str]) -> Result<()> {
    let (mut cases, mut seed) = (2000_u64, 1_u64);
    let mut words = words.iter();
    while let Some(&word) = words.next() {
        let number = words.next().and_then(|text| text.parse().ok());
        let number = number.with_context(|| format!("{word} takes a whole number"))?;
        match word {
            "--cases" => cases = number,
            "--seed" => seed = number,
            _ => bail!("there is no option {word}; there are --cases and --seed"),
        }
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["test", "--package", "kelvin-storage", "--test", "totals", "--"])
        .args(["--exact", "totals_are_those_of_fio", "--nocapture"])
        .env("KELVIN_TOTALS", format!("{cases},{seed}"))
        .status()
        .context("cannot run cargo")?;
    if !status.success() {
        bail!("the totals are not all those of fio");
    }
    Ok(())
}

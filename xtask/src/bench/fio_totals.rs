//! Compares the I/Os and bytes of random jobs with those of the installed fio. The cases and the comparison are those of
//! kelvin-storage's test `totals`, which compares only on request.

use anyhow::{Context, Result, bail};

use crate::suite;
use crate::test::top;

/// Runs a number of cases from each of several seeds. Seeds run concurrently, because fio sleeps most of the time.
pub(crate) fn fio_totals(words: &[&str]) -> Result<()> {
    let (mut cases, mut seed, mut seeds) = (500_u64, 1_u64, 4_u64);
    let mut words = words.iter();
    while let Some(&word) = words.next() {
        let number = words.next().and_then(|text| text.parse().ok());
        let number = number.with_context(|| format!("{word} takes a whole number"))?;
        match word {
            "--cases" => cases = number,
            "--seed" => seed = number,
            "--seeds" => seeds = number,
            _ => bail!("there is no option {word}; there are --cases, --seed and --seeds"),
        }
    }
    let Some(suites) = suite::build(&top()?, &["--test", "totals"])? else { bail!("the test build failed") };
    let mut running = Vec::new();
    for seed in seed..seed.saturating_add(seeds) {
        for mut test in suites.commands() {
            test.args(["--exact", "totals_are_those_of_fio", "--nocapture"]);
            running.push((seed, test.env("KELVIN_TOTALS", format!("{cases},{seed}")).spawn()?));
        }
    }
    let mut different = Vec::new();
    for (seed, mut test) in running {
        if !test.wait()?.success() {
            different.push(seed.to_string());
        }
    }
    if !different.is_empty() {
        bail!("with seed {}, some totals differ from fio's", different.join(", "));
    }
    Ok(())
}

//! `cargo xtask bench NAME`: the figures that the project publishes. Never a test.

mod driver;
mod load;
mod process;
mod server;

use anyhow::{Result, bail};

/// Runs a benchmark by its name.
pub(crate) fn run(name: &str) -> Result<()> {
    match name {
        "driver" => driver::driver(),
        "load" => load::load(),
        other => bail!("there is no benchmark {other:?}; there are driver and load"),
    }
}

/// The median of some figures.
pub(crate) fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    let middle = figures.len() / 2;
    if figures.len() % 2 == 1 { figures[middle] } else { f64::midpoint(figures[middle - 1], figures[middle]) }
}

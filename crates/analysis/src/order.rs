//! Effects of time: drift over the order of the runs, and block effects.

use serde::Serialize;

use kelvin_stats::{student, trend};

use crate::fit::{Fit, Observation};
use crate::input::Scale;
use crate::values::Values;

/// Whether the level drifted during the study.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Drift {
    /// Change of the fitted line from the first run to the last, as a fraction.
    pub change: f64,
    /// The probability of a line this steep if there is no drift.
    pub p: f64,
    /// Each run's position and its value over the mean of its cell, in time order.
    pub runs: Vec<(u32, f64)>,
}

/// One block.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Block {
    /// Its number, from 0.
    pub block: u32,
    /// Runs that count.
    pub runs: usize,
    /// Mean of the runs over their cells' means, minus 1.
    pub level: f64,
    /// Standard deviation of the same ratios; none for one run.
    pub spread: Option<f64>,
}

/// Each run's value over the mean of its cell.
fn relative(values: &Values, fit: &Fit) -> Vec<f64> {
    let of = |o: &Observation| {
        let mean = fit.cells.binary_search(&o.cell).map_or(o.value, |cell| fit.means[cell]);
        match values.scale {
            Scale::Ratio => (o.value - mean).exp(),
            Scale::Difference => o.value / mean,
        }
    };
    values.observations.iter().map(of).collect()
}

/// The drift; none for fewer than five runs, or if the mean of a cell is 0.
pub(crate) fn drift(values: &Values, fit: &Fit) -> Option<Drift> {
    let relative = relative(values, fit);
    if !relative.iter().all(|v| v.is_finite()) {
        return None;
    }
    let found = trend::trend(&relative)?;
    let runs = values.observations.iter().map(|o| o.place).zip(relative).collect();
    Some(Drift { change: found.change, p: found.p, runs })
}

/// Every block with runs that count.
pub(crate) fn blocks(values: &Values, fit: &Fit) -> Vec<Block> {
    let relative = relative(values, fit);
    let block = |block: &u32| {
        let of =
            values.observations.iter().zip(&relative).filter(|(o, v)| o.block == *block && v.is_finite());
        let own: Vec<f64> = of.map(|(_, v)| *v).collect();
        let sample = student::describe(&own)?;
        Some(Block { block: *block, runs: sample.n, level: sample.mean - 1.0, spread: sample.sd })
    };
    fit.blocks.iter().filter_map(block).collect()
}

//! One row per cell: its measurements, and its distance from the best cell.

use std::collections::BTreeMap;

use kelvin_diagnose::Better;
use kelvin_diagnose::metric;
use serde::Serialize;

use crate::StudyInput;
use crate::contrast::missing;
use crate::fit::{Estimate, Fit, less};
use crate::values::{Counting, Values};

/// Metrics shown next to the goal's where they are known, by id: instructions per cycle, and CPU per transaction.
pub const BESIDE: [&str; 2] = [IPC, "cpu"];

/// Instructions per cycle of the server.
pub const IPC: &str = metric::SERVER_IPC;

/// The cells.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Table {
    /// One row per cell, in the order of the levels, including cells without a counted run.
    pub rows: Vec<Row>,
    /// The metrics of [`BESIDE`] that are known for at least one cell.
    pub beside: Vec<String>,
    /// The index of the best row; none without any value.
    pub best: Option<usize>,
}

/// One cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Each factor's level, by index.
    pub cell: Vec<usize>,
    /// Their names.
    pub levels: Vec<String>,
    /// Runs that count.
    pub runs: usize,
    /// Void runs.
    pub void: usize,
    /// The value of the goal's metric; none where no run counts.
    pub value: Option<Estimate>,
    /// Ratio to the best cell, with its interval.
    pub of_best: Option<Estimate>,
    /// Whether it does not differ significantly from the best cell.
    pub with_best: bool,
    /// Other metrics by id: mean, and ratio to the best cell.
    pub beside: BTreeMap<String, (f64, Option<f64>)>,
}

/// The index of the best cell of a fit, by the goal.
pub(crate) fn best(input: &StudyInput, fit: &Fit) -> Option<usize> {
    let sign = if input.goal.better == Better::Higher { 1.0 } else { -1.0 };
    (0..fit.cells.len())
        .max_by(|a, b| (sign * fit.means[*a]).total_cmp(&(sign * fit.means[*b])).then(b.cmp(a)))
}

/// The table for the goal's metric.
pub(crate) fn table(input: &StudyInput, values: &Values, fit: Option<&Fit>) -> Table {
    let mut cells: Vec<Vec<usize>> = input.runs.iter().map(|run| run.cell.clone()).collect();
    if let Some(fit) = fit.filter(|_| !matches!(input.design, super::StudyDesign::Fraction { .. })) {
        cells.extend(missing(input, fit));
    }
    cells.sort();
    cells.dedup();
    let best_cell = fit.and_then(|fit| best(input, fit).map(|at| fit.cells[at].clone()));
    let beside: Vec<(String, Values, Option<Fit>)> = BESIDE
        .iter()
        .filter(|id| **id != input.goal.metric)
        .map(|id| {
            let values = Values::of(input, id, Counting::Valid);
            let fit = values.fit(input.confidence);
            ((*id).to_owned(), values, fit)
        })
        .filter(|(_, values, fit)| fit.is_some() && !values.observations.is_empty())
        .collect();
    let mean = |values: &Values, fit: &Fit, cell: &[usize]| {
        let estimate = fit.contrast(&fit.only(cell)?);
        Some(values.level(estimate))
    };
    let rows = cells
        .iter()
        .map(|cell| {
            let of = |void: bool| {
                input
                    .runs
                    .iter()
                    .filter(|r| !r.control && r.cell == *cell && r.void.is_some() == void)
                    .count()
            };
            let of_best = fit.zip(best_cell.as_ref()).and_then(|(fit, best)| {
                let (own, best) = (fit.only(cell)?, fit.only(best)?);
                Some(part_of(values, fit, &own, &best))
            });
            let beside = beside.iter().filter_map(|(id, values, fit)| {
                let fit = fit.as_ref()?;
                let own = mean(values, fit, cell)?.value;
                let part = best_cell.as_ref().and_then(|best| Some(own / mean(values, fit, best)?.value));
                Some((id.clone(), (own, part.filter(|part| part.is_finite()))))
            });
            Row {
                cell: cell.clone(),
                levels: cell.iter().zip(&input.factors).map(|(l, f)| f.levels[*l].name.clone()).collect(),
                runs: of(false),
                void: of(true),
                value: fit.and_then(|fit| mean(values, fit, cell)),
                with_best: best_cell.as_ref() != Some(cell)
                    && of_best.is_some_and(|part| {
                        part.low.is_some_and(|low| low < 1.0) && part.high.is_some_and(|high| high > 1.0)
                    }),
                of_best,
                beside: beside.collect(),
            }
        })
        .collect::<Vec<Row>>();
    Table {
        best: rows.iter().position(|row| Some(&row.cell) == best_cell.as_ref()),
        rows,
        beside: beside.into_iter().map(|(id, ..)| id).collect(),
    }
}

/// The ratio of one cell's mean to another's.
fn part_of(values: &Values, fit: &Fit, own: &[f64], best: &[f64]) -> Estimate {
    let difference = fit.contrast(&less(own, best));
    match values.scale {
        super::Scale::Ratio => values.relative(difference).map(|part| 1.0 + part),
        super::Scale::Difference => {
            let best = fit.contrast(best).value;
            difference.map(|v| 1.0 + v / best)
        }
    }
}

//! Compares the reads measured at each size of a study with the predicted reads.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context, Result, bail};
use kelvin_lab::study::{Folder, State, StudyPlan};
use kelvin_report::table::{Table, number};
use kelvin_store::Store;
use serde::Serialize;

use super::{CachePrediction, PREDICTION, PredictedSize, bytes_read};
use crate::args::CacheProveArgs;
use crate::commands::trace::run_trace;
use crate::document::{self, Document};
use crate::exit::Code;

/// Reads the study's runs and compares them with the prediction.
pub(super) fn compare(args: &CacheProveArgs) -> Result<Code> {
    let folder = Folder::open(&args.run)?;
    let path = folder.path().join(PREDICTION);
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let prediction: CachePrediction =
        serde_json::from_str(&text).with_context(|| format!("{} is no prediction", path.display()))?;
    let measured = read_measured(&folder, &prediction)?;
    let base = prediction.sizes.first().and_then(|size| measured.get(&size.level)).map(|runs| mean(runs));
    let Some(base) = base.filter(|base| *base > 0.0) else {
        bail!(
            "no counted run with the smallest cache has any reads: run `kelvin study run {}`",
            folder.path().display()
        );
    };
    let rows: Vec<ComparedSize> = prediction
        .sizes
        .into_iter()
        .map(|size| {
            let runs: Vec<f64> =
                measured.get(&size.level).into_iter().flatten().map(|reads| reads / base).collect();
            let measured = (!runs.is_empty()).then(|| mean(&runs));
            let is_close = measured.map(|measured| (measured - size.predicted()).abs() <= args.within);
            ComparedSize { predicted: size.predicted(), size, measured, runs, is_close }
        })
        .collect();
    let larger = rows.get(1..).unwrap_or_default();
    let is_proved = larger.iter().all(|row| row.is_close == Some(true));
    document::print(
        &Comparison { rows, bytes_per_transaction: base, within: args.within },
        args.format.format(),
    )?;
    Ok(if is_proved { Code::Success } else { Code::NotValid })
}

/// Bytes read per transaction of each run, by level.
fn read_measured(folder: &Folder, prediction: &CachePrediction) -> Result<BTreeMap<String, Vec<f64>>> {
    let study = folder.study()?;
    let plan = StudyPlan::new(&study);
    let state = State::from_entries(&plan, &folder.ledger()?);
    let Some(session) = &state.session else {
        bail!("the study has no runs yet: run `kelvin study run {}`", folder.path().display());
    };
    let store = Store::open_read_only(&session.store)?;
    let mut found: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for counted in state.counted(&plan) {
        let run = counted.results.run;
        let cell = plan.cells.get(counted.cell).context("a run of an unknown cell")?;
        let name = cell.name();
        let level = prediction.sizes.iter().find(|size| name == format!("cache={}", size.level));
        let Some(level) = level else {
            bail!("run {run} has the level {name}, for which nothing was predicted")
        };
        let traced = run_trace(&session.store, &store, run)?;
        let transactions = counted.results.value("transactions").filter(|count| *count > 0.0);
        let (Some(window), Some(transactions)) = (traced.window, transactions) else {
            bail!("run {run} has no transactions, or its trace no window");
        };
        let window = traced.trace.within(window.start, window.end);
        let seconds = (window.lasts() as f64 / 1e9).max(1e-9);
        // The ratio of two rates, because the key figure is a rate.
        let reads = bytes_read(&window, &prediction.class) as f64 / seconds / transactions;
        found.entry(level.level.clone()).or_default().push(reads);
    }
    Ok(found)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

#[derive(Debug, Serialize)]
struct ComparedSize {
    #[serde(flatten)]
    size: PredictedSize,
    predicted: f64,
    measured: Option<f64>,
    /// The value of each run.
    runs: Vec<f64>,
    is_close: Option<bool>,
}

#[derive(Debug, Serialize)]
struct Comparison {
    rows: Vec<ComparedSize>,
    bytes_per_transaction: f64,
    within: f64,
}

impl Document for Comparison {
    fn text(&self) -> Result<String> {
        let mut text = String::from("Reads per transaction as a share of those at the first size\n\n");
        let _ = writeln!(
            text,
            "{:>12}{:>12}{:>12}{:>20}{:>14}",
            "size", "predicted", "measured", "(lowest–highest)", "difference"
        );
        for row in &self.rows {
            let Some(measured) = row.measured else {
                let _ = writeln!(text, "{:>12}{:>12.3}{:>12}", row.size.level, row.predicted, "no run");
                continue;
            };
            let low = row.runs.iter().copied().fold(f64::INFINITY, f64::min);
            let high = row.runs.iter().copied().fold(0.0, f64::max);
            let mark = if row.is_close == Some(true) { "✓" } else { "✗" };
            let _ = writeln!(
                text,
                "{:>12}{:>12.3}{measured:>12.3}{:>20}{:>+12.3} {mark}",
                row.size.level,
                row.predicted,
                format!("({low:.3}–{high:.3})"),
                measured - row.predicted
            );
        }
        let _ = writeln!(text, "\nAllowed: {} in either direction.", self.within);
        Ok(text)
    }

    fn records(&self) -> Result<Vec<String>> {
        Ok(vec![serde_json::to_string(self)?])
    }

    fn table(&self) -> Result<Table> {
        let mut table = Table::new("size,bytes,predicted,low,high,most,measured,runs");
        for row in &self.rows {
            table.rows.push(vec![
                row.size.level.clone(),
                row.size.bytes.to_string(),
                number(Some(row.predicted)),
                number(Some(row.size.misses.low)),
                number(Some(row.size.misses.high)),
                number(Some(row.size.most)),
                number(row.measured),
                row.runs.len().to_string(),
            ]);
        }
        Ok(table)
    }
}

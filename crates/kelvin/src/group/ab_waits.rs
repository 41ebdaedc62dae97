//! Differences between the waits of the sides, and whether they limit the throughput.

use std::collections::BTreeMap;

use kelvin_diagnose::{Better, WaitChange, WaitLimit, wait_changes};
use kelvin_lab::ab::AbSummary;
use kelvin_measure::text::{ends, percent};
use kelvin_report::RunReport;
use serde::Serialize;

use super::text::change;

/// The change of one wait from A to another side.
#[derive(Debug, Serialize)]
pub(super) struct SideWaits {
    side: String,
    /// Throughput of the side over that of A, with its interval.
    ratio: [f64; 3],
    #[serde(flatten)]
    wait: WaitChange,
}

/// The waits that changed, from the reports of each side's runs. Empty if the throughput was not compared or is
/// given by an arrival rate.
pub(super) fn changed(summary: &AbSummary, sides: &[Vec<RunReport>]) -> Vec<SideWaits> {
    let Some((first, others)) = sides.split_first() else { return Vec::new() };
    if summary.figure.better != Some(Better::Higher) || first.iter().any(|run| run.open_loop) {
        return Vec::new();
    }
    let before = shares(first);
    let each = summary.comparisons.iter().zip(others).flat_map(|(one, runs)| {
        let ratio = [one.ratio, one.low, one.high];
        let waits = wait_changes(&before, &shares(runs), ratio);
        waits.into_iter().map(move |wait| SideWaits { side: one.side.clone(), ratio, wait })
    });
    each.collect()
}

/// Mean share of each class in the sessions' time.
fn shares(runs: &[RunReport]) -> BTreeMap<String, f64> {
    let verdicts: Vec<_> = runs.iter().filter_map(|run| run.points.first()?.verdict.as_ref()).collect();
    let mut mean = BTreeMap::new();
    for share in verdicts.iter().flat_map(|verdict| &verdict.shares) {
        *mean.entry(share.class.clone()).or_default() += share.share / verdicts.len() as f64;
    }
    mean
}

impl SideWaits {
    /// The change as a sentence.
    pub(super) fn sentence(&self) -> String {
        let Self { side, ratio: [ratio, low, high], wait } = self;
        let of = |ratio: f64| change(ratio - 1.0);
        let limit = match wait.limit {
            WaitLimit::Limit => "it was a limit",
            WaitLimit::NotALimit => "it was not a limit",
            WaitLimit::Undecided => "whether it was a limit is not shown",
        };
        format!(
            "{}: {} of the time in A, {} in {side}; as a limit it would have changed the throughput by {}, which changed \
             by {} ({}): {limit}",
            wait.class,
            percent(wait.before),
            percent(wait.after),
            of(wait.predicted),
            of(*ratio),
            ends(*low, *high, |ratio| change(ratio - 1.0))
        )
    }
}

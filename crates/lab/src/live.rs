//! The view of running runs: a terminal, a page, or none.

use kelvin_diagnose::{KeyFigure, TenantFigures};
use kelvin_measure::{Event, Sink};
use kelvin_run::Spec;
use kelvin_store::{Judgement, NewRun, RunId};
use serde::Serialize;

/// What is said of a run at its end.
#[derive(Debug, Serialize)]
pub struct RunSummary<'a> {
    /// Its number in the store.
    pub run: i64,
    /// Whether it counts (`state`), and why not (`reasons`).
    #[serde(flatten)]
    pub judgement: &'a Judgement,
    /// Whether it counts: `state` is "counted".
    pub valid: bool,
    /// Transactions that failed for good.
    pub failed: u64,
    /// The point by which the run is known; none while no window has closed.
    pub point: Option<u32>,
    /// The key metrics of that point, its headline first; none of a scenario, whose tenants have theirs.
    pub figures: Vec<KeyFigure>,
    /// Those of each tenant of a scenario.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tenants: Vec<TenantFigures>,
}

/// A view of what is going on; it is shown a run's events as a [`Sink`].
pub trait Live: Sink {
    /// The load is about to start: what is known before it, and the plan.
    fn begin(&mut self, id: RunId, info: &NewRun, spec: &Spec);

    /// A sentence for the person who waits.
    fn message(&mut self, text: &str);

    /// A run has ended: what it is good for, and what it is known by.
    fn judged(&mut self, _summary: &RunSummary<'_>) {}

    /// A piece of work is over: bars and status lines give way to the lines after them.
    fn end(&mut self);
}

/// Shows how far work has come that belongs to no run. A view that cannot show it does not end the work.
pub fn show_progress(live: &mut dyn Live, what: &str, done: u64, total: u64) {
    let _ = live.event(&Event::Progress { what: what.into(), done, total, rows: 0 });
}

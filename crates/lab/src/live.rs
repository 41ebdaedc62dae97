//! The view of a run in progress: a terminal, a page, or none.

use kelvin_diagnose::{KeyFigure, TenantFigures};
use kelvin_measure::{Event, Sink};
use kelvin_run::Spec;
use kelvin_store::{Judgement, NewRun, RunId};
use serde::Serialize;

/// The summary of a run at its end.
#[derive(Debug, Serialize)]
pub struct RunSummary<'a> {
    /// Its number in the store.
    pub run: i64,
    /// Whether it counts (`state`), and why not (`reasons`).
    #[serde(flatten)]
    pub judgement: &'a Judgement,
    /// Whether it counts: `state` is "counted".
    pub valid: bool,
    /// Number of transactions that failed after all retries.
    pub failed: u64,
    /// The point that represents the run; none while no window has closed.
    pub point: Option<u32>,
    /// The key figures of that point, the headline first; none for a scenario, where each tenant has its own.
    pub figures: Vec<KeyFigure>,
    /// The key figures of each tenant of a scenario.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tenants: Vec<TenantFigures>,
}

/// A view of a running measurement. It receives the run's events as a [`Sink`].
pub trait Live: Sink {
    /// The load is about to start. The view receives the facts that are known before it, and the plan.
    fn begin(&mut self, id: RunId, info: &NewRun, spec: &Spec);

    /// Shows a sentence to the user.
    fn message(&mut self, text: &str);

    /// A run has ended: its judgement and its key figures.
    fn judged(&mut self, _summary: &RunSummary<'_>) {}

    /// A task has ended: progress bars and status lines make room for the lines after them.
    fn end(&mut self);
}

/// Shows the progress of work that belongs to no run. A view that cannot show it does not end the work.
pub fn show_progress(live: &mut dyn Live, what: &str, done: u64, total: u64) {
    let _ = live.event(&Event::Progress { what: what.into(), done, total, rows: 0 });
}

//! The newest seconds of a run that goes on, as the charts of its page have them.

use kelvin_diagnose::{Context, Evidence};
use kelvin_measure::event::{Event, LoadPart, Phase, Series};
use kelvin_store::StoredRun;
use serde::Serialize;

use crate::html::{SecondColumns, Seconds, SeenCharts};
use crate::{Result, SecondReport, SourceReport};

/// What a page that shows a run adds to its charts.
#[derive(Debug, Clone, Serialize)]
pub struct LiveSeconds {
    /// The point that is measured.
    pub point: u32,
    /// What the run is doing.
    pub phase: Option<Phase>,
    /// Virtual users.
    pub users: u32,
    /// How long the phase should last, in seconds; none when that is not known.
    pub planned_s: Option<f64>,
    /// Errors so far, retried ones included.
    pub errors: u64,
    /// The seconds, those of the last call's end included: they may have been incomplete.
    pub seconds: SecondColumns,
    /// What host and database did in them.
    seen: Option<SeenCharts>,
}

/// What is kept of a run while it is followed.
pub struct LiveRun {
    evidence: Evidence,
    kinds: Vec<Series>,
}

impl LiveRun {
    /// Of a run whose events will be given to [`LiveRun::event`].
    pub fn new(run: &StoredRun) -> Self {
        let kinds = run.info.kinds.iter().filter(|kind| kind.is_transaction()).cloned().collect();
        Self { evidence: Evidence::new(Context::from_stored_run(run.id, &run.info)), kinds }
    }

    /// Takes an event that is not a second.
    pub fn event(&mut self, event: &Event) {
        self.evidence.event(event);
    }

    /// The newest seconds of the point that is measured, at most `most`; none before the first. `run` has the newest seconds
    /// only.
    ///
    /// # Errors
    /// When a stored histogram is damaged.
    pub fn newest(&self, run: &StoredRun, most: usize) -> Result<Option<LiveSeconds>> {
        let phases = run.phases();
        let phase = phases.last();
        let Some((point, first)) = run.first_second() else { return Ok(None) };
        let figures = run.point_statistics(point)?;
        let errors = run.errors_by_second(point);
        let total = errors.values().sum();
        let rows = SecondReport::all(&figures, errors);
        let rows = rows.iter().filter(|row| row.part != LoadPart::Tail && row.second >= first);
        let rows: Vec<&SecondReport> = rows.collect();
        let rows = rows[rows.len().saturating_sub(most)..].to_vec();
        let sources = SourceReport::all(run, point)?;
        let seconds: Vec<i64> = rows.iter().map(|row| row.second).collect();
        let columns = Seconds {
            rows,
            sources: &sources,
            kinds: &self.kinds,
            directions: &figures.directions,
            per: run.info.headline_per,
            open_loop: figures.open_loop,
            io: run.info.workload == kelvin_measure::labels::IO,
            scenario: run.info.workload == kelvin_measure::labels::SCENARIO,
        };
        Ok(Some(LiveSeconds {
            point,
            phase: phase.map(|phase| phase.phase),
            users: phase.map_or(0, |phase| phase.users),
            planned_s: phase.and_then(|phase| phase.planned).map(|nanos| nanos as f64 / 1e9),
            errors: total,
            seconds: columns.columns(),
            seen: SeenCharts::newest(&self.evidence, point, &seconds),
        }))
    }
}

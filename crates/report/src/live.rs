//! The newest seconds of a running run, in the format of the charts of its page.

use kelvin_diagnose::{Context, Evidence};
use kelvin_measure::event::{Event, LoadPart, Phase, Series};
use kelvin_store::StoredRun;
use serde::Serialize;

use crate::html::{SecondColumns, Seconds, SeenCharts};
use crate::{Result, SecondReport, SourceReport};

/// What the page of a running run appends to its charts.
#[derive(Debug, Clone, Serialize)]
pub struct LiveSeconds {
    /// The point being measured.
    pub point: u32,
    /// What the run is doing.
    pub phase: Option<Phase>,
    /// Virtual users.
    pub users: u32,
    /// Planned length of the phase in seconds; none if unknown.
    pub planned_s: Option<f64>,
    /// Errors so far, including retried ones.
    pub errors: u64,
    /// The seconds. The last seconds of the previous call are repeated: they may have been incomplete.
    pub seconds: SecondColumns,
    /// Activity of the host and database in these seconds.
    seen: Option<SeenCharts>,
}

/// State of a run that is being followed.
pub struct LiveRun {
    evidence: Evidence,
    kinds: Vec<Series>,
}

impl LiveRun {
    /// For a run whose events will be passed to [`LiveRun::event`].
    pub fn new(run: &StoredRun) -> Self {
        let kinds = run.info.kinds.iter().filter(|kind| kind.is_transaction()).cloned().collect();
        Self { evidence: Evidence::new(Context::from_stored_run(run.id, &run.info)), kinds }
    }

    /// Processes an event that is not a second.
    pub fn event(&mut self, event: &Event) {
        self.evidence.event(event);
    }

    /// The newest seconds of the point being measured, at most `most`; none before the first second. `run`
    /// contains only the newest seconds.
    ///
    /// # Errors
    /// Fails if a stored histogram is damaged.
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

//! What each of several sources put on the database: generators, tenants, hosts.

use kelvin_measure::{Source, SourceId, labels};
use kelvin_store::StoredRun;
use serde::Serialize;

use super::latency::{LatencyRow, row, types_of_source};
use super::second::SecondReport;
use super::throughput::Throughput;
use crate::Result;

/// What one source did in a point.
#[derive(Debug, Clone, Serialize)]
pub struct SourceReport {
    /// Its number among those of the run.
    pub source_id: SourceId,
    /// What it was declared to be.
    #[serde(flatten)]
    pub source: Source,
    /// The same in words.
    pub name: String,
    /// The most users of a tenant of a scenario; none of another source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub users: Option<u32>,
    /// Whether its transactions start by a schedule.
    pub open_loop: bool,
    /// What it counts.
    #[serde(flatten)]
    pub throughput: Throughput,
    /// Its part of the headline transactions, in per cent; none of a tenant of a scenario, whose loads have no common sum.
    pub share_percent: Option<f64>,
    /// Errors of any sort, over the whole point.
    pub errors: u64,
    /// The times of all its transactions that its clients see: response times in an open loop, else service times.
    pub latency: LatencyRow,
    /// The same by type, of those that it did.
    #[serde(skip)]
    pub(crate) types: Vec<LatencyRow>,
    /// One row a second.
    pub seconds: Vec<SecondReport>,
}

impl SourceReport {
    /// Those of a point, by their numbers; none where there is one.
    pub(crate) fn all(run: &StoredRun, point: u32) -> Result<Vec<Self>> {
        let alike = run.info.workload != labels::SCENARIO;
        let mut all = 0;
        let found = run.source_statistics(point, |one| {
            let (figures, errors) = (one.figures, run.source_errors_by_second(point, one.id));
            let counts = if figures.open_loop { &figures.response } else { &figures.all };
            all += figures.headline;
            let report = Self {
                source_id: one.id,
                name: one.source.describe(one.id),
                users: one.users,
                open_loop: figures.open_loop,
                types: types_of_source(&run.info.kinds, &figures, one.source.tenant.as_deref()),
                source: one.source,
                throughput: Throughput::of(&figures),
                share_percent: None,
                errors: errors.values().sum(),
                latency: row("all", counts, figures.times()),
                seconds: SecondReport::all(&figures, errors),
            };
            (figures.headline, report)
        })?;
        // The sum is known only now.
        let share = |headline: u64| (alike && all > 0).then(|| 100.0 * headline as f64 / all as f64);
        let each = found.into_iter();
        Ok(each.map(|(headline, report)| Self { share_percent: share(headline), ..report }).collect())
    }
}

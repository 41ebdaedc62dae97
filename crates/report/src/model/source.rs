//! The load of each of several sources: generators, tenants, hosts.

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
    /// Its number in the run.
    pub source_id: SourceId,
    /// Its declaration.
    #[serde(flatten)]
    pub source: Source,
    /// The source as text.
    pub name: String,
    /// The largest number of users of a scenario's tenant; none for other sources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub users: Option<u32>,
    /// Whether its transactions start on a schedule.
    pub open_loop: bool,
    /// The transactions it counted.
    #[serde(flatten)]
    pub throughput: Throughput,
    /// Its share of the headline transactions, in per cent; none for a tenant of a scenario, whose loads have
    /// no common sum.
    pub share_percent: Option<f64>,
    /// Errors of any sort, over the whole point.
    pub errors: u64,
    /// The latencies of all its transactions, as its clients see them: response times in an open loop, else
    /// service times.
    pub latency: LatencyRow,
    /// The same by type, for the types that it ran.
    #[serde(skip)]
    pub(crate) types: Vec<LatencyRow>,
    /// One row per second.
    pub seconds: Vec<SecondReport>,
}

impl SourceReport {
    /// The sources of a point, in the order of their numbers; empty if there is only one.
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
        // The shares need the total of all sources.
        let share = |headline: u64| (alike && all > 0).then(|| 100.0 * headline as f64 / all as f64);
        let each = found.into_iter();
        Ok(each.map(|(headline, report)| Self { share_percent: share(headline), ..report }).collect())
    }
}

//! The queries of TPROC-H: a row for each, and the results of the tests.

use kelvin_measure::labels;
use kelvin_measure::query::{AnswerState, QueryExecution, QueryFigures, QueryTest};
use kelvin_measure::query_analysis::QueryAnalysis;
use kelvin_measure::storage::JobLine;
use kelvin_measure::text::{plural, significant};
use kelvin_store::StoredRun;
use kelvin_trace::summary::TraceSummary;
use serde::Serialize;

use super::{HostScaling, PointReport};

/// Results that only some workloads or runs have, in addition to counts and times.
#[derive(Debug, Clone, Serialize)]
pub struct WorkDetails {
    /// What each I/O job did on each of its files and devices; empty for a run on a database.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<JobLine>,
    /// The queries of TPROC-H.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queries: Option<QueryReport>,
    /// How throughput grew with the hosts of a fleet; empty if all points had the same number of hosts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub linearity: Vec<HostScaling>,
    /// The storage requests of the window; only with `--trace`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceSummary>,
}

impl WorkDetails {
    pub(super) fn of(run: &StoredRun, points: &[PointReport]) -> Self {
        // Omitted if a newer Kelvin wrote it in another format.
        let jobs = run.storage("jobs").and_then(|jobs| serde_json::from_value(jobs.clone()).ok());
        let trace = run.storage("trace").and_then(|trace| serde_json::from_value(trace.clone()).ok());
        // Tenants may run the same queries on different databases.
        let is_one = run.info.workload != labels::SCENARIO;
        let queries = QueryReport::of(run.queries(), run.query_analyses()).filter(|_| is_one);
        Self { jobs: jobs.unwrap_or_default(), queries, linearity: HostScaling::all(points), trace }
    }
}

/// The queries of a run.
#[derive(Debug, Clone, Serialize)]
pub struct QueryReport {
    /// Power, throughput and composite results.
    #[serde(flatten)]
    pub figures: QueryFigures,
    /// A row for each query and refresh function.
    pub rows: Vec<QueryRow>,
    /// Every execution, in the order in which they ended.
    pub executions: Vec<QueryExecution>,
    /// The executed plans, if each query was executed once more after the load.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub analyses: Vec<QueryAnalysis>,
}

/// The executions of one query.
#[derive(Debug, Clone, Serialize)]
pub struct QueryRow {
    /// "Q1", "RF1".
    pub query: String,
    /// Its time in the power test, in seconds.
    pub power_s: Option<f64>,
    /// The shortest, mean and longest time in the other tests, in seconds.
    pub others_s: Option<[f64; 3]>,
    /// Rows in the answer, of the execution to which `digest` belongs.
    pub rows: Option<u64>,
    /// Digest of the answer in the power test, or else in the first execution.
    pub digest: Option<String>,
    /// Digest of the plan of that execution.
    pub plan: Option<String>,
    /// The worst state of its answers.
    pub state: AnswerState,
    /// The reason for that state.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

impl QueryReport {
    /// None for a run without queries.
    fn of(executions: Vec<QueryExecution>, analyses: Vec<QueryAnalysis>) -> Option<Self> {
        let figures = QueryFigures::from_executions(&executions)?;
        let mut ranks: Vec<u32> = executions.iter().map(QueryExecution::rank).collect();
        ranks.sort_unstable();
        ranks.dedup();
        let of = |rank: u32| executions.iter().filter(|one| one.rank() == rank).collect::<Vec<_>>();
        let rows = ranks.into_iter().filter_map(|rank| QueryRow::of(&of(rank))).collect();
        Some(Self { figures, rows, executions, analyses })
    }

    /// The results in one sentence.
    pub fn describe(&self) -> String {
        let figures = &self.figures;
        let mut words: Vec<String> = Vec::new();
        words.extend(figures.power.map(|power| format!("power {}", significant(power))));
        let streams = figures.streams.map_or_else(String::new, |streams| {
            format!(" with {streams} {}", plural(streams, "stream", "streams"))
        });
        words.extend(figures.throughput.map(|value| format!("throughput {}{streams}", significant(value))));
        words.extend(figures.composite.map(|composite| format!("composite {}", significant(composite))));
        words.extend(
            figures
                .geometric_mean
                .map(|mean| format!("geometric mean of the queries {} s", significant(mean))),
        );
        if figures.geometric_mean.is_none() {
            words.extend(figures.point_means.iter().map(|point| {
                let (mean, users) = (significant(point.geometric_mean), point.users.len());
                format!(
                    "geometric mean of the queries with {users} {} {mean} s",
                    plural(users, "user", "users")
                )
            }));
        }
        if words.is_empty() {
            words.push("no figure".into());
        }
        let mut text = format!("TPROC-H at scale factor {}: {}", figures.scale, words.join(", "));
        if !figures.limits.is_empty() {
            text.push_str(&format!(" ({})", figures.limits.join("; ")));
        }
        text
    }
}

impl QueryRow {
    fn of(executions: &[&QueryExecution]) -> Option<Self> {
        let is_power = |one: &&&QueryExecution| one.test == QueryTest::Power;
        let shown = executions.iter().find(is_power).or(executions.first())?;
        // The time of a failed execution does not describe the query.
        let times = |power: bool| {
            let wanted = executions.iter().filter(|one| is_power(one) == power && one.state.counts());
            wanted.map(|one| one.seconds()).collect::<Vec<_>>()
        };
        let others = times(false);
        let others_s = (!others.is_empty()).then(|| {
            let (least, most) =
                others.iter().fold((f64::MAX, 0.0_f64), |(a, b), &time| (a.min(time), b.max(time)));
            [least, others.iter().sum::<f64>() / others.len() as f64, most]
        });
        let worst = executions.iter().find(|one| !one.state.counts());
        Some(Self {
            query: shown.query.clone(),
            power_s: times(true).first().copied(),
            others_s,
            rows: shown.rows,
            digest: shown.digest.clone(),
            plan: shown.plan.as_ref().map(|plan| plan.digest.clone()),
            state: worst.unwrap_or(shown).state,
            detail: worst.map(|one| one.detail.clone()).unwrap_or_default(),
        })
    }

    /// The state of its answer, as shown in a table.
    pub fn answer(&self) -> &'static str {
        // Refresh functions have no answer.
        if self.digest.is_none() && self.state.counts() { "–" } else { self.state.label() }
    }
}

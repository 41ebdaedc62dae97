//! The values of a run, computed once for every format. Field names include the units; this is also the
//! schema of the JSON report (see [`crate::json`]).

mod errors;
mod flatten_json;
mod generator;
mod host;
mod latency;
mod linearity;
mod observed;
mod open_loop;
mod point;
mod queries;
mod reads;
mod scenario;
mod second;
mod source;
mod statements;
mod throughput;
mod tried;

use std::sync::Arc;

use kelvin_diagnose::{Evidence, Finding, RunJudgements, judge};
use kelvin_measure::event::{MaximumRate, Phase, RatePeriod, Scalability, Series, Squeeze, Status};
use kelvin_measure::labels::{self, WorkloadLabels};
use kelvin_measure::observation::UnavailableMetrics;
use kelvin_measure::storage::JobLine;
use kelvin_store::{Judgement, Liveness, NewRun, RunId, Store, StoredRun};
use serde::Serialize;

use crate::Result;
pub use errors::ErrorRow;
pub(crate) use flatten_json::flatten;
pub use generator::{GeneratorReport, Lag};
pub use host::{HostReport, SkewReport};
pub use latency::{Distribution, LatencyRow};
pub use linearity::HostScaling;
pub(crate) use observed::{Chart, Grid, WAIT_CLASSES, timeline};
pub use observed::{
    ClassRow, CpuUse, DeviceRow, MetricRow, ObservationReport, OccurrenceRow, OtherProcessRow, ProcessorRow,
    RowWaits, ServerStatement, SessionsReport, WaitRow,
};
pub use open_loop::ScheduleReport;
pub use point::{PercentileInterval, PointChecks, PointReport, Precision, ServerCounts};
pub use queries::{QueryReport, QueryRow, WorkDetails};
pub use reads::TableReads;
pub use scenario::ScenarioReport;
pub use second::{OpenSecond, SecondReport};
pub use source::SourceReport;
pub use statements::{StatementRow, TransactionStatements};
pub use throughput::Throughput;
pub use tried::{ComparedMeans, TriedChange};

/// Version of the JSON schema. It changes when a field is removed or changes its meaning, not when fields are
/// added.
pub const SCHEMA: &str = "kelvin-report/2";

/// A whole run.
#[derive(Debug, Clone, Serialize)]
pub struct RunReport {
    /// Name and version of the schema.
    pub schema: &'static str,
    /// The run's number in its store.
    pub run: i64,
    /// The user's label.
    pub label: Option<String>,
    /// The workload.
    pub workload: String,
    /// What was measured.
    pub target: String,
    /// When it began.
    pub started: jiff::Timestamp,
    /// The status with which it ended.
    pub status: Status,
    /// Whether it is still being written.
    pub liveness: Liveness,
    /// Whether the run counts (`state`), and why not (`reasons`).
    #[serde(flatten)]
    pub judgement: Judgement,
    /// Whether the run counts: `state` is "counted".
    pub valid: bool,
    /// Transactions that failed for good, in all phases.
    pub failed: u64,
    /// The error that ended it.
    pub error: Option<String>,
    /// Name of the headline metric.
    pub headline: String,
    /// The period to which the headline refers.
    pub headline_per: RatePeriod,
    /// Whether transactions start on a schedule, even if earlier ones have not ended. For I/O jobs with
    /// several phases, whether this is so in all of them.
    pub open_loop: bool,
    /// Transaction types, in order.
    pub kinds: Vec<Series>,
    /// The model fitted to a sweep over users.
    pub scalability: Option<Scalability>,
    /// The result of a search for the highest rate.
    pub maximum_rate: Option<MaximumRate>,
    /// The result of limiting one resource after another; the run's values then describe the limited
    /// database.
    pub squeeze: Option<Squeeze>,
    /// The steps of a scenario and their effects on its tenants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scenario: Option<ScenarioReport>,
    /// One entry per number of users, or per rate.
    pub points: Vec<PointReport>,
    /// Caveats for the results, the most severe first; empty also if nothing was observed.
    pub findings: Vec<Finding>,
    /// Changes that were tried for this run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<TriedChange>,
    /// Metrics that were missing.
    #[serde(flatten)]
    pub not_seen: NotSeen,
    /// Results of I/O jobs, queries and fleets.
    #[serde(flatten)]
    pub details: WorkDetails,
    /// Consistency conditions.
    pub checks: Vec<JudgedCheck>,
    /// Notes on the result.
    pub notes: Vec<String>,
    /// How to repeat the run.
    #[serde(flatten)]
    pub recipe: Recipe,
    /// The observations; none if nothing was observed.
    #[serde(skip)]
    pub(crate) evidence: Option<Arc<Evidence>>,
    /// The point that represents the run; none until a window has closed.
    #[serde(skip)]
    pub(crate) known_by: Option<u32>,
}

/// Metrics that watchers could not provide.
#[derive(Debug, Clone, Default, Serialize)]
pub struct NotSeen {
    /// Metrics that were unavailable.
    pub absent: Vec<UnavailableMetrics>,
    /// Metrics that stopped during the run.
    pub lost: Vec<UnavailableMetrics>,
}

/// Everything that must be the same to repeat the run.
#[derive(Debug, Clone, Serialize)]
pub struct Recipe {
    /// The command line that repeats the run.
    pub command: String,
    /// The complete specification.
    pub spec_toml: String,
    /// The seed; as text, since JavaScript cannot hold 64 bits.
    pub seed: String,
    /// The random generator that uses the seed.
    pub random_algorithm: String,
    /// The Kelvin version that ran it.
    pub kelvin_version: String,
    /// Hardware, kernel, database and settings.
    pub environment: serde_json::Value,
}

impl Recipe {
    fn from_info(info: &NewRun) -> Self {
        Self {
            command: info.command.clone(),
            spec_toml: info.spec_toml.clone(),
            seed: info.seed.to_string(),
            random_algorithm: info.random_algorithm.clone(),
            kelvin_version: info.kelvin_version.clone(),
            environment: info.environment.clone(),
        }
    }
}

/// One consistency condition.
#[derive(Debug, Clone, Serialize)]
pub struct JudgedCheck {
    /// Whether it was checked before or after the load.
    pub phase: Phase,
    /// Its number in the workload's rules.
    pub number: u32,
    /// What must hold.
    pub name: String,
    /// Whether it does.
    pub holds: bool,
    /// The values found.
    pub detail: String,
    /// Why a violation is not an error; see [`kelvin_measure::event::CheckLine::exempt`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exempt: Option<String>,
}

impl JudgedCheck {
    /// Whether it makes the run void.
    pub fn fails(&self) -> bool {
        !self.holds && self.exempt.is_none()
    }
}

impl RunReport {
    /// Computes the report of a stored run.
    ///
    /// # Errors
    /// Fails if a stored histogram is damaged.
    pub fn from_run(run: &StoredRun) -> Result<Self> {
        let evidence = Evidence::from_run(run)?;
        let judged = judge(run, &evidence)?;
        Self::build(run, evidence, judged, None)
    }

    /// The report of a run in a store. Some findings compare it with the newest earlier complete run of the
    /// same workload on the same target.
    ///
    /// # Errors
    /// Fails if there is no such run, or if it or the earlier run is damaged.
    pub fn load(store: &Store, id: RunId) -> Result<Self> {
        Self::from_stored(store, &store.load(id)?)
    }

    /// [`RunReport::load`] for a run that is already loaded.
    ///
    /// # Errors
    /// Fails if the run or the earlier one is damaged.
    pub fn from_stored(store: &Store, run: &StoredRun) -> Result<Self> {
        let evidence = Evidence::from_run(run)?;
        let judged = judge(run, &evidence)?;
        Self::from_judged(store, run, evidence, judged)
    }

    /// The observations of the run; none if nothing was observed.
    pub fn evidence(&self) -> Option<&Evidence> {
        self.evidence.as_deref()
    }

    /// [`RunReport::load`] for a run that is already loaded and judged.
    ///
    /// # Errors
    /// Fails if the run or the earlier one is damaged.
    pub fn from_judged(
        store: &Store,
        run: &StoredRun,
        evidence: Evidence,
        judged: RunJudgements,
    ) -> Result<Self> {
        let earlier = if run.has_observations() { store.previous_run(run)? } else { None };
        let earlier = earlier.map(|id| store.load(id)).transpose()?;
        let mut report = Self::build(run, evidence, judged, earlier.as_ref())?;
        report.tried = TriedChange::load(store, run.id)?;
        Ok(report)
    }

    fn build(
        run: &StoredRun,
        mut evidence: Evidence,
        judged: RunJudgements,
        earlier: Option<&StoredRun>,
    ) -> Result<Self> {
        // Findings that compare with an earlier run are shown, but do not affect the judgement.
        evidence.earlier = earlier.map(Evidence::from_run).transpose()?.map(Box::new);
        let evidence = Arc::new(evidence);
        let accepted = |points: &[PointReport]| {
            kelvin_diagnose::accepted_noise(points.iter().map(|point| (&*evidence, point.point)))
        };
        // Without samples, the evidence contains only counts.
        let looked = run.has_evidence().then(|| Arc::clone(&evidence));
        let seen = looked.as_deref();
        let findings = match &evidence.earlier {
            Some(_) => kelvin_diagnose::findings_for(&evidence),
            None => judged.findings,
        };
        let points = run
            .points()
            .into_iter()
            .map(|point| {
                let judgement = judged.points.get(&point.point).cloned();
                PointReport::from_run(
                    run,
                    point,
                    seen,
                    &findings,
                    judgement.unwrap_or_else(|| judged.run.clone()),
                )
            })
            .collect::<Result<Vec<_>>>()?;
        let details = WorkDetails::from_run(run, &points);
        let checks: Vec<JudgedCheck> = run
            .checks()
            .into_iter()
            .map(|(phase, c)| JudgedCheck {
                phase,
                number: c.number,
                name: c.name,
                holds: c.holds,
                detail: c.detail,
                exempt: c.exempt,
            })
            .collect();
        let info = &run.info;
        let notes = notes(&info.notes, &details.jobs).into_iter();
        let accepted = accepted(&points);
        Ok(Self {
            schema: SCHEMA,
            run: run.id.0,
            label: info.label.clone(),
            workload: info.workload.clone(),
            target: info.target.clone(),
            started: info.started,
            status: run.status,
            liveness: run.liveness,
            valid: judged.run.counts(),
            judgement: judged.run,
            failed: run.failed(),
            error: run.error.clone(),
            known_by: run.best_point(),
            headline: info.headline.clone(),
            headline_per: info.headline_per,
            open_loop: point::are_open(&points, &info.kinds),
            kinds: info.kinds.iter().filter(|s| s.is_transaction()).cloned().collect(),
            scalability: run.scalability().cloned(),
            maximum_rate: run.maximum_rate().cloned(),
            squeeze: run.squeeze().cloned(),
            scenario: ScenarioReport::from_run(run)?,
            points,
            findings: if seen.is_some() { findings } else { Vec::new() },
            tried: Vec::new(),
            not_seen: seen
                .map(|e| NotSeen {
                    absent: [without_duplicates(e.absent()), kelvin_diagnose::not_explained(e)].concat(),
                    lost: without_duplicates(e.lost()),
                })
                .unwrap_or_default(),
            notes: notes.chain(accepted).collect(),
            details,
            checks,
            recipe: Recipe::from_info(info),
            evidence: looked,
        })
    }

    /// The point that represents the run ([`StoredRun::best_point`]). Until a window has closed, the one with
    /// the highest headline so far.
    pub fn best(&self) -> Option<&PointReport> {
        let value = |p: &PointReport| p.throughput.headline_per_minute.unwrap_or(f64::NEG_INFINITY);
        let known_by = self.known_by.and_then(|known| self.points.iter().find(|p| p.point == known));
        known_by.or_else(|| self.points.iter().max_by(|a, b| value(a).total_cmp(&value(b))))
    }

    /// The jobs of a point.
    pub(crate) fn jobs_of(&self, point: &PointReport) -> impl Iterator<Item = &JobLine> {
        let wanted = point.point;
        self.details.jobs.iter().filter(move |job| job.point == wanted)
    }

    /// Indices of the transaction types of an I/O direction, on any device.
    pub(crate) fn kinds_of_direction<'a>(&'a self, direction: &'a str) -> impl Iterator<Item = usize> + 'a {
        kinds_of_direction(&self.kinds, direction)
    }

    /// MiB per second of the jobs of a point, over its whole window like its IOPS: a job may have run for
    /// only part of it. None without jobs.
    pub(crate) fn mebibytes_of(&self, point: &PointReport) -> Option<f64> {
        let each = self.jobs_of(point).flat_map(|job| &job.targets).map(|target| target.bytes);
        let bytes = each.reduce(u64::saturating_add).filter(|_| point.window_s > 0.0)?;
        Some(bytes as f64 / point.window_s / f64::from(1 << 20))
    }

    /// Name of the metric that counts all transactions in the headline's unit.
    pub(crate) fn total_name(&self) -> &'static str {
        match self.headline_per {
            RatePeriod::Minute => "TPM",
            RatePeriod::Second => "all/s",
        }
    }

    /// Whether there are transactions that the headline does not count, so the total differs from it.
    pub(crate) fn has_total(&self) -> bool {
        self.kinds.iter().any(|kind| !kind.headline)
    }

    /// Whether it is a run of I/O jobs: its transactions are I/Os and its users are workers.
    pub fn is_io(&self) -> bool {
        self.workload == labels::IO
    }

    /// Whether it is a run of a scenario: its tenants' loads have no common sum.
    pub fn is_scenario(&self) -> bool {
        self.workload == labels::SCENARIO
    }

    /// What its users and transactions are called.
    pub(crate) fn vocabulary(&self) -> &'static WorkloadLabels {
        WorkloadLabels::for_workload(&self.workload)
    }

    /// What was measured, for a heading: product and version, the files of I/O jobs, or the tenants of a
    /// scenario. It contains no user name, host name or address, so the page can be published.
    pub fn system(&self) -> String {
        if self.is_io() {
            return kelvin_measure::text::cut(&self.target, 60);
        }
        if self.is_scenario() {
            let tenants = self.points.first().map_or(0, |point| point.sources.len()).max(1);
            return kelvin_measure::text::count(tenants as u64, "tenant");
        }
        let version =
            self.recipe.environment.pointer("/database/version").and_then(serde_json::Value::as_str);
        let words = || version.unwrap_or_default().split_whitespace();
        let product = words().find(|word| word.starts_with(char::is_alphabetic));
        let number = words().find(|word| word.starts_with(|c: char| c.is_ascii_digit()));
        match (product, number) {
            (Some(product), Some(number)) => format!("{product} {}", number.trim_end_matches(',')),
            (Some(product), None) => product.to_owned(),
            (None, _) => "a database".into(),
        }
    }

    /// The workload's name for a heading; for a scenario, the name in its file.
    pub fn workload_name(&self) -> String {
        if self.is_scenario() {
            let file = toml::from_str::<toml::Table>(&self.recipe.spec_toml).unwrap_or_default();
            let name = file.get("scenario").and_then(toml::Value::as_str);
            return name.map_or_else(|| self.workload.clone(), ToOwned::to_owned);
        }
        if self.workload.starts_with("tproc") { self.workload.to_uppercase() } else { self.workload.clone() }
    }
}

impl RunReport {
    /// The throughput of a source in the headline's unit. For a tenant of a scenario it counts all
    /// transactions, as in comparisons.
    pub(crate) fn throughput_of(&self, source: &SourceReport) -> Option<f64> {
        if self.is_scenario() {
            source.throughput.transactions(self.headline_per)
        } else {
            source.throughput.headline(self.headline_per)
        }
    }

    /// Workload and target as the title of a text: "TPROC-C on postgres://…".
    pub(crate) fn subject(&self) -> String {
        if self.is_scenario() {
            format!("scenario \"{}\" with {}", self.workload_name(), self.target)
        } else {
            format!("{} on {}", self.workload_name(), self.target)
        }
    }
}

/// Indices of the kinds of a direction of I/O, on any device.
pub(crate) fn kinds_of_direction<'a>(
    kinds: &'a [Series],
    direction: &'a str,
) -> impl Iterator<Item = usize> + 'a {
    let kinds = kinds.iter().enumerate().filter(|(_, kind)| kind.is_transaction());
    kinds.filter(move |(_, kind)| kind.direction() == direction).map(|(at, _)| at)
}

/// The notes, without those that repeat a job's own line: they are stored for runs that end before their jobs
/// have lines.
fn notes(notes: &[String], jobs: &[JobLine]) -> Vec<String> {
    let said: Vec<String> = jobs.iter().map(JobLine::describe).collect();
    notes.iter().filter(|note| !said.contains(note)).cloned().collect()
}

/// Removes duplicates and keeps the order: a watcher that finds further metrics repeats the missing ones.
fn without_duplicates(absent: &[UnavailableMetrics]) -> Vec<UnavailableMetrics> {
    let mut found: Vec<UnavailableMetrics> = Vec::new();
    for one in absent {
        if !found.contains(one) {
            found.push(one.clone());
        }
    }
    found
}

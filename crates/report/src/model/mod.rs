//! The figures of a run, worked out once for every format. The field names carry the units; this is also the
//! schema of the JSON report (see [`crate::json`]).

mod errors;
mod facts;
mod generator;
mod latency;
mod observed;
mod open_loop;
mod point;
mod second;
mod statements;

use std::sync::Arc;

use kelvin_diagnose::{Evidence, Finding};
use kelvin_measure::event::{MaximumRate, Per, Phase, Scalability, Series, Squeeze, Status};
use kelvin_measure::observation::Absent;
use kelvin_measure::storage::JobLine;
use kelvin_measure::words::{self, Words};
use kelvin_store::{Liveness, RunId, Store, StoredRun, verdict};
use serde::Serialize;

use crate::Result;
pub use errors::ErrorRow;
pub(crate) use facts::flatten;
pub use generator::{Generator, Lag};
pub use latency::{Distribution, LatencyRow};
pub(crate) use observed::{Chart, Grid, colour, timeline};
pub use observed::{
    ClassRow, DeviceRow, MetricRow, Observed, OccurrenceRow, ProcessorRow, RowWaits, ServerStatement,
    SessionsReport, WaitRow,
};
pub use open_loop::ScheduleReport;
pub use point::{PointReport, Precision};
pub use second::{OpenSecond, SecondReport};
pub use statements::{StatementRow, TransactionStatements};

/// Version of the JSON schema. Raised when a field changes its meaning or goes; new fields do not raise it.
pub const SCHEMA: &str = "kelvin-report/1";

/// A whole run.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Name and version of the schema.
    pub schema: &'static str,
    /// The run's number in its store.
    pub run: i64,
    /// The user's name for it.
    pub label: Option<String>,
    /// The workload.
    pub workload: String,
    /// What was measured.
    pub target: String,
    /// When it began.
    pub started: jiff::Timestamp,
    /// How it ended.
    pub status: Status,
    /// Whether it is still being written.
    pub liveness: Liveness,
    /// How it stands, in words.
    pub state: String,
    /// The error that ended it.
    pub error: Option<String>,
    /// Whether every audit line, invariant and condition held; none when a point has not had its audit.
    pub valid: Option<bool>,
    /// What did not hold, in words with the figure.
    pub violations: Vec<String>,
    /// Name of the headline figure.
    pub headline: String,
    /// The time that the headline figure counts over.
    pub headline_per: Per,
    /// Whether transactions start by a schedule, whether or not those before them have ended; of a run with several phases
    /// of I/O jobs, whether they do in all of them.
    pub open_loop: bool,
    /// Transaction types in their order.
    pub kinds: Vec<Series>,
    /// The law fitted to a sweep over users.
    pub scalability: Option<Scalability>,
    /// The outcome of a search for the highest rate.
    pub maximum_rate: Option<MaximumRate>,
    /// What came of cutting resources in turn; the run's figures are then those of a squeezed database.
    pub squeeze: Option<Squeeze>,
    /// One entry per number of users, or per rate.
    pub points: Vec<PointReport>,
    /// What the reader of the figures has to know, the most severe first; empty also where nothing was observed.
    pub findings: Vec<Finding>,
    /// What could not be seen.
    pub absent: Vec<Absent>,
    /// What fell silent while the run went on.
    pub lost: Vec<Absent>,
    /// What each I/O job did on each of its files and devices; empty of a run on a database.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<JobLine>,
    /// Consistency conditions.
    pub checks: Vec<JudgedCheck>,
    /// Sentences that belong to the result.
    pub notes: Vec<String>,
    /// The command line that repeats the run.
    pub command: String,
    /// The complete spec.
    pub spec_toml: String,
    /// The seed; as text, since JavaScript cannot hold 64 bits.
    pub seed: String,
    /// The generator that the seed feeds.
    pub random_algorithm: String,
    /// The version that ran it.
    pub kelvin_version: String,
    /// Hardware, kernel, database and settings.
    pub environment: serde_json::Value,
    /// What was observed; none where nothing was.
    #[serde(skip)]
    pub(crate) evidence: Option<Arc<Evidence>>,
}

/// One consistency condition.
#[derive(Debug, Clone, Serialize)]
pub struct JudgedCheck {
    /// Before or after the load.
    pub phase: Phase,
    /// Its number.
    pub number: u32,
    /// What must hold.
    pub name: String,
    /// Whether it does.
    pub holds: bool,
    /// What was found.
    pub detail: String,
}

impl Report {
    /// Works out the figures of a stored run.
    ///
    /// # Errors
    /// When a stored histogram is damaged.
    pub fn of(run: &StoredRun) -> Result<Self> {
        Self::after(run, None)
    }

    /// The report of a run in a store, with the newest complete run of the same workload on the same target before it,
    /// which some findings ask for.
    ///
    /// # Errors
    /// When there is no such run, or it or the earlier one is damaged.
    pub fn load(store: &Store, id: RunId) -> Result<Self> {
        let run = store.load(id)?;
        let earlier = if run.has_observations() { store.before(&run)? } else { None };
        let earlier = earlier.map(|id| store.load(id)).transpose()?;
        Self::after(&run, earlier.as_ref())
    }

    /// The report of a stored run, with an earlier one to look back at.
    ///
    /// # Errors
    /// When a stored histogram or an observation of either is damaged.
    pub fn after(run: &StoredRun, earlier: Option<&StoredRun>) -> Result<Self> {
        // Taking the evidence costs a pass over all events, which nothing is gained from where nobody looked.
        let evidence = if run.has_evidence() {
            let mut evidence = Evidence::of(run)?;
            evidence.earlier = earlier.map(Evidence::of).transpose()?.map(Box::new);
            Some(Arc::new(evidence))
        } else {
            None
        };
        let seen = evidence.as_deref();
        let points =
            run.points().into_iter().map(|p| PointReport::of(run, p, seen)).collect::<Result<Vec<_>>>()?;
        // What a newer Kelvin wrote otherwise is not shown.
        let jobs: Vec<JobLine> = run
            .storage("jobs")
            .and_then(|jobs| serde_json::from_value(jobs.clone()).ok())
            .unwrap_or_default();
        let checks: Vec<JudgedCheck> = run
            .checks()
            .into_iter()
            .map(|(phase, c)| JudgedCheck {
                phase,
                number: c.number,
                name: c.name,
                holds: c.holds,
                detail: c.detail,
            })
            .collect();
        let violations = violations(&points, &checks);
        let valid = verdict(points.iter().map(|p| p.audited), violations.is_empty());
        let info = &run.info;
        Ok(Self {
            schema: SCHEMA,
            run: run.id.0,
            label: info.label.clone(),
            workload: info.workload.clone(),
            target: info.target.clone(),
            started: info.started,
            status: run.status,
            liveness: run.liveness,
            state: run.state().into(),
            error: run.error.clone(),
            valid,
            violations,
            headline: info.headline.clone(),
            headline_per: info.headline_per,
            open_loop: point::are_open(&points, &info.kinds),
            kinds: info.kinds.iter().filter(|s| s.is_transaction()).cloned().collect(),
            scalability: run.scalability().cloned(),
            maximum_rate: run.maximum_rate().cloned(),
            squeeze: run.squeeze().cloned(),
            points,
            findings: seen.map(kelvin_diagnose::find).unwrap_or_default(),
            absent: seen.map(|e| once(e.absent())).unwrap_or_default(),
            lost: seen.map(|e| once(e.lost())).unwrap_or_default(),
            notes: notes(&info.notes, &jobs),
            jobs,
            checks,
            command: info.command.clone(),
            spec_toml: info.spec_toml.clone(),
            seed: info.seed.to_string(),
            random_algorithm: info.random_algorithm.clone(),
            kelvin_version: info.kelvin_version.clone(),
            environment: info.environment.clone(),
            evidence,
        })
    }

    /// The point with the highest headline figure; of the rates of an open loop the highest that was kept up with;
    /// of a search the highest rate that held.
    pub fn best(&self) -> Option<&PointReport> {
        let held = self.maximum_rate.as_ref().and_then(MaximumRate::highest_held);
        if let Some(point) = held.and_then(|held| self.points.iter().find(|p| p.point == held)) {
            return Some(point);
        }
        let kept_up = |p: &PointReport| p.schedule.as_ref().is_none_or(|s| !s.overloaded);
        let value = |p: &PointReport| p.headline_per_minute.unwrap_or(f64::NEG_INFINITY);
        let holds = |p: &PointReport| p.invariants.iter().all(|invariant| invariant.holds);
        let rank = |p: &PointReport| (holds(p), kept_up(p));
        self.points.iter().max_by(|a, b| rank(a).cmp(&rank(b)).then(value(a).total_cmp(&value(b))))
    }

    /// What the jobs of a point did.
    pub(crate) fn jobs_of(&self, point: &PointReport) -> impl Iterator<Item = &JobLine> {
        let wanted = point.point;
        self.jobs.iter().filter(move |job| job.point == wanted)
    }

    /// Which of the kinds are of a direction of I/O, on whatever device.
    pub(crate) fn kinds_of_direction<'a>(&'a self, direction: &'a str) -> impl Iterator<Item = usize> + 'a {
        let of = |name: &'a str| name.split([' ', ',']).next().unwrap_or(name);
        let kinds = self.kinds.iter().enumerate().filter(|(_, kind)| kind.is_transaction());
        kinds.filter(move |(_, kind)| of(&kind.name) == direction).map(|(at, _)| at)
    }

    /// MiB a second of the jobs of a point; none without jobs.
    pub(crate) fn mebibytes_of(&self, point: &PointReport) -> Option<f64> {
        let each = self.jobs_of(point).flat_map(|job| &job.targets).map(|target| target.bandwidth);
        each.reduce(|sum, one| sum + one).map(|sum| sum / f64::from(1 << 20))
    }

    /// Name of the figure that counts all transactions in the headline's unit.
    pub(crate) fn total_name(&self) -> &'static str {
        match self.headline_per {
            Per::Minute => "TPM",
            Per::Second => "all/s",
        }
    }

    /// Whether transactions that the headline does not count are there, so that their sum says something else.
    pub(crate) fn has_total(&self) -> bool {
        self.kinds.iter().any(|kind| !kind.headline)
    }

    /// Whether it is a run of I/O jobs, whose transactions are I/Os and whose users are workers.
    pub fn is_io(&self) -> bool {
        self.workload == words::IO
    }

    /// What its users and their work are called.
    pub(crate) fn words(&self) -> &'static Words {
        Words::of(&self.workload)
    }

    /// The workload's name as a heading has it.
    pub fn workload_name(&self) -> String {
        if self.workload.starts_with("tproc") { self.workload.to_uppercase() } else { self.workload.clone() }
    }
}

/// The sentences without those that a job's own line says: they are kept for runs that end before their jobs have lines.
fn notes(notes: &[String], jobs: &[JobLine]) -> Vec<String> {
    let said: Vec<String> = jobs.iter().map(JobLine::words).collect();
    notes.iter().filter(|note| !said.contains(note)).cloned().collect()
}

/// Each once, in their order: an observer that finds more of its metrics says again what it could not see.
fn once(absent: &[Absent]) -> Vec<Absent> {
    let mut found: Vec<Absent> = Vec::new();
    for one in absent {
        if !found.contains(one) {
            found.push(one.clone());
        }
    }
    found
}

fn violations(points: &[PointReport], checks: &[JudgedCheck]) -> Vec<String> {
    let several = points.len() > 1;
    let mut found = Vec::new();
    for point in points {
        let with = if several { with(point) } else { String::new() };
        for line in point.audit.iter().filter(|l| !l.valid) {
            found.push(format!("{}{with}: {}", line.name, crate::figure::bounds(line)));
        }
        for invariant in point.invariants.iter().filter(|i| !i.holds) {
            found.push(format!("{}{with}: {}", invariant.name, invariant.evidence));
        }
    }
    for check in checks.iter().filter(|c| !c.holds) {
        found.push(format!("condition {}, {}: {}", check.number, check.name, check.detail));
    }
    found
}

/// Which of several points, after the name of what did not hold.
fn with(point: &PointReport) -> String {
    match point.asked_per_second() {
        _ if point.phase().is_some() => format!(" ({})", point.name()),
        Some(asked) => format!(" (at {}/s)", crate::figure::rate(Some(asked))),
        None => format!(" (with {} users)", point.users),
    }
}

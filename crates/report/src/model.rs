//! The figures of a run, worked out once for every format. The field names carry the units; this is also the
//! schema of the JSON report (see [`crate::json`]).

use kelvin_measure::event::{AuditLine, KindCounts, Part, Phase, Status};
use kelvin_measure::invariant::Invariant;
use kelvin_measure::{Histogram, LatencySummary};
use kelvin_stats::ess;
use kelvin_store::{ErrorGroup, Figures, Liveness, Point, StoredRun, verdict};
use serde::Serialize;

use crate::Result;

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
    /// Whether every audit line, invariant and condition held; none when a point has no audit.
    pub valid: Option<bool>,
    /// What did not hold, in words with the figure.
    pub violations: Vec<String>,
    /// Name of the headline figure per minute.
    pub headline: String,
    /// Transaction types in their order.
    pub kinds: Vec<kelvin_measure::event::Series>,
    /// One entry per number of users.
    pub points: Vec<PointReport>,
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
}

/// One number of users.
#[derive(Debug, Clone, Serialize)]
pub struct PointReport {
    /// From 0.
    pub point: u32,
    /// Virtual users.
    pub users: u32,
    /// Whether the window closed; if not, the figures are of a part.
    pub closed: bool,
    /// Length of the window in seconds, as elapsed.
    pub window_s: f64,
    /// Length of the ramp-up in seconds.
    pub ramp_up_s: f64,
    /// Headline transactions committed in the window, by the client.
    pub headline_count: u64,
    /// Headline transactions per elapsed minute.
    pub headline_per_minute: Option<f64>,
    /// Commits and rollbacks per elapsed minute, by the client.
    pub transactions_per_minute: Option<f64>,
    /// Headline transactions by the server's own count.
    pub server_headline_count: Option<u64>,
    /// Commits and rollbacks per minute by the server's own statistics, all its work included.
    pub server_transactions_per_minute: Option<f64>,
    /// CPU time of the client's process per transaction of the window. With an engine that runs inside the
    /// process, such as SQLite, it contains the database's own.
    pub client_cpu_us_per_transaction: Option<f64>,
    /// Precision of the headline figure within this run.
    pub within_run: Option<Precision>,
    /// One row per transaction type.
    pub latency: Vec<LatencyRow>,
    /// All types together.
    pub latency_all: LatencyRow,
    /// Percentile curves, one per transaction type.
    pub distributions: Vec<Distribution>,
    /// Errors by class and code, over the whole point: ramp-up and stop included, unlike the other figures.
    pub errors: Vec<ErrorRow>,
    /// The self-audit.
    pub audit: Vec<AuditLine>,
    /// What must hold in every run, with the store's own cross-checks.
    pub invariants: Vec<Invariant>,
    /// The timeline's sentences: seconds since the window opened, and the text.
    pub timeline: Vec<(i64, String)>,
    /// One row a second.
    pub seconds: Vec<SecondReport>,
}

/// Precision of a mean within one run. It does not say how much the next run will differ.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Precision {
    /// Whole seconds measured.
    pub seconds: usize,
    /// What they are worth in independent ones.
    pub effective_seconds: f64,
    /// Half the 95 % interval of the mean, in per cent of it.
    pub half_width_percent: f64,
}

/// A row of the latency table. Service times; none where the samples are too few for the figure.
#[derive(Debug, Clone, Serialize)]
pub struct LatencyRow {
    /// Transaction type, or "all".
    pub kind: String,
    /// Committed.
    pub committed: u64,
    /// Rolled back by the workload's rules.
    pub rolled_back: u64,
    /// Given up after an error; in no latency.
    pub failed: u64,
    /// Repetitions.
    pub retries: u64,
    /// Exact mean.
    pub mean_us: Option<f64>,
    /// Half were faster.
    pub p50_us: Option<f64>,
    /// 95 % were faster.
    pub p95_us: Option<f64>,
    /// 99 % were faster.
    pub p99_us: Option<f64>,
    /// 99.9 % were faster.
    pub p999_us: Option<f64>,
    /// The slowest.
    pub max_us: Option<f64>,
    /// Longer than an hour, recorded as an hour.
    pub clamped: u64,
}

impl LatencyRow {
    /// The row's count in the table: transactions with a latency.
    pub fn count(&self) -> u64 {
        self.committed + self.rolled_back
    }
}

/// Latency over percentile of one transaction type.
#[derive(Debug, Clone, Serialize)]
pub struct Distribution {
    /// Transaction type.
    pub kind: String,
    /// Per cent and microseconds, ascending; only percentiles that the samples support.
    pub points: Vec<(f64, f64)>,
}

/// Errors of one sort.
#[derive(Debug, Clone, Serialize)]
pub struct ErrorRow {
    /// Transaction type; "connection" when none was under way.
    pub kind: String,
    /// The class.
    pub class: String,
    /// The engine's code.
    pub code: String,
    /// The first message.
    pub message: String,
    /// How many.
    pub count: u64,
    /// How many were repeated.
    pub retried: u64,
    /// First second, since the window opened.
    pub first_s: i64,
    /// Last second.
    pub last_s: i64,
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

/// One second.
#[derive(Debug, Clone, Serialize)]
pub struct SecondReport {
    /// Seconds since the window opened; negative in the ramp-up.
    pub second: i64,
    /// Ramp-up, measured or after.
    pub part: Part,
    /// How much of the second belongs to the part, 0 to 1.
    pub width: f64,
    /// Headline transactions per minute at this pace.
    pub headline_per_minute: f64,
    /// Transactions per minute at this pace.
    pub transactions_per_minute: f64,
    /// Committed and rolled back, by transaction type.
    pub good: Vec<u64>,
    /// Failed.
    pub failed: u64,
    /// Repetitions.
    pub retries: u64,
    /// Errors of any sort.
    pub errors: u64,
    /// Mean of all types.
    pub mean_us: Option<f64>,
    /// p50 of all types.
    pub p50_us: Option<f64>,
    /// p95 of all types.
    pub p95_us: Option<f64>,
    /// p99 of all types.
    pub p99_us: Option<f64>,
    /// Slowest of all types.
    pub max_us: Option<f64>,
}

impl Report {
    /// Works out the figures of a stored run.
    ///
    /// # Errors
    /// When a stored histogram is damaged.
    pub fn of(run: &StoredRun) -> Result<Self> {
        let points = run.points().into_iter().map(|p| PointReport::of(run, p)).collect::<Result<Vec<_>>>()?;
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
        let valid = verdict(points.iter().map(|p| !p.audit.is_empty()), violations.is_empty());
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
            kinds: info.kinds.clone(),
            points,
            checks,
            notes: info.notes.clone(),
            command: info.command.clone(),
            spec_toml: info.spec_toml.clone(),
            seed: info.seed.to_string(),
            random_algorithm: info.random_algorithm.clone(),
            kelvin_version: info.kelvin_version.clone(),
            environment: info.environment.clone(),
        })
    }

    /// The point with the highest headline figure.
    pub fn best(&self) -> Option<&PointReport> {
        let value = |p: &PointReport| p.headline_per_minute.unwrap_or(f64::NEG_INFINITY);
        self.points.iter().max_by(|a, b| value(a).total_cmp(&value(b)))
    }

    /// The workload's name as a heading has it.
    pub fn workload_name(&self) -> String {
        self.workload.to_uppercase()
    }
}

impl PointReport {
    /// Whether the point ended before its window opened.
    pub(crate) fn never_opened(&self) -> bool {
        !self.closed && self.seconds.iter().all(|s| s.part == Part::RampUp)
    }

    fn of(run: &StoredRun, point: Point) -> Result<Self> {
        let figures = run.figures(point.point)?;
        let mut errors_by_second = run.errors_by_second(point.point);
        let mut invariants = point.invariants;
        invariants.extend(run.cross_checks(point.point, &figures));
        let kinds = &run.info.kinds;
        let window = point.window.as_ref();
        let good: u64 = figures.kinds.iter().map(KindCounts::good).sum();
        let minutes = figures.seconds / 60.0;
        Ok(Self {
            point: point.point,
            users: point.users,
            closed: figures.closed,
            window_s: figures.seconds,
            ramp_up_s: point.ramp_up,
            headline_count: figures.headline,
            headline_per_minute: figures.per_minute,
            transactions_per_minute: figures.transactions_per_minute,
            server_headline_count: window.and_then(|w| w.server_headline),
            server_transactions_per_minute: window
                .and_then(|w| w.server_transactions)
                .filter(|_| minutes > 0.0)
                .map(|n| n as f64 / minutes),
            client_cpu_us_per_transaction: window
                .filter(|w| good > 0 && w.client_cpu > 0)
                .map(|w| w.client_cpu as f64 / 1e3 / good as f64),
            within_run: within_run(&figures),
            latency: kinds
                .iter()
                .zip(&figures.kinds)
                .map(|(name, k)| row(&name.name, k, &k.latency))
                .collect(),
            latency_all: row("all", &sum(&figures.kinds), &figures.all),
            distributions: kinds
                .iter()
                .zip(&figures.kinds)
                .filter(|(_, k)| !k.latency.is_empty())
                .map(|(name, k)| Distribution { kind: name.name.clone(), points: curve(&k.latency) })
                .collect(),
            errors: run.errors(Some(point.point)).into_iter().map(|e| error_row(e, kinds)).collect(),
            audit: point.audit,
            invariants,
            timeline: point.notes,
            seconds: figures
                .series
                .iter()
                .map(|r| SecondReport {
                    second: r.second,
                    part: r.part,
                    width: r.width,
                    headline_per_minute: r.per_minute(),
                    transactions_per_minute: r.transactions_per_minute(),
                    good: r.good.clone(),
                    failed: r.failed,
                    retries: r.retries,
                    // The window's last second and the tail's first may have one number: counted once.
                    errors: errors_by_second.remove(&r.second).unwrap_or(0),
                    mean_us: r.all.mean.map(|ns| ns / 1e3),
                    p50_us: us(&r.all, 0),
                    p95_us: us(&r.all, 1),
                    p99_us: us(&r.all, 2),
                    max_us: r.all.max.map(|ns| ns as f64 / 1e3),
                })
                .collect(),
        })
    }
}

fn violations(points: &[PointReport], checks: &[JudgedCheck]) -> Vec<String> {
    let several = points.len() > 1;
    let mut found = Vec::new();
    for point in points {
        let with = if several { format!(" (with {} users)", point.users) } else { String::new() };
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

fn sum(kinds: &[KindCounts]) -> KindCounts {
    let mut all = KindCounts::default();
    for kind in kinds {
        all.add(kind);
    }
    all
}

fn row(name: &str, counts: &KindCounts, latency: &Histogram) -> LatencyRow {
    let summary = latency.summary();
    LatencyRow {
        kind: name.into(),
        committed: counts.committed,
        rolled_back: counts.rolled_back,
        failed: counts.failed,
        retries: counts.retries,
        mean_us: summary.mean.map(|ns| ns / 1e3),
        p50_us: us(&summary, 0),
        p95_us: us(&summary, 1),
        p99_us: us(&summary, 2),
        p999_us: us(&summary, 3),
        max_us: summary.max.map(|ns| ns as f64 / 1e3),
        clamped: latency.clamped(),
    }
}

fn us(summary: &LatencySummary, percentile: usize) -> Option<f64> {
    summary.percentiles[percentile].map(|ns| ns as f64 / 1e3)
}

/// Percentiles of the curve: closer together towards the tail, where the interesting part is.
fn curve(latency: &Histogram) -> Vec<(f64, f64)> {
    let mut points = Vec::new();
    let mut beyond: f64 = 100.0;
    while beyond > 0.0005 {
        let percent = 100.0 - beyond;
        if let Some(ns) = latency.percentile(percent) {
            points.push((percent, ns as f64 / 1e3));
        }
        beyond /= 1.3;
    }
    points
}

fn within_run(figures: &Figures) -> Option<Precision> {
    // A second that the window cuts has a pace of its own noise.
    let paces: Vec<f64> =
        figures.measured().filter(|r| r.width >= 0.999).map(kelvin_store::SecondRow::per_minute).collect();
    let found = ess::precision(&paces)?;
    let half = found.half_width(0.95)?;
    (found.mean > 0.0).then(|| Precision {
        seconds: found.n,
        effective_seconds: found.ess,
        half_width_percent: 100.0 * half / found.mean,
    })
}

fn error_row(group: ErrorGroup, kinds: &[kelvin_measure::event::Series]) -> ErrorRow {
    let name = |k: u16| kinds.get(usize::from(k)).map_or_else(|| format!("type {k}"), |n| n.name.clone());
    ErrorRow {
        kind: group.kind.map_or_else(|| "connection".into(), name),
        class: group.class,
        code: group.code,
        message: group.message,
        count: group.count,
        retried: group.retried,
        first_s: group.seconds.0,
        last_s: group.seconds.1,
    }
}

/// Spreads nested JSON into "a.b" → "value".
pub(crate) fn flatten(
    prefix: &str,
    value: &serde_json::Value,
    into: &mut std::collections::BTreeMap<String, String>,
) {
    use serde_json::Value;
    let inner = |key: &str| if prefix.is_empty() { key.to_owned() } else { format!("{prefix}.{key}") };
    match value {
        Value::Object(map) => map.iter().for_each(|(k, v)| flatten(&inner(k), v, into)),
        Value::Array(items) if items.iter().any(|i| i.is_object() || i.is_array()) => {
            items.iter().enumerate().for_each(|(i, v)| flatten(&inner(&i.to_string()), v, into));
        }
        Value::Array(items) => {
            let words: Vec<String> = items.iter().map(scalar).collect();
            into.insert(prefix.to_owned(), words.join(", "));
        }
        Value::Null if prefix.is_empty() => {}
        other => {
            into.insert(prefix.to_owned(), scalar(other));
        }
    }
}

fn scalar(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Null => crate::figure::NONE.into(),
        other => other.to_string(),
    }
}

//! The values of one point: a number of users, or a rate.

use kelvin_diagnose::{BottleneckVerdict, Evidence, Finding};
use kelvin_measure::CensoredTimes;
use kelvin_measure::event::{AuditLine, KindCounts, LoadPart, Phase, RatePeriod, Series, SeriesRole};
use kelvin_measure::invariant::Invariant;
use kelvin_measure::labels::{self, WorkloadLabels};
use kelvin_stats::ess;
use kelvin_store::{Judgement, PhaseSpan, Point, PointStatistics, StoredRun};
use serde::Serialize;

use super::errors::{ErrorRow, error_row};
use super::generator::{GeneratorReport, host_threads};
use super::host::HostReport;
use super::latency::{Distribution, LatencyRow, curve, responses, row, services, transactions};
use super::observed::ObservationReport;
use super::open_loop::ScheduleReport;
use super::reads::TableReads;
use super::second::SecondReport;
use super::source::SourceReport;
use super::statements::{TransactionStatements, statements};
use super::throughput::Throughput;
use crate::Result;
use kelvin_measure::text::{rate, whole};

/// One number of users, or one rate.
#[derive(Debug, Clone, Serialize)]
pub struct PointReport {
    /// Its number, from 0.
    pub point: u32,
    /// Virtual users.
    pub users: u32,
    /// Whether its transactions start on a schedule. False if only some I/Os of a phase do: its throughput is
    /// then measured, not requested, although some of its I/Os have response times.
    pub open_loop: bool,
    /// Names of users and transactions.
    #[serde(skip)]
    pub(crate) words: &'static WorkloadLabels,
    /// Whether the point counts (`state`), and why not (`reasons`).
    #[serde(flatten)]
    pub judgement: Judgement,
    /// Whether the window closed; if not, the values cover only a part of it.
    pub closed: bool,
    /// Actual length of the window in seconds.
    pub window_s: f64,
    /// Length of the ramp-up in seconds.
    pub ramp_up_s: f64,
    /// Time in which all users connected, one after another, in seconds; none if unknown.
    pub connect_s: Option<f64>,
    /// Transactions counted by the clients.
    #[serde(flatten)]
    pub throughput: Throughput,
    /// Transactions counted by the server.
    #[serde(flatten)]
    pub server: ServerCounts,
    /// CPU time of the client process per transaction of the window. If the engine runs inside the process,
    /// such as SQLite, it includes the database's own.
    pub client_cpu_us_per_transaction: Option<f64>,
    /// Resource use and lateness of the load generator.
    pub generator: GeneratorReport,
    /// The schedule of an open loop, and how well it was kept; none in a closed loop.
    pub schedule: Option<ScheduleReport>,
    /// Precision of the headline within this run; none with fewer than five whole seconds.
    pub within_run: Option<Precision>,
    /// The interval of the p99 of [`PointReport::client_latency`] within this run; none if the run is too
    /// short.
    pub p99_within_run: Option<PercentileInterval>,
    /// Response times, one row per transaction type: from the scheduled start of the transaction to its end.
    /// Empty in a closed loop, which has none.
    pub response: Vec<LatencyRow>,
    /// Response times of all types together.
    pub response_all: Option<LatencyRow>,
    /// Service times, one row per transaction type: from when it started on the connection to its end.
    pub latency: Vec<LatencyRow>,
    /// Service times of all types together.
    pub latency_all: LatencyRow,
    /// Times of individual statements, by transaction type; empty if they were not timed.
    pub statements: Vec<TransactionStatements>,
    /// What limited the throughput; none if nothing was observed or the window never opened.
    pub verdict: Option<BottleneckVerdict>,
    /// Activity of host and database in the window; none if nothing was observed.
    pub observed: Option<ObservationReport>,
    /// Percentile curves, one per transaction type: of response times in an open loop, otherwise of service
    /// times.
    pub distributions: Vec<Distribution>,
    /// Errors by class and code over the whole point. Unlike the other values, these include ramp-up and
    /// stop.
    pub errors: Vec<ErrorRow>,
    /// The checks of the results.
    #[serde(flatten)]
    pub checks: PointChecks,
    /// Notes on the timeline: seconds since the window opened, and the text.
    pub timeline: Vec<(i64, String)>,
    /// One row per second.
    pub seconds: Vec<SecondReport>,
    /// The load of each of several sources; empty if there is only one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<SourceReport>,
    /// Values that only I/O jobs have.
    #[serde(skip)]
    pub(crate) io: IoSeries,
}

/// Transactions counted by the server within the window; none if it does not count them.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct ServerCounts {
    /// Headline transactions.
    #[serde(rename = "server_headline_count")]
    pub headline: Option<u64>,
    /// Commits and rollbacks per minute, by the server's own statistics, including all its work.
    #[serde(rename = "server_transactions_per_minute")]
    pub transactions_per_minute: Option<f64>,
}

/// Checks that show whether the results can be correct.
#[derive(Debug, Clone, Serialize)]
pub struct PointChecks {
    /// The self-audit.
    pub audit: Vec<AuditLine>,
    /// Whether the self-audit was made. `audit` is empty if the workload has no rules.
    pub audited: bool,
    /// Invariants that must hold in every run, and the store's own cross-checks.
    pub invariants: Vec<Invariant>,
}

/// The series of I/O jobs; empty for a run on a database.
#[derive(Debug, Clone, Default)]
pub(crate) struct IoSeries {
    /// The directions of [`SecondReport::directions`].
    pub(crate) directions: Vec<String>,
    /// The latency histogram of each series that has one: nanoseconds, and the number of I/Os in that bin.
    pub(crate) bins: Vec<(String, Vec<(u64, u64)>)>,
}

/// Precision of a mean within one run. It does not predict how much the next run will differ.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Precision {
    /// Whole seconds measured.
    pub seconds: usize,
    /// The effective number of independent seconds.
    pub effective_seconds: f64,
    /// Half the 95 % interval of the mean, in per cent of it.
    pub half_width_percent: f64,
}

/// The interval of a percentile within one run ([`kelvin_stats::percentile::interval`]). It would contain the
/// percentile of a much longer run, but does not predict how much the next run will differ.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct PercentileInterval {
    /// Its confidence, in per cent.
    pub confidence_percent: f64,
    /// Lower end in microseconds.
    pub low_us: f64,
    /// Upper end in microseconds; none if the run is too short.
    pub high_us: Option<f64>,
    /// The effective number of independent samples beyond the percentile.
    pub effective_beyond: f64,
    /// Stretches of the window from which it was computed.
    pub stretches: usize,
}

impl PercentileInterval {
    /// For a percentile of the latencies that represent the point.
    fn of(figures: &PointStatistics, percent: f64) -> Option<Self> {
        let found = figures.interval(percent)?;
        Some(Self {
            confidence_percent: 95.0,
            low_us: found.low / 1e3,
            high_us: found.high.map(|high| high / 1e3),
            effective_beyond: found.effective,
            stretches: found.batches,
        })
    }
}

impl PointReport {
    /// Headline transactions per elapsed minute or second.
    pub fn headline(&self, per: RatePeriod) -> Option<f64> {
        self.throughput.headline(per)
    }

    /// Commits and rollbacks per elapsed minute or second.
    pub fn transactions(&self, per: RatePeriod) -> Option<f64> {
        self.throughput.transactions(per)
    }

    /// Commits and rollbacks per minute or second, by the server's own statistics.
    pub(crate) fn server_transactions(&self, per: RatePeriod) -> Option<f64> {
        self.server.transactions_per_minute.map(|each| each * per.seconds() / 60.0)
    }

    /// Requested transactions per second of an open loop.
    pub fn asked_per_second(&self) -> Option<f64> {
        self.schedule.as_ref()?.asked_per_second
    }

    /// The latencies seen by a user of the system: response times if all transactions have them, otherwise
    /// service times.
    pub fn client_latency(&self) -> &LatencyRow {
        self.response_all.as_ref().filter(|_| self.open_loop).unwrap_or(&self.latency_all)
    }

    /// The phase number of I/O jobs, from 1; none for a run on a database, whose points are identified by
    /// their load.
    pub(crate) fn phase(&self) -> Option<u32> {
        (self.words == WorkloadLabels::for_workload(labels::IO)).then_some(self.point + 1)
    }

    /// The tenant of a scenario to which the values belong; none for a point with several.
    pub(crate) fn tenant(&self) -> Option<&str> {
        match self.sources.as_slice() {
            [one] => one.source.tenant.as_deref(),
            _ => None,
        }
    }

    /// The same point with the values of one source ([`SourceReport`]) in place of those of all.
    pub(crate) fn of_source(&self, source: &SourceReport) -> Self {
        let all = || Some(source.latency.clone());
        Self {
            point: source.source_id.0.into(),
            users: source.users.unwrap_or(0),
            open_loop: source.open_loop,
            throughput: source.throughput,
            server: ServerCounts { headline: None, transactions_per_minute: None },
            client_cpu_us_per_transaction: None,
            schedule: None,
            within_run: None,
            p99_within_run: None,
            response: if source.open_loop { source.types.clone() } else { Vec::new() },
            response_all: all().filter(|_| source.open_loop),
            latency: if source.open_loop { Vec::new() } else { source.types.clone() },
            latency_all: source.latency.clone(),
            statements: Vec::new(),
            verdict: None,
            observed: None,
            distributions: Vec::new(),
            errors: Vec::new(),
            timeline: Vec::new(),
            seconds: Vec::new(),
            sources: vec![source.clone()],
            ..self.clone()
        }
    }

    /// Number of errors of any kind.
    pub(crate) fn error_count(&self) -> u64 {
        self.errors.iter().map(|e| e.count).sum()
    }

    /// "8 virtual users", "phase 2 (1 worker)", or "1,000/s requested from 8 virtual users".
    pub(crate) fn name(&self) -> String {
        let users = self.users();
        if let Some(phase) = self.phase() {
            return format!("{} {phase} ({users})", self.words.point.one);
        }
        match self.asked_per_second() {
            Some(asked) => format!("{}/s requested from {users}", rate(Some(asked))),
            None => users,
        }
    }

    /// "1 virtual user", "4 workers".
    pub(crate) fn users(&self) -> String {
        self.words.users(self.users, &whole(self.users.into()))
    }

    /// Whether the window has too few whole seconds, or too dependent ones, to estimate the precision of the
    /// results.
    pub(crate) fn too_short(&self) -> bool {
        self.window_s > 0.0 && self.within_run.is_none()
    }

    /// Whether the point ended before its window opened.
    pub(crate) fn never_opened(&self) -> bool {
        !self.closed && self.seconds.iter().all(|s| s.part == LoadPart::RampUp)
    }

    pub(super) fn of(
        run: &StoredRun,
        point: Point,
        evidence: Option<&Evidence>,
        found: &[Finding],
        judgement: Judgement,
    ) -> Result<Self> {
        let figures = run.point_statistics(point.point)?;
        let series = &run.info.kinds;
        let open_loop = figures.open_loop;
        let words = WorkloadLabels::for_workload(&run.info.workload);
        // The arrivals of different tenants have no common schedule.
        let one_schedule = run.info.workload != labels::SCENARIO;
        let schedule = (open_loop && one_schedule).then(|| ScheduleReport::of(&point, &figures, words));
        let mut invariants = point.invariants;
        invariants.extend(run.cross_checks(point.point, &figures));
        let window = point.window.as_ref();
        let minutes = figures.seconds / 60.0;
        let threads = host_threads(&run.info.environment);
        // I/O jobs with a rate have no lag: each worker has its own schedule.
        let lag = series.iter().any(|s| s.role == SeriesRole::Lag).then_some(&figures.lag);
        let elapsed = window.map_or(0, |window| window.elapsed);
        let is_scenario = run.info.workload == labels::SCENARIO;
        let good = if is_scenario { 0 } else { figures.all.good() };
        let generator = GeneratorReport::of(window, good, threads, lag)
            .with_hosts(HostReport::all(run, point.point, elapsed), is_scenario);
        let response = responses(series, &figures);
        let answered = open_loop || !figures.response.latency.is_empty();
        // The series of I/O jobs are those of all phases.
        let one_load = run.info.workload != labels::IO;
        let did = |row: &LatencyRow| one_load || row.count() + row.failed > 0;
        Ok(Self {
            point: point.point,
            users: point.users,
            open_loop,
            words,
            judgement,
            closed: figures.closed,
            window_s: figures.seconds,
            ramp_up_s: point.ramp_up,
            connect_s: connecting(&point.phases),
            throughput: Throughput {
                reads: TableReads::of(&run.info.counter_names, &point.counters, figures.seconds),
                ..if one_schedule { Throughput::of(&figures) } else { Throughput::without_sum(&figures) }
            },
            server: ServerCounts {
                headline: window.and_then(|w| w.server_headline),
                transactions_per_minute: window
                    .and_then(|w| w.server_transactions)
                    .filter(|_| minutes > 0.0)
                    .map(|n| n as f64 / minutes),
            },
            client_cpu_us_per_transaction: generator.cpu_us_per_transaction,
            generator,
            schedule,
            within_run: within_run(&figures),
            p99_within_run: PercentileInterval::of(&figures, 99.0),
            response_all: answered.then(|| row("all", &figures.response, figures.response_times())),
            latency: services(series, &figures).into_iter().filter(did).collect(),
            latency_all: row("all", &figures.all, CensoredTimes::all_answered(&figures.all.latency)),
            statements: statements(series, &figures.kinds),
            distributions: distributions(series, &figures),
            response: if answered { response.into_iter().filter(did).collect() } else { Vec::new() },
            // Several loads have no common bottleneck.
            verdict: evidence
                .filter(|_| run.info.workload != labels::SCENARIO)
                .and_then(|e| kelvin_diagnose::verdict(e, point.point, found)),
            observed: evidence.and_then(|e| ObservationReport::of(e, point.point)),
            errors: run.errors(Some(point.point)).into_iter().map(|e| error_row(e, series, words)).collect(),
            checks: PointChecks { audit: point.audit, audited: point.audited, invariants },
            timeline: point.notes,
            seconds: SecondReport::all(&figures, run.errors_by_second(point.point)),
            sources: SourceReport::all(run, point.point)?,
            io: IoSeries {
                bins: if one_load { Vec::new() } else { bins(series, &figures.kinds) },
                directions: figures.directions,
            },
        })
    }
}

/// Duration of the connect phase in seconds.
fn connecting(phases: &[PhaseSpan]) -> Option<f64> {
    let connect = phases.iter().find(|span| span.phase == Phase::Connect)?;
    Some(connect.end?.saturating_sub(connect.start) as f64 / 1e9)
}

/// Whether all points are open loops; for a run without points, whether its series are those of an open loop.
pub(super) fn are_open(points: &[PointReport], series: &[Series]) -> bool {
    if points.is_empty() {
        return series.iter().any(|s| matches!(s.role, SeriesRole::Response { .. } | SeriesRole::Lag));
    }
    points.iter().all(|point| point.open_loop)
}

fn distributions(series: &[Series], figures: &PointStatistics) -> Vec<Distribution> {
    let name = |of: u16| series.get(usize::from(of)).map(|s| s.name.clone());
    series
        .iter()
        .zip(&figures.kinds)
        .filter(|(_, k)| !k.latency.is_empty())
        .filter_map(|(s, k)| {
            let (kind, times) = match s.role {
                SeriesRole::Transaction if !figures.open_loop => {
                    (s.name.clone(), CensoredTimes::all_answered(&k.latency))
                }
                SeriesRole::Response { of } => (name(of)?, figures.response_times_of(k)),
                _ => return None,
            };
            Some(Distribution { kind, points: curve(times) })
        })
        .collect()
}

fn bins(series: &[Series], kinds: &[KindCounts]) -> Vec<(String, Vec<(u64, u64)>)> {
    transactions(series, kinds)
        .filter(|(_, kind)| !kind.latency.is_empty())
        .map(|(series, kind)| (series.name.clone(), kind.latency.buckets().collect()))
        .collect()
}

/// Whether the second belongs entirely to its part, so that its rate is not noise.
fn is_whole(width: f64) -> bool {
    width >= 0.999
}

fn within_run(figures: &PointStatistics) -> Option<Precision> {
    let paces: Vec<f64> = figures
        .measured()
        .filter(|r| is_whole(r.width))
        .map(|r| r.headline_per(RatePeriod::Minute))
        .collect();
    let found = ess::conservative_precision(&paces)?;
    // An interval wider than the mean shows that there are too few independent seconds.
    let half = found.half_width(0.95).filter(|half| *half < found.mean)?;
    (found.mean > 0.0).then(|| Precision {
        seconds: found.n,
        effective_seconds: found.ess,
        half_width_percent: 100.0 * half / found.mean,
    })
}

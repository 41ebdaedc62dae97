//! The few figures of a run by which runs are compared, repeated and studied.

use kelvin_measure::event::RatePeriod;
use kelvin_measure::labels::{SCENARIO, WorkloadLabels};
use kelvin_measure::query::{QueryExecution, point_mean};
use kelvin_measure::{Bounded, CensoredTimes, SourceId};
use kelvin_observe::metric;
use kelvin_store::StoredRun;
use serde::{Deserialize, Serialize};

use crate::Evidence;
use crate::load::{client_cores, is_embedded, process_cores};

/// Which way a figure is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
}

/// One figure of a run over its measured window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeyFigure {
    /// By which it is asked for: "nopm", "p99", "server-cpu", or the name of a metric.
    pub id: String,
    /// As a heading has it.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// Which way it is better; none for a metric whose better direction is unknown.
    pub better: Option<Better>,
    /// Its value; none where it is not known, or where the samples are too few for a percentile.
    pub value: Option<f64>,
    /// Whether it is this or more: the percentile lies among arrivals that had no answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
}

/// Ids of the key figures that workloads on databases have beside their headline, in the order of [`key_figures`].
pub const KEY_FIGURES: [&str; 10] = [
    "transactions",
    "mean",
    "p50",
    "p95",
    "p99",
    "client-cpu",
    "server-cpu",
    "cpu",
    "server-instructions",
    "wal",
];

/// The same of TPROC-H: the geometric mean of its queries, and the mean time of each query and refresh function.
pub const QUERY_FIGURES: [&str; 35] = [
    "transactions",
    "mean",
    "p50",
    "p95",
    "p99",
    "geometric-mean",
    "q1",
    "q2",
    "q3",
    "q4",
    "q5",
    "q6",
    "q7",
    "q8",
    "q9",
    "q10",
    "q11",
    "q12",
    "q13",
    "q14",
    "q15",
    "q16",
    "q17",
    "q18",
    "q19",
    "q20",
    "q21",
    "q22",
    "rf1",
    "rf2",
    "client-cpu",
    "server-cpu",
    "cpu",
    "server-instructions",
    "wal",
];

/// The same of I/O jobs.
pub const IO_FIGURES: [&str; 6] = ["mean", "p50", "p95", "p99", "bandwidth", "cpu"];

/// The key metrics of a point: its headline first, then
///
/// | id | figure | unit |
/// |---|---|---|
/// | the headline's name in small letters ("nopm", "tps") | headline transactions | per minute or second |
/// | `transactions` | good transactions of all types | per second |
/// | `mean`, `p50`, `p95`, `p99` | times of all types: response times of an open loop, service times of a closed one | ms |
/// | `client-cpu`, `server-cpu`, `cpu` | CPU time of Kelvin, of the database, of both for a good transaction | µs |
/// | `server-instructions` | instructions that the database retired for a good transaction | 1 |
/// | `wal` | log written for a good transaction | bytes |
///
/// Of TPROC-H's queries, after the times, `geometric-mean` and `q1` to `q22`, `rf1` and `rf2`: means in seconds, as far as there are
/// such executions and all of them count.
///
/// Of I/O jobs the times are completion times (response times with a rate), and after them stand `bandwidth` (MiB/s) and
/// `cpu` (of Kelvin, µs for an I/O) instead;
///
/// and then each of `metrics` by its name, as its mean over the window. Of an embedded database, CPU is the process's:
/// `client-cpu` and `server-cpu` are not known. The times are [`kelvin_store::Figures::times`]: arrivals of an open loop that
/// had no answer count as longer than all others, and a figure among them is [`KeyFigure::at_least`].
///
/// # Errors
/// When the stored run is damaged.
pub fn key_figures(
    run: &StoredRun,
    evidence: &Evidence,
    point: u32,
    metrics: &[String],
) -> kelvin_store::Result<Vec<KeyFigure>> {
    let stored = run.point_statistics(point)?;
    let info = &run.info;
    let mut figures = Vec::new();
    let mut add = |id: &str, name: &str, unit: &str, better, value: Option<f64>| {
        figures.push(KeyFigure::new(id, name, unit, better, value.map(Bounded::exactly)));
    };
    let (higher, lower) = (Some(Better::Higher), Some(Better::Lower));
    let per = info.headline_per;
    let unit = match per {
        RatePeriod::Minute => "per minute",
        RatePeriod::Second => "per second",
    };
    add(&info.headline.to_lowercase(), &info.headline, unit, higher, stored.headline_per(per));
    if !evidence.is_io() {
        let rate = stored.transactions_per(RatePeriod::Second);
        add("transactions", "transactions", "per second", higher, rate);
    }

    let of = evidence.point(point);
    let closed = if evidence.is_io() { "completion" } else { "latency" };
    let kind = if stored.open_loop { "response" } else { closed };
    figures.extend(of_times(stored.times(), kind));
    let mut add = |id: &str, name: &str, unit: &str, better, value: Option<f64>| {
        figures.push(KeyFigure::new(id, name, unit, better, value.map(Bounded::exactly)));
    };

    if evidence.is_io() {
        for (id, name, unit, better, value) in of_io(run, evidence, point, stored.seconds, stored.all.good())
        {
            add(id, name, unit, Some(better), value);
        }
        for name in metrics {
            let unit = evidence.unit(name).unwrap_or_default().to_owned();
            add(name, name, &unit, None, evidence.mean(point, name));
        }
        return Ok(figures);
    }
    for (id, name, value) in of_queries(evidence, point) {
        add(&id, &name, "s", lower, value);
    }
    let good = stored.all.good();
    let a_transaction = |a_second: f64| (good > 0).then(|| a_second * stored.seconds / good as f64);
    let embedded = is_embedded(evidence);
    let client = of.and_then(|of| client_cores(evidence, of));
    let server = process_cores(evidence, point, "server");
    let both = if embedded { client } else { client.zip(server).map(|(client, server)| client + server) };
    let micros = |cores: Option<f64>| cores.and_then(|cores| a_transaction(cores * 1e6));
    let separate = !embedded;
    let one = WorkloadLabels::for_workload(&info.workload).unit.one;
    let each = |what: &str| format!("{what}/{one}");
    add("client-cpu", &each("client CPU"), "µs", lower, micros(client.filter(|_| separate)));
    add("server-cpu", &each("server CPU"), "µs", lower, micros(server.filter(|_| separate)));
    add("cpu", &each("CPU"), "µs", lower, micros(both));
    let instructions = evidence.mean(point, metric::SERVER_INSTRUCTIONS).and_then(a_transaction);
    add("server-instructions", &each("server instructions"), "1", lower, instructions);
    add(
        "wal",
        &each("log"),
        "bytes",
        lower,
        evidence.mean_of_first_known(point, metric::LOG_BYTES).and_then(a_transaction),
    );
    for name in metrics {
        let unit = evidence.unit(name).unwrap_or_default().to_owned();
        add(name, name, &unit, None, evidence.mean(point, name));
    }
    Ok(figures)
}

/// Id of a tenant's throughput among its key figures.
pub const TENANT_THROUGHPUT: &str = "throughput";

/// The key metrics of a tenant of a scenario.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TenantFigures {
    /// Its source.
    pub source_id: SourceId,
    /// Its name.
    pub tenant: String,
    /// Whether its load is an open loop.
    pub open_loop: bool,
    /// Its figures.
    pub figures: Vec<KeyFigure>,
}

impl TenantFigures {
    /// Those of a stored scenario; none of another run. They are, of each tenant while its load was on,
    ///
    /// | id | figure | unit |
    /// |---|---|---|
    /// | `throughput` | good transactions or I/Os of all types | per second |
    /// | `mean`, `p50`, `p95`, `p99` | as [`key_figures`] has them | ms |
    ///
    /// and each of `metrics`, which are of the host or of a server, and not of a tenant.
    ///
    /// # Errors
    /// When the stored run is damaged.
    pub fn all(
        run: &StoredRun,
        evidence: &Evidence,
        point: u32,
        metrics: &[String],
    ) -> kelvin_store::Result<Vec<Self>> {
        if run.info.workload != SCENARIO {
            return Ok(Vec::new());
        }
        let each = run.source_statistics(point, |one| {
            let stored = one.figures;
            let kind = if stored.open_loop { "response" } else { "latency" };
            let rate = stored.transactions_per(RatePeriod::Second).map(Bounded::exactly);
            let higher = Some(Better::Higher);
            let mut figures =
                vec![KeyFigure::new(TENANT_THROUGHPUT, TENANT_THROUGHPUT, "per second", higher, rate)];
            figures.extend(of_times(stored.times(), kind));
            figures.extend(metrics.iter().map(|name| {
                let unit = evidence.unit(name).unwrap_or_default();
                KeyFigure::new(name, name, unit, None, evidence.mean(point, name).map(Bounded::exactly))
            }));
            let (source_id, open_loop) = (one.id, stored.open_loop);
            Some(Self { source_id, tenant: one.source.tenant?, open_loop, figures })
        })?;
        Ok(each.into_iter().flatten().collect())
    }
}

/// TPROC-H's: id, name, and time in seconds.
fn of_queries(evidence: &Evidence, point: u32) -> Vec<(String, String, Option<f64>)> {
    let executions = evidence.queries();
    let mut names: Vec<(u32, &str)> =
        executions.iter().filter(|one| one.point == point).map(|one| (one.rank(), &one.query[..])).collect();
    names.sort_unstable();
    names.dedup();
    let of = |name: &str| {
        let all = || executions.iter().filter(|one| one.point == point && one.query == name);
        let sum: f64 = all().map(QueryExecution::seconds).sum();
        all().all(|one| one.state.counts()).then(|| sum / all().count() as f64)
    };
    let mean = ("geometric-mean".to_owned(), "geometric mean".to_owned(), point_mean(executions, point));
    let mean = Some(mean).filter(|_| !names.is_empty());
    mean.into_iter()
        .chain(names.iter().map(|(_, name)| (name.to_lowercase(), (*name).to_owned(), of(name))))
        .collect()
}

impl KeyFigure {
    /// A figure; a value that is no number is none.
    fn new(id: &str, name: &str, unit: &str, better: Option<Better>, value: Option<Bounded>) -> Self {
        let value = value.filter(|of| of.value.is_finite());
        Self {
            id: id.into(),
            name: name.into(),
            unit: unit.into(),
            better,
            value: value.map(|of| of.value),
            at_least: value.is_some_and(|of| of.at_least),
        }
    }

    /// The value with what is known of it.
    pub fn bounded(&self) -> Option<Bounded> {
        Some(Bounded { value: self.value?, at_least: self.at_least })
    }
}

/// Mean and percentiles.
fn of_times(times: CensoredTimes<'_>, kind: &str) -> Vec<KeyFigure> {
    let figure = |id: &str, value: Option<Bounded>| {
        let name = format!("{kind} {id}");
        KeyFigure::new(id, &name, "ms", Some(Better::Lower), value.map(|nanos| nanos.times(1e-6)))
    };
    let percentile = |percent: f64| figure(&format!("p{percent}"), times.percentile(percent));
    [figure("mean", times.mean())].into_iter().chain([50.0, 95.0, 99.0].map(percentile)).collect()
}

/// What I/O jobs have beside throughput and times: bytes a second, and what an I/O costs the CPU.
fn of_io(
    run: &StoredRun,
    evidence: &Evidence,
    point: u32,
    seconds: f64,
    ios: u64,
) -> Vec<(&'static str, &'static str, &'static str, Better, Option<f64>)> {
    let counted = run.points().into_iter().find(|of| of.point == point);
    let bytes: u64 = counted.iter().flat_map(|of| &of.counters).sum();
    let bandwidth = (seconds > 0.0 && bytes > 0).then(|| bytes as f64 / seconds / f64::from(1 << 20));
    let cores = evidence.point(point).and_then(|of| client_cores(evidence, of));
    let cpu = cores.filter(|_| ios > 0).map(|cores| cores * seconds * 1e6 / ios as f64);
    vec![
        ("bandwidth", "bandwidth", "MiB/s", Better::Higher, bandwidth),
        ("cpu", "CPU per I/O", "µs", Better::Lower, cpu),
    ]
}

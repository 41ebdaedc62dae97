//! The few figures of a run by which runs are compared, repeated and studied; and why a run must not be.

use kelvin_measure::event::Status;
use kelvin_store::StoredRun;
use serde::{Deserialize, Serialize};

use crate::load::{client_cores, is_embedded, process_cores};
use crate::verdict::reasons;
use crate::{Evidence, PointEvidence};

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
    /// Which way it is better; none for a metric of which nobody can tell.
    pub better: Option<Better>,
    /// Its value; none where it is not known, or where the samples are too few for a percentile.
    pub value: Option<f64>,
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

/// The same of I/O jobs.
pub const IO_FIGURES: [&str; 6] = ["mean", "p50", "p95", "p99", "bandwidth", "cpu"];

/// The key figures of a point: its headline first, then
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
/// Of I/O jobs the times are completion times (response times with a rate), and after them stand `bandwidth` (MiB/s) and
/// `cpu` (of Kelvin, µs for an I/O) instead;
///
/// and then each of `metrics` by its name, as its mean over the window. Of an embedded database, CPU is the process's:
/// `client-cpu` and `server-cpu` are not known. An open loop in which arrivals had no answer has no times.
///
/// # Errors
/// When the stored run is damaged.
pub fn key_figures(
    run: &StoredRun,
    evidence: &Evidence,
    point: u32,
    metrics: &[String],
) -> kelvin_store::Result<Vec<KeyFigure>> {
    let stored = run.figures(point)?;
    let info = &run.info;
    let mut figures = Vec::new();
    let mut add = |id: &str, name: &str, unit: &str, better, value: Option<f64>| {
        let value = value.filter(|value: &f64| value.is_finite());
        figures.push(KeyFigure { id: id.into(), name: name.into(), unit: unit.into(), better, value });
    };
    let (higher, lower) = (Some(Better::Higher), Some(Better::Lower));
    let per = info.headline_per;
    let unit = match per {
        kelvin_measure::event::Per::Minute => "per minute",
        kelvin_measure::event::Per::Second => "per second",
    };
    add(&info.headline.to_lowercase(), &info.headline, unit, higher, stored.headline_per(per));
    let seconds = kelvin_measure::event::Per::Second;
    if !evidence.is_io() {
        add("transactions", "transactions", "per second", higher, stored.transactions_per(seconds));
    }

    let of = evidence.point(point);
    let schedule = of.and_then(|of| of.window.as_ref()?.schedule);
    let (times, kind) = match schedule {
        _ if evidence.is_io() && stored.open_loop => (&stored.response, "response"),
        _ if evidence.is_io() => (&stored.all.latency, "completion"),
        Some(_) => (&stored.response, "response"),
        None => (&stored.all.latency, "latency"),
    };
    let answered = schedule.is_none_or(|schedule| schedule.refused + schedule.waiting == 0);
    let milliseconds = |nanos: f64| nanos / 1e6;
    add("mean", &format!("{kind} mean"), "ms", lower, times.mean().filter(|_| answered).map(milliseconds));
    for percent in [50.0, 95.0, 99.0] {
        let value = times.percentile(percent).filter(|_| answered).map(|nanos| milliseconds(nanos as f64));
        add(&format!("p{percent}"), &format!("{kind} p{percent}"), "ms", lower, value);
    }

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
    let good = stored.all.good();
    let a_transaction = |a_second: f64| (good > 0).then(|| a_second * stored.seconds / good as f64);
    let embedded = is_embedded(evidence);
    let client = of.and_then(|of| client_cores(evidence, of));
    let server = process_cores(evidence, point, "server");
    let both = if embedded { client } else { client.zip(server).map(|(client, server)| client + server) };
    let micros = |cores: Option<f64>| cores.and_then(|cores| a_transaction(cores * 1e6));
    let told = !embedded;
    add("client-cpu", "client CPU a transaction", "µs", lower, micros(client.filter(|_| told)));
    add("server-cpu", "server CPU a transaction", "µs", lower, micros(server.filter(|_| told)));
    add("cpu", "CPU a transaction", "µs", lower, micros(both));
    let instructions =
        evidence.mean(point, "host.process.server.hardware.instructions").and_then(a_transaction);
    add("server-instructions", "server instructions a transaction", "1", lower, instructions);
    add(
        "wal",
        "log a transaction",
        "bytes",
        lower,
        evidence.mean(point, "postgres.wal.bytes").and_then(a_transaction),
    );
    for name in metrics {
        let unit = evidence.unit(name).unwrap_or_default().to_owned();
        add(name, name, &unit, None, evidence.mean(point, name));
    }
    Ok(figures)
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
        ("cpu", "CPU an I/O", "µs", Better::Lower, cpu),
    ]
}

/// Why a point of a run must not be compared with others: it did not come to its end, something that must hold does
/// not, or a finding says that its figure is one of something else. Empty when it may be.
pub fn void(run: &StoredRun, evidence: &Evidence, point: u32) -> Vec<String> {
    let mut found = Vec::new();
    if run.status != Status::Complete {
        found.push(format!("it is {}", run.state()));
    }
    let Some(of) = evidence.point(point).filter(|of| of.window.is_some()) else {
        found.push("nothing was measured to its end".into());
        return found;
    };
    found.extend(reasons(evidence, of));
    found.extend(failed_audit(of));
    found
}

fn failed_audit(point: &PointEvidence) -> impl Iterator<Item = String> {
    let failed = point.audit.iter().filter(|line| !line.valid);
    failed.map(|line| format!("the self-audit fails: {} is {}", line.name, line.value))
}

//! The cost of other processes' CPU time: its price, as a share of the time of the transactions. In a closed loop that
//! is the lost share of the throughput as well.
//!
//! Three bounds follow from the run's sums, and hold without a calm second:
//!
//! - **capacity**: others' CPU time, given to client and database, frees no more than itself. With their CPU time o and
//!   the others' f, both in CPUs, a closed loop would need the share f/(f + o) less time. In an open loop the work is
//!   given and times stretch by 1/(idle share): f/(f + idle), as in a processor-sharing queue.
//! - **waiting**: a task that lost time to others was in a run queue (`schedstat`), or waited for a lock held by such a
//!   task. So the price is at most the transactions' share of time in run queues and in locks. A thread with many users
//!   delays all of them.
//! - **pressure**: it is at most the share of the time in which any task waited for a CPU (`/proc/pressure/cpu`).
//!
//! The smallest of them is the upper end. If the window has both calm and other seconds, the logarithm of the time per
//! transaction, second by second, is regressed on the others' CPU time: its slope × their mean is the price, with the
//! slope's interval, limited by the bounds.

use std::collections::BTreeMap;

use kelvin_measure::Nanos;
use kelvin_measure::observation::{WaitGroup, WaitKind};
use kelvin_observe::metric;
use kelvin_stats::slope::slope;
use serde::{Deserialize, Serialize};

use crate::load::{
    client_cores, client_delay, cpus, is_embedded, process_cores, server_is_here, transactions_in_flight,
};
use crate::{Evidence, PointEvidence, Span, SpanValue, is_client};
use kelvin_measure::text::percent;

/// Above this price the result depends on the machine's other work as much as on the database: the throughput of a
/// steady state may vary by this much to each side (SNIA Solid State Storage Performance Test Specification, "steady
/// state").
pub(crate) const WANTED: f64 = 0.10;

/// A second is calm when other processes use less than this share of the CPUs: half of the usual amount of kernel
/// threads and accounting.
const CALM: f64 = 0.04;
/// Minimum number of calm seconds, and of others, for a comparison.
const FEWEST: usize = 3;

/// Event loops carry the users beyond so many, and there are two of them at least.
const MOST_THREADS: u32 = 3;
const FEWEST_LOOPS: f64 = 2.0;

/// The part of a result that others' CPU time explains, as a share of it: from `low` to `high`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct NoisePrice {
    /// The certain cost; 0 if no calm second shows it.
    pub low: f64,
    /// The likely cost.
    pub estimate: f64,
    /// The maximum cost.
    pub high: f64,
    /// Whether the specification takes runs with noise for good (`accept-noise`).
    pub accepted: bool,
}

impl NoisePrice {
    /// "up to 22 %" or "4.0 % to 9.0 %".
    pub fn share(&self) -> String {
        if self.low >= 0.001 {
            format!("{} to {}", percent(self.low), percent(self.high))
        } else {
            format!("up to {}", percent(self.high))
        }
    }

    /// Whether it is too high for a run that must not be disturbed.
    pub fn is_too_dear(&self) -> bool {
        self.high >= WANTED
    }

    /// Combines two consecutive causes: the second applies to the share left by the first.
    fn and(self, other: Self) -> Self {
        let both = |a: f64, b: f64| 1.0 - (1.0 - a) * (1.0 - b);
        Self {
            low: both(self.low, other.low),
            estimate: both(self.estimate, other.estimate),
            high: both(self.high, other.high),
            accepted: self.accepted,
        }
    }
}

/// The part of a point's result that other processes and the hypervisor explain; `None` if neither is known.
pub fn noise(evidence: &Evidence, point: u32) -> Option<NoisePrice> {
    let of = evidence.point(point)?;
    match (of_processes(evidence, of), of_steal(evidence, of)) {
        (Some(a), Some(b)) => Some(a.and(b)),
        (a, b) => a.or(b),
    }
}

/// The note that these points count regardless of their loss to other processes, with its amount: for those whose
/// specification allows it. `None` if there are none.
pub fn accepted_noise<'a>(points: impl IntoIterator<Item = (&'a Evidence, u32)>) -> Option<String> {
    let accepted = points.into_iter().filter(|(evidence, _)| is_accepted(evidence));
    let prices: Vec<_> = accepted.map(|(of, point)| noise(of, point)).collect();
    describe_accepted(&prices)
}

/// The same of the prices of measured windows, as far as they are known.
pub fn describe_accepted(accepted: &[Option<NoisePrice>]) -> Option<String> {
    let dearest = accepted.iter().flatten().max_by(|a, b| a.high.total_cmp(&b.high));
    let (in_runs, figure) = match accepted.len() {
        0 => return None,
        1 => (String::new(), "the result"),
        windows => (format!(" in {windows} measured windows"), "a result"),
    };
    let price = dearest.map_or("its cost is not known".into(), |price| {
        format!("foreign CPU explains {} of {figure}", price.share())
    });
    Some(format!("noise is accepted{in_runs} (--accept-noise): {price}"))
}

/// Whether the specification takes runs with noise for good.
pub fn is_accepted(evidence: &Evidence) -> bool {
    evidence.context.spec("/accept-noise").and_then(serde_json::Value::as_bool) == Some(true)
}

/// CPUs used by others in a point's window, on average.
pub(crate) fn foreign_cpus(evidence: &Evidence, point: &PointEvidence) -> Option<f64> {
    let readings = foreign(evidence, point)?;
    let known: f64 = readings.iter().map(SpanValue::seconds).sum();
    let sum: f64 = readings.iter().map(|seen| seen.value * seen.seconds()).sum();
    (known > 0.0).then(|| (sum / known).max(0.0))
}

/// The part that other processes explain; `None` if the database runs on another host, or their CPU time is unknown.
pub(crate) fn of_processes(evidence: &Evidence, point: &PointEvidence) -> Option<NoisePrice> {
    if evidence.is_io() || !server_is_here(evidence) && !is_embedded(evidence) {
        return None;
    }
    let foreign = foreign_cpus(evidence, point)?;
    let client = client_cores(evidence, point)?;
    let own =
        if is_embedded(evidence) { client } else { client + process_cores(evidence, point.point, "server")? };
    let capacity = capacity(evidence, point, foreign, own)?;
    let waiting = waiting(evidence, point);
    let pressure = evidence.mean(point.point, metric::CPU_PRESSURE);
    let bound = [waiting, pressure].into_iter().flatten().fold(capacity, f64::min);
    // A waiting task waits for the running ones: the others' share of the running time.
    let behind = waiting.map_or(bound, |waiting| (waiting * foreign / (foreign + own)).min(bound));
    let found = by_calm_seconds(evidence, point, foreign);
    let (low, estimate, high) = found.map_or((0.0, behind, bound), |(low, likely, high)| {
        let cut = |share: f64| share.min(bound).max(0.0);
        (cut(low), cut(likely), cut(high))
    });
    Some(NoisePrice { low, estimate, high, accepted: is_accepted(evidence) })
}

/// The part that the hypervisor explains: the share of the requested CPU time that it gave to other guests.
pub(crate) fn of_steal(evidence: &Evidence, point: &PointEvidence) -> Option<NoisePrice> {
    let stolen = evidence.mean(point.point, metric::CPU_STEAL)?;
    let busy = evidence.mean(point.point, metric::CPU_BUSY)?;
    let share = stolen_share(stolen, busy);
    Some(NoisePrice { low: 0.0, estimate: share, high: share, accepted: is_accepted(evidence) })
}

/// Steal over the time in which CPUs were wanted, which has it.
pub(crate) fn stolen_share(stolen: f64, busy: f64) -> f64 {
    if stolen <= 0.0 { 0.0 } else { (stolen / busy.max(stolen)).clamp(0.0, 1.0) }
}

fn is_open_loop(point: &PointEvidence) -> bool {
    point.window.as_ref().is_some_and(|window| window.schedule.is_some())
}

/// The bound by capacity, of which other processes used `foreign` CPUs and client and database `own`.
fn capacity(evidence: &Evidence, point: &PointEvidence, foreign: f64, own: f64) -> Option<f64> {
    let left = if is_open_loop(point) {
        (1.0 - evidence.mean(point.point, metric::CPU_BUSY)?).max(0.0) * cpus(evidence)?
    } else {
        own
    };
    Some(if foreign <= 0.0 { 0.0 } else { foreign / (foreign + left) })
}

/// The bound by waiting. `None` if the kernel has no run-queue counters or the sessions were not sampled: then the
/// dependencies of waits are unknown.
fn waiting(evidence: &Evidence, point: &PointEvidence) -> Option<f64> {
    let busy = transactions_in_flight(evidence, point).filter(|busy| *busy > 0.0)?;
    if is_embedded(evidence) {
        // While the one writer waits for a CPU, all sessions wait for it.
        return Some(client_delay(evidence, point)?.min(1.0));
    }
    // What another session holds: the log's locks are among its waits.
    let held = |kind: WaitKind| {
        matches!(kind, WaitKind::RowLock | WaitKind::Lock | WaitKind::Page | WaitKind::Latch | WaitKind::Log)
    };
    let waits = |group: &WaitGroup| is_client(group) && held(group.kind);
    let looked = evidence.active(point.point, is_client).looks > 0;
    let behind = looked.then(|| evidence.active(point.point, waits).sessions())?;
    let server = evidence.mean(point.point, metric::SERVER_RUN_DELAY)?;
    Some((client_share(evidence, point)? + (server + behind) / busy).min(1.0))
}

/// The maximum share of the transactions' time in which a user's thread was ready to run and had no CPU; `None` if the
/// kernel does not report it.
pub(crate) fn client_share(evidence: &Evidence, point: &PointEvidence) -> Option<f64> {
    let busy = transactions_in_flight(evidence, point).filter(|busy| *busy > 0.0)?;
    let delay = client_delay(evidence, point)?;
    let threads =
        if point.users <= MOST_THREADS { f64::from(point.users) } else { FEWEST_LOOPS.min(cpus(evidence)?) };
    // Each waiting thread delays all transactions that it is working on.
    let on_each = (busy / threads.max(1.0)).max(1.0);
    Some((delay * on_each / busy).min(1.0))
}

/// Low, likely and high price by the calm seconds; `None` if the window has too few of them, or no others.
fn by_calm_seconds(evidence: &Evidence, point: &PointEvidence, mean: f64) -> Option<(f64, f64, f64)> {
    let readings = foreign(evidence, point)?;
    let (open, cpus) = (point.open?, cpus(evidence)?);
    let whole = point.window.as_ref().map_or(i64::MAX, |window| (window.elapsed / 1_000_000_000) as i64);
    let (mut others, mut times) = (Vec::new(), Vec::new());
    for (second, counts) in point.seconds.range(0..whole) {
        let from = open + *second as u64 * 1_000_000_000;
        let Some(cpu) = over(&readings, from, from + 1_000_000_000) else { continue };
        // In a closed loop users are busy all the time; a second without a transaction is slow and not unknown.
        let time = if is_open_loop(point) {
            counts.mean.filter(|mean| *mean > 0.0)
        } else {
            Some(1.0 / (counts.good as f64).max(0.5))
        };
        let Some(time) = time else { continue };
        others.push(cpu);
        times.push(time.ln());
    }
    let calm = others.iter().filter(|cpu| **cpu < CALM * cpus).count();
    if calm < FEWEST || others.len() - calm < FEWEST {
        return None;
    }
    let found = slope(&others, &times, 0.95)?;
    let price = |slope: f64| 1.0 - (-slope * mean).exp();
    Some((price(found.low), price(found.value), price(found.high)))
}

/// Mean of readings over a stretch of time; `None` if less than half of it is known.
fn over(readings: &[SpanValue], from: Nanos, to: Nanos) -> Option<f64> {
    let (mut known, mut sum) = (0.0, 0.0);
    for seen in readings.iter().filter(|seen| seen.from < to && seen.to > from) {
        let seconds = (seen.to.min(to) - seen.from.max(from)) as f64 / 1e9;
        known += seconds;
        sum += seen.value * seconds;
    }
    (known >= (to - from) as f64 / 2e9).then(|| (sum / known).max(0.0))
}

/// CPUs used by other processes, reading by reading: the host's busy time, minus interrupts and steal, minus client and
/// database. A process whose reading is missing counts with its mean.
fn foreign(evidence: &Evidence, point: &PointEvidence) -> Option<Vec<SpanValue>> {
    cpu_of_others(evidence, evidence.window(point.point)?)
}

/// The same over any stretch of time. None where the database's processes are not seen: they would be others.
pub fn cpu_of_others(evidence: &Evidence, window: Span) -> Option<Vec<SpanValue>> {
    let cpus = cpus(evidence)?;
    // From one observer, so that the readings end at the same moments.
    let by_moment = |name: &str| -> BTreeMap<Nanos, f64> {
        evidence.values_within(name, window).iter().map(|seen| (seen.to, seen.value)).collect()
    };
    let kernel = ["steal", "irq", "softirq"].map(|name| by_moment(&metric::cpu(name)));
    let ours: &[&str] = if is_embedded(evidence) { &["client"] } else { &["client", "server"] };
    let times =
        |process: &&str| ["user", "system"].map(|time| metric::process(process, format_args!("cpu.{time}")));
    let processes: Vec<String> = ours.iter().flat_map(times).collect();
    let means: Vec<f64> =
        processes.iter().map(|name| evidence.mean_over(name, window)).collect::<Option<_>>()?;
    let known: Vec<_> = processes.iter().map(|name| by_moment(name)).collect();
    let each = |seen: SpanValue| {
        let kernel: f64 = kernel.iter().filter_map(|values| values.get(&seen.to)).sum();
        let ours = known.iter().zip(&means).map(|(values, mean)| values.get(&seen.to).unwrap_or(mean));
        SpanValue { value: (seen.value - kernel) * cpus - ours.sum::<f64>(), ..seen }
    };
    Some(evidence.values_within(metric::CPU_BUSY, window).into_iter().map(each).collect())
}

#[cfg(test)]
mod tests;

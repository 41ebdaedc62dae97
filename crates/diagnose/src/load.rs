//! What several findings and the verdict ask of client and host.

use crate::evidence::Span;
use crate::{Evidence, PointEvidence};

/// Hardware threads of the client's host.
pub(crate) fn cpus(evidence: &Evidence) -> Option<f64> {
    let told = evidence.context.environment("/client_host/cpu/threads").and_then(serde_json::Value::as_f64);
    let counted = || {
        let each = evidence.names("host.cpu.", ".busy").filter(|name| *name != "host.cpu.total.busy").count();
        (each > 0).then_some(each as f64)
    };
    told.filter(|threads| *threads > 0.0).or_else(counted)
}

/// Whether the database's processes are seen on this host.
pub(crate) fn server_is_here(evidence: &Evidence) -> bool {
    evidence.names("host.process.server.", "").next().is_some()
}

/// Whether the database runs within the client's process.
pub(crate) fn is_embedded(evidence: &Evidence) -> bool {
    evidence.context.environment("/engine").and_then(serde_json::Value::as_str) == Some("sqlite")
        || evidence.context.target.starts_with("sqlite")
}

/// The name of a metric of the host of the database: its own, or the one scraped from there.
pub(crate) fn of_server(evidence: &Evidence, name: &str) -> Option<String> {
    if server_is_here(evidence) || is_embedded(evidence) {
        return Some(name.to_owned());
    }
    evidence.names("", &format!("/{name}")).next().map(str::to_owned)
}

/// Mean over the window of a metric of the database's host.
pub(crate) fn mean_of_server(evidence: &Evidence, point: u32, name: &str) -> Option<f64> {
    evidence.mean(point, &of_server(evidence, name)?)
}

/// CPUs that this process used.
pub(crate) fn client_cores(evidence: &Evidence, point: &PointEvidence) -> Option<f64> {
    let window = point.window.as_ref().filter(|window| window.elapsed > 0 && window.client_cpu > 0);
    window
        .map(|window| window.client_cpu as f64 / window.elapsed as f64)
        .or_else(|| process_cores(evidence, point.point, "client"))
}

/// Threads of this process that waited for a CPU, on average.
pub(crate) fn client_delay(evidence: &Evidence, point: &PointEvidence) -> Option<f64> {
    let window = point.window.as_ref().filter(|window| window.elapsed > 0);
    window
        .and_then(|window| Some(window.client_run_delay? as f64 / window.elapsed as f64))
        .or_else(|| evidence.mean(point.point, "host.process.client.run_delay"))
}

/// CPUs that a watched process used, its children included where they are watched.
pub(crate) fn process_cores(evidence: &Evidence, point: u32, process: &str) -> Option<f64> {
    let user = evidence.mean(point, &format!("host.process.{process}.cpu.user"))?;
    let system = evidence.mean(point, &format!("host.process.{process}.cpu.system"))?;
    Some(user + system)
}

/// Transactions under way on average: by Little's law the sum of their times over the window's length. None before the
/// first one has ended.
pub(crate) fn at_work(evidence: &Evidence, point: &PointEvidence) -> Option<f64> {
    let transactions = point.transactions();
    let seconds = evidence.window(point.point)?.seconds();
    (transactions.good() > 0 && seconds > 0.0).then(|| transactions.latency.sum() as f64 / 1e9 / seconds)
}

/// Share of the users' time in which they were in a transaction: below it by much, the load's own pace (think times,
/// arrivals) decides the throughput. None while that is not known.
pub(crate) fn asked(evidence: &Evidence, point: &PointEvidence) -> Option<f64> {
    (point.users > 0).then_some(at_work(evidence, point)? / f64::from(point.users))
}

/// The window's length when it is known, for words.
pub(crate) fn seconds(span: Option<Span>) -> f64 {
    span.map_or(0.0, Span::seconds)
}

/// A share in words.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent.abs() < 9.95 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}

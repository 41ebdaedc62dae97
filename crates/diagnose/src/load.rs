//! What several findings and the verdict ask of client and host.

use std::collections::BTreeSet;

use kelvin_measure::event::Window;
use kelvin_observe::metric;

use crate::evidence::Span;
use crate::{Evidence, PointEvidence};

/// Hardware threads of the client's host.
pub fn cpus(evidence: &Evidence) -> Option<f64> {
    let recorded =
        evidence.context.environment("/client_host/cpu/threads").and_then(serde_json::Value::as_f64);
    let counted = || {
        let each = evidence.names(metric::CPU, ".busy").filter(|name| *name != metric::CPU_BUSY).count();
        (each > 0).then_some(each as f64)
    };
    recorded.filter(|threads| *threads > 0.0).or_else(counted)
}

/// Whether the database's processes are seen on this host.
pub(crate) fn server_is_here(evidence: &Evidence) -> bool {
    evidence.names(metric::SERVER_PROCESS, "").next().is_some()
}

/// Whether the database runs within the client's process.
pub fn is_embedded(evidence: &Evidence) -> bool {
    evidence.context.environment("/embedded").and_then(serde_json::Value::as_bool).unwrap_or(false)
}

/// Share of its CPUs that the database uses by its own count; none where it does not count.
pub(crate) fn cpu_by_the_server(evidence: &Evidence, point: u32) -> Option<f64> {
    let schedulers = evidence.mean(point, metric::SCHEDULERS).filter(|number| *number > 0.0)?;
    Some(evidence.mean(point, metric::SCHEDULER_CPU)? / schedulers)
}

/// The name of a metric of the host of the database: its own, or the one scraped from there.
pub(crate) fn server_metric_name(evidence: &Evidence, name: &str) -> Option<String> {
    if server_is_here(evidence) || is_embedded(evidence) {
        return Some(name.to_owned());
    }
    let label = |full: &str| full.split_once("/host.").map(|(label, _)| label.to_owned());
    let scraped: BTreeSet<String> = evidence.names("", "").filter_map(label).collect();
    let hosts: BTreeSet<&str> = scraped.iter().map(|label| host_part(label)).collect();
    // The one scraped host is the database's, whatever it is called; of several, the one that the target names.
    let database = match hosts.first() {
        Some(only) if hosts.len() == 1 => *only,
        _ => host_of_target(&evidence.context.target)?,
    };
    let mut its = scraped.iter().filter(|label| host_part(label).eq_ignore_ascii_case(database));
    its.find_map(|label| {
        let full = format!("{label}/{name}");
        evidence.unit(&full).is_some().then_some(full)
    })
}

/// What lies between client and server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NetworkPath {
    /// A unix socket: nothing.
    Socket,
    /// The loopback network: nothing, unless a proxy listens there.
    Loopback,
    /// A network.
    Network,
}

/// What lies between client and server, by the target.
pub(crate) fn network_path(evidence: &Evidence) -> NetworkPath {
    let target = &evidence.context.target;
    match host_of_target(target) {
        Some(host) => {
            let is_loopback = |ip: std::net::IpAddr| ip.is_loopback();
            let local = host == "localhost" || host.parse().is_ok_and(is_loopback);
            if local { NetworkPath::Loopback } else { NetworkPath::Network }
        }
        None if target.contains("://") && ["host=/", "socket=/"].iter().any(|of| target.contains(of)) => {
            NetworkPath::Socket
        }
        None => NetworkPath::Network,
    }
}

/// The host of a target such as `postgres://user@host:5432/database`; none where it names none.
fn host_of_target(target: &str) -> Option<&str> {
    let (_, rest) = target.split_once("://")?;
    let authority = rest.split(['/', '?']).next()?;
    let host = host_part(authority.rsplit_once('@').map_or(authority, |(_, host)| host));
    (!host.is_empty()).then_some(host)
}

/// The host of "host:port", without the brackets of an IPv6 address.
fn host_part(place: &str) -> &str {
    let host = match place.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => place,
    };
    host.trim_start_matches('[').trim_end_matches(']')
}

/// Mean over the window of a metric of the database's host.
pub(crate) fn mean_of_server(evidence: &Evidence, point: u32, name: &str) -> Option<f64> {
    evidence.mean(point, &server_metric_name(evidence, name)?)
}

/// CPUs that this process used.
pub(crate) fn client_cores(evidence: &Evidence, point: &PointEvidence) -> Option<f64> {
    let window = own_window(point).filter(|window| window.client_cpu > 0);
    window
        .map(|window| window.client_cpu as f64 / window.elapsed as f64)
        .or_else(|| process_cores(evidence, point.point, "client"))
}

/// The window, where the generator of its load is this process: that of a fleet has the sums of all hosts.
fn own_window(point: &PointEvidence) -> Option<&Window> {
    point.window.as_ref().filter(|window| window.elapsed > 0 && point.hosts.is_empty())
}

/// Threads of this process that waited for a CPU, on average.
pub(crate) fn client_delay(evidence: &Evidence, point: &PointEvidence) -> Option<f64> {
    own_window(point)
        .and_then(|window| Some(window.client_run_delay? as f64 / window.elapsed as f64))
        .or_else(|| evidence.mean(point.point, metric::CLIENT_RUN_DELAY))
}

/// CPUs that a watched process used, its children included where they are watched.
pub(crate) fn process_cores(evidence: &Evidence, point: u32, process: &str) -> Option<f64> {
    process_cores_over(evidence, evidence.window(point)?, process)
}

/// The same over any stretch of time.
pub(crate) fn process_cores_over(evidence: &Evidence, span: Span, process: &str) -> Option<f64> {
    let of = |time: &str| evidence.mean_over(&metric::process(process, format_args!("cpu.{time}")), span);
    Some(of("user")? + of("system")?)
}

/// Transactions under way on average: by Little's law the sum of their times over the window's length. None before the
/// first one has ended.
pub(crate) fn transactions_in_flight(evidence: &Evidence, point: &PointEvidence) -> Option<f64> {
    let transactions = point.transactions();
    let seconds = evidence.window(point.point)?.seconds();
    (transactions.good() > 0 && seconds > 0.0).then(|| transactions.latency.sum() as f64 / 1e9 / seconds)
}

/// Share of the users' time in which they were in a transaction: below it by much, the load's own pace (think times,
/// arrivals) decides the throughput. None while that is not known.
pub(crate) fn busy_user_share(evidence: &Evidence, point: &PointEvidence) -> Option<f64> {
    (point.users > 0).then_some(transactions_in_flight(evidence, point)? / f64::from(point.users))
}

/// The window's length when it is known, for words.
pub(crate) fn seconds(span: Option<Span>) -> f64 {
    span.map_or(0.0, Span::seconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::Scene;

    const BUSY: &str = "host.cpu.total.busy";

    fn of(labels: &[&str], target: &str) -> Option<String> {
        let scene = labels.iter().fold(Scene::healthy().without("host.process.server."), |scene, label| {
            scene.metric(&format!("{label}/{BUSY}"), 0.5)
        });
        let mut evidence = scene.evidence();
        evidence.context.target = target.into();
        server_metric_name(&evidence, BUSY)
    }

    #[test]
    fn trial_b12_stopped_what_lies_between_is_determined_by_the_target() {
        let of = |target: &str| {
            let mut evidence = Scene::healthy().evidence();
            evidence.context.target = target.into();
            network_path(&evidence)
        };
        assert_eq!(of("postgres://joe@/tpcc?host=/run/postgresql&port=5432"), NetworkPath::Socket);
        assert_eq!(of("mariadb://joe@/tpcc?socket=/run/mysqld/mysqld.sock"), NetworkPath::Socket);
        for loopback in
            ["postgres://joe@127.0.0.1:5432/x", "postgres://joe@[::1]:5432/x", "postgres://joe@localhost:1/x"]
        {
            assert_eq!(of(loopback), NetworkPath::Loopback, "{loopback}");
        }
        assert_eq!(of("postgres://joe@db2:5432/tpcc"), NetworkPath::Network);
    }

    #[test]
    fn of_several_scraped_hosts_the_targets_is_the_databases() {
        let remote = "postgres://joe@db2:5432/tpcc";
        let named = |label: &str| Some(format!("{label}/{BUSY}"));
        assert_eq!(of(&["db1:9100", "db2:9100"], remote), named("db2:9100"));
        assert_eq!(of(&["db1:9100", "[::1]:9100"], "postgres://joe@[::1]:5432/x"), named("[::1]:9100"));
        assert_eq!(of(&["db1:9100", "db3:9100"], remote), None, "neither is it");
        assert_eq!(of(&["10.0.0.2:9100"], remote), named("10.0.0.2:9100"), "the only one");
        assert_eq!(of(&[], remote), None);
        assert_eq!(of(&["a", "b"], "postgres:///x?host=/run/postgresql"), None);
    }
}

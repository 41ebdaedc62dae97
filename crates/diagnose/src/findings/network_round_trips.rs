//! Whether the users spent their time between client and server.

use super::FindingDefinition;
use crate::load::{NetworkPath, busy_user_share, client_cores, mean_of_server, network_path};
use crate::verdict::time::model;
use crate::{Class, Effect, EffectBasis, Evidence, EvidenceLine, Finding, PointEvidence, Severity};
use kelvin_measure::text::percent;
use kelvin_observe::metric;

pub(super) const ABOUT: FindingDefinition = FindingDefinition {
    id: "network-round-trips",
    question: "Did the transactions spend their time between client and server?",
    find,
};

const AMBER: f64 = 0.30;
/// More than half: nothing within the database has a larger effect.
const RED: f64 = 0.50;
/// With more of the CPUs in use, the apparent network time includes the wake-up of processes.
const ROOM: f64 = 0.75;
/// A statement's round trip to a server on the same host takes less than this, in milliseconds.
const LOCAL_MS: f64 = 0.2;

/// If users are in a transaction for less of their time than this, their own pace decides, and not their waits.
const PACED: f64 = 0.5;

fn find(evidence: &Evidence) -> Vec<Finding> {
    evidence.points().filter_map(|point| of_point(evidence, point)).collect()
}

fn of_point(evidence: &Evidence, point: &PointEvidence) -> Option<Finding> {
    let model = model(evidence, point)?;
    let share = model.share(Class::Network).filter(|share| share.share >= AMBER)?;
    let seconds = evidence.window(point.point)?.seconds();
    let good = point.transactions().good() as f64;
    let per_transaction = share.sessions * seconds * 1e3 / good;
    let statements = statements(evidence, point).map(|count| count / good);
    // Fewer statements than one per transaction means that some were not counted.
    let trip =
        statements.filter(|statements| *statements >= 1.0).map(|statements| per_transaction / statements);
    let busy = [metric::CPU_BUSY]
        .map(|name| [evidence.mean(point.point, name), mean_of_server(evidence, point.point, name)]);
    let busy = busy.into_iter().flatten().flatten().reduce(f64::max);
    let long = trip.unwrap_or(per_transaction) >= LOCAL_MS;
    let paced = busy_user_share(evidence, point).is_some_and(|share| share < PACED);
    let link = network_path(evidence);
    let red = link != NetworkPath::Socket
        && !paced
        && share.share >= RED
        && share.low >= AMBER
        && busy.is_some_and(|busy| busy < ROOM)
        && long;
    let mut facts = vec![EvidenceLine::new(
        "transaction time outside database and load generator",
        format!(
            "{} ({} to {}), {per_transaction:.2} ms per transaction",
            percent(share.share),
            percent(share.low),
            percent(share.high)
        ),
    )];
    if let (Some(statements), Some(trip)) = (statements, trip) {
        facts.push(EvidenceLine::new(
            "statements per transaction, and outside time per statement",
            format!("{statements:.1}, {trip:.3} ms"),
        ));
    }
    facts.extend(busy.map(|busy| EvidenceLine::new("CPUs in use, client or database host", percent(busy))));
    facts.extend(
        client_cores(evidence, point)
            .map(|cores| EvidenceLine::new("CPUs used by the load generator", format!("{cores:.2}"))),
    );
    Some(Finding {
        id: ABOUT.id,
        severity: if red { Severity::Red } else { Severity::Amber },
        point: Some(point.point),
        title: title(link, share.share),
        evidence: facts,
        effect: Effect::between(share.low, share.high, EffectBasis::TransactionTime),
        below_precision: false,
        threshold:
            "30 % of the transactions' time spent between client and server (from Little's law, minus \
            the time of active sessions and of the load generator); red from 50 %, with the 95 % interval \
            above 30 %, when users are in a transaction for half of their time or more, less than 75 % of \
            the CPUs are in use, and a round trip takes 0.2 ms or more (longer than on one host); never red \
            on a Unix socket, which involves no network"
                .into(),
        next: next(link).into(),
    })
}

fn title(link: NetworkPath, share: f64) -> String {
    let share = percent(share);
    match link {
        NetworkPath::Socket => {
            format!("Transactions spent {share} of their time switching between processes on one host")
        }
        NetworkPath::Loopback | NetworkPath::Network => {
            format!("Transactions spent {share} of their time between client and server")
        }
    }
}

fn next(link: NetworkPath) -> &'static str {
    match link {
        NetworkPath::Socket => {
            "Stored procedures or pipelining need one switch instead of many; more users keep the CPUs busy, \
            if latency does not matter. No network is involved."
        }
        NetworkPath::Loopback => {
            "Look for a proxy or pooler on this host, or for delayed packets (`tc`): otherwise no network is \
            involved. Stored procedures or pipelining combine many round trips into one."
        }
        NetworkPath::Network => {
            "Stored procedures or pipelining combine many round trips into one; put the client next to the \
            server; or use more users, if latency does not matter. `ping` and `kelvin doctor` show the \
            round-trip time."
        }
    }
}

/// Statements executed in the window, as far as they are counted.
fn statements(evidence: &Evidence, point: &PointEvidence) -> Option<f64> {
    let by_database =
        evidence.statements(point.point).map(|(top, _)| top.iter().map(|one| one.calls).sum::<u64>());
    let series = evidence.context.series.iter().zip(&point.kinds);
    let of_statements = series
        .filter(|(series, _)| matches!(series.role, kelvin_measure::event::SeriesRole::Statement { .. }));
    let by_client: u64 = of_statements.map(|(_, kind)| kind.good()).sum();
    let most = by_database.unwrap_or(0).max(by_client);
    (most > 0).then_some(most as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::{Scene, severities};

    fn far() -> Scene {
        let mut scene =
            Scene::healthy().metric("host.cpu.total.busy", 0.3).metric("host.process.server.run_delay", 0.0);
        (scene.client_cpu, scene.client_delay) = (0.1, 0.02);
        scene.sessions =
            vec![("CPU", "", 0.4), ("IO", "WALSync", 0.2), ("Idle in transaction", "ClientRead", 3.0)];
        scene
    }

    #[test]
    fn time_that_nobody_has_is_the_networks() {
        assert_eq!(find(&Scene::healthy().evidence()), []);
        let found = find(&far().evidence());
        assert_eq!(severities(&found), [Severity::Red]);
        assert!(found[0].evidence[0].found.contains("ms per transaction"), "{found:?}");
    }

    #[test]
    fn trial_d3_on_a_unix_socket_nothing_that_lies_between_is_blamed() {
        let of = |target: &str| {
            let mut evidence = far().evidence();
            evidence.context.target = target.into();
            find(&evidence)
        };
        let socket = of("postgres://joe@/tpcc?host=/run/postgresql&port=5432");
        assert_eq!(severities(&socket), [Severity::Amber]);
        assert!(!socket[0].title.contains("between client and server"), "{}", socket[0].title);
        assert!(!socket[0].next.contains("next to the server"), "{}", socket[0].next);
        // There may be a proxy, and nothing else.
        let loopback = of("postgres://joe@127.0.0.1:5432/tpcc");
        assert_eq!(severities(&loopback), [Severity::Red]);
        assert!(loopback[0].next.contains("a proxy") && !loopback[0].next.contains("next to the server"));
    }

    #[test]
    fn trial_b12_stopped_processes_are_no_network() {
        // A few transactions that took two seconds, in which no session was seen active, among thousands of 0.5 ms.
        let mut stopped = far();
        (stopped.at_work, stopped.users) = (0.5, 2);
        stopped.sessions = vec![("CPU", "", 0.05)];
        stopped.stopped = Some((4, 5.0));
        let evidence = stopped.evidence();
        let model = model(&evidence, evidence.point(0).unwrap()).unwrap();
        let share = |class| model.share(class).map_or(0.0, |share| share.share);
        assert!(share(Class::Other) > 0.5 && share(Class::Network) < 0.4, "{model:?}");
        let found = find(&evidence);
        assert!(found.iter().all(|finding| finding.severity != Severity::Red), "{found:?}");
    }

    #[test]
    fn it_is_not_red_on_a_full_host_nor_for_a_local_round_trip() {
        assert_eq!(
            severities(&find(&far().metric("host.cpu.total.busy", 0.9).evidence())),
            [Severity::Amber]
        );
        let mut local = far();
        local.window.iter_mut().for_each(|count| *count *= 20);
        assert_eq!(severities(&find(&local.evidence())), [Severity::Amber]);
        let mut paced = far();
        paced.users = 12;
        assert_eq!(
            severities(&find(&paced.evidence())),
            [Severity::Amber],
            "they think for two thirds of their time"
        );
        let mut unseen = far();
        unseen.sessions.clear();
        assert_eq!(find(&unseen.evidence()), []);
    }
}

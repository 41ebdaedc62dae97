//! Were sessions opened again and again during the load?

use super::FindingDefinition;
use crate::load::server_is_here;
use crate::{Effect, EffectBasis, Evidence, EvidenceLine, Finding, PointEvidence, Severity};
use kelvin_measure::text;
use kelvin_observe::metric;

pub(super) const ABOUT: FindingDefinition =
    FindingDefinition { id: "connection-storm", question: "Were sessions opened again and again?", find };

/// New sessions a second from which it is more than monitoring.
const RATE: f64 = 5.0;
/// Milliseconds of CPU that a new PostgreSQL session takes at least, from the fork to the first statement's catalogue
/// lookups: 1.5 to 4 ms on machines of 2015 to 2023; the lower end, so that the estimate is no exaggeration.
const CPU_MS: f64 = 1.5;
/// Share of the host's CPUs for that from which it may limit: as other processes in `noisy-neighbour`.
const SHARE: f64 = 0.08;

fn find(evidence: &Evidence) -> Vec<Finding> {
    evidence.points().filter_map(|point| of_point(evidence, point)).collect()
}

fn of_point(evidence: &Evidence, point: &PointEvidence) -> Option<Finding> {
    let rate = evidence.mean(point.point, metric::NEW_SESSIONS).filter(|rate| *rate >= RATE)?;
    let window = evidence.window(point.point)?;
    let transactions = point.transactions().good() as f64 / window.seconds();
    // The CPUs that are known are the client's.
    let cpus = if server_is_here(evidence) { crate::load::cpus(evidence) } else { None };
    let used = rate * CPU_MS / 1e3;
    let share = cpus.map(|cpus| used / cpus);
    let own = transactions > 0.0 && rate >= transactions / 2.0;
    let mut facts = vec![
        EvidenceLine::new("new sessions per second", text::number(rate)),
        EvidenceLine::new("transactions per second", text::number(transactions)),
        EvidenceLine::new("CPUs for opening them", format!("{used:.2} (at least {CPU_MS} ms each)")),
    ];
    if own {
        facts.push(EvidenceLine::new(
            "whose",
            "as many as transactions: the load itself may open one for each",
        ));
    }
    Some(Finding {
        id: ABOUT.id,
        severity: if share.is_some_and(|share| share >= SHARE) { Severity::Red } else { Severity::Amber },
        point: Some(point.point),
        title: format!("{} sessions were opened per second during the window", text::number(rate)),
        evidence: facts,
        effect: Effect::up_to_or(
            share,
            EffectBasis::Throughput,
            "the number of CPUs of the database's host is not known",
        ),
        below_precision: false,
        threshold: "5 new sessions per second; red if opening them takes 8 % of the database's host's CPUs or more at \
            1.5 ms each, the lower end of what a new PostgreSQL session costs"
            .into(),
        next:
            "Find out which client connects (log_connections), and use a connection pooler or keep the \
            sessions open; if connecting is part of the measurement, state it with the result."
                .into(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::staged::Staged;
    use super::*;
    use crate::scene::Scene;

    #[test]
    fn a_storm_is_red_by_its_cpu_and_monitoring_is_nothing() {
        let severity = |rate: f32| {
            let scene = Scene::healthy().metric("postgres.connections.new", rate);
            find(&scene.evidence()).first().map(|found| found.severity)
        };
        assert_eq!(severity(200.0), Some(Severity::Red));
        assert_eq!(severity(20.0), Some(Severity::Amber));
        let elsewhere =
            Scene::healthy().without("host.process.server.").metric("postgres.connections.new", 200.0);
        assert_eq!(find(&elsewhere.evidence())[0].severity, Severity::Amber);
        assert_eq!(severity(0.5), None);
        assert!(find(&Staged::new().done()).is_empty());
    }
}

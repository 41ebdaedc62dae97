//! Were sessions opened again and again during the load?

use super::FindingDefinition;
use crate::engine::engine_advice;
use crate::load::server_is_here;
use crate::{Effect, EffectBasis, Evidence, EvidenceLine, Finding, PointEvidence, Severity};
use kelvin_measure::text;
use kelvin_observe::metric;

pub(super) const ABOUT: FindingDefinition =
    FindingDefinition { id: "connection-storm", question: "Were sessions opened frequently?", find };

/// New sessions a second from which it is more than monitoring.
const RATE: f64 = 5.0;
/// Share of the host's CPUs for that from which it may limit: as other processes in `noisy-neighbour`.
const SHARE: f64 = 0.08;

fn find(evidence: &Evidence) -> Vec<Finding> {
    evidence.points().filter_map(|point| of_point(evidence, point)).collect()
}

fn of_point(evidence: &Evidence, point: &PointEvidence) -> Option<Finding> {
    let rate =
        evidence.mean_of_first_known(point.point, metric::NEW_SESSIONS).filter(|rate| *rate >= RATE)?;
    let window = evidence.window(point.point)?;
    let transactions = point.transactions().good() as f64 / window.seconds();
    // The CPUs that are known are the client's.
    let cpus = if server_is_here(evidence) { crate::load::cpus(evidence) } else { None };
    let engine = engine_advice(evidence).sessions();
    let used = engine.opening_cpu_ms.map(|each| rate * each / 1e3);
    let share = cpus.zip(used).map(|(cpus, used)| used / cpus);
    let own = transactions > 0.0 && rate >= transactions / 2.0;
    let mut facts = vec![
        EvidenceLine::new(engine.opened, text::number(rate)),
        EvidenceLine::new("transactions per second", text::number(transactions)),
    ];
    facts.extend(engine.opening_cpu_ms.zip(used).map(|(each, used)| {
        EvidenceLine::new("CPUs for opening them", format!("{used:.2} (at least {each} ms each)"))
    }));
    if own {
        facts.push(EvidenceLine::new(
            "whose",
            "as many as transactions: the load itself may open one for each",
        ));
    }
    let failed = evidence.mean(point.point, metric::FAILED_CONNECTIONS).filter(|failed| *failed > 0.0);
    facts.extend(failed.map(|failed| EvidenceLine::new("of them failed, per second", text::number(failed))));
    let created = evidence.mean(point.point, metric::THREADS_CREATED);
    facts.extend(
        created.map(|created| EvidenceLine::new("threads created per second", text::number(created))),
    );
    facts.extend(
        evidence.setting("thread_cache_size").map(|value| EvidenceLine::new("thread_cache_size", value)),
    );
    let mut next = String::from(engine.opening_next);
    // Most of them found no thread to take over.
    if created.is_some_and(|created| created >= rate / 2.0) {
        next.push_str("; until then raise thread_cache_size, so that fewer connections need a new thread");
    }
    next.push_str("; if the run is meant to measure connecting, state it with the result.");
    Some(Finding {
        id: ABOUT.id,
        severity: if share.is_some_and(|share| share >= SHARE) { Severity::Red } else { Severity::Amber },
        point: Some(point.point),
        title: format!("{} sessions were opened per second during the window", text::number(rate)),
        evidence: facts,
        effect: Effect::up_to_or(
            share,
            EffectBasis::Throughput,
            match used {
                None => engine.opening_unknown,
                Some(_) => "the number of CPUs of the database's host is not known",
            },
        ),
        below_precision: false,
        threshold: engine.opening_threshold.into(),
        next,
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

    #[test]
    fn a_thread_costs_less_than_a_process_and_the_thread_cache_is_named_where_it_had_none() {
        let found = |rate: f32, created: f32| {
            let mut scene = Scene::healthy()
                .metric("mysql.connections.new", rate)
                .metric("mysql.connections.failed", 1.0)
                .metric("mysql.threads.created", created);
            scene.environment["engine"] = "mysql".into();
            find(&scene.evidence()).remove(0)
        };
        let few = found(200.0, 0.0);
        assert_eq!(few.severity, Severity::Amber);
        assert!(!few.next.contains("thread_cache_size") && !few.next.contains("log_connections"), "{few:?}");
        assert!(few.evidence.iter().any(|fact| fact.what.starts_with("of them failed")), "{few:?}");
        let many = found(4000.0, 3900.0);
        assert_eq!(many.severity, Severity::Red);
        assert!(many.next.contains("raise thread_cache_size"), "{}", many.next);
    }
}

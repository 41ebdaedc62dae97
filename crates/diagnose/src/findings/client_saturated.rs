//! Whether the load generator itself was the limit.

use kelvin_measure::invariant::LOAD_GENERATOR;

use super::{About, client_throttled, noisy_neighbour, steal};
use crate::load::{client_cores, client_delay, cpus, is_embedded, percent, process_cores, server_is_here};
use crate::{Evidence, Fact, Finding, PointEvidence, Severity};

pub(super) const ABOUT: About =
    About { id: "client-saturated", question: "Was the load generator itself the limit?", look };

/// Share of its host's CPUs (the validity gate of the verdict).
const MOST: f64 = 0.80;

fn look(evidence: &Evidence) -> Vec<Finding> {
    let each = |point| {
        let own = if is_embedded(evidence) { None } else { of(evidence, point) };
        let limited = client_throttled::of(evidence, point);
        // One sentence is enough: the more severe, and of two alike the one that names the cause.
        [limited, own].into_iter().flatten().min_by_key(|finding| finding.severity)
    };
    evidence.points().filter_map(each).collect()
}

fn of(evidence: &Evidence, point: &PointEvidence) -> Option<Finding> {
    let check =
        point.invariants.iter().find(|invariant| invariant.name == LOAD_GENERATOR && !invariant.holds);
    let cores = client_cores(evidence, point).zip(cpus(evidence));
    let all = cores.is_some_and(|(used, cpus)| used >= MOST * cpus);
    // Beside the database: it takes the CPUs that the database could have used.
    let server = process_cores(evidence, point.point, "server").filter(|_| server_is_here(evidence));
    let greedy =
        cores.zip(server).is_some_and(|((used, cpus), server)| used > server && used + server >= MOST * cpus);
    if check.is_none() && !all && !greedy {
        return None;
    }
    let mut facts = Vec::new();
    if let Some((used, cpus)) = cores {
        facts.push(Fact::new(
            "CPUs used by the load generator",
            format!("{used:.2} of {cpus} ({})", percent(used / cpus)),
        ));
    }
    if let Some(server) = server {
        facts.push(Fact::new("CPUs used by the database on the same host", format!("{server:.2}")));
    }
    if let Some(delay) = client_delay(evidence, point) {
        facts.push(Fact::new(
            "threads of the load generator that waited for a CPU",
            format!("{delay:.2} on average"),
        ));
    }
    if let Some(check) = check {
        facts.push(Fact::new("its own check", check.evidence.clone()));
    }
    // Who has no CPU because others take it is late through them; a limit of its own, or a host used up, is its own.
    let neighbours =
        [noisy_neighbour::ABOUT.look, steal::ABOUT.look].into_iter().flat_map(|look| look(evidence));
    let mut neighbours = neighbours.filter(|found| found.point == Some(point.point));
    let pushed = check.is_some() && !all && neighbours.any(|found| found.severity == Severity::Red);
    let red = (check.is_some() || all) && !pushed;
    let title = if check.is_some() || all {
        "The load generator was the limit: the figures tell of it and not of the database"
    } else {
        "The load generator used more CPU than the database beside it"
    };
    Some(Finding {
        id: ABOUT.id,
        severity: if red { Severity::Red } else { Severity::Amber },
        point: Some(point.point),
        title: title.into(),
        evidence: facts,
        threshold: "80 % of the CPUs of its host, or its own check of loops and punctuality in every run; less, but more \
                    than the database on the same full host, is told as well"
            .into(),
        next: "Run the load generator on a host of its own, or with more CPUs; fewer statements per transaction (stored \
               procedures, prepared statements) cost it less."
            .into(),
    })
}

#[cfg(test)]
mod tests {
    use kelvin_measure::event::Event;
    use kelvin_measure::invariant::Invariant;

    use super::*;
    use crate::scene::{Scene, severities};

    #[test]
    fn a_generator_that_takes_the_host_is_red() {
        let mut scene = Scene::healthy();
        assert_eq!(look(&scene.evidence()), []);
        scene.client_cpu = 1.7;
        assert_eq!(severities(&look(&scene.evidence())), [Severity::Red]);
        scene.client_cpu = 1.3;
        assert_eq!(severities(&look(&scene.evidence())), [Severity::Amber], "more than the server's 1.15");
        scene.client_cpu = 0.0;
        assert_eq!(look(&scene.without("host.").evidence()), []);
        let mut throttled = Scene::healthy().metric("host.cpu.total.busy", 0.3);
        (throttled.client_cpu, throttled.client_delay) = (0.2, 2.0);
        assert_eq!(severities(&look(&throttled.evidence())), [Severity::Red]);
    }

    #[test]
    fn its_own_check_is_believed() {
        let mut scene = Scene::healthy();
        let invariant = |holds| Invariant { name: LOAD_GENERATOR.into(), holds, evidence: "loops".into() };
        scene.more = vec![Event::Invariant { point: 0, invariant: invariant(true) }];
        assert_eq!(look(&scene.evidence()), []);
        scene.more = vec![Event::Invariant { point: 0, invariant: invariant(false) }];
        assert_eq!(severities(&look(&scene.evidence())), [Severity::Red]);
        let mut hog =
            Scene::healthy().metric("host.process.server.cpu.user", 0.1).metric("host.cpu.total.busy", 1.0);
        hog.more.clone_from(&scene.more);
        assert_eq!(severities(&look(&hog.evidence())), [Severity::Amber], "a neighbour made it late");
        scene.environment["engine"] = "sqlite".into();
        assert_eq!(look(&scene.evidence()), [], "its CPU time is the database's");
    }
}

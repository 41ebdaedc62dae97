//! Whether the load generator itself was the limit.

use kelvin_measure::invariant::{GENERATOR_RAN, Invariant, LOAD_GENERATOR};

use super::{FindingDefinition, client_throttled};
use crate::load::{client_cores, client_delay, cpus, is_embedded, process_cores, server_is_here};
use crate::noise::{WANTED, client_share, is_accepted, noise, of_processes};
use crate::{Effect, EffectBasis, Evidence, EvidenceLine, Finding, NoisePrice, PointEvidence, Severity};
use kelvin_measure::text::percent;

pub(super) const ABOUT: FindingDefinition =
    FindingDefinition { id: "client-saturated", question: "Was the load generator itself the limit?", find };

/// Share of its host's CPUs (the validity gate of the verdict).
const MOST: f64 = 0.80;

fn find(evidence: &Evidence) -> Vec<Finding> {
    let each = |point| {
        let own = of_point(evidence, point);
        let limited = client_throttled::finding_for_point(evidence, point);
        // One finding is sufficient: the more severe, and of two equal ones the one that names the cause.
        [limited, own].into_iter().flatten().min_by_key(|finding| finding.severity)
    };
    evidence.points().filter_map(each).collect()
}

/// Signs that the load generator was the limit.
struct Signs<'a> {
    /// The failed check of whether it ran.
    held_up: Option<&'a Invariant>,
    /// The failed check of its event loops and start times.
    check: Option<&'a Invariant>,
    /// It uses all CPUs of its host.
    all: bool,
    /// On the database's host, it uses CPUs that the database could have used.
    greedy: bool,
    /// Share of the transactions' time in which it waited for a CPU that other processes used, if that is large.
    starved: Option<f64>,
}

impl<'a> Signs<'a> {
    fn read(evidence: &Evidence, point: &'a PointEvidence) -> Self {
        let broken =
            |name: &str| point.invariants.iter().find(|invariant| invariant.name == name && !invariant.holds);
        let held_up = broken(GENERATOR_RAN);
        if is_embedded(evidence) {
            // Its CPU time is the database's.
            return Self { held_up, check: None, all: false, greedy: false, starved: None };
        }
        let cores = client_cores(evidence, point).zip(cpus(evidence));
        let server = process_cores(evidence, point.point, "server").filter(|_| server_is_here(evidence));
        Self {
            held_up,
            check: broken(LOAD_GENERATOR),
            all: cores.is_some_and(|(used, cpus)| used >= MOST * cpus),
            greedy: cores
                .zip(server)
                .is_some_and(|((used, cpus), server)| used > server && used + server >= MOST * cpus),
            starved: starved(evidence, point),
        }
    }

    fn none(&self) -> bool {
        self.held_up.is_none() && self.check.is_none() && !self.all && !self.greedy && self.starved.is_none()
    }

    fn title(&self) -> String {
        if let Some(check) = self.held_up {
            // The check itself shows why and when.
            let how_long = check.evidence.split([',', ':']).next().unwrap_or_default();
            format!("The load generator was held up: {how_long}")
        } else if self.check.is_some() || self.all {
            "The load generator was the limit: the results describe it, not the database".into()
        } else if let Some(share) = self.starved {
            format!(
                "The load generator was starved of CPUs, which explains up to {} of the result",
                percent(share)
            )
        } else {
            "The load generator used more CPU than the database on the same host".into()
        }
    }

    /// Its effect on the result. If the load generator was the limit, the result shows nothing about the database.
    fn effect(&self, evidence: &Evidence, point: &PointEvidence) -> Effect {
        if self.held_up.is_some() || self.check.is_some() || self.all {
            return Effect::unknown("what another generator would have measured is not known");
        }
        if let Some(share) = self.starved {
            return Effect::up_to(share, EffectBasis::TransactionTime);
        }
        // Its CPU time is the most that the database could gain.
        let client = client_cores(evidence, point);
        let server = process_cores(evidence, point.point, "server");
        let share = client.zip(server).map(|(client, server)| client / (client + server));
        Effect::up_to_or(share, EffectBasis::TransactionTime, "the database's CPU time is not known")
    }

    fn next(&self) -> &'static str {
        if self.held_up.is_some() {
            "Find out what stopped or starved it (a signal, a debugger, a frozen or limited control group, a \
            suspended machine, other work on its CPUs), and run again: transactions scheduled in that time \
            are late because of the load generator, not because of the database."
        } else {
            "Run the load generator on a separate host, or give it more CPUs and remove any CPU affinity; \
            stored procedures and prepared statements reduce its CPU time per transaction."
        }
    }
}

/// The share, if it waited for a CPU longer than it ran, and processes other than a local database used the CPUs.
fn starved(evidence: &Evidence, point: &PointEvidence) -> Option<f64> {
    let longer = client_delay(evidence, point)? >= client_cores(evidence, point)?;
    let share = client_share(evidence, point).filter(|share| longer && *share >= WANTED)?;
    if !server_is_here(evidence) {
        return Some(share);
    }
    of_processes(evidence, point).filter(NoisePrice::is_too_dear).map(|price| share.min(price.high))
}

fn of_point(evidence: &Evidence, point: &PointEvidence) -> Option<Finding> {
    let signs = Signs::read(evidence, point);
    if signs.none() {
        return None;
    }
    // A generator that is late because other processes took its CPUs is explained by their finding. A full host or its
    // own limit is a problem of the generator.
    let pushed = !signs.all && noise(evidence, point.point).is_some_and(|price| price.is_too_dear());
    let own = signs.check.is_some() || signs.all || signs.starved.is_some() && !is_accepted(evidence);
    Some(Finding {
        id: ABOUT.id,
        severity: if signs.held_up.is_some() || own && !pushed { Severity::Red } else { Severity::Amber },
        point: Some(point.point),
        title: signs.title(),
        evidence: facts(evidence, point, &signs),
        effect: signs.effect(evidence, point),
        below_precision: false,
        threshold: "the load generator used 80 % of its host's CPUs, or failed its own check (busy event \
            loops, late starts, held up for 1 % of the window); or its threads waited for a CPU for 10 % of \
            the transactions' time, and longer than they ran; amber if it used more CPU than the database on \
            the same host and both together used 80 %"
            .into(),
        next: signs.next().into(),
    })
}

fn facts(evidence: &Evidence, point: &PointEvidence, signs: &Signs<'_>) -> Vec<EvidenceLine> {
    let mut facts = Vec::new();
    if let Some((used, cpus)) = client_cores(evidence, point).zip(cpus(evidence)) {
        facts.push(EvidenceLine::new(
            "CPUs used by the load generator",
            format!("{used:.2} of {cpus} ({})", percent(used / cpus)),
        ));
    }
    if let Some(server) = process_cores(evidence, point.point, "server").filter(|_| server_is_here(evidence))
    {
        facts.push(EvidenceLine::new("CPUs used by the database on the same host", format!("{server:.2}")));
    }
    if let Some(delay) = client_delay(evidence, point) {
        facts.push(EvidenceLine::new(
            "load generator threads waiting for a CPU",
            format!("{delay:.2} on average"),
        ));
    }
    if let Some(share) = client_share(evidence, point) {
        facts.push(EvidenceLine::new("transaction time affected, at most", percent(share)));
    }
    facts.extend(
        [signs.held_up, signs.check]
            .into_iter()
            .flatten()
            .map(|check| EvidenceLine::new("its own check", check.evidence.clone())),
    );
    facts
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
        assert_eq!(find(&scene.evidence()), []);
        scene.client_cpu = 1.7;
        assert_eq!(severities(&find(&scene.evidence())), [Severity::Red]);
        scene.client_cpu = 1.3;
        assert_eq!(severities(&find(&scene.evidence())), [Severity::Amber], "more than the server's 1.15");
        scene.client_cpu = 0.0;
        assert_eq!(find(&scene.without("host.").evidence()), []);
        let mut throttled = Scene::healthy().metric("host.cpu.total.busy", 0.3);
        (throttled.client_cpu, throttled.client_delay) = (0.2, 2.0);
        assert_eq!(severities(&find(&throttled.evidence())), [Severity::Red]);
    }

    #[test]
    fn its_own_check_is_believed() {
        let mut scene = Scene::healthy();
        let invariant = |holds| Invariant::new(LOAD_GENERATOR, holds, "loops");
        scene.more = vec![Event::Invariant { point: 0, invariant: invariant(true) }];
        assert_eq!(find(&scene.evidence()), []);
        scene.more = vec![Event::Invariant { point: 0, invariant: invariant(false) }];
        assert_eq!(severities(&find(&scene.evidence())), [Severity::Red]);
        let mut hog =
            Scene::healthy().metric("host.process.server.cpu.user", 0.1).metric("host.cpu.total.busy", 1.0);
        hog.more.clone_from(&scene.more);
        assert_eq!(severities(&find(&hog.evidence())), [Severity::Amber], "a neighbour made it late");
        scene.environment["embedded"] = true.into();
        assert_eq!(find(&scene.evidence()), [], "its CPU time is the database's");
    }

    #[test]
    fn trial_d3_a_generator_that_was_held_up_is_named_and_voids_the_run() {
        for embedded in [false, true] {
            let mut scene = Scene::healthy();
            scene.environment["embedded"] = embedded.into();
            let evidence = "it did not run for 2.00 of 8.0 s, at 3.0 s: it was stopped";
            let invariant = Invariant::new(GENERATOR_RAN, false, evidence);
            scene.more = vec![Event::Invariant { point: 0, invariant }];
            let evidence = scene.evidence();
            let found = find(&evidence);
            assert_eq!(severities(&found), [Severity::Red]);
            assert!(found[0].title.contains("was held up: it did not run for 2.00 of 8.0 s"), "{found:?}");
            assert!(
                !crate::verdict::void_reasons(
                    evidence.point(0).unwrap(),
                    &crate::findings::findings_for(&evidence)
                )
                .is_empty()
            );
        }
    }

    #[test]
    fn trial_d3_a_generator_starved_by_others_is_named_and_the_run_is_void() {
        // Pinned to the CPU of a busy loop: 1.01 threads wait, and run for 0.3; the server has the rest.
        let mut starved =
            Scene::healthy().metric("host.process.server.cpu.user", 0.4).metric("host.cpu.total.busy", 0.98);
        (starved.client_cpu, starved.client_delay) = (0.3, 1.01);
        starved =
            starved.metric("host.process.client.cpu.user", 0.2).metric("host.process.client.cpu.system", 0.1);
        let evidence = starved.evidence();
        let found = find(&evidence);
        assert!(found[0].title.contains("starved of CPUs, which explains up to"), "{found:?}");
        let reasons = crate::verdict::void_reasons(
            evidence.point(0).unwrap(),
            &crate::findings::findings_for(&evidence),
        );
        assert!(reasons.iter().any(|why| why.starts_with("Foreign CPU explains up to")), "{reasons:?}");
        // If the server is on another host, some other process uses the CPUs.
        let remote = starved.without("host.process.server");
        assert_eq!(severities(&find(&remote.evidence())), [Severity::Red]);
    }

    #[test]
    fn trial_d3_a_generator_beside_its_busy_server_alone_is_not_starved() {
        let mut busy = Scene::healthy();
        (busy.client_cpu, busy.client_delay) = (0.6, 0.9);
        assert_eq!(find(&busy.evidence()), [], "both have one host, which is the machine under test");
    }
}

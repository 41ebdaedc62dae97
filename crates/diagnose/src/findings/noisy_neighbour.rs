//! Whether other processes on the host used the CPUs, and the cost in the result.

use super::FindingDefinition;
use crate::load::{client_cores, client_delay, cpus};
use crate::noise::{WANTED, foreign_cpus, of_processes};
use crate::{
    Effect, EffectBasis, Evidence, EvidenceLine, Finding, HostResource, PointEvidence, ProcessUse, Severity,
    top_processes,
};
use kelvin_measure::text::percent;
use kelvin_observe::metric;

pub(super) const ABOUT: FindingDefinition =
    FindingDefinition { id: "noisy-neighbour", question: "Did other processes use this host's CPUs?", find };

/// Share of the host's CPUs. Kernel threads, the sampler itself and the granularity of CPU time accounting stay below.
const AMBER: f64 = 0.08;

fn find(evidence: &Evidence) -> Vec<Finding> {
    evidence.points().filter_map(|point| of_point(evidence, point)).collect()
}

fn of_point(evidence: &Evidence, point: &PointEvidence) -> Option<Finding> {
    // A database within the client is the client; for one on another host the effect is unknown.
    let price = of_processes(evidence, point)?;
    let (used, cpus) = (foreign_cpus(evidence, point)?, cpus(evidence)?);
    let share = used / cpus;
    if share < AMBER {
        return None;
    }
    let idle = 1.0 - evidence.mean(point.point, metric::CPU_BUSY)?;
    let mut facts = vec![
        EvidenceLine::new(
            "CPUs used by neither client nor database",
            format!("{used:.2} of {cpus} ({})", percent(share)),
        ),
        EvidenceLine::new("idle CPU time of the host", percent(idle)),
    ];
    if let Some(client) = client_cores(evidence, point) {
        facts.push(EvidenceLine::new("CPUs used by the load generator", format!("{client:.2}")));
    }
    if let Some(delay) = client_delay(evidence, point) {
        facts.push(EvidenceLine::new(
            "load generator threads waiting for a CPU",
            format!("{delay:.2} on average"),
        ));
    }
    if let Some(delay) = evidence.mean(point.point, metric::SERVER_RUN_DELAY) {
        facts.push(EvidenceLine::new("database threads waiting for a CPU", format!("{delay:.2} on average")));
    }
    let processes = top_processes(evidence, point.point, HostResource::Cpu);
    facts.extend(processes.iter().map(ProcessUse::line));
    let accepted = if price.accepted { " (accepted)" } else { "" };
    Some(Finding {
        id: ABOUT.id,
        severity: if price.is_too_dear() && !price.accepted { Severity::Red } else { Severity::Amber },
        point: Some(point.point),
        title: format!(
            "Foreign CPU explains {} of the result{accepted}: other processes used {used:.2} of {cpus} CPUs",
            price.share()
        ),
        evidence: facts,
        effect: Effect::between(price.low, price.high, EffectBasis::Figure),
        below_precision: false,
        threshold: format!(
            "other processes used 8 % of the CPUs (kernel threads and inaccurate accounting can reach nearly \
            as much); red if an effect of {} of the result or more cannot be excluded: by comparing calm \
            seconds with other seconds if there are any, otherwise from the CPU time of other processes and \
            the transactions' time in run queues",
            percent(WANTED)
        ),
        next: "Stop what ran during the benchmark (builds, backups, cron, agents, another benchmark; the names \
            are above where they could be seen), and run again; on a machine that must be shared, `--accept-noise` lets the \
            run count and reports this price with its results, and `kelvin ab` compares under the same \
            noise."
            .into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::{Scene, severities};

    #[test]
    fn what_nobody_of_ours_used_is_a_neighbours() {
        // Busy 1.86 − 0.024 of 2, of which 0.6 and 1.15 are ours: 0.09 are the kernel's.
        assert_eq!(find(&Scene::healthy().evidence()), []);
        let hog = |user| {
            Scene::healthy().metric("host.process.server.cpu.user", user).metric("host.cpu.total.busy", 1.0)
        };
        let whole = find(&hog(0.15).evidence());
        assert_eq!(severities(&whole), [Severity::Red], "a whole CPU");
        // 0.976 CPUs of others, 1.0 of ours, and 43 % of the transactions' time in run queues.
        assert!(
            whole[0].title.starts_with("Foreign CPU explains up to 43 % of the result"),
            "{}",
            whole[0].title
        );
        assert_eq!(severities(&find(&hog(0.95).evidence())), [Severity::Amber], "a tenth of a CPU: 9.7 %");
    }

    #[test]
    fn beside_idle_cpus_it_is_only_reported_and_without_figures_not_at_all() {
        let proxy = |delay| {
            let mut scene = Scene::healthy().metric("host.process.server.run_delay", delay);
            scene.client_delay = f64::from(delay);
            scene.metric("host.process.server.cpu.user", 0.1).metric("host.cpu.total.busy", 0.7)
        };
        assert_eq!(severities(&find(&proxy(0.1).evidence())), [Severity::Amber]);
        // No task waited: 0.7 %, less than the precision of the run itself.
        let found = crate::findings_for(&proxy(0.01).evidence());
        let small = found.iter().find(|finding| finding.id == ABOUT.id).unwrap();
        assert!(small.below_precision && small.effect.high().unwrap() < 0.01, "{small:?}");
        let hog = || {
            Scene::healthy().metric("host.process.server.cpu.user", 0.1).metric("host.cpu.total.busy", 1.0)
        };
        assert_eq!(find(&hog().without("host.process.server").evidence()), []);
        let mut embedded = hog().without("host.process.server");
        embedded.environment["embedded"] = true.into();
        assert_eq!(severities(&find(&embedded.evidence())), [Severity::Red]);
        assert_eq!(find(&hog().without("host.process.client").evidence()), []);
        assert_eq!(find(&hog().without("host.cpu").evidence()), []);
    }
}

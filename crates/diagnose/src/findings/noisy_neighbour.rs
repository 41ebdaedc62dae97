//! Whether something else on the host used the CPUs.

use std::collections::BTreeMap;

use kelvin_measure::Nanos;
use kelvin_stats::ess::precision;

use super::About;
use crate::evidence::Span;
use crate::load::{client_cores, client_delay, cpus, is_embedded, percent, server_is_here};
use crate::{Evidence, Fact, Finding, PointEvidence, Severity};

pub(super) const ABOUT: About =
    About { id: "noisy-neighbour", question: "Did something else on this host use its CPUs?", look };

/// Share of the host's CPUs. Kernel threads, the sampler's own reading and the ticks by which CPU time is counted stay
/// below the first; a build, a backup or another benchmark does not stay below the second.
const AMBER: f64 = 0.08;
const RED: f64 = 0.20;

/// With this share of the CPUs idle, the neighbour takes what nobody else wanted.
const ROOM: f64 = 0.25;

fn look(evidence: &Evidence) -> Vec<Finding> {
    // A database within the client is the client.
    if !server_is_here(evidence) && !is_embedded(evidence) {
        return Vec::new();
    }
    evidence.points().filter_map(|point| of(evidence, point)).collect()
}

fn of(evidence: &Evidence, point: &PointEvidence) -> Option<Finding> {
    let (window, cpus) = (evidence.window(point.point)?, cpus(evidence)?);
    let idle = 1.0 - evidence.mean(point.point, "host.cpu.total.busy")?;
    let others = others(evidence, window, cpus);
    let known = precision(&others)?;
    let (mean, half) = (known.mean, known.half_width(0.95)?);
    let share = mean / cpus;
    if share < AMBER || (mean - half) / cpus < AMBER / 2.0 {
        return None;
    }
    let sure = (mean - half) / cpus >= RED / 2.0;
    let mut facts = vec![
        Fact::new(
            "CPUs used by neither client nor database",
            format!("{mean:.2} ± {half:.2} of {cpus} ({})", percent(share)),
        ),
        Fact::new("CPU time of the host that nobody used", percent(idle)),
    ];
    if let Some(client) = client_cores(evidence, point) {
        facts.push(Fact::new("CPUs used by the load generator", format!("{client:.2}")));
    }
    if let Some(delay) = client_delay(evidence, point) {
        facts.push(Fact::new(
            "threads of the load generator that waited for a CPU",
            format!("{delay:.2} on average"),
        ));
    }
    Some(Finding {
        id: ABOUT.id,
        severity: if share >= RED && sure && idle < ROOM { Severity::Red } else { Severity::Amber },
        point: Some(point.point),
        title: format!("Something else on this host used {} of its CPUs", percent(share)),
        evidence: facts,
        threshold: "8 % of the CPUs, what kernel threads and accounting may come to; red from 20 % when the lower end of the \
                    95 % interval is above 10 % and less than a quarter of the CPUs stands idle"
            .into(),
        next: "Look with `top` for what ran beside the benchmark (builds, backups, cron, agents, another benchmark), stop it, \
               and run again."
            .into(),
    })
}

/// CPUs used by others, reading by reading: what the host was busy with, less interrupts and what the hypervisor took, less
/// client and database. A process whose reading was left out counts with its mean.
fn others(evidence: &Evidence, window: Span, cpus: f64) -> Vec<f64> {
    // Of one observer, so that the readings end at the same moments.
    let by_moment = |name: &str| -> BTreeMap<Nanos, f64> {
        evidence.seen(name, window).iter().map(|seen| (seen.to, seen.value)).collect()
    };
    let kernel = ["steal", "irq", "softirq"].map(|name| by_moment(&format!("host.cpu.total.{name}")));
    let ours: &[&str] = if is_embedded(evidence) { &["client"] } else { &["client", "server"] };
    let times = |process: &&str| ["user", "system"].map(|time| format!("host.process.{process}.cpu.{time}"));
    let processes: Vec<String> = ours.iter().flat_map(times).collect();
    let mean = |name: &String| evidence.mean_over(name, window);
    let Some(means) = processes.iter().map(mean).collect::<Option<Vec<f64>>>() else { return Vec::new() };
    let known: Vec<_> = processes.iter().map(|name| by_moment(name)).collect();
    let busy = evidence.seen("host.cpu.total.busy", window);
    busy.iter()
        .map(|seen| {
            let kernel: f64 = kernel.iter().filter_map(|values| values.get(&seen.to)).sum();
            let ours = known.iter().zip(&means).map(|(values, mean)| values.get(&seen.to).unwrap_or(mean));
            (seen.value - kernel) * cpus - ours.sum::<f64>()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::{Scene, severities};

    #[test]
    fn what_nobody_of_ours_used_is_a_neighbours() {
        // Busy 1.86 − 0.024 of 2, of which 0.6 and 1.15 are ours: 0.09 are the kernel's.
        assert_eq!(look(&Scene::healthy().evidence()), []);
        let hog = |user| {
            Scene::healthy().metric("host.process.server.cpu.user", user).metric("host.cpu.total.busy", 1.0)
        };
        assert_eq!(severities(&look(&hog(0.15).evidence())), [Severity::Red], "a whole CPU");
        assert_eq!(severities(&look(&hog(0.8).evidence())), [Severity::Amber], "a seventh of a CPU");
    }

    #[test]
    fn beside_idle_cpus_it_is_only_told_and_without_figures_not_at_all() {
        let proxy =
            Scene::healthy().metric("host.process.server.cpu.user", 0.1).metric("host.cpu.total.busy", 0.7);
        assert_eq!(severities(&look(&proxy.evidence())), [Severity::Amber]);
        let hog = || {
            Scene::healthy().metric("host.process.server.cpu.user", 0.1).metric("host.cpu.total.busy", 1.0)
        };
        assert_eq!(look(&hog().without("host.process.server").evidence()), []);
        let mut embedded = hog().without("host.process.server");
        embedded.environment["engine"] = "sqlite".into();
        assert_eq!(severities(&look(&embedded.evidence())), [Severity::Red]);
        assert_eq!(look(&hog().without("host.process.client").evidence()), []);
        assert_eq!(look(&hog().without("host.cpu").evidence()), []);
    }
}

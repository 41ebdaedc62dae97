//! Whether the workers had a CPU when they wanted one.

use kelvin_measure::text;
use kelvin_storage::probe::StorageFacts;

use super::IoFindingDefinition;
use crate::{Effect, EffectBasis, EvidenceLine, Finding, Severity};

pub(super) const ABOUT: IoFindingDefinition = IoFindingDefinition {
    id: "io-cpu-taken",
    question: "Did the workers have a CPU when they needed one?",
    find,
};

/// Shares of the time: waiting for a CPU, stolen by the hypervisor, kept from running by the control group.
const WAITED: (f64, f64) = (0.05, 0.20);
const STOLEN: (f64, f64) = (0.02, 0.05);
const THROTTLED: (f64, f64) = (0.01, 0.10);

fn find(facts: &StorageFacts) -> Vec<Finding> {
    of_run(facts).into_iter().collect()
}

fn of_run(facts: &StorageFacts) -> Option<Finding> {
    let run = facts.run.as_ref()?;
    let waited = run.jobs.iter().filter_map(|job| job.run_delay).reduce(f64::max);
    let throttled = run.cpu.throttled.filter(|_| run.seconds > 0.0).map(|seconds| seconds / run.seconds);
    let looked = [
        (waited, WAITED, "a worker was runnable but had no CPU", "A worker waited for a CPU"),
        (
            run.cpu.steal,
            STOLEN,
            "CPU time that the hypervisor gave to other VMs",
            "The hypervisor took the CPUs",
        ),
        (
            throttled,
            THROTTLED,
            "the control group throttled the threads",
            "The control group's CPU limit throttled the workers",
        ),
    ];
    let mut evidence = Vec::new();
    let mut most = 0.0_f64;
    let mut worst: Option<(Severity, f64, &str)> = None;
    for (found, (amber, red), what, title) in looked {
        let Some(part) = found else { continue };
        most = most.max(part);
        evidence.push(EvidenceLine::new(what, format!("{} of the time", text::percent(part))));
        let severity = if part >= red { Severity::Red } else { Severity::Amber };
        if part >= amber && worst.is_none_or(|(known, ..)| severity < known) {
            worst = Some((severity, part, title));
        }
    }
    let (severity, part, title) = worst?;
    Some(Finding {
        id: ABOUT.id,
        severity,
        point: None,
        title: format!("{title} for {} of the time", text::percent(part)),
        evidence,
        effect: Effect::up_to(most, EffectBasis::IoTime),
        below_precision: false,
        threshold:
            "waiting for a CPU 5 % of the time (red 20 %), steal 2 % (red 5 %), throttled 1 % (red 10 \
            %): the latencies include this time, but the storage did not cause it"
                .into(),
        next: "Stop other processes on the machine, give the workers dedicated CPUs (`cpus_allowed=`) or a \
            larger share, and run again."
            .into(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::staged::{after, run, severities};
    use super::*;

    #[test]
    fn each_way_to_lose_a_cpu_has_its_bounds() {
        assert_eq!(severities(&ABOUT, &after()), []);
        let with = |change: &dyn Fn(&mut kelvin_storage::probe::RunFacts)| {
            let mut facts = after();
            change(run(&mut facts));
            severities(&ABOUT, &facts)
        };
        assert_eq!(with(&|run| run.jobs[0].run_delay = Some(0.1)), [Severity::Amber]);
        assert_eq!(with(&|run| run.jobs[0].run_delay = Some(0.3)), [Severity::Red]);
        assert_eq!(with(&|run| run.cpu.steal = Some(0.03)), [Severity::Amber]);
        assert_eq!(with(&|run| run.cpu.steal = Some(0.3)), [Severity::Red]);
        assert_eq!(with(&|run| run.cpu.throttled = Some(2.0)), [Severity::Amber]);
        assert_eq!(
            with(&|run| (run.jobs[0].run_delay, run.cpu.throttled) = (Some(0.1), Some(30.0))),
            [Severity::Red]
        );
    }
}

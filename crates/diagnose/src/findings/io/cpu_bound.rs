//! Whether the load generator was the limit.

use kelvin_measure::text;
use kelvin_storage::probe::{JobFacts, JobRun, StorageFacts};

use super::{IoFindingDefinition, is_null, nanos};
use crate::{Effect, EffectBasis, EvidenceLine, Finding, Severity};

pub(super) const ABOUT: IoFindingDefinition = IoFindingDefinition {
    id: "io-cpu-bound",
    question: "Was a worker's CPU the limit, not the storage?",
    find,
};

/// Share of the time that the busiest worker had a CPU.
const RED: f64 = 0.9;
const AMBER: f64 = 0.7;
/// Minimum duration in seconds.
const SHORTEST: f64 = 0.5;

fn find(facts: &StorageFacts) -> Vec<Finding> {
    let Some(run) = &facts.run else { return Vec::new() };
    facts.jobs.iter().zip(&run.jobs).filter_map(|(job, run)| of_job(job, run)).collect()
}

fn of_job(job: &JobFacts, run: &JobRun) -> Option<Finding> {
    // A job that polls uses a full CPU intentionally.
    if is_null(job) || job.polls || run.seconds < SHORTEST || run.cpu < AMBER {
        return None;
    }
    let mut evidence = vec![EvidenceLine::new("CPU time of the busiest worker", text::percent(run.cpu))];
    evidence.extend(run.cpu_per_io.map(|cost| EvidenceLine::new("CPU time per I/O", nanos(cost))));
    Some(Finding {
        id: ABOUT.id,
        severity: if run.cpu >= RED { Severity::Red } else { Severity::Amber },
        point: None,
        title: format!(
            "A worker of job {} used {} of a CPU: the load generator is the limit, or nearly",
            job.name,
            text::percent(run.cpu)
        ),
        evidence,
        effect: Effect::up_to(run.cpu, EffectBasis::IoTime),
        below_precision: false,
        threshold:
            "a worker on a CPU for 70 % of its measured time, red from 90 %: the result then does not \
                describe the storage"
                .into(),
        next: "Give the job more workers (`numjobs=`), longer I/Os (`bs=`), or submit more at a time \
            (`iodepth_batch_submit=`); pin them (`cpus_allowed=`)."
            .into(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::staged::{after, run, severities};
    use super::*;

    #[test]
    fn a_full_cpu_is_reported_unless_asked_for() {
        let with = |cpu, polls, engine: &str| {
            let mut facts = after();
            run(&mut facts).jobs[0].cpu = cpu;
            facts.jobs[0].polls = polls;
            facts.jobs[0].engine = engine.into();
            severities(&ABOUT, &facts)
        };
        assert_eq!(with(0.4, false, "io_uring"), []);
        assert_eq!(with(0.8, false, "io_uring"), [Severity::Amber]);
        assert_eq!(with(0.97, false, "io_uring"), [Severity::Red]);
        assert_eq!(with(1.0, true, "io_uring"), []);
        assert_eq!(with(1.0, false, "null"), []);
    }
}

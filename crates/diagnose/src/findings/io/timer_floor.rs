//! How much of the latencies is the measuring itself.

use kelvin_measure::text;
use kelvin_storage::probe::StorageFacts;

use super::{IoFindingDefinition, is_null, nanos};
use crate::{Effect, EffectBasis, EvidenceLine, Finding, Severity};

pub(super) const ABOUT: IoFindingDefinition = IoFindingDefinition {
    id: "io-timer-floor",
    question: "How much of the latency comes from the clock and io_uring, not from the storage?",
    find,
};

/// A clock that is read without a system call takes some 25 ns; one that takes longer is another source.
const SLOW: f64 = 100.0;
/// Share of the mean latency.
const NOTE: f64 = 0.1;
const AMBER: f64 = 0.5;

fn find(facts: &StorageFacts) -> Vec<Finding> {
    clock(facts).into_iter().chain(floor(facts)).collect()
}

fn clock(facts: &StorageFacts) -> Option<Finding> {
    let took = facts.host.timer_floor.filter(|took| *took > SLOW)?;
    facts.jobs.first()?;
    // Each I/O is timed at its beginning and at its end.
    let means = facts.run.iter().flat_map(|run| &run.jobs).filter_map(|job| job.latency);
    let fastest = means.filter(|mean| *mean > 0.0).reduce(f64::min);
    let source = facts.host.clock_source.as_deref().unwrap_or("unknown");
    Some(finding(
        Severity::Amber,
        format!("Reading the clock takes {}: the kernel's clock source is {source}", nanos(took)),
        Effect::up_to_or(
            fastest.map(|mean| 2.0 * took / mean),
            EffectBasis::IoTime,
            "no I/O was timed before the run",
        ),
        vec![EvidenceLine::new("one clock reading", nanos(took)), EvidenceLine::new("clock source", source)],
    ))
}

fn floor(facts: &StorageFacts) -> Option<Finding> {
    let run = facts.run.as_ref()?;
    let ring = facts.host.ring_floor?;
    let found = facts.jobs.iter().zip(&run.jobs).filter(|(job, _)| job.engine == "io_uring" && !is_null(job));
    let (job, mean) = found
        .filter_map(|(job, run)| Some((job, run.latency.filter(|mean| *mean > 0.0)?)))
        .min_by(|(_, one), (_, other)| one.total_cmp(other))?;
    let part = ring / mean;
    if part < NOTE {
        return None;
    }
    let mut evidence = vec![
        EvidenceLine::new("io_uring no-operation, one at a time, median", nanos(ring)),
        EvidenceLine::new(format!("mean total time of job {}", job.name), nanos(mean)),
    ];
    evidence.extend(facts.host.timer_floor.map(|took| EvidenceLine::new("one clock reading", nanos(took))));
    evidence.extend(
        facts.host.idle_driver.as_ref().map(|driver| EvidenceLine::new("idle driver of the CPUs", driver)),
    );
    evidence.extend(
        facts.host.governor.as_ref().map(|governor| EvidenceLine::new("frequency governor", governor)),
    );
    Some(finding(
        if part >= AMBER { Severity::Amber } else { Severity::Note },
        format!(
            "Of the mean latency of job {}, {} is the kernel path",
            job.name,
            text::percent(part.min(1.0))
        ),
        Effect::up_to(part, EffectBasis::IoTime),
        evidence,
    ))
}

fn finding(severity: Severity, title: String, effect: Effect, evidence: Vec<EvidenceLine>) -> Finding {
    Finding {
        id: ABOUT.id,
        severity,
        point: None,
        title,
        evidence,
        effect,
        below_precision: false,
        threshold:
            "a clock that takes more than 100 ns to read; an io_uring no-operation that takes 10 % of the \
            mean total time, amber from 50 %"
                .into(),
        next: "State this time with latencies at depth 1; the clock source `tsc` (or `kvm-clock`) and the \
            governor `performance` reduce it."
            .into(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::staged::{after, before, run, severities};
    use super::*;

    #[test]
    fn a_slow_clock_is_reported_before() {
        let mut facts = before();
        assert_eq!(severities(&ABOUT, &facts), []);
        (facts.host.timer_floor, facts.host.clock_source) = (Some(1200.0), Some("hpet".into()));
        assert_eq!(severities(&ABOUT, &facts), [Severity::Amber]);
    }

    #[test]
    fn a_floor_near_the_latency_is_reported_after() {
        let with = |mean| {
            let mut facts = after();
            run(&mut facts).jobs[0].latency = Some(mean);
            severities(&ABOUT, &facts)
        };
        assert_eq!(with(80_000.0), []);
        assert_eq!(with(2000.0), [Severity::Note]);
        assert_eq!(with(600.0), [Severity::Amber]);
    }
}

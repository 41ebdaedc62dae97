//! Whether the requested number of I/Os was in flight.

use kelvin_measure::text;
use kelvin_storage::Direction;
use kelvin_storage::probe::{JobFacts, JobRun, StorageFacts};

use super::{IoFindingDefinition, is_null};
use crate::{Effect, EvidenceLine, Finding, Severity};

pub(super) const ABOUT: IoFindingDefinition = IoFindingDefinition {
    id: "io-depth-not-reached",
    question: "Were as many I/Os in flight as requested?",
    find,
};

/// Share of the depth. Filling and emptying the queue in batches keeps it three quarters full.
const REACHED: f64 = 0.5;
/// Minimum number of I/Os.
const FEWEST: u64 = 100;

fn find(facts: &StorageFacts) -> Vec<Finding> {
    let mut found = Vec::new();
    for (place, job) in facts.jobs.iter().enumerate().filter(|(_, job)| !is_null(job)) {
        let run = facts.run.as_ref().and_then(|run| run.jobs.get(place));
        found.extend(impossible(job).or_else(|| run.and_then(|run| missed(job, run))));
    }
    found.extend(punted(facts));
    found
}

/// Known in advance: this engine has one I/O in flight.
fn impossible(job: &JobFacts) -> Option<Finding> {
    if job.depth <= 1 {
        return None;
    }
    let (title, next) = if !job.asynchronous {
        (
            format!(
                "Job {} requests {} I/Os in flight, but {} does one at a time",
                job.name, job.depth, job.engine
            ),
            "Use `ioengine=io_uring`, or as many workers as I/Os (`numjobs=`).",
        )
    } else if job.engine == "libaio" && !job.direct {
        (
            format!(
                "Job {} requests {} I/Os in flight, but libaio waits for each without `direct=1`",
                job.name, job.depth
            ),
            "Use `ioengine=io_uring`, or `direct=1`.",
        )
    } else {
        return None;
    };
    Some(finding(Severity::Amber, title, vec![asked(job)], next))
}

fn asked(job: &JobFacts) -> EvidenceLine {
    EvidenceLine::new("requested", format!("iodepth={} with {}", job.depth, job.engine))
}

fn missed(job: &JobFacts, run: &JobRun) -> Option<Finding> {
    let depth = run.depth?;
    // A job that waits intentionally has no I/O in flight meanwhile.
    let few = run.ios.iter().map(|(_, ios)| ios).sum::<u64>() < FEWEST;
    if job.depth <= 1 || job.paced || few || depth >= REACHED * f64::from(job.depth) {
        return None;
    }
    let mut evidence =
        vec![asked(job), EvidenceLine::new("in flight on average, by Little's law", text::number(depth))];
    evidence.extend(
        run.issued_depth.map(|depth| {
            EvidenceLine::new("in flight when an I/O was issued, on average", text::number(depth))
        }),
    );
    evidence.push(EvidenceLine::new("CPU time of the busiest worker", text::percent(run.cpu)));
    Some(finding(
        Severity::Amber,
        format!("Job {} requested {} I/Os in flight but had {}", job.name, job.depth, text::number(depth)),
        evidence,
        "Look at the other findings: I/Os served from memory end before the next one starts, and a worker \
        without CPU time starts none; otherwise, submit fewer I/Os at a time (`iodepth_batch_submit=`).",
    ))
}

/// The kernel could not begin the I/O without waiting and gave it to a thread.
fn punted(facts: &StorageFacts) -> Option<Finding> {
    let run = facts.run.as_ref().filter(|run| run.io_workers > 0)?;
    let rings = || facts.jobs.iter().filter(|job| job.engine == "io_uring");
    rings().next()?;
    // Through the page cache that is how it goes.
    let direct = rings().all(|job| job.direct);
    let writes = rings().any(|job| job.does[Direction::Write]);
    let why = if writes {
        "writes that need space or a lock"
    } else {
        "a device or filesystem that cannot start an I/O without blocking"
    };
    Some(finding(
        if direct { Severity::Amber } else { Severity::Note },
        format!("The kernel ran io_uring I/O in {}", text::count(run.io_workers as usize, "kernel thread")),
        vec![EvidenceLine::new(
            "iou-wrk threads of this process, maximum",
            format!("{}; usually {why}", run.io_workers),
        )],
        "Each latency includes a switch between threads; compare with `ioengine=psync` and several workers.",
    ))
}

fn finding(severity: Severity, title: String, evidence: Vec<EvidenceLine>, next: &str) -> Finding {
    Finding {
        id: ABOUT.id,
        severity,
        point: None,
        title,
        evidence,
        effect: Effect::unknown("the performance at the requested depth was not measured"),
        below_precision: false,
        threshold: "less than half of the depth, by Little's law (the sum of all I/O times divided by the \
            measured time); an engine that does one I/O at a time with a depth above 1; any kernel thread \
            that does I/O for io_uring"
            .into(),
        next: next.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::staged::{after, before, buffered, run, severities};
    use super::*;

    #[test]
    fn an_engine_that_cannot_is_reported_before() {
        let with = |engine: &str, asynchronous, depth| {
            let mut facts = before();
            (facts.jobs[0].engine, facts.jobs[0].asynchronous, facts.jobs[0].depth) =
                (engine.into(), asynchronous, depth);
            facts
        };
        assert_eq!(severities(&ABOUT, &with("psync", false, 1)), []);
        assert_eq!(severities(&ABOUT, &with("psync", false, 32)), [Severity::Amber]);
        assert_eq!(severities(&ABOUT, &with("libaio", true, 32)), []);
        assert_eq!(severities(&ABOUT, &buffered(with("libaio", true, 32))), [Severity::Amber]);
        assert_eq!(severities(&ABOUT, &with("null", true, 32)), []);
    }

    #[test]
    fn a_depth_that_was_not_reached_is_reported_after() {
        let with = |depth, paced| {
            let mut facts = after();
            run(&mut facts).jobs[0].depth = Some(depth);
            facts.jobs[0].paced = paced;
            severities(&ABOUT, &facts)
        };
        assert_eq!(with(6.0, false), []);
        assert_eq!(with(2.0, false), [Severity::Amber]);
        assert_eq!(with(0.2, true), []);
        let mut threads = after();
        run(&mut threads).io_workers = 4;
        assert_eq!(severities(&ABOUT, &threads), [Severity::Amber]);
        assert_eq!(find(&threads)[0].title, "The kernel ran io_uring I/O in 4 kernel threads");
        assert_eq!(severities(&ABOUT, &buffered(threads)), [Severity::Note]);
    }
}

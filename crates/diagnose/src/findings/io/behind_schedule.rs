//! With a rate: whether I/Os began when they were due.

use kelvin_measure::text;
use kelvin_storage::probe::{JobFacts, JobRun, StorageFacts};

use super::{IoFindingDefinition, nanos};
use crate::{Effect, EffectBasis, EvidenceLine, Finding, Severity};

pub(super) const ABOUT: IoFindingDefinition = IoFindingDefinition {
    id: "io-behind-schedule",
    question: "With a rate, did the I/Os start on schedule?",
    find,
};

/// The rate is missed by so much.
const MISSED: f64 = 0.01;
/// How many times as long as the completion the time from the intended start may be.
const TIMES: f64 = 2.0;
/// Waits below this are the timer's.
const SHORTEST: f64 = 100_000.0;

fn find(facts: &StorageFacts) -> Vec<Finding> {
    let Some(run) = &facts.run else { return Vec::new() };
    facts.jobs.iter().zip(&run.jobs).flat_map(|(job, run)| of_job(job, run)).collect()
}

/// What is missing of the rate; else what the mean time from the real start leaves out, by the two means.
fn effect(missed: f64, means: Option<(f64, f64)>) -> Effect {
    if missed > MISSED {
        return Effect::between(missed, missed, EffectBasis::Figure);
    }
    let left_out = means.filter(|(_, due)| *due > 0.0).map(|(service, due)| 1.0 - service / due);
    Effect::up_to_or(left_out, EffectBasis::IoTime, "the times from the intended start are not known")
}

fn of_job(job: &JobFacts, run: &JobRun) -> Vec<Finding> {
    let mut found = Vec::new();
    for (direction, asked) in job.rate.iter() {
        let Some(asked) = asked.map(|rate| rate as f64 * f64::from(run.workers)).filter(|rate| *rate > 0.0)
        else {
            continue;
        };
        if run.seconds <= 0.0 || run.ios[direction] == 0 {
            continue;
        }
        let rate = run.bytes[direction] as f64 / run.seconds;
        let missed = 1.0 - rate / asked;
        let (completion, response) = (run.completion[direction], run.response[direction]);
        let tail = completion.and_then(|times| times.p99).zip(response.and_then(|times| times.p99));
        let late = tail.filter(|(service, due)| {
            *due as f64 > TIMES * *service as f64 && (due - service) as f64 > SHORTEST
        });
        let title = match late {
            _ if missed > MISSED => {
                format!("Job {} missed its rate of {direction}s by {}", job.name, text::percent(missed))
            }
            Some((service, due)) => format!(
                "In job {}, the slowest 1 % of {direction}s ended {} after their scheduled start; measured \
                from the late start, {}",
                job.name,
                nanos(due as f64),
                nanos(service as f64)
            ),
            None => continue,
        };
        let mut evidence = vec![
            EvidenceLine::new("requested rate", text::disk_rate(asked)),
            EvidenceLine::new("measured rate", text::disk_rate(rate)),
        ];
        for (what, times) in [("from the actual start", completion), ("from the intended start", response)] {
            let Some(times) = times else { continue };
            let tail =
                times.p99.map_or_else(String::new, |tail| format!(", 99 % within {}", nanos(tail as f64)));
            evidence.push(EvidenceLine::new(
                format!("times {what}"),
                format!("mean {}{tail}", nanos(times.mean)),
            ));
        }
        found.push(Finding {
            id: ABOUT.id,
            severity: Severity::Amber,
            point: None,
            title,
            evidence,
            effect: effect(missed, completion.map(|times| times.mean).zip(response.map(|times| times.mean))),
            below_precision: false,
            threshold: "the rate is missed by 1 %; or the 99th percentile from the intended start is twice \
                that from the actual start, and 100 µs longer: fio's latencies omit the wait before the \
                start (coordinated omission)"
                .into(),
            next:
                "Quote the times from the intended start, and lower the rate or raise `iodepth=` until both \
                agree."
                    .into(),
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use kelvin_storage::probe::TimeSummary;

    use super::super::staged::{after, reading, run, severities};
    use super::*;

    fn with(rate: u64, due: u64) -> StorageFacts {
        let mut facts = reading(after());
        facts.jobs[0].rate.0[0] = Some(rate);
        facts.jobs[0].paced = true;
        let times = TimeSummary { count: 3_000_000, mean: due as f64 / 2.0, median: due / 2, p99: Some(due) };
        run(&mut facts).jobs[0].response.0[0] = Some(times);
        facts
    }

    #[test]
    fn a_missed_rate_and_late_starts_are_reported() {
        // 50,000 reads of 4096 bytes a second were done; 99 % took up to 150 µs.
        let done = 50_000 * 4096;
        assert_eq!(severities(&ABOUT, &with(done, 160_000)), []);
        assert_eq!(severities(&ABOUT, &with(done, 9_000_000)), [Severity::Amber]);
        assert_eq!(severities(&ABOUT, &with(done * 11 / 10, 160_000)), [Severity::Amber]);
        assert_eq!(severities(&ABOUT, &after()), []);
    }
}

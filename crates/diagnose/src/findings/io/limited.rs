//! Whether a limit held the I/O to a rate.

use kelvin_measure::text;
use kelvin_stats::student::describe;
use kelvin_storage::Direction;
use kelvin_storage::probe::{JobFacts, JobRun, Limit, LimitKind, StorageFacts};

use super::{IoFindingDefinition, devices_of, doing};
use crate::{Effect, EvidenceLine, Finding, Severity};

pub(super) const ABOUT: IoFindingDefinition = IoFindingDefinition {
    id: "io-limited",
    question: "Did a system limit, not the device, set the rate?",
    find,
};

/// Share of a limit from which the figure is that of the limit.
const REACHED: f64 = 0.9;
/// Scatter of the seconds, of their mean, below which no device is so even, and the seconds that show it.
const EVEN: f64 = 0.005;
const SECONDS: usize = 20;

fn find(facts: &StorageFacts) -> Vec<Finding> {
    let mut found: Vec<Finding> = facts.limits.iter().filter_map(|limit| of_limit(facts, limit)).collect();
    found.extend(write_back(facts));
    if let Some(run) = &facts.run {
        found.extend(facts.jobs.iter().zip(&run.jobs).filter_map(|(job, run)| even(facts, job, run)));
    }
    found
}

fn of_limit(facts: &StorageFacts, limit: &Limit) -> Option<Finding> {
    // A limit is of the disk, whatever partition or volume the targets are on.
    let concerns = facts.devices.iter().any(|device| match &limit.device {
        Some(name) => device.name == *name || device.disk == *name || device.leaves.contains(name),
        None => true,
    });
    let (direction, of_bytes) = match limit.kind {
        LimitKind::ReadBytes => (Direction::Read, true),
        LimitKind::ReadIos => (Direction::Read, false),
        LimitKind::WriteBytes => (Direction::Write, true),
        LimitKind::WriteIos => (Direction::Write, false),
        LimitKind::Latency | LimitKind::Weight | LimitKind::Cost => {
            return concerns.then(|| finding(Severity::Note, shared(limit), vec![place(limit)]));
        }
    };
    if !concerns || doing(facts, direction).next().is_none() {
        return None;
    }
    let figure = |value: f64| {
        if of_bytes {
            text::disk_rate(value)
        } else {
            format!("{} {direction}s per second", text::rounded(value))
        }
    };
    let what = figure(limit.value as f64);
    let device = limit.device.as_deref().unwrap_or("every device");
    let mut evidence = vec![place(limit)];
    let severity = match &facts.run {
        None => Severity::Amber,
        Some(run) => {
            let rate: f64 = run
                .jobs
                .iter()
                .filter(|job| job.seconds > 0.0)
                .map(|job| if of_bytes { job.bytes[direction] } else { job.ios[direction] } as f64 / job.seconds)
                .sum();
            evidence.push(EvidenceLine::new("measured", figure(rate)));
            if rate >= REACHED * limit.value as f64 { Severity::Red } else { Severity::Note }
        }
    };
    let title = match severity {
        Severity::Red => format!("A limit set the rate: {device} is limited to {what}"),
        _ => format!("A limit of {what} applies to {device}"),
    };
    Some(finding(severity, title, evidence))
}

fn shared(limit: &Limit) -> String {
    let device = limit.device.as_deref().unwrap_or("every device");
    match limit.kind {
        LimitKind::Weight => {
            format!("The control group has a weight of {} on {device}, not 100", limit.value)
        }
        LimitKind::Latency => {
            format!(
                "The control group has a latency target of {} µs on {device}: other groups wait for it",
                limit.value
            )
        }
        _ => format!("A cost model divides {device} between control groups"),
    }
}

fn place(limit: &Limit) -> EvidenceLine {
    EvidenceLine::new(limit.place.clone(), limit.value.to_string())
}

/// Write-back is throttled while reads take longer than this.
fn write_back(facts: &StorageFacts) -> Option<Finding> {
    let job = doing(facts, Direction::Write).find(|job| !job.direct)?;
    let device = devices_of(facts, job)
        .find(|device| device.queue.write_back_throttle.is_some_and(|micros| micros > 0))?;
    let micros = device.queue.write_back_throttle?;
    Some(finding(
        Severity::Note,
        format!("Write-back to {} is throttled while its reads take longer than {micros} µs", device.disk),
        vec![EvidenceLine::new(format!("queue/wbt_lat_usec of {}", device.disk), micros.to_string())],
    ))
}

/// Throughput that is the same every second indicates a limit.
fn even(facts: &StorageFacts, job: &JobFacts, run: &JobRun) -> Option<Finding> {
    let device = devices_of(facts, job).find(|device| device.lent)?;
    let sample = describe(&run.series).filter(|_| run.series.len() >= SECONDS && !job.paced)?;
    let scatter = sample.sd? / sample.mean;
    let even = scatter < EVEN && run.cpu <= REACHED;
    even.then(|| {
        finding(
            Severity::Note,
            format!(
                "Job {} ran as evenly as if a limit set its rate: {} per second",
                job.name,
                text::disk_rate(sample.mean)
            ),
            vec![
                EvidenceLine::new(
                    "standard deviation of the per-second values, relative to the mean",
                    text::percent(scatter),
                ),
                EvidenceLine::new("virtual disk", device.disk.clone()),
            ],
        )
    })
}

fn finding(severity: Severity, title: String, evidence: Vec<EvidenceLine>) -> Finding {
    Finding {
        id: ABOUT.id,
        severity,
        point: None,
        title,
        evidence,
        effect: Effect::unknown("what the device does without the limit was not measured"),
        below_precision: false,
        threshold:
            "any control group limit (io.max, blkio.throttle) on a device in use; red when the measured rate \
            reached 90 % of it. On a virtual disk, a limit is suspected when the rate varies by less than \
            0.5 % over 20 seconds"
                .into(),
        next: "Run outside the control group, or ask the disk's provider for its limits; if the limit is \
            intended, state it with the result."
            .into(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::staged::{after, before, buffered, run, severities};
    use super::*;

    fn limited(mut facts: StorageFacts, kind: LimitKind, value: u64) -> StorageFacts {
        facts.limits =
            vec![Limit { device: Some("nvme0n1".into()), kind, value, place: "/cg/io.max".into() }];
        facts
    }

    #[test]
    fn a_limit_is_reported_before_and_judged_after() {
        // 50,000 reads and as many writes a second were measured.
        assert_eq!(severities(&ABOUT, &limited(before(), LimitKind::ReadIos, 50_000)), [Severity::Amber]);
        assert_eq!(severities(&ABOUT, &limited(after(), LimitKind::ReadIos, 50_000)), [Severity::Red]);
        assert_eq!(severities(&ABOUT, &limited(after(), LimitKind::WriteBytes, 10 << 30)), [Severity::Note]);
        assert_eq!(severities(&ABOUT, &limited(after(), LimitKind::Weight, 50)), [Severity::Note]);
        let mut other = limited(after(), LimitKind::ReadIos, 50_000);
        other.limits[0].device = Some("sda".into());
        assert_eq!(severities(&ABOUT, &other), []);
    }

    #[test]
    fn write_back_is_throttled_only_where_there_is_some() {
        assert_eq!(severities(&ABOUT, &before()), []);
        assert_eq!(severities(&ABOUT, &buffered(before())), [Severity::Note]);
    }

    #[test]
    fn seconds_that_are_all_the_same_are_a_limiters() {
        let with = |lent, scatter: f64| {
            let mut facts = after();
            facts.devices[0].lent = lent;
            run(&mut facts).jobs[0].series =
                (0..30).map(|i| 1e8 * (1.0 + scatter * if i % 2 == 0 { 1.0 } else { -1.0 })).collect();
            severities(&ABOUT, &facts)
        };
        assert_eq!(with(true, 0.001), [Severity::Note]);
        assert_eq!(with(true, 0.02), []);
        assert_eq!(with(false, 0.001), []);
    }
}

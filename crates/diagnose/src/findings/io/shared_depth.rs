//! One job over several devices: how much of its depth each of them has.

use kelvin_measure::text;
use kelvin_storage::probe::{JobFacts, JobRun, StorageFacts};

use super::{IoFindingDefinition, is_null, nanos};
use crate::{Effect, EvidenceLine, Finding, Severity};

pub(super) const ABOUT: IoFindingDefinition = IoFindingDefinition {
    id: "io-shared-depth",
    question: "Does one job share its depth among several devices?",
    find,
};

fn find(facts: &StorageFacts) -> Vec<Finding> {
    let run = |place| facts.run.as_ref().and_then(|run| run.jobs.get(place));
    facts.jobs.iter().enumerate().filter_map(|(place, job)| of_job(job, run(place))).collect()
}

fn of_job(job: &JobFacts, run: Option<&JobRun>) -> Option<Finding> {
    let devices = job.worker_devices.len();
    if is_null(job) || devices < 2 {
        return None;
    }
    let depth = if job.asynchronous { job.depth } else { 1 };
    let each = f64::from(depth) / devices as f64;
    let mut evidence = vec![
        EvidenceLine::new("devices of a worker", super::names(job.worker_devices.iter().map(String::as_str))),
        EvidenceLine::new("I/Os in flight per worker", depth.to_string()),
    ];
    for (device, ios, mean) in run.map(|run| run.devices.as_slice()).unwrap_or_default() {
        evidence.push(EvidenceLine::new(
            device.clone(),
            format!("{} I/Os, mean {}", text::rounded(*ios as f64), nanos(*mean)),
        ));
    }
    Some(Finding {
        id: ABOUT.id,
        severity: if each < 1.0 { Severity::Amber } else { Severity::Note },
        point: None,
        title: format!(
            "Job {} has {} in flight for {devices} devices: {} for each if they are equally fast",
            job.name,
            text::count(depth as usize, "I/O"),
            text::number(each)
        ),
        evidence,
        effect: Effect::unknown("the performance of each device with its own depth was not measured"),
        below_precision: false,
        threshold: "two devices; amber if the depth is smaller than the number of devices, because some of \
            them are then always idle"
            .into(),
        next: "Use `--per-target` for one job per device, or set `iodepth=` to the depth per device times \
            their number: a slow device blocks the queue of the others."
            .into(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::staged::{after, before, run, severities};
    use super::*;

    #[test]
    fn the_depth_for_each_device_is_reported() {
        let with = |depth, devices: &[&str], asynchronous| {
            let mut facts = before();
            facts.jobs[0].worker_devices = devices.iter().map(|name| (*name).to_owned()).collect();
            (facts.jobs[0].depth, facts.jobs[0].asynchronous) = (depth, asynchronous);
            severities(&ABOUT, &facts)
        };
        assert_eq!(with(8, &["sda"], true), []);
        assert_eq!(with(8, &["sda", "sdb"], true), [Severity::Note]);
        assert_eq!(with(1, &["sda", "sdb"], true), [Severity::Amber]);
        assert_eq!(with(8, &["sda", "sdb"], false), [Severity::Amber]);
        let mut ran = after();
        ran.jobs[0].worker_devices.push("sdb".into());
        run(&mut ran).jobs[0].devices = vec![("sda".into(), 1000, 9e4), ("sdb".into(), 1000, 9e6)];
        assert_eq!(find(&ran)[0].evidence[3], EvidenceLine::new("sdb", "1,000 I/Os, mean 9 ms"));
    }
}

//! Whether blocks were discarded on the device meanwhile.

use kelvin_measure::text;
use kelvin_storage::Direction;
use kelvin_storage::probe::StorageFacts;

use super::{IoFindingDefinition, counted, names};
use crate::{Effect, EvidenceLine, Finding, Severity};

pub(super) const ABOUT: IoFindingDefinition = IoFindingDefinition {
    id: "io-discard",
    question: "Were blocks discarded while the device was measured?",
    find,
};

fn find(facts: &StorageFacts) -> Vec<Finding> {
    of_run(facts).into_iter().collect()
}

fn of_run(facts: &StorageFacts) -> Option<Finding> {
    // A job that trims does so intentionally.
    if facts.jobs.iter().any(|job| job.does[Direction::Trim]) {
        return None;
    }
    let mounted = facts.targets.iter().filter(|target| target.written).filter_map(|target| {
        let filesystem = target.filesystem.as_ref()?;
        filesystem
            .options
            .iter()
            .any(|option| option == "discard" || option.starts_with("discard="))
            .then_some(filesystem)
    });
    let mut points: Vec<&str> = mounted.filter_map(|filesystem| filesystem.point.to_str()).collect();
    points.sort_unstable();
    points.dedup();
    let (ios, bytes) = facts.run.as_ref().map_or((0, 0), |run| {
        counted(facts, run).fold((0, 0), |(ios, bytes), device| {
            (ios + device.ios[Direction::Trim], bytes + device.bytes[Direction::Trim])
        })
    });
    let mut evidence = Vec::new();
    if ios > 0 {
        evidence.push(EvidenceLine::new(
            "discards counted by the devices",
            format!("{}, {} in all", text::rounded(ios as f64), text::storage(bytes as f64)),
        ));
    }
    if !points.is_empty() {
        evidence.push(EvidenceLine::new("mounted with discard", names(points.iter().copied())));
    }
    let title = if ios > 0 {
        format!("The devices discarded {} during the run", text::storage(bytes as f64))
    } else if points.is_empty() {
        return None;
    } else {
        format!("The filesystem at {} discards freed blocks immediately", names(points.iter().copied()))
    };
    Some(Finding {
        id: ABOUT.id,
        severity: Severity::Note,
        point: None,
        title,
        evidence,
        effect: Effect::unknown("the time of discards is not counted separately"),
        below_precision: false,
        threshold:
            "any discard in /proc/diskstats that no job requested, or the mount option `discard` where files \
            are written"
                .into(),
        next: "Do not delete or truncate files during the run, stop `fstrim`, or mount without `discard` to \
            compare."
            .into(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::staged::{after, before, run, severities};
    use super::*;

    #[test]
    fn discards_that_nobody_asked_for_are_noted() {
        assert_eq!(severities(&ABOUT, &after()), []);
        let mut trimmed = after();
        (run(&mut trimmed).devices[0].ios.0[2], run(&mut trimmed).devices[0].bytes.0[2]) = (3, 1 << 30);
        assert_eq!(severities(&ABOUT, &trimmed), [Severity::Note]);
        trimmed.jobs[0].does.0[2] = true;
        assert_eq!(severities(&ABOUT, &trimmed), []);
        let mut mounted = before();
        mounted.targets[0].filesystem.as_mut().unwrap().options = vec!["discard".into()];
        assert_eq!(severities(&ABOUT, &mounted), [Severity::Note]);
    }
}

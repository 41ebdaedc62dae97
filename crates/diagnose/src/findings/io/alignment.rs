//! Whether offsets and lengths are those that the device takes.

use kelvin_measure::text;
use kelvin_storage::Direction;
use kelvin_storage::probe::{JobFacts, StorageFacts};

use super::{IoFindingDefinition, device_of, is_null};
use crate::{Effect, EvidenceLine, Finding, Severity};

pub(super) const ABOUT: IoFindingDefinition = IoFindingDefinition {
    id: "io-alignment",
    question: "Do offsets and lengths meet the alignment rules of filesystem and device?",
    find,
};

fn find(facts: &StorageFacts) -> Vec<Finding> {
    let jobs = facts.jobs.iter().filter(|job| job.direct && !is_null(job) && job.aligned > 0);
    jobs.filter_map(|job| refused(facts, job).or_else(|| rewritten(facts, job))).collect()
}

/// The kernel refuses such I/O, or takes it through the page cache.
fn refused(facts: &StorageFacts, job: &JobFacts) -> Option<Finding> {
    let mut targets = job.targets.iter().filter_map(|place| facts.targets.get(*place));
    let (target, needs) = targets.find_map(|target| {
        let needs = target.alignment.as_ref().filter(|needs| job.aligned < u64::from(needs.offset))?;
        Some((target, needs))
    })?;
    Some(Finding {
        id: ABOUT.id,
        severity: Severity::Red,
        point: None,
        title: format!(
            "Job {} does I/O in multiples of {}, but {} requires multiples of {} with O_DIRECT",
            job.name,
            text::storage(job.aligned as f64),
            target.path.display(),
            text::storage(f64::from(needs.offset))
        ),
        evidence: vec![
            EvidenceLine::new(
                "offsets and lengths of the job are multiples of",
                text::storage(job.aligned as f64),
            ),
            EvidenceLine::new(
                format!("required, according to {}", needs.source),
                format!(
                    "{} in the file, {} in memory",
                    text::storage(f64::from(needs.offset)),
                    text::storage(f64::from(needs.memory))
                ),
            ),
        ],
        effect: Effect::unknown(
            "such I/O fails or goes through the page cache, and neither case is timed separately",
        ),
        below_precision: false,
        threshold:
            "the alignment required by statx (DIOALIGN) or the device's logical block size: other I/O \
            fails with EINVAL or goes through the page cache"
                .into(),
        next: format!("Use `bs=`, `offset=` and `blockalign=` in multiples of {}.", needs.offset),
    })
}

/// The device reads what is around such a write first.
fn rewritten(facts: &StorageFacts, job: &JobFacts) -> Option<Finding> {
    if !job.does[Direction::Write] {
        return None;
    }
    let targets = job.targets.iter().filter_map(|place| facts.targets.get(*place));
    let (device, physical) = targets.filter_map(|target| device_of(facts, target)).find_map(|device| {
        let physical = device.queue.physical.filter(|physical| job.aligned < *physical)?;
        Some((device, physical))
    })?;
    Some(Finding {
        id: ABOUT.id,
        severity: Severity::Amber,
        point: None,
        title: format!(
            "Job {} writes less than a physical block of {}: the device must read, modify and write it back",
            job.name, device.disk
        ),
        evidence: vec![
            EvidenceLine::new(
                "offsets and lengths of the job are multiples of",
                text::storage(job.aligned as f64),
            ),
            EvidenceLine::new(format!("physical block of {}", device.disk), text::storage(physical as f64)),
        ],
        effect: Effect::unknown("the device's internal reads and writes are not counted"),
        below_precision: false,
        threshold: "physical_block_size of the device's queue".into(),
        next: format!("Use `bs=` in multiples of {physical}, unless small writes are intended."),
    })
}

#[cfg(test)]
mod tests {
    use super::super::staged::{before, buffered, reading, severities};
    use super::*;

    fn with(aligned: u64, physical: u64) -> StorageFacts {
        let mut facts = before();
        facts.jobs[0].aligned = aligned;
        facts.devices[0].queue.physical = Some(physical);
        facts
    }

    #[test]
    fn what_does_not_fit_is_reported_with_the_numbers() {
        assert_eq!(severities(&ABOUT, &with(4096, 4096)), []);
        assert_eq!(severities(&ABOUT, &with(512, 512)), []);
        assert_eq!(severities(&ABOUT, &with(256, 512)), [Severity::Red]);
        assert_eq!(severities(&ABOUT, &buffered(with(256, 512))), []);
        assert_eq!(severities(&ABOUT, &with(512, 4096)), [Severity::Amber]);
        assert_eq!(severities(&ABOUT, &reading(with(512, 4096))), [], "reads change nothing");
    }
}

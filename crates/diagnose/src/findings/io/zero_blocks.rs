//! Whether there is anything in the blocks that are read.

use kelvin_measure::text;
use kelvin_storage::probe::{Content, ProbedTargetKind, StorageFacts, TargetFacts};

use super::{IoFindingDefinition, device_of, filled_first, nanos, share};
use crate::{Effect, EvidenceLine, Finding, Severity};

pub(super) const ABOUT: IoFindingDefinition = IoFindingDefinition {
    id: "io-zero-blocks",
    question: "Do the blocks that are read hold data, or does the storage return zeros without reading?",
    find,
};

/// Share of the sampled blocks. A device that was in use has few; one that was trimmed or never written has nearly all.
const RED: f64 = 0.5;
const AMBER: f64 = 0.05;
/// A filesystem reads the written data of a file, even if they are zeros: only storage that compresses skips them.
const OF_FILE: f64 = 0.25;
/// Minimum number of sampled blocks.
const FEWEST: u32 = 16;

fn find(facts: &StorageFacts) -> Vec<Finding> {
    let read = facts
        .targets
        .iter()
        .enumerate()
        .filter(|(place, target)| target.read && !filled_first(facts, *place));
    read.filter_map(|(_, target)| of_target(facts, target)).collect()
}

fn of_target(facts: &StorageFacts, target: &TargetFacts) -> Option<Finding> {
    let sample = target.sample.as_ref().filter(|sample| sample.blocks >= FEWEST)?;
    let zero = share(u64::from(sample.zero), u64::from(sample.blocks));
    // Holes and unwritten extents known to the filesystem have separate findings.
    let nothing = target
        .coverage
        .as_ref()
        .map_or(0.0, |coverage| share(coverage.hole + coverage.unwritten, coverage.bytes));
    let device = device_of(facts, target);
    let stored = device
        .filter(|device| target.kind == ProbedTargetKind::Block && device.size > 0)
        .and_then(|device| Some(share(device.used?, device.size)));
    let severity = match target.kind {
        ProbedTargetKind::Block if zero >= RED => Severity::Red,
        ProbedTargetKind::Block if zero >= AMBER || stored.is_some_and(|stored| stored < RED) => {
            Severity::Amber
        }
        ProbedTargetKind::File if zero - nothing >= OF_FILE => Severity::Amber,
        _ => return None,
    };
    let mut evidence = vec![EvidenceLine::new(
        format!("sampled blocks of {} in {}", text::storage(f64::from(sample.block)), target.path.display()),
        format!("{} of {} contain only zeros", sample.zero, sample.blocks),
    )];
    evidence.extend(times(sample));
    evidence
        .extend(stored.map(|stored| {
            EvidenceLine::new("stored, as reported by the disk (NUSE)", text::percent(stored))
        }));
    let discard = device.and_then(|device| device.queue.discard).filter(|unit| *unit > 0);
    evidence.extend(
        discard.map(|unit| EvidenceLine::new("trim granularity of the device", text::storage(unit as f64))),
    );
    let path = target.path.display();
    let title = match (target.kind, stored.filter(|_| zero < AMBER)) {
        (_, Some(stored)) => {
            format!("The disk reports that only {} of {path} is stored", text::percent(stored))
        }
        (ProbedTargetKind::Block, None) => {
            format!(
                "In {path}, {} of the sampled blocks are zero: the storage may never read its medium",
                text::percent(zero)
            )
        }
        _ => format!("In {path}, {} of the sampled blocks are zeros that were written", text::percent(zero)),
    };
    Some(Finding {
        id: ABOUT.id,
        severity,
        point: None,
        title,
        evidence,
        effect: Effect::unknown("only sampled blocks were checked, not the blocks that the jobs read"),
        below_precision: false,
        threshold:
            "for a device, 5 % of the sampled blocks, red from 50 %: a thin or trimmed device returns zeros \
            without reading its medium. For a file, 25 % of the blocks, not counting holes: storage that \
            compresses need not read them"
                .into(),
        next: "Write the whole region once with incompressible data (`--prepare`), and run again.".into(),
    })
}

/// Read times of zeros and of data, if both were found.
fn times(sample: &Content) -> Option<EvidenceLine> {
    let (zero, data) = sample.zero_time.zip(sample.data_time)?;
    Some(EvidenceLine::new(
        "median time of a sampled read",
        format!("{} of zeros, {} of data", nanos(zero), nanos(data)),
    ))
}

#[cfg(test)]
mod tests {
    use super::super::staged::{before, severities};
    use super::*;

    fn with(kind: ProbedTargetKind, zero: u32) -> StorageFacts {
        let mut facts = before();
        facts.targets[0].kind = kind;
        let sample = facts.targets[0].sample.as_mut().unwrap();
        (sample.zero, sample.zero_time, sample.data_time) = (zero, Some(9_000.0), Some(90_000.0));
        facts
    }

    #[test]
    fn a_device_of_zeros_is_identified_by_its_sample() {
        assert_eq!(severities(&ABOUT, &with(ProbedTargetKind::Block, 0)), []);
        assert_eq!(severities(&ABOUT, &with(ProbedTargetKind::Block, 2)), []);
        assert_eq!(severities(&ABOUT, &with(ProbedTargetKind::Block, 20)), [Severity::Amber]);
        assert_eq!(severities(&ABOUT, &with(ProbedTargetKind::Block, 60)), [Severity::Red]);
        let mut few = with(ProbedTargetKind::Block, 9);
        few.targets[0].sample.as_mut().unwrap().blocks = 9;
        assert_eq!(severities(&ABOUT, &few), []);
    }

    #[test]
    fn a_disk_that_says_how_little_it_stores_is_believed() {
        let mut facts = with(ProbedTargetKind::Block, 0);
        facts.devices[0].used = Some(60 << 30);
        assert_eq!(severities(&ABOUT, &facts), []);
        facts.devices[0].used = Some(1 << 30);
        assert_eq!(severities(&ABOUT, &facts), [Severity::Amber]);
    }

    #[test]
    fn zeros_of_a_file_count_beyond_its_holes() {
        assert_eq!(severities(&ABOUT, &with(ProbedTargetKind::File, 10)), []);
        assert_eq!(severities(&ABOUT, &with(ProbedTargetKind::File, 40)), [Severity::Amber]);
        let mut sparse = with(ProbedTargetKind::File, 60);
        sparse.targets[0].coverage.as_mut().unwrap().hole = 7 << 30;
        assert_eq!(severities(&ABOUT, &sparse), [], "holes have their own finding");
    }
}

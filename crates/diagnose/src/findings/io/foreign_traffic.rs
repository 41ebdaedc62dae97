//! Whether others used the devices.

use kelvin_measure::text;
use kelvin_storage::Direction;
use kelvin_storage::probe::{ProbedTargetKind, StorageFacts};

use super::{IoFindingDefinition, doing, names, reached, share};
use crate::{Effect, EffectBasis, EvidenceLine, Finding, Severity};

pub(super) const ABOUT: IoFindingDefinition = IoFindingDefinition {
    id: "io-foreign-traffic",
    question: "Did other processes read from the devices or write to them?",
    find,
};

/// Share of the devices' bytes that were not ours.
const RED: f64 = 0.25;
const AMBER: f64 = 0.05;
/// Fewer bytes are a log's.
const FEWEST: u64 = 1 << 20;

fn find(facts: &StorageFacts) -> Vec<Finding> {
    of_run(facts).into_iter().collect()
}

fn of_run(facts: &StorageFacts) -> Option<Finding> {
    let run = facts.run.as_ref()?;
    // Jobs without a device share it with no other process.
    doing(facts, Direction::Read).chain(doing(facts, Direction::Write)).next()?;
    let (own_reads, own_writes) = run.process?;
    let (reads, writes) = (reached(facts, run, Direction::Read), reached(facts, run, Direction::Write));
    let others: u64 = run.others.iter().map(|other| other.written).sum();
    let foreign_reads = reads.saturating_sub(own_reads);
    let mut foreign_writes = writes.saturating_sub(own_writes);
    // A filesystem writes more than the jobs' data: writes that no other process made are assumed to be its own.
    let in_files = facts.targets.iter().any(|target| target.written && target.kind == ProbedTargetKind::File);
    if in_files {
        foreign_writes = foreign_writes.min(others);
    }
    let foreign = foreign_reads + foreign_writes;
    // With jobs that use no device, any small amount would be all of the traffic.
    let claimed = run.claimed[Direction::Read] + run.claimed[Direction::Write];
    let part = share(foreign, (reads + writes).max(claimed));
    if foreign < FEWEST || part < AMBER {
        return None;
    }
    let of_devices = share(foreign, reads + writes);
    let both = |reads: u64, writes: u64| {
        format!("{} and {}", text::storage(reads as f64), text::storage(writes as f64))
    };
    let mut evidence = vec![
        EvidenceLine::new("read from and written to the devices", both(reads, writes)),
        EvidenceLine::new("this process (/proc/self/io)", both(own_reads, own_writes)),
    ];
    for other in run.others.iter().filter(|other| other.read + other.written >= FEWEST / 4).take(3) {
        let found = format!(
            "{} read, {} written",
            text::storage(other.read as f64),
            text::storage(other.written as f64)
        );
        evidence.push(EvidenceLine::new(format!("{} (process {})", other.name, other.process), found));
    }
    let devices = names(super::counted(facts, run).map(|device| device.name.as_str()));
    Some(Finding {
        id: ABOUT.id,
        severity: if part >= RED { Severity::Red } else { Severity::Amber },
        point: None,
        title: format!(
            "Other processes moved {} on {devices} during the run, {} of the bytes moved there",
            text::storage(foreign as f64),
            text::percent(of_devices)
        ),
        evidence,
        effect: Effect::up_to(of_devices, EffectBasis::DeviceBytes),
        below_precision: false,
        threshold: "5 % of the bytes that the devices counted (or the jobs moved, if that is more), minus \
            those that this process requested; red from 25 %. For files, only writes that other processes \
            are seen to make count: journals and metadata belong to the filesystem"
            .into(),
        next: "Stop other users of the device (the processes above, if any are listed), or use a dedicated \
            device, and run again."
            .into(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::staged::{after, reading, run, severities};
    use super::*;

    #[test]
    fn what_others_moved_is_reported() {
        assert_eq!(severities(&ABOUT, &after()), []);
        let with = |extra: u64| {
            let mut facts = reading(after());
            run(&mut facts).devices[0].bytes.0[0] += extra;
            severities(&ABOUT, &facts)
        };
        assert_eq!(with(100 << 20), []);
        assert_eq!(with(1 << 30), [Severity::Amber]);
        assert_eq!(with(8 << 30), [Severity::Red]);
        let mut sparse = reading(after());
        run(&mut sparse).process = Some((0, 0));
        run(&mut sparse).devices[0].bytes.0[0] = 100 << 20;
        assert_eq!(severities(&ABOUT, &sparse), [], "little beside what the jobs read from nowhere");
    }

    #[test]
    fn a_filesystems_own_writes_are_nobody_elses() {
        let with = |others: u64| {
            let mut facts = after();
            let run = run(&mut facts);
            run.devices[0].bytes.0[1] *= 2;
            run.others[0].written = others;
            severities(&ABOUT, &facts)
        };
        assert_eq!(with(1 << 20), []);
        assert_eq!(with(3 << 30), [Severity::Amber]);
        let mut raw = after();
        run(&mut raw).devices[0].bytes.0[1] *= 3;
        raw.targets[0].kind = ProbedTargetKind::Block;
        assert_eq!(severities(&ABOUT, &raw), [Severity::Red]);
    }
}

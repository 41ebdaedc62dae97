//! Were the reads served by the storage, or by the page cache?

use kelvin_measure::text;
use kelvin_storage::Direction;
use kelvin_storage::probe::{StorageFacts, TargetFacts};

use super::{IoFindingDefinition, all_buffered, doing, names, reached, share};
use crate::{Effect, EffectBasis, EvidenceLine, Finding, Severity};

pub(super) const ABOUT: IoFindingDefinition = IoFindingDefinition {
    id: "io-page-cache",
    question: "Did the storage serve the reads, or the page cache?",
    find,
};

/// Share of the bytes that did not come from a device.
const RED: f64 = 0.5;
const AMBER: f64 = 0.1;
/// Fewer bytes than this are no load.
const FEWEST: u64 = 1 << 20;

fn find(facts: &StorageFacts) -> Vec<Finding> {
    let targets: Vec<&TargetFacts> =
        facts.targets.iter().filter(|target| target.read && target.buffered && !in_memory(target)).collect();
    if targets.is_empty() {
        return Vec::new();
    }
    match &facts.run {
        Some(_) => measured(facts, &targets).into_iter().collect(),
        None => expected(facts, &targets).into_iter().collect(),
    }
}

/// A target that is in memory itself has no cache in front of it.
fn in_memory(target: &TargetFacts) -> bool {
    target.dax
        || target
            .filesystem
            .as_ref()
            .is_some_and(|filesystem| matches!(filesystem.kind.as_str(), "tmpfs" | "ramfs" | "hugetlbfs"))
}

fn measured(facts: &StorageFacts, targets: &[&TargetFacts]) -> Option<Finding> {
    let run = facts.run.as_ref()?;
    // Reads that bypass the cache cannot be distinguished from the other jobs' reads.
    if !all_buffered(facts, Direction::Read) {
        return None;
    }
    let claimed = run.claimed[Direction::Read] + run.verified;
    let (own, devices) = (run.process.map(|process| process.0), reached(facts, run, Direction::Read));
    let from_device = own.or((!run.devices.is_empty()).then_some(devices))?;
    // Holes need no device either, and have a separate finding.
    let (nothing, looked): (u64, u64) = targets
        .iter()
        .filter_map(|target| target.coverage.as_ref())
        .fold((0, 0), |(nothing, all), coverage| {
            (nothing + coverage.hole + coverage.unwritten, all + coverage.bytes)
        });
    let stored = (claimed as f64 * (1.0 - share(nothing, looked))) as u64;
    if stored < FEWEST {
        return None;
    }
    let hits = 1.0 - share(from_device, stored);
    if hits < AMBER {
        return None;
    }
    let cached: u64 = targets.iter().filter_map(|target| Some(target.after.as_ref()?.cached?.bytes)).sum();
    let mut evidence = vec![
        EvidenceLine::new("the jobs read", text::storage(claimed as f64)),
        EvidenceLine::new(
            "read from devices by this process (/proc/self/io)",
            text::storage(from_device as f64),
        ),
    ];
    if own.is_some() && !run.devices.is_empty() {
        evidence
            .push(EvidenceLine::new("read from the devices by all processes", text::storage(devices as f64)));
    }
    evidence.push(EvidenceLine::new("page cache of the files after the run", text::storage(cached as f64)));
    Some(Finding {
        id: ABOUT.id,
        severity: if hits >= RED { Severity::Red } else { Severity::Amber },
        point: None,
        title: format!("The page cache served {} of the reads", text::percent(hits)),
        evidence,
        effect: Effect::up_to(hits, EffectBasis::Figure),
        below_precision: false,
        threshold: "10 % of the bytes read, excluding holes; red from 50 %: the result then mostly measures \
            memory"
            .into(),
        next: "To measure the storage, use `direct=1`, or files that are twice as large as the memory. If \
            the cache is intended, state it with the result."
            .into(),
    })
}

fn expected(facts: &StorageFacts, targets: &[&TargetFacts]) -> Option<Finding> {
    let repeats = doing(facts, Direction::Read).any(|job| !job.direct && job.repeats);
    let memory = facts.host.memory_available.into_iter().chain(facts.host.memory_limit).min()?;
    let span: u64 = targets.iter().map(|target| target.span()).sum();
    if span == 0 || span > memory || !repeats {
        return None;
    }
    let mut evidence = vec![
        EvidenceLine::new(
            format!(
                "read through the page cache ({})",
                names(targets.iter().filter_map(|target| target.path.to_str()))
            ),
            text::storage(span as f64),
        ),
        EvidenceLine::new("available memory", text::storage(memory as f64)),
    ];
    evidence.extend(
        facts
            .host
            .memory_limit
            .map(|limit| EvidenceLine::new("limit of the control group", text::storage(limit as f64))),
    );
    Some(Finding {
        id: ABOUT.id,
        severity: Severity::Amber,
        point: None,
        title: format!(
            "The {} that the jobs read repeatedly fit in the page cache",
            text::storage(span as f64)
        ),
        evidence,
        effect: Effect::unknown("only the state before the run is known"),
        below_precision: false,
        threshold: "the regions that are read repeatedly are no larger than MemAvailable and the control \
            group's limit"
            .into(),
        next: "To measure the storage, use `direct=1`, or files that are twice as large as the memory \
            (`size=`)."
            .into(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::staged::{after, before, buffered, reading, run, severities};
    use super::*;

    fn with(read: u64) -> StorageFacts {
        let mut facts = buffered(reading(after()));
        run(&mut facts).process = Some((read, 0));
        facts
    }

    #[test]
    fn the_share_of_hits_is_what_no_device_was_asked_for() {
        let claimed = 3_000_000 * 4096;
        assert_eq!(severities(&ABOUT, &with(claimed)), []);
        assert_eq!(severities(&ABOUT, &with(claimed * 95 / 100)), []);
        assert_eq!(severities(&ABOUT, &with(claimed * 8 / 10)), [Severity::Amber]);
        assert_eq!(severities(&ABOUT, &with(0)), [Severity::Red]);
        let mut sparse = with(claimed / 2);
        sparse.targets[0].coverage.as_mut().unwrap().hole = 4 << 30;
        assert_eq!(severities(&ABOUT, &sparse), [], "the half that is missing are holes");
        assert_eq!(severities(&ABOUT, &after()), [], "past the cache");
    }

    #[test]
    fn before_the_run_only_a_small_region_that_is_read_again_is_reported() {
        assert_eq!(severities(&ABOUT, &buffered(before())), [Severity::Amber]);
        assert_eq!(severities(&ABOUT, &before()), []);
        let mut large = buffered(before());
        large.targets[0].region.1 = 40 << 30;
        assert_eq!(severities(&ABOUT, &large), []);
        let mut limited = buffered(before());
        limited.host.memory_limit = Some(1 << 30);
        assert_eq!(severities(&ABOUT, &limited), []);
        let mut once = buffered(before());
        once.jobs[0].repeats = false;
        assert_eq!(severities(&ABOUT, &once), []);
        let mut memory = buffered(before());
        memory.targets[0].filesystem.as_mut().unwrap().kind = "tmpfs".into();
        assert_eq!(severities(&ABOUT, &memory), []);
    }
}

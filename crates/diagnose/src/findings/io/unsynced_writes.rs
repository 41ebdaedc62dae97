//! Whether what was written had reached the storage when the run ended.

use kelvin_measure::text;
use kelvin_storage::Direction;
use kelvin_storage::probe::StorageFacts;

use super::{IoFindingDefinition, all_buffered, doing, reached, share};
use crate::{Effect, EffectBasis, EvidenceLine, Finding, Severity};

pub(super) const ABOUT: IoFindingDefinition = IoFindingDefinition {
    id: "io-unsynced-writes",
    question: "Had the written data reached the storage when the run ended?",
    find,
};

/// Share of the written bytes that no device had.
const RED: f64 = 0.5;
const AMBER: f64 = 0.1;
/// Fewer bytes than this are no load.
const FEWEST: u64 = 1 << 20;

fn find(facts: &StorageFacts) -> Vec<Finding> {
    of_run(facts).into_iter().collect()
}

fn of_run(facts: &StorageFacts) -> Option<Finding> {
    let run = facts.run.as_ref().filter(|run| !run.devices.is_empty())?;
    let claimed = run.claimed[Direction::Write];
    if claimed < FEWEST
        || !all_buffered(facts, Direction::Write)
        || doing(facts, Direction::Write).any(|job| job.syncs)
    {
        return None;
    }
    let written = reached(facts, run, Direction::Write);
    let kept = 1.0 - share(written, claimed);
    if kept < AMBER {
        return None;
    }
    let dirty: u64 =
        facts.targets.iter().filter_map(|target| Some(target.after.as_ref()?.cached?.dirty)).sum();
    Some(Finding {
        id: ABOUT.id,
        severity: if kept >= RED { Severity::Red } else { Severity::Amber },
        point: None,
        title: format!(
            "Of the written data, {} had not reached a device when the run ended",
            text::percent(kept)
        ),
        evidence: vec![
            EvidenceLine::new("the jobs wrote", text::storage(claimed as f64)),
            EvidenceLine::new("written to the devices by all processes", text::storage(written as f64)),
            EvidenceLine::new("file data still dirty in memory", text::storage(dirty as f64)),
        ],
        effect: Effect::up_to(kept, EffectBasis::Figure),
        below_precision: false,
        threshold: "10 % of the bytes; red from 50 %: the result then mostly measures memory. A block that \
            is rewritten before it reaches the device is written there only once"
            .into(),
        next: "To measure the storage, use `direct=1`, `end_fsync=1` (whose time is then included), or \
            `fsync=` as often as the real program syncs."
            .into(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::staged::{after, buffered, run, severities, writing};
    use super::*;

    #[test]
    fn what_stayed_in_memory_is_reported() {
        let with = |share: u64| {
            let mut facts = buffered(writing(after()));
            run(&mut facts).devices[0].bytes.0[1] = 3_000_000 * 4096 * share / 100;
            facts
        };
        assert_eq!(severities(&ABOUT, &with(98)), []);
        assert_eq!(severities(&ABOUT, &with(70)), [Severity::Amber]);
        assert_eq!(severities(&ABOUT, &with(2)), [Severity::Red]);
        let mut synced = with(2);
        synced.jobs[0].syncs = true;
        assert_eq!(severities(&ABOUT, &synced), []);
        assert_eq!(severities(&ABOUT, &writing(after())), []);
    }
}

//! How much more was written than the jobs wrote.

use kelvin_measure::text;
use kelvin_storage::Direction;
use kelvin_storage::probe::{LayerKind, ProbedTargetKind, StorageFacts};

use super::{IoFindingDefinition, counted, doing, reached};
use crate::{Effect, EffectBasis, EvidenceLine, Finding, Severity};

pub(super) const ABOUT: IoFindingDefinition = IoFindingDefinition {
    id: "io-write-amplification",
    question: "How much more did the device write than the jobs?",
    find,
};

/// Bytes at the device for a byte of the jobs.
const NOTE: f64 = 1.05;
const AMBER: f64 = 1.25;
/// Fewer bytes are one commit of a journal.
const FEWEST: u64 = 4 << 20;

fn find(facts: &StorageFacts) -> Vec<Finding> {
    of_run(facts).into_iter().collect()
}

fn of_run(facts: &StorageFacts) -> Option<Finding> {
    let run = facts.run.as_ref()?;
    let claimed = run.claimed[Direction::Write];
    // Between a filesystem or an array and the device; on a bare device what is more is somebody else's.
    let arrays =
        facts.devices.iter().flat_map(|device| &device.layers).any(|layer| layer.kind == LayerKind::Raid);
    let files = facts.targets.iter().any(|target| target.written && target.kind == ProbedTargetKind::File);
    let stays = doing(facts, Direction::Write).any(|job| !job.direct && !job.syncs);
    if claimed < FEWEST || stays || !(files || arrays) {
        return None;
    }
    let others: u64 = run.others.iter().map(|other| other.written).sum();
    let written = reached(facts, run, Direction::Write);
    // What others wrote meanwhile, and what anybody had written before and only now reaches the device, is not the jobs'.
    let caused = written.saturating_sub(others).saturating_sub(run.dirty_before);
    let factor = caused as f64 / claimed as f64;
    if factor < NOTE || caused - claimed < FEWEST {
        return None;
    }
    let flushes: u64 = counted(facts, run).map(|device| device.flushes).sum();
    Some(Finding {
        id: ABOUT.id,
        severity: if factor >= AMBER { Severity::Amber } else { Severity::Note },
        point: None,
        title: format!("The devices wrote {factor:.2} bytes for each byte that the jobs wrote"),
        evidence: vec![
            EvidenceLine::new("the jobs wrote", text::storage(claimed as f64)),
            EvidenceLine::new("the devices wrote", text::storage(written as f64)),
            EvidenceLine::new("of these, by other processes, at most", text::storage(others as f64)),
            EvidenceLine::new(
                "of these, dirty before the run, at most",
                text::storage(run.dirty_before as f64),
            ),
            EvidenceLine::new("flushes of the devices", text::rounded(flushes as f64)),
        ],
        effect: Effect::up_to(1.0 - 1.0 / factor, EffectBasis::DeviceBytes),
        below_precision: false,
        threshold:
            "5 % more than the jobs wrote, amber from 25 %: for example journal, metadata and copies. Writes \
            of other processes, and pages already dirty when the run began, are excluded"
                .into(),
        next: "Overwrite filled files (`--prepare`) to exclude the filesystem's own work; to find out how \
            much the filesystem adds, measure the bare device."
            .into(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::staged::{after, reading, run, severities};
    use super::*;

    #[test]
    fn a_journals_share_is_reported() {
        let with = |percent: u64| {
            let mut facts = after();
            let run = run(&mut facts);
            run.devices[0].bytes.0[1] = run.claimed.0[1] * percent / 100;
            facts
        };
        assert_eq!(severities(&ABOUT, &with(101)), []);
        assert_eq!(severities(&ABOUT, &with(110)), [Severity::Note]);
        assert_eq!(severities(&ABOUT, &with(200)), [Severity::Amber]);
        assert_eq!(severities(&ABOUT, &reading(with(200))), []);
        let mut raw = with(200);
        raw.targets[0].kind = ProbedTargetKind::Block;
        assert_eq!(severities(&ABOUT, &raw), []);
        let mut foreign = with(200);
        let claimed = 3_000_000 * 4096;
        run(&mut foreign).others[0].written = claimed;
        assert_eq!(severities(&ABOUT, &foreign), []);
    }

    #[test]
    fn trial_c9_pages_of_an_earlier_run_are_not_this_ones() {
        let mut facts = after();
        let run = run(&mut facts);
        run.devices[0].bytes.0[1] = run.claimed.0[1] * 2;
        run.dirty_before = run.claimed.0[1];
        assert_eq!(severities(&ABOUT, &facts), []);
    }
}

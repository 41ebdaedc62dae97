//! Whether what is read is stored at all.

use kelvin_measure::text;
use kelvin_storage::probe::StorageFacts;

use super::{IoFindingDefinition, stored};
use crate::{Effect, EffectBasis, Finding, Severity};

pub(super) const ABOUT: IoFindingDefinition = IoFindingDefinition {
    id: "io-holes",
    question: "Are the files that the jobs read fully allocated, or sparse?",
    find,
};

/// Share of what is read from which the figure is that of zeros, and from which it is worth a word.
pub(super) const RED: f64 = 0.05;
pub(super) const AMBER: f64 = 0.001;

fn find(facts: &StorageFacts) -> Vec<Finding> {
    let (part, evidence) = stored(facts, |coverage| coverage.hole, "holes:");
    if part < AMBER {
        return Vec::new();
    }
    vec![Finding {
        id: ABOUT.id,
        severity: if part >= RED { Severity::Red } else { Severity::Amber },
        point: None,
        title: format!(
            "Of the data read, {} is holes: zeros that the kernel returns without a device",
            text::percent(part)
        ),
        evidence,
        effect: Effect::up_to(part, EffectBasis::Figure),
        below_precision: false,
        threshold:
            "0.1 % of the bytes that are read; red from 5 %, when the mean latency may be 5 % too low. Holes \
            are found with FIEMAP or lseek (SEEK_HOLE)"
                .into(),
        next: "Fill the files first with `--prepare`, or let the job lay out its own files, and run again."
            .into(),
    }]
}

#[cfg(test)]
mod tests {
    use kelvin_storage::probe::Coverage;

    use super::super::staged::{after, before, severities, writing};
    use super::*;

    fn with(hole: u64) -> StorageFacts {
        let mut facts = before();
        facts.targets[0].coverage.as_mut().unwrap().hole = hole;
        facts
    }

    #[test]
    fn holes_are_judged_by_their_share_of_the_region() {
        assert_eq!(severities(&ABOUT, &with(0)), []);
        assert_eq!(severities(&ABOUT, &with(4096)), []);
        assert_eq!(severities(&ABOUT, &with(64 << 20)), [Severity::Amber]);
        assert_eq!(severities(&ABOUT, &with(8 << 30)), [Severity::Red]);
        assert_eq!(severities(&ABOUT, &writing(with(8 << 30))), [], "nobody reads");
    }

    #[test]
    fn what_an_earlier_job_fills_is_no_hole_of_a_later_one() {
        let mut facts = with(8 << 30);
        let mut writer = facts.jobs[0].clone();
        writer.does.0[0] = false;
        facts.jobs.insert(0, writer);
        assert_eq!(severities(&ABOUT, &facts), [], "not yet known");
        let filled = |hole| {
            let mut facts = after();
            facts.targets[0].coverage.as_mut().unwrap().hole = 8 << 30;
            let coverage = Coverage { bytes: 8 << 30, hole, ..Coverage::default() };
            facts.targets[0].after.as_mut().unwrap().coverage = Some(coverage);
            severities(&ABOUT, &facts)
        };
        assert_eq!(filled(0), []);
        assert_eq!(filled(7 << 30), [Severity::Red]);
    }
}

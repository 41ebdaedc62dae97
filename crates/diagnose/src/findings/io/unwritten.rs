//! Whether what is read was ever written.

use kelvin_measure::text;
use kelvin_storage::probe::StorageFacts;

use super::holes::{AMBER, RED};
use super::{IoFindingDefinition, stored};
use crate::{Effect, EffectBasis, Finding, Severity};

pub(super) const ABOUT: IoFindingDefinition = IoFindingDefinition {
    id: "io-unwritten",
    question: "Was the data that the jobs read ever written, or only reserved?",
    find,
};

fn find(facts: &StorageFacts) -> Vec<Finding> {
    let (part, evidence) = stored(facts, |coverage| coverage.unwritten, "reserved and never written:");
    if part < AMBER {
        return Vec::new();
    }
    vec![Finding {
        id: ABOUT.id,
        severity: if part >= RED { Severity::Red } else { Severity::Amber },
        point: None,
        title: format!(
            "Of the data read, {} was reserved and never written: zeros that the kernel returns without a \
                device",
            text::percent(part)
        ),
        evidence,
        effect: Effect::up_to(part, EffectBasis::Figure),
        below_precision: false,
        threshold: "0.1 % of the bytes that are read; red from 5 %. `fallocate` creates such extents \
            (FIEMAP's UNWRITTEN flag): by its size and blocks, the file seems to be full"
            .into(),
        next: "Write the files once with `--prepare` and run again; `fallocate=none` alone does not fill a \
            file."
            .into(),
    }]
}

#[cfg(test)]
mod tests {
    use super::super::staged::{before, severities};
    use super::*;

    #[test]
    fn reserved_space_is_distinguished_from_written() {
        let with = |unwritten| {
            let mut facts = before();
            facts.targets[0].coverage.as_mut().unwrap().unwritten = unwritten;
            facts
        };
        assert_eq!(severities(&ABOUT, &with(0)), []);
        assert_eq!(severities(&ABOUT, &with(64 << 20)), [Severity::Amber]);
        assert_eq!(severities(&ABOUT, &with(8 << 30)), [Severity::Red]);
    }
}

//! Are there indexes that were written and never used?

use super::FindingDefinition;
use super::useless_indexes::{cost, useless};
use crate::{Effect, EffectBasis, Evidence, EvidenceLine, Finding, Severity};
use kelvin_measure::text;

pub(super) const ABOUT: FindingDefinition = FindingDefinition {
    id: "unused-index",
    question: "Are there indexes that the load wrote but never used?",
    find,
};

fn find(evidence: &Evidence) -> Vec<Finding> {
    let found: Vec<_> = useless(evidence).into_iter().filter(|one| one.twin.is_none()).collect();
    let Some(first) = found.first() else { return Vec::new() };
    let more = if found.len() > 1 { format!(", and {} more", found.len() - 1) } else { String::new() };
    vec![Finding {
        id: ABOUT.id,
        // A report at the end of the month may be what it is for.
        severity: Severity::Note,
        point: None,
        title: format!(
            "The index {} was never used during the load{more}; {} entries were written into it",
            first.index.name,
            text::rounded(first.entries as f64)
        ),
        evidence: found.iter().take(10).map(|one| EvidenceLine::new(&one.index.name, one.reason())).collect(),
        effect: all_of_it(evidence, found.iter().map(|one| one.entries).sum()),
        below_precision: false,
        threshold:
            "an index that was not scanned once during the load and enforces no constraint, and into which \
            1,000 entries or more were written"
                .into(),
        next: "Before you drop the index, find out what it is for: the window contains only the statements \
            of this load. `kelvin advise` shows the statements, and --prove measures the gain."
            .into(),
    }]
}

/// At most what is stated of them in `kelvin advise`. Nothing of it is proven to be wasted: they may serve other loads.
fn all_of_it(evidence: &Evidence, entries: u64) -> Effect {
    match cost(evidence, entries) {
        Effect::Bounded { high, .. } => Effect::up_to(high, EffectBasis::TransactionTime),
        unknown @ Effect::Unknown { .. } => unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::super::useless_indexes::tests::load;
    use super::*;

    #[test]
    fn one_that_only_costs_is_a_note() {
        let found = find(&load(&[("a", "s_i_id", false, 0), ("pk", "s_w_id", true, 0)], 5000));
        assert_eq!((found.len(), found[0].severity), (1, Severity::Note));
        // Of what was written a third is in each index, and in the rows; the sessions do nothing else.
        assert!((found[0].effect.high().unwrap() - 1.0 / 3.0).abs() < 0.02, "{:?}", found[0].effect);
        assert!(found[0].title.contains("5000") || found[0].title.contains("5,000"), "{}", found[0].title);
        assert!(find(&load(&[("a", "s_i_id", false, 3)], 5000)).is_empty());
    }
}

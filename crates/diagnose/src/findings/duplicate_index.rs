//! Are there several indexes with the same columns?

use super::FindingDefinition;
use super::useless_indexes::useless;
use crate::{Effect, Evidence, EvidenceLine, Finding, Severity};

pub(super) const ABOUT: FindingDefinition = FindingDefinition {
    id: "duplicate-index",
    question: "Are there several indexes with the same columns?",
    find,
};

fn find(evidence: &Evidence) -> Vec<Finding> {
    let found: Vec<_> = useless(evidence).into_iter().filter(|one| one.twin.is_some()).collect();
    let Some(first) = found.first() else { return Vec::new() };
    let more = if found.len() > 1 { format!(", and {} more", found.len() - 1) } else { String::new() };
    vec![Finding {
        id: ABOUT.id,
        severity: Severity::Amber,
        point: None,
        title: format!(
            "The index {} has the same columns as {}{more}: each write of such a row is made twice",
            first.index.name,
            first.twin.unwrap_or_default()
        ),
        evidence: found.iter().take(10).map(|one| EvidenceLine::new(&one.index.name, one.reason())).collect(),
        effect: Effect::unknown("what a write spends on one index is not measured"),
        below_precision: false,
        threshold: "two indexes of one table with the same method, columns, options and condition, of which \
            the second enforces no constraint, and 1000 entries or more were written into it"
            .into(),
        next:
            "Drop the second one; `kelvin advise` has the statements, and --prove measures what that saves."
                .into(),
    }]
}

#[cfg(test)]
mod tests {
    use super::super::useless_indexes::tests::load;
    use super::*;

    #[test]
    fn a_second_one_is_amber_and_names_the_first() {
        let found = find(&load(&[("a", "s_i_id", false, 0), ("pk", "s_i_id", true, 90)], 5000));
        assert_eq!((found.len(), found[0].severity), (1, Severity::Amber));
        assert!(found[0].title.contains("public.a has the same columns as public.pk"), "{}", found[0].title);
        assert!(find(&load(&[("a", "s_i_id", false, 0), ("b", "s_w_id", false, 0)], 5000)).is_empty());
    }
}

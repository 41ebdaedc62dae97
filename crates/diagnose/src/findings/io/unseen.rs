//! What could not be inspected before the run, so that errors may go unnoticed.

use kelvin_storage::probe::StorageFacts;

use super::IoFindingDefinition;
use crate::{Effect, EvidenceLine, Finding, Severity};

pub(super) const ABOUT: IoFindingDefinition = IoFindingDefinition {
    id: "io-unseen",
    question: "Which files and devices could not be inspected?",
    find,
};

/// Lines that are shown.
const SHOWN: usize = 5;

fn find(facts: &StorageFacts) -> Vec<Finding> {
    let all = &facts.unseen;
    if all.is_empty() {
        return Vec::new();
    }
    let things =
        if all.len() == 1 { "One file or device".into() } else { format!("{} files or devices", all.len()) };
    // Each is "what: why", or a sentence.
    let line = |text: &String| match text.split_once(": ") {
        Some((what, why)) => EvidenceLine::new(what, why),
        None => EvidenceLine::new("inspected", text),
    };
    let mut evidence: Vec<EvidenceLine> = all.iter().take(SHOWN).map(line).collect();
    if all.len() > SHOWN {
        evidence.push(EvidenceLine::new("further", (all.len() - SHOWN).to_string()));
    }
    vec![Finding {
        id: ABOUT.id,
        severity: Severity::Note,
        point: None,
        title: format!("{things} could not be inspected before the run"),
        evidence,
        effect: Effect::unknown("what was not inspected cannot be quantified"),
        below_precision: false,
        threshold: "any file or device that could not be inspected: a finding may be missing for that reason"
            .into(),
        next: "If the answer matters, run as a user who may read the files and devices, or with fewer files \
            at a time."
            .into(),
    }]
}

#[cfg(test)]
mod tests {
    use super::super::staged::{before, severities};
    use super::*;

    #[test]
    fn what_was_not_inspected_is_reported_with_its_reason() {
        let mut facts = before();
        assert_eq!(severities(&ABOUT, &facts), []);
        facts.unseen = vec!["64 of 900 files were looked at".into()];
        assert_eq!(severities(&ABOUT, &facts), [Severity::Note]);
        facts.unseen.extend((0..7).map(|number| format!("/data/{number}: Permission denied")));
        let found = find(&facts);
        assert_eq!(found[0].title, "8 files or devices could not be inspected before the run");
        assert_eq!(found[0].evidence.len(), SHOWN + 1);
        assert_eq!(found[0].evidence[1], EvidenceLine::new("/data/0", "Permission denied"));
        assert_eq!(found[0].evidence[SHOWN], EvidenceLine::new("further", "3"));
    }
}

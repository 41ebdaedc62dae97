//! What could not be looked at before the run, and so may be wrong without anybody saying so.

use kelvin_storage::probe::StorageFacts;

use super::IoFindingDefinition;
use crate::{Effect, EvidenceLine, Finding, Severity};

pub(super) const ABOUT: IoFindingDefinition = IoFindingDefinition {
    id: "io-unseen",
    question: "What of the files and devices could not be looked at?",
    look,
};

/// Lines that are shown.
const SHOWN: usize = 5;

fn look(facts: &StorageFacts) -> Vec<Finding> {
    let all = &facts.unseen;
    if all.is_empty() {
        return Vec::new();
    }
    let things = if all.len() == 1 { "One thing".into() } else { format!("{} things", all.len()) };
    // Each is "what: why", or a sentence.
    let line = |text: &String| match text.split_once(": ") {
        Some((what, why)) => EvidenceLine::new(what, why),
        None => EvidenceLine::new("looked at", text),
    };
    let mut evidence: Vec<EvidenceLine> = all.iter().take(SHOWN).map(line).collect();
    if all.len() > SHOWN {
        evidence.push(EvidenceLine::new("further", (all.len() - SHOWN).to_string()));
    }
    vec![Finding {
        id: ABOUT.id,
        severity: Severity::Note,
        point: None,
        title: format!("{things} could not be looked at before the run"),
        evidence,
        effect: Effect::unknown("what was not looked at has no size"),
        below_precision: false,
        threshold: "anything that was to be looked at and was not: a finding that is missing may be missing for that".into(),
        next: "Run as a user who may read the files and devices, or with fewer files at a time, where the answer matters.".into(),
    }]
}

#[cfg(test)]
mod tests {
    use super::super::staged::{before, severities};
    use super::*;

    #[test]
    fn what_was_not_looked_at_is_told_with_its_reason() {
        let mut facts = before();
        assert_eq!(severities(&ABOUT, &facts), []);
        facts.unseen = vec!["64 of 900 files were looked at".into()];
        assert_eq!(severities(&ABOUT, &facts), [Severity::Note]);
        facts.unseen.extend((0..7).map(|number| format!("/data/{number}: Permission denied")));
        let found = look(&facts);
        assert_eq!(found[0].title, "8 things could not be looked at before the run");
        assert_eq!(found[0].evidence.len(), SHOWN + 1);
        assert_eq!(found[0].evidence[1], EvidenceLine::new("/data/0", "Permission denied"));
        assert_eq!(found[0].evidence[SHOWN], EvidenceLine::new("further", "3"));
    }
}

//! Is a commit on disk when it is acknowledged? Without `fsync` (SQLite: `synchronous = off`), a crash of the host loses or ruins
//! the database.

use super::{FindingDefinition, setting};
use crate::{Effect, Evidence, EvidenceLine, Finding, Severity};

pub(super) const ABOUT: FindingDefinition =
    FindingDefinition { id: "fsync-off", question: "Does the server wait for the disk (fsync)?", find };

fn find(evidence: &Evidence) -> Vec<Finding> {
    // The second is SQLite's; PostgreSQL has no setting of that name.
    let is_off = |name: &&str| {
        setting::setting_value(evidence, name).is_some_and(|word| word.eq_ignore_ascii_case("off"))
    };
    let Some(name) = ["fsync", "synchronous"].into_iter().find(is_off) else { return Vec::new() };
    let mut facts = vec![EvidenceLine::new(name, "off")];
    if let Some(pages) = setting::setting_value(evidence, "full_page_writes") {
        facts.push(EvidenceLine::new("full_page_writes", pages));
    }
    vec![Finding {
        id: ABOUT.id,
        severity: Severity::Red,
        point: None,
        title: format!(
            "The setting {name} is off: nothing waits for the disk; not comparable with durable results"
        ),
        evidence: facts,
        effect: Effect::unknown("nothing waited for flushes, so their duration was not measured"),
        below_precision: false,
        threshold: "the default is on: with off, a host crash can corrupt the database beyond repair \
            (PostgreSQL documentation, \"Write Ahead Log\" settings; SQLite documentation, \"PRAGMA \
            synchronous\")"
            .into(),
        next: format!(
            "Set {name} to its default and measure again; if it is off on purpose to study the CPU alone, \
            state it with every result."
        ),
    }]
}

#[cfg(test)]
mod tests {
    use super::super::staged::Staged;
    use super::*;

    #[test]
    fn off_is_red_and_on_or_unknown_is_nothing() {
        let found = find(&Staged::new().setting("fsync", "off").done());
        assert_eq!((found.len(), found[0].severity), (1, Severity::Red));
        assert_eq!(find(&Staged::new().setting("synchronous", "off").done()).len(), 1);
        assert!(find(&Staged::new().setting("synchronous", "normal").done()).is_empty());
        assert!(find(&Staged::new().setting("fsync", "on").done()).is_empty());
        assert!(find(&Staged::new().done()).is_empty());
    }
}

//! Is a commit on disk when it is answered? Without `fsync`, a crash of the host loses or ruins the database.

use super::{About, setting};
use crate::{Evidence, Fact, Finding, Severity};

pub(super) const ABOUT: About =
    About { id: "fsync-off", question: "Does the server wait for the disk at all (fsync)?", look };

fn look(evidence: &Evidence) -> Vec<Finding> {
    if setting::word(evidence, "fsync") != Some("off") {
        return Vec::new();
    }
    let mut facts = vec![Fact::new("fsync", "off")];
    if let Some(pages) = setting::word(evidence, "full_page_writes") {
        facts.push(Fact::new("full_page_writes", pages));
    }
    vec![Finding {
        id: ABOUT.id,
        severity: Severity::Red,
        point: None,
        title: "fsync is off: no commit waits for the disk, which is not what others measure".into(),
        evidence: facts,
        threshold: "on, PostgreSQL's default: without it a crash of the host can ruin the database beyond repair \
                    (PostgreSQL documentation, \"Write Ahead Log\" settings)"
            .into(),
        next: "set fsync = on and measure again; where the CPU alone is studied and fsync is off on purpose, say so beside \
               every figure"
            .into(),
    }]
}

#[cfg(test)]
mod tests {
    use super::super::staged::Staged;
    use super::*;

    #[test]
    fn off_is_red_and_on_or_unknown_is_nothing() {
        let found = look(&Staged::new().setting("fsync", "off").done());
        assert_eq!((found.len(), found[0].severity), (1, Severity::Red));
        assert!(look(&Staged::new().setting("fsync", "on").done()).is_empty());
        assert!(look(&Staged::new().done()).is_empty());
    }
}

//! Does a commit wait for its WAL record? Without `synchronous_commit` the last commits before a crash are lost.

use super::{FindingDefinition, setting};
use crate::{Effect, Evidence, EvidenceLine, Finding, Severity};

pub(super) const ABOUT: FindingDefinition = FindingDefinition {
    id: "synchronous-commit-off",
    question: "Does a commit wait until its WAL is flushed (synchronous_commit)?",
    find,
};

fn find(evidence: &Evidence) -> Vec<Finding> {
    if setting::setting_value(evidence, "synchronous_commit") != Some("off") {
        return Vec::new();
    }
    // Without fsync no commit waits for the disk anyway, which has a separate finding.
    let severity = if setting::setting_value(evidence, "fsync") == Some("off") {
        Severity::Amber
    } else {
        Severity::Red
    };
    let mut facts = vec![EvidenceLine::new("synchronous_commit", "off")];
    if let Some(delay) = setting::setting_value(evidence, "wal_writer_delay") {
        facts.push(EvidenceLine::new(
            "wal_writer_delay (a crash loses commits of up to three times this time)",
            format!("{delay} ms"),
        ));
    }
    vec![Finding {
        id: ABOUT.id,
        severity,
        point: None,
        title:
            "The setting synchronous_commit is off: commits are acknowledged before their WAL is flushed; \
            not comparable with durable results"
                .into(),
        evidence: facts,
        effect: Effect::unknown("how long commits would wait was not measured, because they did not wait"),
        below_precision: false,
        threshold: "on, PostgreSQL's default (\"local\", \"remote_write\" and \"remote_apply\" differ from \
            it only with standbys)"
            .into(),
        next:
            "Set synchronous_commit = on and measure again; if that loss is acceptable, state it with every \
            result."
                .into(),
    }]
}

#[cfg(test)]
mod tests {
    use super::super::staged::Staged;
    use super::*;

    #[test]
    fn off_is_red_unless_fsync_is() {
        let off = || Staged::new().setting("synchronous_commit", "off");
        let found = find(&off().done());
        assert_eq!((found.len(), found[0].severity), (1, Severity::Red));
        assert_eq!(find(&off().setting("fsync", "off").done())[0].severity, Severity::Amber);
    }

    #[test]
    fn on_local_or_unknown_is_nothing() {
        for value in ["on", "local", "remote_apply"] {
            assert!(find(&Staged::new().setting("synchronous_commit", value).done()).is_empty());
        }
        assert!(find(&Staged::new().done()).is_empty());
    }
}

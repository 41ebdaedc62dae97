//! Is `performance_schema` off, so that statements and times of files are not known?

use super::{FindingDefinition, setting};
use crate::{Effect, Evidence, EvidenceLine, Finding, Severity};

pub(super) const ABOUT: FindingDefinition = FindingDefinition {
    id: "performance-schema-off",
    question: "Does the server record statement and file times (performance_schema)?",
    find,
};

fn find(evidence: &Evidence) -> Vec<Finding> {
    if !setting::setting_value(evidence, "performance_schema")
        .is_some_and(|word| matches!(word.to_lowercase().as_str(), "off" | "0"))
    {
        return Vec::new();
    }
    vec![Finding {
        id: ABOUT.id,
        severity: Severity::Note,
        point: None,
        title: "The setting performance_schema is off: statement and file times are not known".into(),
        evidence: vec![EvidenceLine::new("performance_schema", "off")],
        effect: Effect::unknown("it hides statement and file times, but costs no throughput"),
        below_precision: false,
        threshold: "any server with performance_schema off (the default of MariaDB; MySQL's default is on)"
            .into(),
        next: "If you need these times, start the server with performance_schema = ON and measure again; it \
            costs some CPU, so compare results only at the same setting."
            .into(),
    }]
}

#[cfg(test)]
mod tests {
    use super::super::staged::Staged;
    use super::*;

    #[test]
    fn off_is_a_note_and_never_more() {
        let found = find(&Staged::new().setting("performance_schema", "off").done());
        assert_eq!((found.len(), found[0].severity), (1, Severity::Note));
        assert!(find(&Staged::new().setting("performance_schema", "on").done()).is_empty());
        assert!(find(&Staged::new().done()).is_empty());
    }
}

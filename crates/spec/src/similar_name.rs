//! The known name that was probably meant by an unknown one.

/// How alike two names must be, from 0 to 1 (Jaro's measure).
const ALIKE: f64 = 0.7;

/// The known name that is most like the unknown one; none where all are too different.
pub fn nearest<'a>(unknown: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let unknown = unknown.to_lowercase().replace('_', "-");
    let alike = |name: &str| {
        if name.len() > 3 && unknown.len() > 3 && (name.contains(&unknown) || unknown.contains(name)) {
            // One is part of the other: of several the one that differs least.
            return 1.0 + strsim::jaro(&unknown, name);
        }
        strsim::jaro(&unknown, &name.replace('_', "-"))
    };
    let scored = known.into_iter().map(|name| (alike(name), name)).filter(|(alike, _)| *alike > ALIKE);
    // Of equally alike ones that with the fewest changes.
    let changes = |name: &str| strsim::levenshtein(&unknown, name);
    scored
        .max_by(|a, b| a.0.total_cmp(&b.0).then_with(|| changes(b.1).cmp(&changes(a.1))))
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use crate::nearest;

    #[test]
    fn slips_are_understood_and_other_words_are_not() {
        let workloads = ["tproc-c", "tproc-h", "pgbench", "script", "io"];
        for (typed, meant) in [
            ("tprocc", "tproc-c"),
            ("tpcc", "tproc-c"),
            ("tpch", "tproc-h"),
            ("pg-bench", "pgbench"),
            ("TPROC_C", "tproc-c"),
        ] {
            assert_eq!(nearest(typed, workloads), Some(meant), "{typed}");
        }
        assert_eq!(nearest("mongodb", workloads), None);
        assert_eq!(nearest("user", ["users", "users-on"]), Some("users"));
        assert_eq!(nearest("checkpoint", ["checkpoint-in-window", "steal"]), Some("checkpoint-in-window"));
    }
}

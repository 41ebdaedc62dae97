//! Is a commit of MySQL, MariaDB or SQL Server on disk when it is acknowledged, and does the database survive a host crash?

use super::{FindingDefinition, setting};
use crate::{Effect, Evidence, EvidenceLine, Finding, Severity};

pub(super) const ABOUT: FindingDefinition = FindingDefinition {
    id: "durability-off",
    question: "Does the server flush each commit to disk, and InnoDB protect pages from torn writes?",
    find,
};

/// What a setting puts at risk.
struct Given {
    name: &'static str,
    value: String,
    severity: Severity,
    what: &'static str,
    mended: &'static str,
}

fn find(evidence: &Evidence) -> Vec<Finding> {
    let given = given(evidence);
    let Some(first) = given.iter().min_by_key(|one| one.severity) else { return Vec::new() };
    let fact = |one: &Given| EvidenceLine::new(one.name, format!("{}: {}", one.value, one.what));
    let mended: Vec<&str> = given.iter().map(|one| one.mended).collect();
    vec![Finding {
        id: ABOUT.id,
        severity: first.severity,
        point: None,
        title: format!(
            "The setting {} is {}: {}; not comparable with durable results",
            first.name, first.value, first.what
        ),
        evidence: given.iter().map(fact).collect(),
        effect: Effect::unknown("nothing waited for flushes, so their duration was not measured"),
        below_precision: false,
        threshold:
            "innodb_flush_log_at_trx_commit 1 (or MariaDB's 3), innodb_doublewrite on, a flush method that \
            flushes, and sync_binlog 1 if there is a binary log (MySQL manual, \
            \"innodb_flush_log_at_trx_commit\": required for full ACID compliance); SQL Server: \
            DELAYED_DURABILITY DISABLED, its default"
                .into(),
        next: format!(
            "Set {} and measure again; if the loss is acceptable, state it with every result.",
            mended.join(", ")
        ),
    }]
}

fn given(evidence: &Evidence) -> Vec<Given> {
    let word = |name| setting::setting_value(evidence, name).map(str::to_lowercase);
    let mut given = Vec::new();
    let mut add = |name, value: Option<String>, severity, what, mended| {
        given.extend(value.map(|value| Given { name, value, severity, what, mended }));
    };
    let flush = word("innodb_flush_log_at_trx_commit");
    add(
        "innodb_flush_log_at_trx_commit",
        flush.filter(|value| matches!(value.as_str(), "0" | "2")),
        Severity::Red,
        "commits are acknowledged before their log is on disk",
        "innodb_flush_log_at_trx_commit = 1",
    );
    let method = word("innodb_flush_method");
    add(
        "innodb_flush_method",
        method.filter(|value| matches!(value.as_str(), "nosync" | "littlesync")),
        Severity::Red,
        "nothing waits for the disk",
        "innodb_flush_method = O_DIRECT",
    );
    let doublewrite = word("innodb_doublewrite");
    add(
        "innodb_doublewrite",
        doublewrite.filter(|value| matches!(value.as_str(), "off" | "0" | "detect_only")),
        Severity::Amber,
        "pages torn by a host crash cannot be repaired",
        "innodb_doublewrite = ON",
    );
    let has_binlog = word("log_bin").is_some_and(|value| value == "on" || value == "1");
    let synced = word("sync_binlog").filter(|value| has_binlog && value != "1");
    add(
        "sync_binlog",
        synced,
        Severity::Amber,
        "a commit may be acknowledged before its binary log is on disk",
        "sync_binlog = 1",
    );
    let delayed = word("delayed_durability_desc");
    add(
        "delayed_durability_desc",
        delayed.clone().filter(|value| value == "forced"),
        Severity::Red,
        "commits are acknowledged before their log is on disk",
        "DELAYED_DURABILITY = DISABLED",
    );
    add(
        "delayed_durability_desc",
        delayed.filter(|value| value == "allowed"),
        Severity::Amber,
        "transactions may ask to be acknowledged before their log is on disk",
        "DELAYED_DURABILITY = DISABLED",
    );
    given
}

#[cfg(test)]
mod tests {
    use super::super::staged::Staged;
    use super::*;

    fn severity(settings: &[(&str, &str)]) -> Option<Severity> {
        let staged = settings.iter().fold(Staged::new(), |staged, (name, value)| staged.setting(name, value));
        let found = find(&staged.done());
        assert!(found.len() < 2);
        found.first().map(|finding| finding.severity)
    }

    #[test]
    fn a_commit_that_is_not_on_disk_is_red() {
        for value in ["0", "2"] {
            assert_eq!(severity(&[("innodb_flush_log_at_trx_commit", value)]), Some(Severity::Red));
        }
        assert_eq!(severity(&[("innodb_flush_method", "nosync")]), Some(Severity::Red));
    }

    #[test]
    fn mariadbs_three_is_durable_and_no_binary_log_needs_no_sync() {
        assert_eq!(severity(&[("innodb_flush_log_at_trx_commit", "3"), ("innodb_doublewrite", "on")]), None);
        assert_eq!(
            severity(&[("innodb_flush_log_at_trx_commit", "1"), ("sync_binlog", "0"), ("log_bin", "off")]),
            None
        );
        assert_eq!(severity(&[("sync_binlog", "1"), ("log_bin", "on")]), None);
        assert_eq!(severity(&[]), None);
    }

    #[test]
    fn delayed_durability_is_red_when_it_is_forced() {
        assert_eq!(severity(&[("delayed_durability_desc", "FORCED")]), Some(Severity::Red));
        assert_eq!(severity(&[("delayed_durability_desc", "ALLOWED")]), Some(Severity::Amber));
        assert_eq!(severity(&[("delayed_durability_desc", "DISABLED")]), None);
    }

    #[test]
    fn what_is_lost_besides_is_amber() {
        assert_eq!(severity(&[("sync_binlog", "0"), ("log_bin", "on")]), Some(Severity::Amber));
        assert_eq!(severity(&[("innodb_doublewrite", "off")]), Some(Severity::Amber));
        let both = Staged::new()
            .setting("innodb_doublewrite", "OFF")
            .setting("innodb_flush_log_at_trx_commit", "2")
            .done();
        let found = find(&both);
        assert_eq!((found[0].severity, found[0].evidence.len()), (Severity::Red, 2));
        assert!(found[0].title.contains("innodb_flush_log_at_trx_commit is 2"), "{}", found[0].title);
    }
}

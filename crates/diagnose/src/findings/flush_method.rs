//! Does InnoDB bypass the kernel's page cache?

use super::{FindingDefinition, buffers_too_small, setting};
use crate::engine::engine_advice;
use crate::{Effect, Evidence, EvidenceLine, Finding, Severity};
use kelvin_measure::text;

pub(super) const ABOUT: FindingDefinition = FindingDefinition {
    id: "flush-method",
    question: "Does InnoDB bypass the kernel's page cache (innodb_flush_method)?",
    find,
};

fn find(evidence: &Evidence) -> Vec<Finding> {
    let word = |name| setting::setting_value(evidence, name).map(str::to_uppercase);
    // Since MariaDB 11.0 the buffering of data files has a separate setting.
    let (name, value) = match (word("innodb_data_file_buffering"), word("innodb_flush_method")) {
        (Some(buffering), _) if buffering == "ON" => ("innodb_data_file_buffering", buffering),
        (Some(_), _) | (None, None) => return Vec::new(),
        (None, Some(method)) if method.starts_with("O_DIRECT") => return Vec::new(),
        (None, Some(method)) => ("innodb_flush_method", method),
    };
    let value = if value.is_empty() { "FSYNC".to_owned() } else { value };
    let pool = engine_advice(evidence).buffers();
    let buffers = pool.bytes(evidence);
    let database = buffers_too_small::database(evidence);
    let beyond = database.zip(buffers).is_some_and(|(database, buffers)| database > buffers);
    let mut facts = vec![EvidenceLine::new(name, value.to_lowercase())];
    facts.extend(pool.size(evidence));
    facts.extend(database.map(|bytes| EvidenceLine::new("database", text::memory(bytes))));
    vec![Finding {
        id: ABOUT.id,
        severity: if beyond { Severity::Amber } else { Severity::Note },
        point: None,
        title: format!(
            "InnoDB's pages go through the kernel's page cache ({name} is {}){}",
            value.to_lowercase(),
            if beyond { ": reads beyond the buffer pool may come from memory, not storage" } else { "" }
        ),
        evidence: facts,
        effect: Effect::unknown("data-in-page-cache reports how many reads the page cache served"),
        below_precision: false,
        threshold: "any method other than O_DIRECT and O_DIRECT_NO_FSYNC; amber when the database is larger \
            than the buffer pool (MySQL's default is fsync up to 8.3 and O_DIRECT since 8.4; MariaDB's is \
            O_DIRECT)"
            .into(),
        next:
            "Set innodb_flush_method = O_DIRECT (MariaDB 11: innodb_data_file_buffering = OFF), restart the \
            server and measure again; give the buffer pool the memory that the page cache used."
                .into(),
    }]
}

#[cfg(test)]
mod tests {
    use kelvin_measure::observation::CaptureTime;

    use super::super::staged::Staged;
    use super::*;

    fn severity(settings: &[(&str, &str)], database: u64) -> Option<Severity> {
        let mysql = Staged::new().environment(serde_json::json!({ "engine": "mysql" }));
        let staged = mysql.setting("innodb_buffer_pool_size", "134217728").relations(
            CaptureTime::After,
            Vec::new(),
            database,
        );
        let staged = settings.iter().fold(staged, |staged, (name, value)| staged.setting(name, value));
        find(&staged.done()).first().map(|finding| finding.severity)
    }

    #[test]
    fn only_a_database_beyond_the_pool_makes_it_amber() {
        let method = |value| [("innodb_flush_method", value)];
        assert_eq!(severity(&method("fsync"), 1 << 20), Some(Severity::Note));
        assert_eq!(severity(&method("fsync"), 1 << 30), Some(Severity::Amber));
        assert_eq!(severity(&method("O_DIRECT"), 1 << 30), None);
        assert_eq!(severity(&method("O_DIRECT_NO_FSYNC"), 1 << 30), None);
        assert_eq!(
            severity(&[("innodb_flush_method", "O_DIRECT"), ("innodb_data_file_buffering", "on")], 1 << 30),
            Some(Severity::Amber)
        );
        assert_eq!(
            severity(&[("innodb_flush_method", "fsync"), ("innodb_data_file_buffering", "off")], 1 << 30),
            None
        );
        assert_eq!(severity(&[], 1 << 30), None);
    }
}

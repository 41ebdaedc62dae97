//! Has the server's version a known fault that touches what the workloads do? The table is the database crate's; what it
//! says of the version is in the run's environment.

use super::FindingDefinition;
use crate::{Effect, Evidence, EvidenceLine, Finding, Severity};

pub(super) const ABOUT: FindingDefinition = FindingDefinition {
    id: "server-fault",
    question: "Does the server's version have a known fault that affects the workload?",
    find,
};

fn find(evidence: &Evidence) -> Vec<Finding> {
    let faults = evidence.context.environment("/database/faults").and_then(|faults| faults.as_array());
    let word = |fault: &serde_json::Value, key: &str| fault[key].as_str().unwrap_or_default().to_owned();
    let findings = faults.into_iter().flatten().map(|fault| Finding {
        id: ABOUT.id,
        severity: Severity::Amber,
        point: None,
        title: format!("The server has a known fault: {}", word(fault, "what")),
        evidence: vec![
            EvidenceLine::new("affected versions", word(fault, "versions")),
            EvidenceLine::new("effect on the workload", word(fault, "effect")),
        ],
        effect: Effect::unknown("the fault affects correctness, not speed"),
        below_precision: false,
        threshold: format!("the version is in the table of known faults; source: {}", word(fault, "source")),
        next:
            "Update the server to its newest minor version and measure again; until then trust no run whose \
            consistency conditions were not checked."
                .into(),
    });
    findings.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Context;

    #[test]
    fn trial_b2_a_known_fault_of_the_server_is_a_finding_of_the_run() {
        let fault = json!({ "id": "f", "versions": "Server 1.0", "what": "rows are lost", "effect": "e", "source": "s" });
        let seen =
            |environment| find(&Evidence::new(Context::default().with_environment(json!({}), environment)));
        let found = seen(json!({ "database": { "version": "Server 1.0", "faults": [fault] } }));
        assert_eq!((found.len(), found[0].severity), (1, Severity::Amber));
        assert!(found[0].title.contains("rows are lost"), "{}", found[0].title);
        assert!(seen(json!({ "database": { "version": "Server 1.1" } })).is_empty());
    }
}

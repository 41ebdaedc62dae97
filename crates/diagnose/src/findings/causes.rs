//! What follows from what: a finding whose cause was found, too, is told but not as one more thing to mend.

use crate::{Finding, Severity};

/// A finding, and those that it follows from; empty where it follows from any other.
const FOLLOWS: &[(&str, &[&str])] = &[
    ("not-steady", &[]),
    (
        "ramp-up-too-short",
        &[
            "checkpoint-in-window",
            "wal-forced-checkpoint",
            "autovacuum-in-window",
            "noisy-neighbour",
            "steal",
        ],
    ),
    ("network-round-trips", &["client-saturated", "noisy-neighbour", "steal"]),
    (
        "log-write-latency",
        &[
            "wal-forced-checkpoint",
            "checkpoint-in-window",
            "autovacuum-in-window",
            "buffers-too-small",
            "noisy-neighbour",
            "steal",
            "swapping",
        ],
    ),
    ("errors-and-retries", &["hot-rows", "outage"]),
    // A client or a machine that stood still explains it.
    ("outage", &["client-saturated", "steal", "swapping", "ramp-up-too-short"]),
];

/// Lowers what follows from a red finding of the same point to amber, naming that one.
pub(super) fn settle(found: &mut [Finding]) {
    let reds: Vec<(&'static str, Option<u32>)> =
        found.iter().filter(|f| f.severity == Severity::Red).map(|f| (f.id, f.point)).collect();
    for finding in found.iter_mut().filter(|finding| finding.severity == Severity::Red) {
        let Some((_, causes)) = FOLLOWS.iter().find(|(id, _)| *id == finding.id) else { continue };
        let is_cause = |(id, point): &&(&'static str, Option<u32>)| {
            let same = point.is_none() || finding.point.is_none() || *point == finding.point;
            *id != finding.id && same && (causes.is_empty() || causes.contains(id))
        };
        if let Some((cause, _)) = reds.iter().find(is_cause) {
            finding.severity = Severity::Amber;
            finding.evidence.push(crate::Fact::new("follows from", *cause));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::severities;

    fn red(id: &'static str, point: Option<u32>) -> Finding {
        Finding {
            id,
            severity: Severity::Red,
            point,
            title: String::new(),
            evidence: Vec::new(),
            threshold: String::new(),
            next: String::new(),
        }
    }

    #[test]
    fn a_consequence_is_amber_and_names_its_cause() {
        let mut found = [red("not-steady", Some(0)), red("steal", Some(0)), red("not-steady", Some(1))];
        settle(&mut found);
        assert_eq!(severities(&found), [Severity::Amber, Severity::Red, Severity::Red]);
        assert_eq!(found[0].evidence[0].found, "steal");
        let mut other = [red("network-round-trips", Some(0)), red("fsync-off", Some(0))];
        settle(&mut other);
        assert_eq!(severities(&other), [Severity::Red, Severity::Red]);
        let mut whole = [red("ramp-up-too-short", Some(0)), red("not-steady", Some(0))];
        settle(&mut whole);
        assert_eq!(severities(&whole), [Severity::Red, Severity::Amber]);
    }
}

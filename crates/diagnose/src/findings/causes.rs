//! Which findings follow from which: a finding whose cause was found as well is reported, but not as another fault.

use crate::{Evidence, Finding, Severity, noise};

/// A finding, and the findings that it can follow from; empty if it can follow from any other.
const FOLLOWS: &[(&str, &[&str])] = &[
    ("not-steady", &[]),
    (
        "ramp-up-too-short",
        &[
            "lock-holder",
            "checkpoint-in-window",
            "wal-forced-checkpoint",
            "autovacuum-in-window",
            "noisy-neighbour",
            "steal",
        ],
    ),
    ("network-round-trips", &["lock-holder", "client-saturated", "noisy-neighbour", "steal"]),
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
    ("hot-rows", &["lock-holder"]),
    ("errors-and-retries", &["lock-holder", "hot-rows", "outage"]),
    // A client or a machine that stalled explains it, and so does a session that held up all others.
    ("outage", &["lock-holder", "client-saturated", "steal", "swapping", "ramp-up-too-short"]),
];

/// Lowers findings that follow from a red finding of the same point to amber, and names that finding. Accepted noise is no
/// longer red, but it is still a cause.
pub(super) fn settle(found: &mut [Finding], evidence: &Evidence) {
    let accepted = |finding: &Finding| {
        let of = finding.point.filter(|_| matches!(finding.id, "noisy-neighbour" | "steal"));
        of.and_then(|point| noise(evidence, point)).is_some_and(|price| price.accepted && price.is_too_dear())
    };
    let reds: Vec<(&'static str, Option<u32>)> = found
        .iter()
        .filter(|finding| finding.severity == Severity::Red || accepted(finding))
        .map(|finding| (finding.id, finding.point))
        .collect();
    for finding in found.iter_mut().filter(|finding| finding.severity == Severity::Red) {
        let Some((_, causes)) = FOLLOWS.iter().find(|(id, _)| *id == finding.id) else { continue };
        let is_cause = |(id, point): &&(&'static str, Option<u32>)| {
            let same = point.is_none() || finding.point.is_none() || *point == finding.point;
            *id != finding.id && same && (causes.is_empty() || causes.contains(id))
        };
        if let Some((cause, _)) = reds.iter().find(is_cause) {
            finding.severity = Severity::Amber;
            finding.evidence.push(crate::EvidenceLine::new("follows from", *cause));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Effect;
    use crate::scene::severities;

    fn red(id: &'static str, point: Option<u32>) -> Finding {
        Finding {
            id,
            severity: Severity::Red,
            point,
            title: String::new(),
            evidence: Vec::new(),
            effect: Effect::unknown("what it costs is not asked here"),
            below_precision: false,
            threshold: String::new(),
            next: String::new(),
        }
    }

    #[test]
    fn a_consequence_is_amber_and_names_its_cause() {
        let mut found = [red("not-steady", Some(0)), red("steal", Some(0)), red("not-steady", Some(1))];
        settle(&mut found, &Evidence::default());
        assert_eq!(severities(&found), [Severity::Amber, Severity::Red, Severity::Red]);
        assert_eq!(found[0].evidence[0].found, "steal");
        let mut other = [red("network-round-trips", Some(0)), red("fsync-off", Some(0))];
        settle(&mut other, &Evidence::default());
        assert_eq!(severities(&other), [Severity::Red, Severity::Red]);
        let mut whole = [red("ramp-up-too-short", Some(0)), red("not-steady", Some(0))];
        settle(&mut whole, &Evidence::default());
        assert_eq!(severities(&whole), [Severity::Red, Severity::Amber]);
    }

    #[test]
    fn trial_d5_what_follows_from_accepted_noise_voids_no_run() {
        let mut scene = crate::scene::Scene::healthy().metric("host.cpu.total.busy", 1.0);
        scene = scene.metric("host.process.server.cpu.user", 0.15);
        scene.spec["accept-noise"] = true.into();
        let amber = Finding { severity: Severity::Amber, ..red("noisy-neighbour", Some(0)) };
        let mut found = [red("not-steady", Some(0)), amber];
        settle(&mut found, &scene.evidence());
        assert_eq!(severities(&found), [Severity::Amber, Severity::Amber]);
        assert_eq!(found[0].evidence[0].found, "noisy-neighbour");
    }
}

//! Were sessions active that do not belong to the load?

use kelvin_measure::observation::{WaitGroup, WaitKind};
use kelvin_measure::text;

use super::FindingDefinition;
use crate::engine::engine_advice;
use crate::noise::is_accepted;
use crate::{Effect, Evidence, EvidenceLine, Finding, Severity};

pub(super) const ABOUT: FindingDefinition = FindingDefinition {
    id: "foreign-sessions",
    question: "Were sessions active that do not belong to the load?",
    find,
};

/// Average number of active sessions: one session that is active for 0.5 of 10 seconds.
const LEAST: f64 = 0.05;

/// Prefix of the names of another Kelvin's sessions; the digits of its process follow.
const OTHER_KELVIN: &str = "client backend (kelvin ";

fn is_foreign(group: &WaitGroup) -> bool {
    group.backend.starts_with("client backend (")
}

fn is_other_kelvin(group: &WaitGroup) -> bool {
    group.backend.starts_with(OTHER_KELVIN)
}

fn find(evidence: &Evidence) -> Vec<Finding> {
    evidence.points().filter_map(|point| of_point(evidence, point.point)).collect()
}

fn of_point(evidence: &Evidence, point: u32) -> Option<Finding> {
    let active = evidence.active(point, is_foreign);
    let sessions = active.sessions();
    if sessions < LEAST {
        return None;
    }
    let what = |group: &WaitGroup| {
        let name = group.backend.trim_start_matches("client backend (").trim_end_matches(')').to_owned();
        (name, group.class.clone(), group.kind)
    };
    let groups = active.by(what);
    let facts = groups.iter().take(5).map(|((name, class, _), sessions)| {
        EvidenceLine::new(
            format!("{name}: {class}"),
            format!("{} sessions on average", text::number(*sessions)),
        )
    });
    let open: f64 =
        groups.iter().filter(|((.., kind), _)| *kind == WaitKind::IdleInTransaction).map(|(_, n)| n).sum();
    let waited: f64 = evidence.row_waits(point).iter().map(|(_, n)| n).sum();
    // If another session leaves a transaction open while users wait for rows, they probably wait for that transaction.
    let blocks = open >= LEAST && waited >= 1.0;
    let mut facts: Vec<EvidenceLine> = facts.collect();
    if blocks {
        facts.push(EvidenceLine::new("sessions waiting for rows at the same time", text::number(waited)));
    }
    // A second load on the same data: the figures include both.
    let other_kelvin = evidence.active(point, is_other_kelvin).sessions();
    let (severity, who) = match (other_kelvin >= LEAST, is_accepted(evidence)) {
        (true, false) => (Severity::Red, "Sessions of another Kelvin were active on the same server"),
        (true, true) => {
            (Severity::Amber, "Sessions of another Kelvin (accepted) were active on the same server")
        }
        (false, _) => (Severity::Amber, "Sessions that do not belong to the load were active"),
    };
    Some(Finding {
        id: ABOUT.id,
        severity,
        point: Some(point),
        title: format!(
            "{who}: {} on average{}",
            text::number(if other_kelvin >= LEAST { other_kelvin } else { sessions }),
            if blocks { ", with a transaction open while users waited for rows" } else { "" }
        ),
        evidence: facts,
        effect: Effect::unknown("the CPU, device and lock use of these sessions is not counted by session"),
        below_precision: false,
        threshold: "0.05 active sessions on average (one session active for 0.5 of 10 seconds)".into(),
        next: engine_advice(evidence).sessions().list.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::staged::Staged;
    use super::*;

    #[test]
    fn the_load_alone_is_no_finding() {
        assert!(find(&Staged::new().done()).is_empty());
        let own = WaitGroup { backend: "client backend".into(), ..WaitGroup::default() };
        let other = WaitGroup { backend: "client backend (psql)".into(), ..WaitGroup::default() };
        assert!(!is_foreign(&own) && is_foreign(&other));
        let kelvin = WaitGroup { backend: "client backend (kelvin 1f9a04c7)".into(), ..WaitGroup::default() };
        assert!(is_foreign(&kelvin) && is_other_kelvin(&kelvin) && !is_other_kelvin(&other));
    }

    /// A figure of two loads describes neither; on a server that must be shared, it can be accepted.
    #[test]
    fn another_kelvin_voids_the_run_unless_noise_is_accepted() {
        let of = |accept: bool, name: &str| {
            let backend = format!("client backend ({name})");
            let mut evidence = Staged::new().sessions(&[(&backend, "CPU", "", 2.0)], &[]).done();
            let spec = serde_json::json!({ "accept-noise": accept });
            evidence.context =
                std::mem::take(&mut evidence.context).with_environment(spec, serde_json::json!({}));
            let found = find(&evidence);
            let voids = crate::verdict::voiding_findings(evidence.point(0).unwrap(), &found).count() > 0;
            (found[0].severity, voids)
        };
        assert_eq!(of(false, "kelvin 1f9a04c7"), (Severity::Red, true));
        assert_eq!(of(true, "kelvin 1f9a04c7"), (Severity::Amber, false));
        assert_eq!(of(false, "psql"), (Severity::Amber, false));
    }
}

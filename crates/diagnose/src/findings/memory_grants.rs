//! Did statements wait for memory to sort or hash before they could begin?

use kelvin_measure::observation::{WaitGroup, WaitKind};
use kelvin_measure::text;
use kelvin_observe::metric;

use super::FindingDefinition;
use crate::{Effect, EffectBasis, Evidence, EvidenceLine, Finding, Severity, is_client};

pub(super) const ABOUT: FindingDefinition = FindingDefinition {
    id: "memory-grants",
    question: "Did statements wait for memory to be granted?",
    find,
};

/// Share of the active sessions from which a class is the limit (METHOD B6), and from which it should be known.
const LIMIT: f64 = 0.4;
const KNOWN: f64 = 0.1;

fn find(evidence: &Evidence) -> Vec<Finding> {
    evidence.points().filter_map(|point| of_point(evidence, point.point)).collect()
}

fn waits(group: &WaitGroup) -> bool {
    group.kind == WaitKind::Memory
}

fn of_point(evidence: &Evidence, point: u32) -> Option<Finding> {
    let active = evidence.active(point, is_client);
    let waiting: f64 = active.groups.iter().filter(|(group, _)| waits(group)).map(|(_, s)| s).sum();
    let share = waiting / active.sessions();
    let pending = evidence.mean(point, metric::GRANTS_PENDING).unwrap_or(0.0);
    // No sessions at all are no share.
    let share = if share.is_nan() { 0.0 } else { share };
    if (share < KNOWN || waiting < 0.5) && pending < 1.0 {
        return None;
    }
    let mut facts = vec![
        EvidenceLine::of_active("sessions waiting for a memory grant", waiting, active.sessions()),
        EvidenceLine::new("pending grants by the server's count", text::number(pending)),
    ];
    let statements = evidence.statements(point).map_or(&[][..], |(statements, _)| statements);
    facts.extend(active.groups.iter().filter(|(group, _)| waits(group)).take(3).filter_map(
        |(group, sessions)| {
            let of = statements.iter().find(|statement| Some(statement.query) == group.query)?;
            Some(EvidenceLine::new(
                format!("in {}", text::statement(&of.text)),
                format!("{} of them", text::number(*sessions)),
            ))
        },
    ));
    Some(Finding {
        id: ABOUT.id,
        severity: if share >= LIMIT && waiting >= 1.0 { Severity::Red } else { Severity::Amber },
        point: Some(point),
        title: format!("Statements waited for memory: {} of the active sessions' time", text::percent(share)),
        evidence: facts,
        effect: Effect::up_to(share, EffectBasis::TransactionTime),
        below_precision: false,
        threshold: "amber from 10 % of the active sessions or one pending grant on average, red from 40 % (the verdict's \
            own threshold); an OLTP load has none"
            .into(),
        next: "Look at the statements that sort or hash many rows: a missing index or wrong estimates make their grants \
            large. More memory for the server, or a smaller share for each grant (Resource Governor, \
            MAX_GRANT_PERCENT), lets more of them run at a time."
            .into(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::staged::Staged;
    use super::*;

    #[test]
    fn pending_grants_are_reported_and_their_absence_is_not() {
        let found = find(&Staged::new().metric(metric::GRANTS_PENDING, 3.0).done());
        assert_eq!((found.len(), found[0].severity), (1, Severity::Amber));
        assert!(find(&Staged::new().metric(metric::GRANTS_PENDING, 0.2).done()).is_empty());
        let groups = [("client backend", "CPU", "", 4.0)];
        assert!(find(&Staged::new().sessions(&groups, &[]).done()).is_empty());
    }
}

//! Did sessions queue for a lock that is neither a row's nor held by one transaction for long?

use kelvin_measure::observation::{WaitGroup, WaitKind};
use kelvin_measure::text;

use super::{FindingDefinition, lock_holder};
use crate::engine::engine_advice;
use crate::verdict::time::model;
use crate::{Effect, EffectBasis, Evidence, EvidenceLine, Finding, PointEvidence, Severity, is_client};

pub(super) const ABOUT: FindingDefinition = FindingDefinition {
    id: "lock-queue",
    question: "Did sessions queue for a table, extension or advisory lock?",
    find,
};

/// Share of the active sessions from which a queue should be known, as for lightweight locks.
const KNOWN: f64 = 0.1;
/// And their number: less is no queue.
const SESSIONS: f64 = 0.5;

const OTHERWISE: &str = "Look the name up in the server's manual; shorter transactions and fewer sessions shorten any such queue.";

fn waits_for_a_lock(group: &WaitGroup) -> bool {
    group.kind == WaitKind::Lock
}

fn find(evidence: &Evidence) -> Vec<Finding> {
    evidence.points().filter_map(|point| of_point(evidence, point)).collect()
}

fn of_point(evidence: &Evidence, point: &PointEvidence) -> Option<Finding> {
    let active = evidence.active(point.point, is_client);
    let named = active.by(|group| waits_for_a_lock(group).then(|| group.event.clone()));
    let queues: Vec<(&str, f64)> =
        named.iter().filter_map(|(event, sessions)| Some((event.as_deref()?, *sessions))).collect();
    let (event, waiting) = *queues.first()?;
    let share = waiting / active.sessions();
    if share.is_nan() || share < KNOWN || waiting < SESSIONS {
        return None;
    }
    // One transaction that holds what the others wait for is named with its statement there.
    if (lock_holder::ABOUT.find)(evidence).iter().any(|holder| holder.point == Some(point.point)) {
        return None;
    }
    // Transactions are also under way where no session of theirs is active.
    let of_time = model(evidence, point).map_or(share, |model| waiting / model.sessions);
    let facts = queues.iter().take(3).map(|(event, sessions)| {
        EvidenceLine::of_active(
            format!("sessions waiting for a lock ({event})"),
            *sessions,
            active.sessions(),
        )
    });
    let mut facts: Vec<EvidenceLine> = facts.collect();
    let statement = active
        .groups
        .iter()
        .find_map(|(group, _)| group.query.filter(|_| group.event == event && waits_for_a_lock(group)));
    facts.extend(statement.and_then(|query| {
        let (statements, _) = evidence.statements(point.point)?;
        let one = statements.iter().find(|one| one.query == query)?;
        Some(EvidenceLine::new("statement with the most waiting sessions", text::statement(&one.text)))
    }));
    let engine = engine_advice(evidence).queues();
    let name = event.to_lowercase();
    let known = engine.locks.iter().find(|(part, ..)| name.contains(part));
    let (what, next) = known
        .map_or_else(|| (format!("the lock {event}"), OTHERWISE), |(_, what, next)| ((*what).into(), *next));
    Some(Finding {
        id: ABOUT.id,
        // Whether the queue limits is what the verdict says; this finding names the lock.
        severity: Severity::Amber,
        point: Some(point.point),
        title: format!("Sessions queued for {what}: {} of their active time", text::percent(share)),
        evidence: facts,
        effect: Effect::up_to(of_time.min(1.0), EffectBasis::TransactionTime),
        below_precision: false,
        threshold: engine.lock_threshold.into(),
        next: next.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::staged::Staged;
    use super::*;

    fn found(event: &'static str, waiting: f64) -> Option<Finding> {
        let sessions = [("client backend", "Lock", event, waiting), ("client backend", "CPU", "", 4.0)];
        find(&Staged::new().sessions(&sessions, &[]).done()).pop()
    }

    #[test]
    fn a_queue_is_named_with_what_helps() {
        let extend = found("extend", 4.0).unwrap();
        assert_eq!((extend.severity, extend.effect.high()), (Severity::Amber, Some(0.5)));
        assert!(extend.title.contains("extension of a table") && extend.next.contains("COPY"), "{extend:?}");
        assert!(found("advisory", 1.0).unwrap().next.contains("more than one key"));
        assert!(found("relation", 1.0).unwrap().next.contains("lock_timeout"));
        assert!(found("frozenid", 1.0).unwrap().next.contains("manual"));
    }

    #[test]
    fn rows_few_sessions_and_no_sessions_are_nothing() {
        assert!(found("transactionid", 4.0).is_none() && found("tuple", 4.0).is_none());
        assert!(found("extend", 0.3).is_none());
        assert!(find(&Staged::new().done()).is_empty());
    }

    #[test]
    fn one_transaction_that_holds_it_for_long_is_the_lock_holder_instead() {
        use kelvin_measure::observation::Blocker;
        let sessions = [("client backend", "Lock", "relation", 4.0), ("client backend", "CPU", "", 4.0)];
        let mut staged = Staged::new().sessions(&sessions, &[]);
        for second in 8..20 {
            let blocker = Blocker {
                pid: 7,
                transaction_ms: Some((second - 7) as f64 * 1e3),
                waiting: vec![11, 12, 13, 14],
                waiters: 4,
                ..Blocker::default()
            };
            staged = staged.blocking(second, vec![blocker]);
        }
        assert!(find(&staged.done()).is_empty());
    }

    #[test]
    fn mysqls_states_have_their_own_remedies() {
        let group = |class: &str, event: &str, kind| WaitGroup {
            backend: "client backend".into(),
            class: class.into(),
            event: event.into(),
            kind,
            ..WaitGroup::default()
        };
        let states = [
            (group("Lock", "Waiting for table metadata lock", WaitKind::Lock), 4.0),
            (group("CPU", "", WaitKind::Cpu), 4.0),
        ];
        let mysql = Staged::new().environment(serde_json::json!({ "engine": "mysql" }));
        let one = find(&mysql.states(&states).done()).pop().unwrap();
        assert!(one.title.contains("metadata locks") && one.next.contains("DDL"), "{one:?}");
    }
}

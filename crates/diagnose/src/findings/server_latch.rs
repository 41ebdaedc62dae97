//! Did sessions queue for a lightweight lock or latch of the server that is none of a page?

use kelvin_measure::observation::{WaitGroup, WaitKind};
use kelvin_measure::text;
use kelvin_observe::metric;

use super::FindingDefinition;
use crate::engine::engine_advice;
use crate::verdict::time::model;
use crate::{Effect, EffectBasis, Evidence, EvidenceLine, Finding, PointEvidence, Severity, is_client};

pub(super) const ABOUT: FindingDefinition = FindingDefinition {
    id: "server-latch",
    question: "Did sessions queue for a lightweight lock of the server?",
    find,
};

/// Share of the active sessions from which a queue should be known, as for hot pages.
const KNOWN: f64 = 0.1;

fn find(evidence: &Evidence) -> Vec<Finding> {
    evidence.points().filter_map(|point| of_point(evidence, point)).collect()
}

fn of_point(evidence: &Evidence, point: &PointEvidence) -> Option<Finding> {
    let active = evidence.active(point.point, is_client);
    let engine = engine_advice(evidence);
    // Latches of pages have separate findings.
    let latch = |group: &WaitGroup| {
        let name = engine.latch_name(group).filter(|_| group.kind == WaitKind::Latch);
        name.map(str::to_owned)
    };
    let named = active.by(latch);
    let (event, waiting) = named.iter().find_map(|(event, sessions)| Some((event.as_deref()?, *sessions)))?;
    let share = waiting / active.sessions();
    if share.is_nan() || share < KNOWN || waiting < 0.5 {
        return None;
    }
    // Transactions are also under way where no session of theirs is active.
    let of_time = model(evidence, point).map_or(share, |model| waiting / model.sessions);
    let latches = named.iter().filter_map(|(event, sessions)| Some((event.as_deref()?, *sessions)));
    let mut facts: Vec<EvidenceLine> = latches
        .take(3)
        .map(|(event, sessions)| {
            EvidenceLine::of_active(format!("sessions waiting for {event}"), sessions, active.sessions())
        })
        .collect();
    let counted = evidence.mean(point.point, &format!("{}{}", metric::LATCH_WAITS, event.to_lowercase()));
    facts.extend(counted.map(|counted| {
        let found = format!("{} s per second", text::number(counted));
        EvidenceLine::new("waits of all tasks for this class, by the server's own count", found)
    }));
    Some(Finding {
        id: ABOUT.id,
        // Whether the queue limits is what the verdict says; this finding names the lock.
        severity: Severity::Amber,
        point: Some(point.point),
        title: format!(
            "Sessions queued for the {} {event}: {} of their active time",
            engine.queues().latch,
            text::percent(share)
        ),
        evidence: facts,
        effect: Effect::up_to(of_time, EffectBasis::TransactionTime),
        below_precision: false,
        threshold:
            "one lightweight lock or class of latches (pages and the log have separate findings): amber \
            from 10 % of the active sessions and half a session; the verdict shows whether it is the limit"
                .into(),
        next: engine.latch_remedy(event).into(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::staged::Staged;
    use super::*;

    fn found(event: &'static str, waiting: f64) -> Option<Finding> {
        let sessions = [("client backend", "LWLock", event, waiting), ("client backend", "CPU", "", 4.0)];
        find(&Staged::new().sessions(&sessions, &[]).done()).pop()
    }

    #[test]
    fn a_queue_for_one_lock_is_named_with_what_helps() {
        let many = found("LockManager", 4.0).unwrap();
        assert_eq!((many.severity, many.effect.high()), (Severity::Amber, Some(0.5)));
        assert!(many.title.contains("LockManager") && many.next.contains("16 relations"), "{many:?}");
        assert_eq!(found("buffer_mapping", 1.0).map(|one| one.severity), Some(Severity::Amber));
        assert!(found("BufferMappingLock", 1.0).unwrap().next.contains("shared_buffers"));
        assert!(found("SubtransSLRU", 1.0).unwrap().next.contains("savepoints"));
        assert!(found("XactSLRU", 1.0).unwrap().next.contains("transaction_buffers"));
        assert!(found("SerializableXactHash", 1.0).unwrap().next.contains("read only"));
        assert!(found("predicate_lock_manager", 1.0).unwrap().next.contains("max_pred_locks"));
        assert!(found("Autovacuum", 1.0).unwrap().next.contains("manual"));
    }

    #[test]
    fn few_pages_and_the_log_are_other_findings() {
        assert!(found("ProcArray", 0.2).is_none());
        assert!(found("BufferContent", 4.0).is_none() && found("WALInsert", 4.0).is_none());
        assert!(find(&Staged::new().done()).is_empty());
    }
}

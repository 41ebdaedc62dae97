//! Did sessions queue for a lightweight lock of PostgreSQL, or a latch of SQL Server that is none of a page?

use kelvin_measure::observation::{WaitGroup, WaitKind};
use kelvin_measure::text;
use kelvin_observe::metric;

use super::FindingDefinition;
use crate::load::is_sqlserver;
use crate::verdict::time::model;
use crate::{Effect, EffectBasis, Evidence, EvidenceLine, Finding, PointEvidence, Severity, is_client};

pub(super) const ABOUT: FindingDefinition = FindingDefinition {
    id: "server-latch",
    question: "Did sessions queue for a lightweight lock of the server?",
    find,
};

/// Share of the active sessions from which a queue should be known, as for hot pages.
const KNOWN: f64 = 0.1;

const PREDICATES: &str = "These are the predicate locks of SERIALIZABLE transactions: declare transactions \
    that only read as `read only`, keep transactions short, or use REPEATABLE READ if the application allows \
    it; a higher max_pred_locks_per_transaction prevents the promotion of row locks to table locks.";

/// What a lock protects, by the beginning of its name in any version, and what helps.
const REMEDIES: [(&str, &str); 12] = [
    (
        "buffermapping",
        "This is the buffer mapping table: pages are replaced constantly. Raise shared_buffers until the \
        load's pages fit.",
    ),
    (
        "lockmanager",
        "This is the lock manager: a statement that locks more than 16 relations (partitions, indexes) does \
        not fit into the session's fast-path slots. Use fewer partitions and indexes per statement, prepared \
        statements, or PostgreSQL 18 with a higher max_locks_per_transaction.",
    ),
    (
        "procarray",
        "This is the list of transactions, which each snapshot reads: use fewer sessions (a pooler), and transactions of several \
        statements instead of one each.",
    ),
    (
        "xidgen",
        "Each transaction that writes takes a transaction ID: put more changes into one transaction, and \
            avoid savepoints.",
    ),
    (
        "subtrans",
        "Subtransactions (savepoints, exception blocks in PL/pgSQL) exceed 64 in a transaction while another one is old: avoid \
        them, end old transactions; since PostgreSQL 17, raise subtransaction_buffers.",
    ),
    (
        "multixact",
        "Several transactions lock the same rows with FOR SHARE or foreign keys: lock fewer; since PostgreSQL 17, raise \
        multixact_member_buffers and multixact_offset_buffers.",
    ),
    (
        "xact",
        "This is the state of transactions: since PostgreSQL 17, raise transaction_buffers; set hint bits with `vacuum` after \
        loading.",
    ),
    ("serializable", PREDICATES),
    ("predicate", PREDICATES),
    ("perxactpredicate", PREDICATES),
    ("oldserxid", PREDICATES),
    (
        "parallel",
        "These are workers of parallel statements: compare with max_parallel_workers_per_gather = 0.",
    ),
];

/// The same of SQL Server's classes of latches.
const CLASSES: [(&str, &str); 6] = [
    ("ACCESS_METHODS_DATASET_PARENT", PARALLEL_SCANS),
    ("ACCESS_METHODS_SCAN_RANGE_GENERATOR", PARALLEL_SCANS),
    (
        "ACCESS_METHODS_HOBT_VIRTUAL_ROOT",
        "This is the root of an index, which changes when the pages below it are split: spread the inserts over hash \
        partitions.",
    ),
    (
        "FGCB_ADD_REMOVE",
        "Files of a filegroup grew: make them large enough before the load, let them grow in larger \
        increments, and allow instant file initialization (the privilege \"perform volume maintenance tasks\").",
    ),
    (
        "LOG_MANAGER",
        "The transaction log grew: make it large enough before the load, and find out why it is not reused \
        (log_reuse_wait_desc of sys.databases).",
    ),
    (
        "NESTING_TRANSACTION",
        "Threads of a parallel statement share a transaction: compare with MAXDOP = 1 for such statements.",
    ),
];

const PARALLEL_SCANS: &str = "Threads of a parallel scan take their ranges of pages from it: compare with a lower MAXDOP or a higher \
    `cost threshold for parallelism`, and look for an index that avoids the scan.";

/// What a session waits for, if that is a latch of the server; latches of pages have separate findings.
fn latch(group: &WaitGroup) -> Option<String> {
    let known = match group.class.as_str() {
        "LWLock" | "IPC" => Some(&group.event),
        // SQL Server's, whose class is what they wait for.
        "Latch" => group.object.as_ref(),
        _ => None,
    };
    known.filter(|_| group.kind == WaitKind::Latch).cloned()
}

/// Without the separators that some versions have: "buffer_mapping", "BufferMappingLock", "BufferMapping".
fn plain(event: &str) -> String {
    event.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase()
}

fn remedy(event: &str, sqlserver: bool) -> &'static str {
    if sqlserver {
        let found = CLASSES.iter().find(|(class, _)| event.starts_with(class)).map(|(_, remedy)| *remedy);
        return found.unwrap_or("Look the class up in Microsoft's reference of sys.dm_os_latch_stats; fewer sessions shorten any such queue.");
    }
    let plain = plain(event);
    let found = REMEDIES.iter().find(|(name, _)| plain.starts_with(name)).map(|(_, remedy)| *remedy);
    found.unwrap_or("Look the name up among the wait events in PostgreSQL's manual; fewer sessions (a pooler) shorten any such queue.")
}

fn find(evidence: &Evidence) -> Vec<Finding> {
    evidence.points().filter_map(|point| of_point(evidence, point)).collect()
}

fn of_point(evidence: &Evidence, point: &PointEvidence) -> Option<Finding> {
    let active = evidence.active(point.point, is_client);
    let named = active.by(latch);
    let sqlserver = is_sqlserver(evidence);
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
    if sqlserver {
        let counted = evidence.mean(point.point, &format!("{}{}", metric::LATCH_WAITS, event.to_lowercase()));
        facts.extend(counted.map(|counted| {
            let found = format!("{} s per second", text::number(counted));
            EvidenceLine::new("waits of all tasks for this class, by the server's own count", found)
        }));
    }
    Some(Finding {
        id: ABOUT.id,
        // Whether the queue limits is what the verdict says; this finding names the lock.
        severity: Severity::Amber,
        point: Some(point.point),
        title: format!(
            "Sessions queued for the {} {event}: {} of their active time",
            if sqlserver { "latch" } else { "lightweight lock" },
            text::percent(share)
        ),
        evidence: facts,
        effect: Effect::up_to(of_time, EffectBasis::TransactionTime),
        below_precision: false,
        threshold:
            "one lightweight lock or class of latches (pages and the log have separate findings): amber \
            from 10 % of the active sessions and half a session; the verdict shows whether it is the limit"
                .into(),
        next: remedy(event, sqlserver).into(),
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

//! Did the users queue for the same rows?
//!
//! A wait for a row lasts as long as its holder's transaction: if holders wait for the WAL or redo log, or for their
//! client between two statements, that is the cause, and this finding is not red.

use kelvin_measure::text;
use std::collections::{BTreeMap, BTreeSet};

use kelvin_measure::observation::{Blocker, CaptureTime, WaitGroup, WaitKind};

use super::{FindingDefinition, scan_without_index};
use crate::engine::engine_advice;
use crate::{Effect, EffectBasis, Evidence, EvidenceLine, Finding, Severity, is_client};

pub(super) const ABOUT: FindingDefinition =
    FindingDefinition { id: "hot-rows", question: "Did users queue for the same rows?", find };

/// Share of the active sessions from which a class is the limit, and how far it must be ahead of others (METHOD B6).
const LIMIT: f64 = 0.4;
const MARGIN: f64 = 2.0;
/// Share from which it should be known. Two users a warehouse spend 11 to 16 % on it (PostgreSQL 15, two cores).
const KNOWN: f64 = 0.25;
/// Users a warehouse above which TPROC-C queues for its warehouse row by nature: each New-Order and Payment needs it. The
/// specification has ten terminals a warehouse, with waits that leave the row alone (TPC-C 5.2.5).
const USERS_A_WAREHOUSE: f64 = 2.0;

fn find(evidence: &Evidence) -> Vec<Finding> {
    evidence.points().filter_map(|point| of_point(evidence, point.point)).collect()
}

/// Whether the point has this finding as red.
pub(super) fn is_red(evidence: &Evidence, point: u32) -> bool {
    of_point(evidence, point).is_some_and(|finding| finding.severity == Severity::Red)
}

fn waits_for_a_row(group: &WaitGroup) -> bool {
    group.kind == WaitKind::RowLock
}

fn waits_for_the_log(group: &WaitGroup) -> bool {
    matches!(group.kind, WaitKind::Log | WaitKind::LogFlush | WaitKind::Replication)
}

fn of_point(evidence: &Evidence, point: u32) -> Option<Finding> {
    let active = evidence.active(point, is_client);
    let sum = |of: &dyn Fn(&WaitGroup) -> bool| -> f64 {
        active.groups.iter().filter(|(group, _)| of(group)).map(|(_, sessions)| sessions).sum()
    };
    let users = f64::from(evidence.point(point)?.users);
    let waiting = sum(&waits_for_a_row);
    let idle = sum(&|group| matches!(group.kind, WaitKind::IdleInTransaction | WaitKind::Client));
    let log = sum(&waits_for_the_log);
    let share = waiting / active.sessions();
    // An average below one session is not a queue; NaN without a session.
    if active.looks == 0 || waiting < 1.0 || share.is_nan() || share < KNOWN {
        return None;
    }
    let holders = log.max(idle);
    let by_nature = by_nature(evidence);
    let crowded = by_nature.filter(|rows| users / rows.number > rows.users_each);
    let red = share >= LIMIT
        && waiting >= MARGIN * holders
        && waiting >= users / 4.0
        && (by_nature.is_none() || crowded.is_some())
        // A transaction that scans a table holds its row locks longer.
        && !scan_without_index::is_red(evidence);
    let rows = evidence.row_waits(point);
    let of = rows.first().map_or(String::new(), |(relation, _)| format!(" of {relation}"));
    let mut facts = vec![
        EvidenceLine::of_active(
            "sessions waiting for a row held by another session",
            waiting,
            active.sessions(),
        ),
        EvidenceLine::new("sessions waiting for the log at the same time", text::number(log)),
        EvidenceLine::new("sessions idle in a transaction, waiting for their client", text::number(idle)),
    ];
    let relation = |(relation, waiting): (String, f64)| {
        EvidenceLine::new(
            format!("waiting for rows of {relation}"),
            format!("{} sessions", text::number(waiting)),
        )
    };
    facts.extend(rows.into_iter().take(3).map(relation));
    facts.extend(holders_of(evidence, point));
    if let Some(rows) = by_nature {
        let (each, number) = (text::number(users / rows.number), text::number(rows.number));
        facts.push(EvidenceLine::new(
            format!("users per {}", rows.of),
            format!("{} / {number} = {each}", text::number(users)),
        ));
    }
    let next = if let Some(rows) = crowded {
        format!(
            "{} at least {}{}, not {}, for {} users: {}; with fewer, the result measures only the queue for \
                these rows.",
            rows.load,
            text::number((users / rows.users_each).ceil()),
            rows.unit,
            text::number(rows.number),
            text::number(users),
            rows.why
        )
    } else if red {
        "Spread the users over more rows, or shorten what a transaction does while it holds them (look at \
        the statements that follow the update)."
            .into()
    } else {
        "First find out what the lock holders waited for: they hold the row until the log is flushed or \
        their client responds."
            .into()
    };
    Some(Finding {
        id: ABOUT.id,
        severity: if red { Severity::Red } else { Severity::Amber },
        point: Some(point),
        title: format!("Users queued for the same rows{of}: {} of their active time", text::percent(share)),
        evidence: facts,
        effect: Effect::up_to(share, EffectBasis::TransactionTime),
        below_precision: false,
        threshold:
            "red from 40 % of the active sessions, if twice as many wait for rows as for the log or for \
            their client (the verdict's own threshold: 40 % with a margin of two) and 25 % of the users are \
            in the queue; amber from 25 % of the active sessions"
                .into(),
        next,
    })
}

/// The holders of the rows: the applications, and the two oldest transactions that were seen while others waited for
/// them.
fn holders_of(evidence: &Evidence, point: u32) -> Vec<EvidenceLine> {
    let looks = evidence.blockers(point);
    let opened = evidence.window(point).map_or(0, |window| window.from);
    let named_by_account = engine_advice(evidence).sessions().named_by_account;
    let mut applications: BTreeMap<&str, usize> = BTreeMap::new();
    // By process, which is seen again and again: its oldest transaction.
    let mut oldest: BTreeMap<i64, (f64, &Blocker)> = BTreeMap::new();
    for (at, blockers) in looks {
        let names: BTreeSet<&str> = blockers.iter().map(|one| one.application.as_str()).collect();
        for name in names {
            *applications.entry(name).or_default() += 1;
        }
        for one in blockers {
            let age = |one: &Blocker| one.transaction_ms.unwrap_or(0.0);
            if oldest.get(&one.pid).is_none_or(|(_, known)| age(known) < age(one)) {
                oldest.insert(one.pid, (at.saturating_sub(opened) as f64 / 1e9, one));
            }
        }
    }
    let mut facts: Vec<EvidenceLine> = applications
        .into_iter()
        .map(|(name, seen)| {
            let who = if named_by_account {
                format!("account \"{name}\"")
            } else if name.is_empty() {
                "sessions without an application name".into()
            } else {
                format!("\"{name}\"")
            };
            EvidenceLine::new(
                format!("held by {who}"),
                format!("in {seen} of {}", text::count(looks.len(), "sample")),
            )
        })
        .collect();
    let mut oldest: Vec<_> = oldest.into_values().collect();
    oldest.sort_by(|(_, a), (_, b)| {
        b.transaction_ms.unwrap_or(0.0).total_cmp(&a.transaction_ms.unwrap_or(0.0))
    });
    facts.extend(oldest.into_iter().take(2).map(|(second, one)| {
        let whom: Vec<String> = one.waiting.iter().map(i64::to_string).collect();
        let age = one.transaction_ms.map_or_else(
            || "transaction age not known".into(),
            |ms| format!("transaction age {}", text::short_seconds(ms / 1e3)),
        );
        let doing = if one.doing.is_empty() { "not seen".into() } else { one.doing.clone() };
        EvidenceLine::new(
            format!("process {} at {second:.0} s", one.pid),
            format!("blocked {}, {age}, doing: {doing}", whom.join(", ")),
        )
    }));
    facts
}

/// The rows that the users of a workload always queue for.
#[derive(Debug, Clone, Copy)]
struct ByNature {
    number: f64,
    users_each: f64,
    of: &'static str,
    load: &'static str,
    unit: &'static str,
    why: &'static str,
}

/// Those of a built-in workload: the requested number, or the number in the database.
fn by_nature(evidence: &Evidence) -> Option<ByNature> {
    let asked = |pointer: &str| evidence.context.spec(pointer).and_then(serde_json::Value::as_f64);
    let found = |name: &str| {
        let (relations, _) = evidence.relations(CaptureTime::Before)?;
        let is = |of: &str| of.rsplit('.').next() == Some(name);
        relations.iter().find(|r| r.kind == "table" && is(&r.name))?.rows.map(|rows| rows as f64)
    };
    let (number, rows) = match evidence.context.workload.as_str() {
        "tproc-c" => (
            asked("/tproc-c/warehouses").or_else(|| found("warehouse")),
            ByNature {
                number: 0.0,
                users_each: USERS_A_WAREHOUSE,
                of: "warehouse",
                load: "Load",
                unit: " warehouses",
                why: "each warehouse has one row that every New-Order and Payment needs",
            },
        ),
        // User scripts may have other rows in common.
        "pgbench" if !scan_without_index::own_scripts(evidence) => (
            asked("/pgbench/scale").or_else(|| found("pgbench_branches")),
            ByNature {
                number: 0.0,
                users_each: 1.0,
                of: "branch",
                load: "Use a scale of",
                unit: "",
                why: "each branch has one row that every transaction updates (pgbench's documentation, \
                    \"Good Practices\")",
            },
        ),
        _ => return None,
    };
    number.filter(|number| *number > 0.0).map(|number| ByNature { number, ..rows })
}

#[cfg(test)]
mod tests {
    use kelvin_measure::event::Event;
    use kelvin_measure::observation::Observation;

    use super::super::staged::{Staged, table};
    use super::*;

    /// Observed on PostgreSQL 15 with 16 users on one warehouse, and with eight on four.
    const ONE: &[(&str, &str, &str, f64)] = &[
        ("client backend", "Lock", "transactionid", 10.4),
        ("client backend", "Lock", "tuple", 2.4),
        ("client backend", "LWLock", "WALWrite", 1.8),
        ("client backend", "IO", "WALSync", 1.0),
        ("client backend", "CPU", "", 0.6),
    ];
    const HEALTHY: &[(&str, &str, &str, f64)] = &[
        ("client backend", "LWLock", "WALWrite", 4.8),
        ("client backend", "Lock", "transactionid", 1.3),
        ("client backend", "IO", "WALSync", 1.0),
        ("client backend", "CPU", "", 0.85),
    ];

    fn severity(staged: Staged) -> Option<Severity> {
        find(&staged.done()).first().map(|finding| finding.severity)
    }

    #[test]
    fn sixteen_users_on_one_warehouse_are_red() {
        let found = find(
            &Staged::sized(16, 1)
                .sessions(ONE, &[("public.warehouse", 11.0), ("public.district", 1.0)])
                .done(),
        );
        assert_eq!((found.len(), found[0].severity), (1, Severity::Red));
        assert!(found[0].title.contains("public.warehouse"), "{}", found[0].title);
        assert!(
            found[0].next.contains("Load at least 8 warehouses, not 1, for 16 users"),
            "{}",
            found[0].next
        );
    }

    #[test]
    fn who_held_the_rows_is_shown() {
        let blocker = |pid, ms: f64, doing: &str, waiting: &[i64]| Blocker {
            pid,
            application: if pid == 7 { "psql".into() } else { "kelvin".into() },
            transaction_ms: Some(ms),
            doing: doing.into(),
            waiting: waiting.to_vec(),
            ..Blocker::default()
        };
        let staged = Staged::sized(16, 1)
            .sessions(ONE, &[("public.warehouse", 11.0)])
            .blocking(
                8,
                vec![blocker(7, 45_000.0, "Idle in transaction", &[11, 12]), blocker(11, 3.0, "CPU", &[13])],
            )
            .blocking(9, vec![blocker(11, 4.0, "LWLock WALWrite", &[12, 13])])
            .blocking(30, vec![blocker(99, 1.0, "CPU", &[1])]);
        let found = find(&staged.done());
        let facts: Vec<String> =
            found[0].evidence.iter().map(|fact| format!("{}: {}", fact.what, fact.found)).collect();
        for fact in [
            "held by \"psql\": in 1 of 2 samples",
            "held by \"kelvin\": in 2 of 2 samples",
            "process 7 at 2 s: blocked 11, 12, transaction age 45.0 s, doing: Idle in transaction",
            "process 11 at 3 s: blocked 12, 13, transaction age 4 ms, doing: LWLock WALWrite",
        ] {
            assert!(facts.iter().any(|known| known == fact), "{fact} is not in {facts:#?}");
        }
        assert!(!facts.iter().any(|fact| fact.contains("99")), "after the window: {facts:#?}");
    }

    #[test]
    fn two_users_a_warehouse_are_healthy() {
        assert_eq!(severity(Staged::new().sessions(HEALTHY, &[("public.warehouse", 1.3)])), None);
        assert_eq!(severity(Staged::new()), None);
    }

    #[test]
    fn where_holders_wait_for_log_or_client_it_is_not_red() {
        let slow_log = [
            ("client backend", "Lock", "transactionid", 3.4),
            ("client backend", "IO", "WALSync", 2.0),
            ("client backend", "LWLock", "WALWrite", 2.4),
        ];
        assert_eq!(severity(Staged::new().sessions(&slow_log, &[])), Some(Severity::Amber));
        let slow_network = [
            ("client backend", "Lock", "transactionid", 3.6),
            ("client backend", "Idle in transaction", "", 4.0),
        ];
        assert_eq!(severity(Staged::new().sessions(&slow_network, &[])), Some(Severity::Amber));
    }

    #[test]
    fn two_a_warehouse_cannot_be_a_queue_that_more_warehouses_would_mend() {
        let slow_cpu = [("client backend", "Lock", "transactionid", 4.0), ("client backend", "CPU", "", 3.0)];
        assert_eq!(severity(Staged::new().sessions(&slow_cpu, &[])), Some(Severity::Amber));
        assert_eq!(severity(Staged::workload("script", 8, 4).sessions(&slow_cpu, &[])), Some(Severity::Red));
    }

    #[test]
    fn few_active_sessions_are_no_queue() {
        let few = [("client backend", "Lock", "transactionid", 0.4), ("client backend", "CPU", "", 0.1)];
        assert_eq!(severity(Staged::new().sessions(&few, &[])), None);
    }

    #[test]
    fn as_many_as_are_found_where_nobody_asked() {
        for (workload, name, number) in
            [("tproc-c", "public.warehouse", 7.0), ("pgbench", "pgbench_branches", 3.0)]
        {
            let mut evidence = Evidence::default();
            evidence.context.workload = workload.into();
            assert!(by_nature(&evidence).is_none());
            let relations = vec![table(name, number as u64, 0)];
            let seen = Observation::Relations { when: CaptureTime::Before, relations, database_bytes: 1 };
            evidence.event(&Event::Observed(seen));
            assert_eq!(by_nature(&evidence).unwrap().number, number);
        }
        assert!(by_nature(&Staged::workload("script", 8, 4).done()).is_none());
    }

    #[test]
    fn pgbench_with_more_users_than_branches_is_red() {
        let branches = |rows| {
            let relations = vec![table("public.pgbench_branches", rows, 0)];
            Staged::workload("pgbench", 8, 1).sessions(ONE, &[]).relations(CaptureTime::Before, relations, 1)
        };
        let found = find(&branches(1).done());
        assert_eq!(found[0].severity, Severity::Red);
        assert!(found[0].next.starts_with("Use a scale of at least 8, not 1"), "{}", found[0].next);
        assert_eq!(severity(branches(50)), Some(Severity::Amber));
    }
}

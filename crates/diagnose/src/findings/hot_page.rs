//! Did sessions queue for the same page, whatever row of it they wanted?

use kelvin_measure::observation::{WaitGroup, WaitKind};
use kelvin_measure::text;

use super::{FindingDefinition, buffers_too_small, hot_rows, scan_without_index, tempdb_contention};
use crate::engine::engine_advice;
use crate::{Effect, EffectBasis, Evidence, EvidenceLine, Finding, Severity, is_client};

pub(super) const ABOUT: FindingDefinition = FindingDefinition {
    id: "hot-page",
    question: "Did sessions queue for the same page of a table or index?",
    find,
};

/// Share of the active sessions from which a class is the limit (METHOD B6), and from which it should be known.
const LIMIT: f64 = 0.4;
const KNOWN: f64 = 0.1;

fn find(evidence: &Evidence) -> Vec<Finding> {
    evidence.points().filter_map(|point| of_point(evidence, point.point)).collect()
}

fn waits_for_a_page(group: &WaitGroup) -> bool {
    // Those of tempdb are its own finding's.
    group.kind == WaitKind::Page && !tempdb_contention::is_tempdb(group)
}

fn of_point(evidence: &Evidence, point: u32) -> Option<Finding> {
    let active = evidence.active(point, is_client);
    let waiting: f64 =
        active.groups.iter().filter(|(group, _)| waits_for_a_page(group)).map(|(_, s)| s).sum();
    let share = waiting / active.sessions();
    if share.is_nan() || share < KNOWN || waiting < 0.5 {
        return None;
    }
    let explained = hot_rows::is_red(evidence, point)
        || buffers_too_small::is_red(evidence, point)
        || scan_without_index::is_red(evidence);
    let mut facts = vec![EvidenceLine::of_active(
        "sessions waiting for a page used by another session",
        waiting,
        active.sessions(),
    )];
    let objects = active.by(|group| group.object.clone().filter(|_| waits_for_a_page(group)));
    let objects: Vec<(&str, f64)> =
        objects.iter().filter_map(|(object, sessions)| Some((object.as_deref()?, *sessions))).collect();
    facts.extend(objects.iter().take(3).map(|(object, sessions)| {
        EvidenceLine::new(format!("pages of {object}"), format!("{} of them", text::number(*sessions)))
    }));
    let of_what = objects.first().map_or(String::new(), |(object, _)| format!(" of {object}"));
    let of = |(group, sessions): &(WaitGroup, f64)| {
        let query = group.query.filter(|_| waits_for_a_page(group))?;
        Some(EvidenceLine::new(
            statement(evidence, point, query),
            format!("{} of them", text::number(*sessions)),
        ))
    };
    facts.extend(active.groups.iter().filter_map(of).take(3));
    let engine = engine_advice(evidence).queues();
    Some(Finding {
        id: ABOUT.id,
        severity: if share >= LIMIT && waiting >= 1.0 && !explained {
            Severity::Red
        } else {
            Severity::Amber
        },
        point: Some(point),
        title: format!(
            "Sessions queued for the same page{of_what}: {} of their active time",
            text::percent(share)
        ),
        evidence: facts,
        effect: Effect::up_to(share, EffectBasis::TransactionTime),
        below_precision: false,
        threshold: "amber from 10 % of the active sessions, red from 40 % (the verdict's own threshold), \
            unless hot rows, too small buffers or scans explain it; in one study, sessions spent more than \
            70 % of their time waiting for one page that held 33 warehouse rows"
            .into(),
        next: next_by_statement(evidence, point, &active.groups)
            .filter(|_| !engine.page_of_inserts)
            .unwrap_or(engine.page)
            .into(),
    })
}

/// What helps, where the statement in which most sessions wait says whose page it is.
fn next_by_statement(evidence: &Evidence, point: u32, groups: &[(WaitGroup, f64)]) -> Option<&'static str> {
    let query = groups.iter().find_map(|(group, _)| group.query.filter(|_| waits_for_a_page(group)))?;
    let (statements, _) = evidence.statements(point)?;
    let text = statements.iter().find(|one| one.query == query)?.text.trim_start().to_lowercase();
    if text.contains("nextval") {
        return Some(
            "Each number of the sequence is taken from one page: give the sequence a cache (`alter sequence \
            … cache 100`; the numbers are then not in the order of the inserts), and look for indexes on it \
            into whose end all users insert.",
        );
    }
    text.starts_with("insert").then_some(
        "All users insert at the end of an index whose keys grow, or into the same pages of a table: use \
        hash partitions, a key that spreads the inserts (such as a random UUID, at the cost of more pages), \
        or fewer indexes on growing columns.",
    )
}

/// A statement by its text, if that is known.
fn statement(evidence: &Evidence, point: u32, query: i64) -> String {
    let known =
        evidence.statements(point).and_then(|(statements, _)| statements.iter().find(|s| s.query == query));
    known.map_or_else(|| format!("in statement {query}"), |s| format!("in {}", text::statement(&s.text)))
}

#[cfg(test)]
mod tests {
    use super::super::staged::Staged;
    use super::*;

    fn severity(staged: Staged) -> Option<Severity> {
        find(&staged.done()).first().map(|finding| finding.severity)
    }

    fn waits(page: f64, row: f64, cpu: f64) -> [(&'static str, &'static str, &'static str, f64); 3] {
        [
            ("client backend", "LWLock", "BufferContent", page),
            ("client backend", "Lock", "transactionid", row),
            ("client backend", "CPU", "", cpu),
        ]
    }

    #[test]
    fn page_waits_are_red_unless_hot_rows_are() {
        assert_eq!(severity(Staged::new().sessions(&waits(5.0, 0.5, 2.0), &[])), Some(Severity::Red));
        assert_eq!(severity(Staged::new().sessions(&waits(1.5, 0.5, 6.0), &[])), Some(Severity::Amber));
        assert_eq!(
            severity(Staged::sized(16, 1).sessions(&waits(6.5, 8.0, 1.0), &[])),
            Some(Severity::Amber)
        );
    }

    #[test]
    fn the_statement_says_whether_it_is_a_sequence_or_the_end_of_an_index() {
        let next = |text: &str| {
            let state = |class: &str, event: &str, query| {
                kelvin_observe::postgres::wait_group("client backend", class, event, query)
            };
            let states = [(state("LWLock", "BufferContent", Some(1)), 5.0), (state("CPU", "", Some(1)), 2.0)];
            let mut one = super::super::staged::statement(1, 900.0, 100, "a", &[]);
            one.text = text.into();
            find(&Staged::new().states(&states).statements(vec![one]).done()).remove(0).next
        };
        assert!(next("INSERT INTO log VALUES ($1)").contains("end of an index"));
        assert!(next("select nextval('orders_id_seq')").contains("alter sequence"));
        assert!(next("update warehouse set w_ytd = $1").contains("fillfactor"));
    }

    #[test]
    fn a_few_are_healthy() {
        assert_eq!(severity(Staged::new().sessions(&waits(0.2, 1.3, 6.0), &[])), None);
        assert_eq!(severity(Staged::new()), None);
    }
}

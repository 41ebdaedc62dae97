//! Does one statement take nearly all of the statements' time?

use super::{FindingDefinition, estimator};
use crate::{Effect, EffectBasis, Evidence, EvidenceLine, Finding, Severity};
use kelvin_measure::text;

pub(super) const ABOUT: FindingDefinition = FindingDefinition {
    id: "top-statement-dominates",
    question: "Does one statement take nearly all of the time?",
    find,
};

/// Share of the statements' time from which looking at one statement is looking at the load. TPROC-C's New-Order has about
/// half by its nature.
const NEARLY_ALL: f64 = 0.8;
const HALF: f64 = 0.5;
/// Share of its time in which it waited for locks that is shown.
const SHOWN: f64 = 0.05;
/// A statement that is called this many times less often than the top one is no part of the load.
const SELDOM: u64 = 200;

fn find(evidence: &Evidence) -> Vec<Finding> {
    evidence.points().filter_map(|point| of_point(evidence, point.point)).collect()
}

fn of_point(evidence: &Evidence, point: u32) -> Option<Finding> {
    let (statements, total) = evidence.statements(point)?;
    let top = statements.first()?;
    let share = top.total_ms / total;
    // A load with a single statement cannot be dominated by it: the other statements are those of the observers.
    let of_load = statements.iter().filter(|one| one.calls >= top.calls.div_ceil(SELDOM)).count();
    if share.is_nan() || share < HALF || of_load < 2 {
        return None;
    }
    let mut facts = vec![
        EvidenceLine::new("statement", text::statement(&top.text)),
        EvidenceLine::new(
            "its time",
            format!(
                "{} of {} ms: {} calls, {} ms each",
                text::rounded(top.total_ms),
                text::rounded(total),
                text::rounded(top.calls as f64),
                text::number(top.total_ms / top.calls.max(1) as f64)
            ),
        ),
    ];
    facts.extend(top.blocks_read.zip(top.blocks_hit).map(|(read, hit)| {
        let found = format!("{} of {}", text::rounded(read as f64), text::rounded((hit + read) as f64));
        EvidenceLine::new("pages not found in the buffers", found)
    }));
    let model = estimator::model(evidence);
    let has_model = !model.is_empty();
    if has_model {
        // A procedure stands before its statements, which have the plans.
        facts.extend(statements.iter().take(3).find_map(estimator::scans));
        facts.extend(model);
    }
    let next = statements.get(1).map(|next| {
        EvidenceLine::new(
            "next statement",
            format!("{}: {}", text::percent(next.total_ms / total), text::statement(&next.text)),
        )
    });
    facts.extend(next);
    let locks = evidence.waited_for_locks(point, top.query);
    if locks >= SHOWN {
        facts.insert(2, EvidenceLine::new("lock waits", format!("{} of its time", text::percent(locks))));
    }
    let next = if locks >= HALF {
        "It spent most of its time waiting for locks, which no plan can shorten: see what the sessions \
        waited for and which session held the lock (`hot-rows`, `outage`)."
    } else if has_model {
        estimator::ADVICE
    } else {
        "Look at its plan and its rows per call first; with functions, pg_stat_statements.track = all shows \
        the statements inside them."
    };
    Some(Finding {
        id: ABOUT.id,
        severity: if share >= NEARLY_ALL { Severity::Amber } else { Severity::Note },
        point: Some(point),
        title: format!("One statement took {} of all statement time", text::percent(share)),
        evidence: facts,
        effect: Effect::up_to(share, EffectBasis::StatementTime),
        below_precision: false,
        threshold: "note from 50 % of the time, amber from 80 %: look at statements before waits (in one \
            study, a scan in one statement made throughput 7.7 times lower, which two rounds of tuning by \
            waits had missed)"
            .into(),
        next: next.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::staged::{Staged, statement};
    use super::*;

    fn severity(times: &[f64]) -> Option<Severity> {
        let statements = times.iter().zip(1..).map(|(ms, id)| statement(id, *ms, 100, "a", &[])).collect();
        find(&Staged::new().statements(statements).done()).first().map(|finding| finding.severity)
    }

    #[test]
    fn it_is_judged_by_its_share() {
        assert_eq!(severity(&[900.0, 50.0, 50.0]), Some(Severity::Amber));
        assert_eq!(severity(&[550.0, 450.0]), Some(Severity::Note));
        assert_eq!(severity(&[400.0, 300.0, 300.0]), None);
    }

    #[test]
    fn a_queue_for_a_lock_is_not_blamed_on_the_plan() {
        let statements = || vec![statement(1, 900.0, 100, "a", &[]), statement(2, 100.0, 100, "b", &[])];
        let next = |sessions: &[(&str, &str, &str, f64)]| {
            let staged = Staged::new().statements(statements()).sessions(sessions, &[]);
            find(&staged.done()).remove(0).next
        };
        assert!(next(&[("client backend", "CPU", "", 3.0)]).contains("plan and its rows"));
        let queue = [("client backend", "Lock", "tuple", 3.0), ("client backend", "CPU", "", 1.0)];
        assert!(next(&queue).contains("no plan can shorten"));
        assert_eq!(severity(&[]), None);
        assert!(find(&Staged::new().done()).is_empty());
    }

    /// "One statement took 100 %" is no information if the load has only one; statements of observers do not count.
    #[test]
    fn trial_d8_a_load_of_one_statement_has_no_dominating_one() {
        assert_eq!(severity(&[900.0]), None);
        let watched = vec![statement(1, 990.0, 10_000, "a", &[]), statement(2, 10.0, 20, "b", &[])];
        assert_eq!(find(&Staged::new().statements(watched).done()), []);
        assert_eq!(severity(&[900.0, 50.0, 50.0]), Some(Severity::Amber));
    }
}

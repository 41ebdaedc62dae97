//! Does a statement run with a different plan than in the previous run?
//!
//! The same statement by its identifier, or by its text if the tables were recreated and have other identifiers.

use kelvin_measure::observation::StatementTotals;
use kelvin_measure::text;

use super::{FindingDefinition, changed_query_plan, estimator, scan_without_index};
use crate::{Effect, EffectBasis, Evidence, EvidenceLine, Finding, Severity};

pub(super) const ABOUT: FindingDefinition = FindingDefinition {
    id: "changed-plan",
    question: "Does a statement run with a different plan than in the previous run?",
    find,
};

/// Share of the statements' time below which a change is not reported.
const KNOWN: f64 = 0.01;
/// Share from which a slower statement is the limit (METHOD B6), and how much slower it must be: twice is beyond what another
/// moment of the same machine does.
pub(super) const LIMIT: f64 = 0.4;
pub(super) const SLOWER: f64 = 2.0;

struct Change<'a> {
    now: &'a StatementTotals,
    before: &'a StatementTotals,
    share: f64,
    /// Shares of its time, now and before, in which lock waits: no plan makes these shorter.
    locks: (f64, f64),
}

impl Change<'_> {
    fn slower(&self) -> f64 {
        let each = |s: &StatementTotals, locks: f64| s.total_ms * (1.0 - locks) / s.calls.max(1) as f64;
        each(self.now, self.locks.0) / each(self.before, self.locks.1).max(f64::MIN_POSITIVE)
    }

    /// Share of all statements' time in which it ran, and did not wait for locks.
    fn ran(&self) -> f64 {
        self.share * (1.0 - self.locks.0)
    }

    /// What the other plan made of the statements' time: what was added to it, or what is left out of it.
    fn effect(&self) -> f64 {
        self.ran() * (1.0 - 1.0 / self.slower().max(f64::MIN_POSITIVE)).abs()
    }
}

fn find(evidence: &Evidence) -> Vec<Finding> {
    if let Some(finding) = changed_query_plan::find(evidence) {
        return vec![finding];
    }
    evidence.points().filter_map(|point| of_point(evidence, point.point)).collect()
}

fn of_point(evidence: &Evidence, point: u32) -> Option<Finding> {
    by_earlier_run(evidence, point).or_else(|| by_history(evidence, point))
}

/// By what the server itself has kept of its statements' plans.
fn by_history(evidence: &Evidence, point: u32) -> Option<Finding> {
    let (statements, total) = evidence.statements(point)?;
    let of = |statement: &StatementTotals| statement.total_ms / total;
    let slower = |statement: &&StatementTotals| {
        of(statement) >= KNOWN && statement.plan.as_ref().is_some_and(|plan| plan.faster.is_some())
    };
    let found: Vec<&StatementTotals> = statements.iter().filter(slower).collect();
    let top = found.first()?;
    let mut facts = Vec::new();
    let (mut effect, mut red) = (0.0, false);
    for statement in &found {
        let Some(faster) = statement.plan.as_ref().and_then(|plan| plan.faster.as_ref()) else { continue };
        let locks = evidence.waited_for_locks(point, statement.query);
        let ran = of(statement) * (1.0 - locks);
        effect += ran * (1.0 - (faster.mean_ms / faster.now_ms.max(f64::MIN_POSITIVE)).min(1.0));
        red |= ran >= LIMIT;
        if facts.len() < 6 {
            let share = text::percent(of(statement));
            facts.push(EvidenceLine::new(
                text::statement(&statement.text),
                format!("{share} of all statement time"),
            ));
            facts.push(EvidenceLine::new("by the server's own history", faster.sentence()));
            facts.extend(estimator::scans(statement));
        }
    }
    facts.extend(estimator::model(evidence));
    Some(Finding {
        id: ABOUT.id,
        severity: if red { Severity::Red } else { Severity::Amber },
        point: Some(point),
        title: format!(
            "{} with a slower plan than the server has used before: {} of all statement time",
            ran(found.len()),
            text::percent(of(top))
        ),
        evidence: facts,
        effect: Effect::up_to(effect, EffectBasis::StatementTime),
        below_precision: false,
        threshold:
            "another plan in the server's history (Query Store) with half of the time per execution or less; \
            red when such a statement takes 40 % of the time (the verdict's own threshold)"
                .into(),
        next: estimator::ADVICE.into(),
    })
}

fn by_earlier_run(evidence: &Evidence, point: u32) -> Option<Finding> {
    let earlier = evidence.earlier.as_ref()?;
    let (statements, total) = evidence.statements(point)?;
    // The same point of the earlier run, or its first: another number of users runs the same statements.
    let earlier_point = if earlier.statements(point).is_some() { point } else { 0 };
    let (known, _) = earlier.statements(earlier_point)?;
    let changed = |now: &'_ StatementTotals| -> Option<usize> {
        let plan = now.plan.as_ref()?;
        let at = known
            .iter()
            .position(|s| s.query == now.query)
            .or_else(|| known.iter().position(|s| s.text == now.text))?;
        let before = known[at].plan.as_ref()?;
        (before.hash != plan.hash).then_some(at)
    };
    let mut changes: Vec<Change> = statements
        .iter()
        .filter_map(|now| {
            let before = &known[changed(now)?];
            let locks = (
                evidence.waited_for_locks(point, now.query),
                earlier.waited_for_locks(earlier_point, before.query),
            );
            Some(Change { now, before, share: now.total_ms / total, locks })
        })
        .filter(|change| change.share >= KNOWN)
        .collect();
    changes.sort_by(|a, b| b.share.total_cmp(&a.share));
    let top = changes.first()?;
    let worse = changes.iter().any(|change| change.ran() >= LIMIT && change.slower() >= SLOWER);
    // If a scan or a missing index is found, that is the cause, and this is its consequence.
    let red = worse && !scan_without_index::is_red(evidence);
    let mut facts = Vec::new();
    for change in changes.iter().take(3) {
        facts.push(EvidenceLine::new(
            text::statement(&change.now.text),
            format!(
                "{} of all statement time; {} × the previous time per call, without lock waits",
                text::percent(change.share),
                text::number(change.slower())
            ),
        ));
        if change.locks.0 >= KNOWN {
            let share = text::percent(change.locks.0);
            facts.push(EvidenceLine::new(
                "lock waits",
                format!("{share} of its time, excluded from the comparison"),
            ));
        }
        let way = |s: &StatementTotals| {
            let scans = s.plan.iter().flat_map(|plan| &plan.scans);
            let scan = |scan: &kelvin_measure::observation::Scan| match &scan.index {
                Some(index) => format!("{} on {} using {index}", scan.node, scan.relation),
                None => format!("{} on {}", scan.node, scan.relation),
            };
            scans.map(scan).collect::<Vec<_>>().join(", ")
        };
        facts.push(EvidenceLine::new("scans now", way(change.now)));
        facts.push(EvidenceLine::new("scans before", way(change.before)));
    }
    facts.extend(estimator::changed(evidence, earlier));
    let run = earlier.context.run.map_or("the previous run".into(), |run| format!("run {run}"));
    Some(Finding {
        id: ABOUT.id,
        severity: if red { Severity::Red } else { Severity::Amber },
        point: Some(point),
        title: format!(
            "{} with a different plan than in {run}: {} of all statement time",
            ran(changes.len()),
            text::percent(top.share)
        ),
        evidence: facts,
        effect: Effect::up_to(changes.iter().map(Change::effect).sum(), EffectBasis::StatementTime),
        below_precision: false,
        threshold: "a plan with different nodes, relations or indexes; red when such a statement takes 40 % \
            of the time (the verdict's own threshold) and twice as long per call as before"
            .into(),
        next: if estimator::model(evidence).is_empty() {
            "Compare both plans (`kelvin show` prints them), `analyze` the tables, and make sure that both \
            runs had the same data, settings and indexes before comparing their results."
        } else {
            estimator::ADVICE
        }
        .into(),
    })
}

fn ran(number: usize) -> String {
    if number == 1 { "One statement ran".into() } else { format!("{number} statements ran") }
}

#[cfg(test)]
mod tests {
    use kelvin_measure::observation::FasterPlan;

    use super::super::staged::{Staged, statement};
    use super::*;
    use crate::scene::severities;

    fn severity(before: Vec<StatementTotals>, now: Vec<StatementTotals>) -> Option<Severity> {
        let earlier = Staged::new().statements(before).done();
        find(&Staged::new().statements(now).earlier(earlier).done()).first().map(|finding| finding.severity)
    }

    #[test]
    fn a_slower_plan_of_a_large_share_is_red() {
        let before = || {
            vec![
                statement(1, 400.0, 1000, "a", &[("Index Scan", "stock")]),
                statement(2, 300.0, 1000, "b", &[]),
            ]
        };
        let slower = vec![
            statement(1, 4000.0, 1000, "c", &[("Seq Scan", "stock")]),
            statement(2, 300.0, 1000, "b", &[]),
        ];
        assert_eq!(severity(before(), slower), Some(Severity::Red));
        let no_slower = vec![statement(1, 500.0, 1000, "c", &[]), statement(2, 300.0, 1000, "b", &[])];
        assert_eq!(severity(before(), no_slower), Some(Severity::Amber));
        assert_eq!(severity(before(), before()), None);
        // Ten times as long behind a lock, and as long as before without it.
        let earlier = Staged::new().statements(before()).done();
        let queued = vec![statement(1, 4000.0, 1000, "c", &[]), statement(2, 300.0, 1000, "b", &[])];
        let queue = [("client backend", "Lock", "transactionid", 9.0), ("client backend", "CPU", "", 1.0)];
        let found = find(&Staged::new().statements(queued).sessions(&queue, &[]).earlier(earlier).done());
        assert_eq!(found[0].severity, Severity::Amber);
        let shown = |fact: &&EvidenceLine| fact.what == "lock waits" && fact.found.starts_with("90 %");
        assert!(found[0].evidence.iter().any(|fact| shown(&fact)), "{:?}", found[0].evidence);
        let mut renumbered = before();
        renumbered[0].query = 77;
        assert_eq!(severity(before(), renumbered), None);
    }

    #[test]
    fn the_servers_own_history_is_enough() {
        let mut slow = statement(1, 9000.0, 100, "c", &[("Seq Scan", "dbo.stock")]);
        let plan = slow.plan.as_mut().unwrap();
        plan.faster = Some(FasterPlan {
            hash: "0x01".into(),
            mean_ms: 2.0,
            now_ms: 90.0,
            executed: "2026-10-01 09:00:00".into(),
            optimizer: Some(("110".into(), "150".into())),
        });
        let staged = Staged::new().statements(vec![slow, statement(2, 500.0, 100, "b", &[])]);
        let found = find(&staged.setting("compatibility_level", "150").done());
        assert_eq!(severities(&found), [Severity::Red]);
        let facts = format!("{:?}", found[0].evidence);
        assert!(
            facts.contains("at compatibility level 110, and is at 150") && facts.contains("dbo.stock"),
            "{facts}"
        );
        assert!(found[0].next.contains("LEGACY_CARDINALITY_ESTIMATION"));
    }

    #[test]
    fn without_an_earlier_run_there_is_nothing() {
        assert!(find(&Staged::new().statements(vec![statement(1, 1.0, 1, "a", &[])]).done()).is_empty());
        assert_eq!(
            severity(vec![statement(5, 1.0, 1, "a", &[])], vec![statement(1, 1.0, 1, "b", &[])]),
            None
        );
    }
}

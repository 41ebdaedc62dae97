//! Did the planner expect other numbers of rows than there were?

use kelvin_measure::observation::{Occurrence, StatementTotals, UnavailableMetrics};
use kelvin_measure::query_analysis::Misestimate;
use kelvin_measure::sampled_execution::{MisestimatedNode, SampledExecution};
use kelvin_measure::text;

use super::FindingDefinition;
use super::query_plans::{self, Affected};
use super::stale_statistics;
use crate::engine::engine_advice;
use crate::{Effect, EffectBasis, Evidence, EvidenceLine, Finding};

pub(super) const ABOUT: FindingDefinition =
    FindingDefinition { id: "misestimate", question: "Were the planner's row estimates wrong?", find };

/// From so many times as many or as few, joins are costed for another amount of work.
const TIMES: f64 = 100.0;

fn find(evidence: &Evidence) -> Vec<Finding> {
    let found = of_queries(evidence).into_iter().chain(of_statements(evidence));
    found.chain(of_samples(evidence)).collect()
}

const THRESHOLD: &str = "a plan node whose rows per loop differ from the estimate by a factor of 100 or \
more, with 1,000 rows or more in total";
/// The plans in the server's log that missed, the worst first.
fn logged(evidence: &Evidence) -> Vec<Misestimate> {
    let of_plan = |one: &Occurrence| {
        let rows = |name: &str| one.figures.get(name).copied();
        let (estimated, actual) = (rows("estimated_rows")?, rows("actual_rows")?);
        Some(Misestimate { node: one.subject.clone(), estimated, actual }).filter(|one| one.factor() >= TIMES)
    };
    let logged = evidence.all_occurrences().filter(|one| one.kind == "misestimate");
    let mut wrong: Vec<Misestimate> = logged.filter_map(of_plan).collect();
    wrong.sort_by(|a, b| b.factor().total_cmp(&a.factor()));
    wrong
}

/// The node of a plan in the log, whose statement follows it.
fn node(one: &Misestimate) -> &str {
    one.node.split(": ").next().unwrap_or_default()
}

/// Nodes that missed of statements whose share of the time is not known; without what follows the node.
pub(crate) fn without_times(evidence: &Evidence) -> Vec<Misestimate> {
    let of_queries = evidence.query_analyses().iter().filter_map(|one| one.misestimate.clone());
    let of_queries = of_queries.filter(|one| one.factor() >= TIMES);
    let plain = |one: Misestimate| Misestimate { node: node(&one).to_owned(), ..one };
    logged(evidence).into_iter().chain(of_queries).map(plain).collect()
}

/// Of the load's statements, by the plans in the server's log.
fn of_statements(evidence: &Evidence) -> Option<Finding> {
    let wrong = logged(evidence);
    let first = wrong.first()?;
    let line = |one: &Misestimate| {
        let (estimated, actual) = (text::rounded(one.estimated), text::rounded(one.actual));
        EvidenceLine::new(&one.node, format!("{estimated} rows expected, and {actual} found"))
    };
    let more = if wrong.len() > 1 { format!(", and {} more", wrong.len() - 1) } else { String::new() };
    let mut found = Finding {
        threshold: THRESHOLD.into(),
        next: engine_advice(evidence).statistics().estimates.into(),
        ..query_plans::amber(
            ABOUT.id,
            format!("A statement was planned with wrong row estimates: {}{more}", node(first)),
            wrong.iter().take(5).map(line).collect(),
            Effect::unknown("the time of the plans with correct estimates was not measured"),
        )
    };
    stale_statistics::name_cause(evidence, wrong.iter().map(node), &mut found);
    Some(found)
}

/// A statement that was executed once more, with a node that missed, and its share of the statements' time.
pub(crate) struct Missed<'a> {
    pub(crate) statement: &'a StatementTotals,
    pub(crate) node: &'a MisestimatedNode,
    /// The statement's time by that of all statements of its point.
    pub(crate) share: f64,
}

impl Missed<'_> {
    /// "Seq Scan on public.parts, (a = ?): 10 rows expected, and 1,000 found in each of 1 loops".
    pub(crate) fn reason(&self) -> String {
        let MisestimatedNode { node, condition, estimated, actual, loops, .. } = self.node;
        let condition = if condition.is_empty() { String::new() } else { format!(", {condition}") };
        let loops =
            if *loops > 1.0 { format!(" in each of {} loops", text::number(*loops)) } else { String::new() };
        format!(
            "{node}{condition}: {} rows expected, and {} found{loops}",
            text::rounded(*estimated),
            text::rounded(*actual)
        )
    }
}

/// The nodes of executed statements that missed, by the statements' time: of each statement the lowest that explain the others first.
pub(crate) fn missed(evidence: &Evidence) -> Vec<Missed<'_>> {
    let mut found = Vec::new();
    for point in evidence.points() {
        let Some((statements, total)) = evidence.statements(point.point) else { continue };
        for statement in statements {
            let Some(SampledExecution::Executed { misestimates, .. }) = &statement.sample else { continue };
            let share = statement.total_ms / total.max(f64::MIN_POSITIVE);
            // In the plan's order those below come last.
            found.extend(misestimates.iter().rev().map(|node| Missed { statement, node, share }));
        }
    }
    found.sort_by(|a, b| b.share.total_cmp(&a.share));
    found
}

/// Statements that were to be executed for their plans and were not, with the reason.
pub(crate) fn not_explained(evidence: &Evidence) -> Vec<UnavailableMetrics> {
    let mut all = Vec::new();
    for point in evidence.points() {
        for one in evidence.statements(point.point).map_or(&[][..], |(statements, _)| statements) {
            if let Some(SampledExecution::Refused(why)) = &one.sample {
                let what = format!("rows of the plan of {}", text::statement(&one.text));
                let missing = UnavailableMetrics { what, why: why.clone() };
                if !all.contains(&missing) {
                    all.push(missing);
                }
            }
        }
    }
    all
}

/// Of the load's statements that were executed once more.
fn of_samples(evidence: &Evidence) -> Option<Finding> {
    let all = missed(evidence);
    let first = all.first()?;
    let line = |one: &Missed<'_>| {
        let of_time = text::percent(one.share);
        // MySQL does not count them.
        let pages = if one.node.pages == 0 {
            String::new()
        } else {
            format!("{} pages read, ", text::number(one.node.pages as f64))
        };
        EvidenceLine::new(
            text::statement(&one.statement.text),
            format!("{}; {pages}{of_time} of the statements' time", one.reason()),
        )
    };
    let mut found = Finding {
        threshold: SAMPLED.into(),
        next: engine_advice(evidence).statistics().estimates.into(),
        ..query_plans::amber(
            ABOUT.id,
            format!("A statement was planned with wrong row estimates: {}", first.node.node),
            all.iter().take(5).map(line).collect(),
            Effect::up_to(first.share, EffectBasis::StatementTime),
        )
    };
    stale_statistics::name_cause(evidence, all.iter().map(|one| one.node.node.as_str()), &mut found);
    Some(found)
}

const SAMPLED: &str = "a plan node of a statement executed with EXPLAIN (ANALYZE) whose rows per loop differ \
from the estimate by a factor of 10 or more, with 1,000 rows or more in total";

fn of_queries(evidence: &Evidence) -> Option<Finding> {
    let wrong = Affected::by(evidence, |one| {
        one.misestimate.as_ref().map(Misestimate::factor).filter(|factor| *factor >= TIMES)
    })?;
    let facts = wrong.lines("expected rows", |one| {
        one.misestimate.as_ref().map_or_else(String::new, |one| {
            let (estimated, actual) = (text::rounded(one.estimated), text::rounded(one.actual));
            format!("{estimated}, and had {actual}: {}", one.node)
        })
    });
    let title = format!("{} planned with wrong row estimates", wrong.subject("was", "were"));
    let mut found = Finding {
        threshold: THRESHOLD.into(),
        next: engine_advice(evidence).statistics().estimates.into(),
        ..query_plans::amber(
            ABOUT.id,
            title,
            facts,
            Effect::unknown("the time of the plans with correct estimates was not measured"),
        )
    };
    let nodes = evidence.query_analyses().iter().filter_map(|one| one.misestimate.as_ref());
    let nodes = nodes.filter(|one| one.factor() >= TIMES).map(|one| one.node.as_str());
    stale_statistics::name_cause(evidence, nodes, &mut found);
    Some(found)
}

#[cfg(test)]
mod tests {
    use kelvin_measure::observation::{CaptureTime, Relation};
    use kelvin_measure::query_analysis::QueryAnalysis;

    use super::super::query_plans::tests::{analysis, execution};
    use super::super::staged::{Staged, statement, table};
    use super::*;
    use crate::Severity;

    #[test]
    fn a_plan_of_the_servers_log_is_amber_with_its_statement() {
        let logged = |actual| {
            let figures = [("estimated_rows", 10.0), ("actual_rows", actual)];
            let subject = "Seq Scan on parts: select * from parts where a = ?";
            find(&Staged::new().reported("misestimate", subject, 8.0, 8.0, &figures).done())
        };
        let found = logged(5000.0);
        assert_eq!((found.len(), found[0].severity), (1, Severity::Amber));
        assert!(found[0].title.ends_with("row estimates: Seq Scan on parts"), "{}", found[0].title);
        assert!(found[0].evidence[0].what.contains("select * from parts"), "{:?}", found[0].evidence);
        assert!(logged(900.0).is_empty());
    }

    #[test]
    fn stale_statistics_of_the_nodes_table_are_named_with_the_changes_and_analyzed() {
        let stale = Relation {
            changed_since_analyze: Some(4990),
            analyzed_ago: Some(7200.0),
            ..table("public.parts", 5000, 0)
        };
        let figures = [("estimated_rows", 10.0), ("actual_rows", 5000.0)];
        let staged = Staged::new().relations(CaptureTime::After, vec![stale], 1);
        let evidence =
            staged.reported("misestimate", "Seq Scan on parts: select 1", 8.0, 8.0, &figures).done();
        let found = find(&evidence);
        assert!(found[0].title.ends_with("Seq Scan on parts; stale statistics of public.parts"), "{found:?}");
        let fact = &found[0].evidence[1].found;
        assert_eq!(fact, "4,990 changes since ANALYZE 2 h 00 min ago, 5,000 rows now");
        let all = crate::remedies(&evidence, &found);
        let analyze = all.iter().find(|one| one.finding == ABOUT.id).unwrap();
        assert_eq!((analyze.title.as_str(), analyze.effect.high()), ("analyze public.parts", None));
    }

    #[test]
    fn a_statement_that_was_not_executed_is_known_with_the_reason_whatever_is_found() {
        let refused = || Some(SampledExecution::Refused("not a query".into()));
        let one = || StatementTotals { sample: refused(), ..statement(1, 75.0, 1, "a", &[]) };
        let evidence = Staged::new().statements(vec![one(), one(), statement(2, 25.0, 1, "b", &[])]).done();
        assert!(find(&evidence).is_empty());
        let missing = not_explained(&evidence);
        assert_eq!(missing.len(), 1);
        assert!(missing[0].what.ends_with(" select 1") && missing[0].why == "not a query", "{missing:?}");
    }

    #[test]
    fn a_node_with_a_hundred_times_the_rows_is_amber() {
        let found = |actual| {
            let node = "Hash Join".into();
            let wrong = QueryAnalysis {
                misestimate: Some(Misestimate { node, estimated: 10.0, actual }),
                ..analysis("Q20")
            };
            let staged = Staged::new().queries(&[execution("Q20", 1.0, "a"), execution("Q1", 1.0, "b")]);
            find(&staged.analyses(&[wrong, analysis("Q1")]).done())
        };
        let wrong = found(5000.0);
        assert_eq!((wrong.len(), wrong[0].severity), (1, Severity::Amber));
        assert!(wrong[0].title.starts_with("Q20 was planned"), "{}", wrong[0].title);
        assert_eq!(wrong[0].effect.high(), None);
        assert!(wrong[0].evidence[0].found.contains("Hash Join"));
        assert!(found(900.0).is_empty());
        assert!(find(&Staged::new().done()).is_empty());
    }
}

//! Did compiling statements (JIT) take a large part of their time?

use kelvin_measure::observation::StatementTotals;
use kelvin_measure::query_analysis::QueryAnalysis;
use kelvin_measure::text;

use super::FindingDefinition;
use super::query_plans::{self, Affected};
use crate::noise::WANTED;
use crate::{Effect, EffectBasis, Evidence, EvidenceLine, Finding, PointEvidence, Severity};

pub(super) const ABOUT: FindingDefinition = FindingDefinition {
    id: "jit-cost",
    question: "Did JIT compilation take a large share of the statements' time?",
    find,
};

/// Share of the statements' time: the verdict's precision.
const AMBER: f64 = 0.05;
/// Share of the compiled statements' own time: from here on compiling takes longer than running, so that without it they would be
/// faster even if compiled code took no time.
const MOST: f64 = 0.5;

fn find(evidence: &Evidence) -> Vec<Finding> {
    match of_queries(evidence) {
        Some(finding) => vec![finding],
        None => evidence.points().filter_map(|point| of_point(evidence, point)).collect(),
    }
}

/// By the plans of the queries themselves, where they are known.
fn of_queries(evidence: &Evidence) -> Option<Finding> {
    let compiled = Affected::by(evidence, |one| Some(one.jit_share() * one.took_ms).filter(|ms| *ms > 0.0))?;
    let effect = compiled.effect(QueryAnalysis::jit_share);
    let share = effect.high().filter(|share| *share >= AMBER)?;
    let facts = compiled.lines("compiling", |one| {
        let (ms, all) = (text::number(one.jit_ms), text::number(one.took_ms));
        let processes = one.workers_launched + 1;
        format!("{ms} ms of {all} ms, by {processes} {}", text::plural(processes, "process", "processes"))
    });
    let title = format!("Compiling queries (JIT) took {} of their time", text::percent(share));
    Some(Finding {
        threshold: "amber when compiling takes 5 % of the queries' time, in the execution after the load; \
        the compiled queries may run faster as a result, which is not counted"
            .into(),
        next: NEXT.into(),
        ..query_plans::amber(ABOUT.id, title, facts, effect)
    })
}

const NEXT: &str = "Set jit = off, or raise jit_above_cost above the cost of these statements; `kelvin \
    advise --prove` measures the gain.";

fn of_point(evidence: &Evidence, point: &PointEvidence) -> Option<Finding> {
    let (statements, total) = evidence.statements(point.point)?;
    let jit = |one: &StatementTotals| one.jit_ms.unwrap_or(0.0);
    let compiled: f64 = statements.iter().map(jit).sum();
    let share = (total > 0.0).then(|| compiled / total).filter(|share| *share >= AMBER)?;
    let mut all: Vec<&StatementTotals> = statements.iter().filter(|one| jit(one) > 0.0).collect();
    all.sort_by(|a, b| jit(b).total_cmp(&jit(a)));
    let own: f64 = all.iter().map(|one| one.total_ms).sum();
    let red = share >= WANTED && compiled >= MOST * own;
    let mut facts = vec![EvidenceLine::new("statements' time spent compiling", text::percent(share))];
    facts.extend(all.iter().take(3).map(|one| {
        let calls = one.calls.max(1) as f64;
        EvidenceLine::new(
            format!("compiled: {}", text::statement(&one.text)),
            format!(
                "{} ms of {} ms per call, {} calls",
                text::number(jit(one) / calls),
                text::number(one.total_ms / calls),
                text::rounded(one.calls as f64)
            ),
        )
    }));
    Some(Finding {
        id: ABOUT.id,
        severity: if red { Severity::Red } else { Severity::Amber },
        point: Some(point.point),
        title: format!("Compiling statements (JIT) took {} of their time", text::percent(share)),
        evidence: facts,
        effect: Effect::up_to(share, EffectBasis::StatementTime),
        below_precision: false,
        threshold: "amber when the top statements spend 5 % of all statements' time compiling, red from 10 % if it is half of \
            the compiled statements' own time or more; any speedup of these statements is not counted"
            .into(),
        next: NEXT.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::query_plans::tests::{analysis, execution};
    use super::super::staged::{Staged, statement};
    use super::*;

    fn severity(jit_ms: Option<f64>) -> Option<Severity> {
        let mut one = statement(1, 1000.0, 10, "a", &[]);
        one.jit_ms = jit_ms;
        find(&Staged::new().statements(vec![one]).done()).first().map(|found| found.severity)
    }

    #[test]
    fn queries_that_are_compiled_are_named() {
        let found = |jit_ms| {
            let compiled = QueryAnalysis { jit_ms, workers_launched: 1, ..analysis("Q19") };
            let staged = Staged::new().queries(&[execution("Q19", 1.0, "a"), execution("Q1", 1.0, "b")]);
            find(&staged.analyses(&[compiled, analysis("Q1")]).done())
        };
        // Half of the time of one of two equally long queries, in two processes.
        let high = found(1000.0)[0].effect.high();
        assert_eq!(high, Some(0.25));
        assert!(found(1000.0)[0].evidence[0].what.starts_with("Q19"));
        assert!(found(100.0).is_empty());
    }

    #[test]
    fn compiling_is_measured_against_all_of_the_statements_time() {
        assert_eq!(severity(Some(600.0)), Some(Severity::Red));
        assert_eq!(severity(Some(400.0)), Some(Severity::Amber), "they may run faster for it");
        assert_eq!(severity(Some(100.0)), Some(Severity::Amber));
        assert_eq!(severity(Some(10.0)), None);
        assert_eq!(severity(None), None);
    }
}

//! What the plans of TPROC-H's queries did after the load, for the findings about spills, compiling, workers, estimates and
//! partitions.

use kelvin_measure::query::QueryExecution;
use kelvin_measure::query_analysis::QueryAnalysis;
use kelvin_measure::text;

use crate::{Effect, EffectBasis, Evidence, EvidenceLine, Finding, Severity};

/// Queries that the evidence shows.
const SHOWN: usize = 5;

/// Those of which something is to be said, the largest of it first.
pub(super) struct Affected<'a> {
    evidence: &'a Evidence,
    queries: Vec<(&'a QueryAnalysis, f64)>,
}

impl<'a> Affected<'a> {
    /// The queries for which `amount` has a value, by it; none if there are none.
    pub(super) fn by(evidence: &'a Evidence, amount: impl Fn(&QueryAnalysis) -> Option<f64>) -> Option<Self> {
        let analyses = evidence.query_analyses().iter();
        let mut queries: Vec<_> = analyses.filter_map(|one| Some((one, amount(one)?))).collect();
        queries.sort_by(|a, b| b.1.total_cmp(&a.1));
        (!queries.is_empty()).then_some(Self { evidence, queries })
    }

    /// Their sum.
    pub(super) fn sum(&self) -> f64 {
        self.queries.iter().map(|(_, amount)| amount).sum()
    }

    /// "Q9, Q18, …" and the verb.
    pub(super) fn subject(&self, one: &str, several: &str) -> String {
        let names = text::few(self.queries.iter().map(|(one, _)| &one.query), 4);
        format!("{names} {}", text::plural(self.queries.len(), one, several))
    }

    /// A line for each of the first of them.
    pub(super) fn lines(&self, what: &str, value: impl Fn(&QueryAnalysis) -> String) -> Vec<EvidenceLine> {
        let line =
            |(one, _): &(&QueryAnalysis, f64)| EvidenceLine::new(format!("{} {what}", one.query), value(one));
        self.queries.iter().take(SHOWN).map(line).collect()
    }

    /// The share of all queries' time in these, each weighted.
    pub(super) fn effect(&self, weight: impl Fn(&QueryAnalysis) -> f64) -> Effect {
        let counted = || self.evidence.queries().iter().filter(|one| one.is_query() && one.state.counts());
        let all: f64 = counted().map(QueryExecution::seconds).sum();
        let of = |execution: &QueryExecution| {
            let affected = self.queries.iter().find(|(one, _)| one.query == execution.query);
            affected.map_or(0.0, |(one, _)| weight(one) * execution.seconds())
        };
        let theirs: f64 = counted().map(of).sum();
        let share = (all > 0.0).then(|| theirs / all);
        Effect::up_to_or(share, EffectBasis::StatementTime, "no query has a time")
    }
}

/// An amber finding about the whole run.
pub(super) fn amber(id: &'static str, title: String, facts: Vec<EvidenceLine>, effect: Effect) -> Finding {
    Finding {
        id,
        severity: Severity::Amber,
        point: None,
        title,
        evidence: facts,
        effect,
        below_precision: false,
        threshold: String::new(),
        next: String::new(),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use kelvin_measure::query::{AnswerState, QueryTest};

    use super::*;

    /// An execution of 2 s with a plan.
    pub(in crate::findings) fn execution(query: &str, seconds: f64, plan: &str) -> QueryExecution {
        let plan =
            kelvin_measure::query::QueryPlan { digest: plan.into(), text: format!("{plan}\n  Seq Scan") };
        QueryExecution {
            point: 0,
            test: QueryTest::Power,
            stream: 0,
            position: 1,
            query: query.into(),
            scale: 1.0,
            layout: String::new(),
            at: 0,
            took: (seconds * 1e9) as u64,
            rows: Some(1),
            digest: None,
            state: AnswerState::Unchecked,
            detail: String::new(),
            parameters: String::new(),
            plan: Some(plan),
        }
    }

    /// A plan of which nothing is to be said.
    pub(in crate::findings) fn analysis(query: &str) -> QueryAnalysis {
        QueryAnalysis { query: query.into(), took_ms: 1000.0, ..QueryAnalysis::default() }
    }
}

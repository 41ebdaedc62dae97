//! The part of `changed-plan` that compares TPROC-H's queries with those of the previous run, by the plans that were read before
//! the load.

use std::collections::{BTreeMap, BTreeSet};

use kelvin_measure::query::{QueryExecution, QueryPlan};
use kelvin_measure::text;

use super::changed_plan::{ABOUT, LIMIT, SLOWER};
use super::query_plans;
use crate::{Effect, EffectBasis, Evidence, EvidenceLine, Finding, Severity};

/// Lines of a plan that the evidence shows.
const LINES: usize = 4;

/// A query in one run: the first of its executions, by which its plan and parameters are compared, and the times of those like it.
struct Query<'a> {
    first: &'a QueryExecution,
    plan: &'a QueryPlan,
    /// Of the executions in the same point and test with the same parameters.
    seconds: f64,
    times: u32,
    /// Of all of its executions.
    all: f64,
}

impl Query<'_> {
    fn is_like(&self, one: &QueryExecution) -> bool {
        // A stream beside others takes longer, and other parameters can need another amount of work.
        let place = |one: &QueryExecution| (one.point, one.test);
        place(one) == place(self.first) && one.parameters == self.first.parameters
    }

    /// Whether it has another plan than in `before`, on data of the same size that are stored in the same way. A version of Kelvin with another definition of the
    /// digest has the same text.
    fn is_changed(&self, before: &Self) -> bool {
        let (now, then) = (self.first, before.first);
        let same_data = now.scale.to_bits() == then.scale.to_bits() && now.layout == then.layout;
        same_data && self.plan.digest != before.plan.digest && self.plan.text != before.plan.text
    }

    /// The first lines of its plan that the other one does not have.
    fn lines_beside(&self, other: &Self) -> String {
        let others: BTreeSet<&str> = other.plan.text.lines().map(str::trim).collect();
        let own = self.plan.text.lines().map(str::trim).filter(|line| !others.contains(line));
        match text::few(own, LINES) {
            same if same.is_empty() => "no other lines, or in another order".into(),
            lines => lines,
        }
    }
}

struct Change<'a> {
    now: &'a Query<'a>,
    before: &'a Query<'a>,
    share: f64,
}

impl Change<'_> {
    fn slower(&self) -> f64 {
        let each = |query: &Query| query.seconds / f64::from(query.times);
        each(self.now) / each(self.before).max(f64::MIN_POSITIVE)
    }

    fn has_equal_parameters(&self) -> bool {
        self.now.first.parameters == self.before.first.parameters
    }

    /// Whether its time is comparable with the previous one.
    fn is_same_work(&self) -> bool {
        self.has_equal_parameters() && self.now.first.test == self.before.first.test
    }

    /// The share of the queries' time that a slower plan has added.
    fn effect(&self) -> f64 {
        self.share * (1.0 - 1.0 / self.slower()).max(0.0)
    }

    fn facts(&self) -> [EvidenceLine; 3] {
        let parameters = if self.has_equal_parameters() { "the same" } else { "other" };
        let name = &self.now.first.query;
        [
            EvidenceLine::new(
                name.clone(),
                format!(
                    "{} of the queries' time; {} × the previous time, with {parameters} parameters",
                    text::percent(self.share),
                    text::number(self.slower())
                ),
            ),
            EvidenceLine::new(format!("{name}'s plan now"), self.now.lines_beside(self.before)),
            EvidenceLine::new(format!("{name}'s plan before"), self.before.lines_beside(self.now)),
        ]
    }
}

/// None where no query has another plan.
pub(super) fn find(evidence: &Evidence) -> Option<Finding> {
    let earlier = evidence.earlier.as_ref()?;
    let (now, before) = (queries(evidence), queries(earlier));
    let all: f64 = now.values().map(|query| query.all).sum();
    let changed = now.iter().filter_map(|(name, now)| {
        let before = before.get(name)?;
        now.is_changed(before).then(|| Change { now, before, share: now.all / all })
    });
    let mut changes: Vec<Change> = changed.collect();
    changes.sort_by(|a, b| b.share.total_cmp(&a.share));
    let top = changes.first()?;
    let worse = |one: &Change| one.share >= LIMIT && one.slower() >= SLOWER && one.is_same_work();
    let red = changes.iter().any(worse);
    let facts = changes.iter().take(3).flat_map(Change::facts).collect();
    let effect = Effect::up_to(changes.iter().map(Change::effect).sum(), EffectBasis::StatementTime);
    let names = text::few(changes.iter().map(|one| &one.now.first.query), 4);
    let run = earlier.context.run.map_or("the previous run".into(), |run| format!("run {run}"));
    let title = format!(
        "{names} ran with a different plan than in {run}: {} of the queries' time",
        text::percent(top.share)
    );
    Some(Finding {
        severity: if red { Severity::Red } else { Severity::Amber },
        threshold: "a plan with different nodes, tables or indexes; red when such a query takes 40 % of the time (the verdict's own \
            threshold) and twice as long as before with the same parameters"
            .into(),
        next: "Compare both plans (`kelvin report --json` has them), `analyze` the tables, and make sure that both runs had the same \
            data, settings and indexes before comparing their results."
            .into(),
        ..query_plans::amber(ABOUT.id, title, facts, effect)
    })
}

/// The queries with their plans, by their names.
fn queries(evidence: &Evidence) -> BTreeMap<&str, Query<'_>> {
    let mut queries: BTreeMap<&str, Query> = BTreeMap::new();
    for one in evidence.queries().iter().filter(|one| one.state.counts()) {
        if let Some(query) = queries.get_mut(one.query.as_str()) {
            query.all += one.seconds();
            if query.is_like(one) {
                query.seconds += one.seconds();
                query.times += 1;
            }
        } else if let Some(plan) = &one.plan {
            let seconds = one.seconds();
            let query = Query { first: one, plan, seconds, times: 1, all: seconds };
            queries.insert(&one.query, query);
        }
    }
    queries
}

#[cfg(test)]
mod tests {
    use super::super::query_plans::tests::execution;
    use super::super::staged::Staged;
    use super::*;

    fn found(before: &[QueryExecution], now: &[QueryExecution]) -> Option<Finding> {
        let earlier = Staged::new().queries(before).done();
        find(&Staged::new().queries(now).earlier(earlier).done())
    }

    #[test]
    fn a_query_with_another_plan_is_found_and_red_if_it_is_the_limit() {
        let before = [execution("Q9", 1.0, "a"), execution("Q1", 1.0, "b")];
        let slow = [execution("Q9", 5.0, "c"), execution("Q1", 1.0, "b")];
        let slower = found(&before, &slow).unwrap();
        assert_eq!(slower.severity, Severity::Red);
        assert!(slower.title.starts_with("Q9 ran with a different plan"), "{}", slower.title);
        assert!(slower.evidence[1].found.starts_with('c'), "{:?}", slower.evidence);
        let mut drawn = slow.clone();
        drawn[0].parameters = "green".into();
        assert_eq!(found(&before, &drawn).unwrap().severity, Severity::Amber);
        assert_eq!(slower.effect.high(), Some(5.0 / 6.0 * 0.8));
        let faster = found(&before, &[execution("Q9", 0.1, "c"), execution("Q1", 1.0, "b")]).unwrap();
        assert_eq!((faster.severity, faster.effect.high()), (Severity::Amber, Some(0.0)));
        assert!(found(&before, &before).is_none() && found(&[], &before).is_none());
        assert!(find(&Staged::new().queries(&before).done()).is_none());
    }

    #[test]
    fn other_data_and_another_digest_of_the_same_plan_are_no_change() {
        let before = [execution("Q9", 1.0, "a")];
        let mut larger = [execution("Q9", 10.0, "c")];
        larger[0].scale = 10.0;
        assert!(found(&before, &larger).is_none());
        let mut partitioned = [execution("Q9", 10.0, "c")];
        partitioned[0].layout = "partitioned by l_shipdate".into();
        assert!(found(&before, &partitioned).is_none());
        let same = [QueryExecution { plan: before[0].plan.clone(), ..partitioned[0].clone() }];
        assert!(found(&same, &partitioned).is_some());
        let mut upgraded = before.clone();
        upgraded[0].plan.as_mut().unwrap().digest = "2".into();
        assert!(found(&before, &upgraded).is_none());
    }

    #[test]
    fn times_of_other_parameters_are_not_compared() {
        let before = [execution("Q9", 1.0, "a")];
        let mut now = [execution("Q9", 1.0, "c"), execution("Q9", 9.0, "c")];
        now[1].parameters = "green".into();
        let changed = found(&before, &now).unwrap();
        assert_eq!(changed.severity, Severity::Amber);
        assert!(changed.evidence[0].found.contains("100"), "{:?}", changed.evidence);
        assert!(changed.evidence[0].found.contains("; 1 × the previous time"), "{:?}", changed.evidence);
    }
}

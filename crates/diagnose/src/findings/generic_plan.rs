//! Prepared statements: did they have a generic plan that is dear for their values, or take long to be planned for each of them?

use kelvin_measure::observation::{CustomPlan, StatementTotals};
use kelvin_measure::text;

use super::FindingDefinition;
use crate::{Effect, EffectBasis, Evidence, EvidenceLine, Finding, PointEvidence, Severity};

pub(super) const ABOUT: FindingDefinition = FindingDefinition {
    id: "generic-plan",
    question: "Did prepared statements have the right kind of plan, generic or custom?",
    find,
};

/// Share of the statements' time: the verdict's precision.
const AMBER: f64 = 0.05;
/// Cost of the custom plan in relation to the generic one's, from which the planner's estimate is worth trying. Costs are not times.
const CHEAPER: f64 = 0.5;

/// What `plan_cache_mode` should be tried with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlanKind {
    Generic,
    Custom,
}

impl PlanKind {
    /// As the setting has it.
    pub(crate) fn mode(self) -> &'static str {
        match self {
            Self::Generic => "force_generic_plan",
            Self::Custom => "force_custom_plan",
        }
    }
}

fn find(evidence: &Evidence) -> Vec<Finding> {
    evidence.points().filter_map(|point| of_point(evidence, point)).collect()
}

fn of_point(evidence: &Evidence, point: &PointEvidence) -> Option<Finding> {
    match wanted(evidence, point.point)? {
        PlanKind::Custom => dear_generic(evidence, point.point),
        PlanKind::Generic => long_planning(evidence, point.point),
    }
}

/// The kind of plan that is worth trying: of the two ways to lose time, the one that can lose more.
pub(crate) fn wanted(evidence: &Evidence, point: u32) -> Option<PlanKind> {
    let generic = generic_share(evidence, point).filter(|share| *share >= AMBER);
    let planning = planning_share(evidence, point).filter(|share| *share >= AMBER);
    match (generic, planning) {
        (Some(generic), Some(planning)) if planning > generic => Some(PlanKind::Generic),
        (Some(_), _) => Some(PlanKind::Custom),
        (None, Some(_)) => Some(PlanKind::Generic),
        (None, None) => None,
    }
}

/// Whether a statement was executed with a generic plan more often than not: by the plans that the server counted, otherwise by what the load's
/// sessions reported.
fn is_generic(evidence: &Evidence, point: u32, one: &StatementTotals) -> bool {
    one.is_planned_each_time().map_or_else(
        || evidence.prepared(point, one).is_some_and(|plans| plans.generic > plans.custom),
        |each_time| !each_time,
    )
}

/// Statements whose generic plan costs at least twice as much as the plan for known values.
fn dear(evidence: &Evidence, point: u32) -> Vec<(&StatementTotals, &CustomPlan)> {
    let of = |one: &'_ CustomPlan| one.cost <= CHEAPER * one.generic_cost;
    let statements = evidence.statements(point).map_or(&[][..], |(statements, _)| statements);
    statements
        .iter()
        .filter_map(|one| Some((one, one.custom_plan.as_ref().filter(|plan| of(plan))?)))
        .filter(|(one, _)| is_generic(evidence, point, one))
        .collect()
}

/// Planning of prepared statements that were planned for each execution, of the time of planning and execution, where it is worth a change:
/// the setting changes nothing of statements that are not prepared.
pub(crate) fn prepared_planning_share(evidence: &Evidence, point: u32) -> Option<f64> {
    share_of_planning(evidence, point, |one| evidence.prepared(point, one).is_some())
        .filter(|share| *share >= AMBER)
}

fn generic_share(evidence: &Evidence, point: u32) -> Option<f64> {
    let (_, total) = evidence.statements(point)?;
    let own: f64 = dear(evidence, point).iter().map(|(one, _)| one.total_ms).sum();
    (total > 0.0).then_some(own / total)
}

/// Those that were planned for most of their executions, with the time that it took in milliseconds.
fn planned(statements: &[StatementTotals]) -> Vec<(&StatementTotals, f64)> {
    let of = |one: &StatementTotals| {
        one.planning.filter(|_| one.is_planned_each_time() == Some(true)).map(|planning| planning.ms)
    };
    let mut all: Vec<_> = statements.iter().filter_map(|one| Some((one, of(one)?))).collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    all
}

/// Of the time of planning and execution.
fn planning_share(evidence: &Evidence, point: u32) -> Option<f64> {
    share_of_planning(evidence, point, |_| true)
}

fn share_of_planning(
    evidence: &Evidence,
    point: u32,
    counts: impl Fn(&StatementTotals) -> bool,
) -> Option<f64> {
    let (statements, total) = evidence.statements(point)?;
    let all: f64 = statements.iter().filter_map(|one| one.planning).map(|planning| planning.ms).sum();
    let each: f64 = planned(statements).iter().filter(|(one, _)| counts(one)).map(|(_, ms)| ms).sum();
    (total + all > 0.0).then(|| each / (total + all))
}

fn mode(evidence: &Evidence) -> Option<EvidenceLine> {
    Some(EvidenceLine::new("plan_cache_mode", evidence.setting("plan_cache_mode")?))
}

fn dear_generic(evidence: &Evidence, point: u32) -> Option<Finding> {
    let share = generic_share(evidence, point)?;
    let dear = dear(evidence, point);
    let mut facts = vec![EvidenceLine::new("statements' time in these statements", text::percent(share))];
    facts.extend(dear.iter().take(3).map(|(one, plan)| {
        let plans = match (one.planning, evidence.prepared(point, one)) {
            (None, Some(plans)) => format!(
                "{} executions with the generic plan and {} with custom plans in the sessions that were \
                    queried",
                text::rounded(plans.generic as f64),
                text::rounded(plans.custom as f64)
            ),
            (planning, _) => format!(
                "{} plans in {} calls",
                text::rounded(planning.map_or(0, |planning| planning.plans) as f64),
                text::rounded(one.calls as f64)
            ),
        };
        EvidenceLine::new(
            format!("generic plan: {}", text::statement(&one.text)),
            format!(
                "planner's cost {}, for {} {}; {plans}",
                text::number(plan.generic_cost),
                plan.values,
                text::number(plan.cost)
            ),
        )
    }));
    facts.extend(mode(evidence));
    let times =
        dear.iter().map(|(_, plan)| plan.generic_cost / plan.cost.max(f64::MIN_POSITIVE)).fold(0.0, f64::max);
    Some(Finding {
        evidence: facts,
        title: format!(
            "Prepared statements had a generic plan that costs up to {} × as much as one for known values",
            text::number(times)
        ),
        threshold: "a statement that was executed with its generic plan more often than not, whose plan for \
            known values (the most common or a rare one of each column) differs and costs half of the \
            generic plan or less, according to the planner; amber from 5 % of the statements' time"
            .into(),
        next: "Set plan_cache_mode = force_custom_plan for these sessions; `kelvin advise --prove` measures \
            the gain with the values of the load."
            .into(),
        ..amber(point, share)
    })
}

fn long_planning(evidence: &Evidence, point: u32) -> Option<Finding> {
    let (statements, _) = evidence.statements(point)?;
    let share = planning_share(evidence, point)?;
    let mut facts =
        vec![EvidenceLine::new("share of planning in planning and execution", text::percent(share))];
    facts.extend(planned(statements).iter().take(3).map(|(one, ms)| {
        let calls = one.calls.max(1) as f64;
        EvidenceLine::new(
            format!("planned: {}", text::statement(&one.text)),
            format!(
                "{} ms planning, {} ms execution per call, {} plans in {} calls",
                text::number(ms / calls),
                text::number(one.total_ms / calls),
                text::rounded(one.planning.map_or(0.0, |planning| planning.plans as f64)),
                text::rounded(one.calls as f64)
            ),
        )
    }));
    facts.extend(mode(evidence));
    Some(Finding {
        evidence: facts,
        title: format!("Planning statements for each execution took {} of their time", text::percent(share)),
        threshold: "statements that are planned for half of their executions or more; amber when that takes 5 % of the time of \
            planning and execution"
            .into(),
        next: format!(
            "Prepare these statements if they are not prepared; if they are, set plan_cache_mode = force_generic_plan, unless \
             their plans differ by value.{}",
            prepared_planning_share(evidence, point)
                .map_or("", |_| " `kelvin advise --prove` measures the gain.")
        ),
        ..amber(point, share)
    })
}

fn amber(point: u32, share: f64) -> Finding {
    Finding {
        id: ABOUT.id,
        // Neither costs nor the time of planning say what the other kind of plan would take.
        severity: Severity::Amber,
        point: Some(point),
        title: String::new(),
        evidence: Vec::new(),
        effect: Effect::up_to(share, EffectBasis::StatementTime),
        below_precision: false,
        threshold: String::new(),
        next: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use kelvin_measure::observation::Planning;

    use super::super::staged::{Staged, statement};
    use super::*;

    /// A statement of 400 ms in 1000 calls, beside one of 600 ms.
    fn found(plans: u64, planning_ms: f64, cost: Option<f64>) -> Option<Finding> {
        let mut one = statement(1, 400.0, 1000, "a", &[]);
        one.planning = Some(Planning { plans, ms: planning_ms });
        let values = "a rare value of jobs.state".to_owned();
        one.custom_plan = cost.map(|cost| CustomPlan { hash: "b".into(), cost, generic_cost: 100.0, values });
        let staged = Staged::new().setting("plan_cache_mode", "auto");
        find(&staged.statements(vec![one, statement(2, 600.0, 10, "c", &[])]).done()).pop()
    }

    #[test]
    fn a_generic_plan_that_costs_twice_as_much_is_amber_with_both_costs() {
        let dear = found(0, 0.0, Some(10.0)).unwrap();
        assert_eq!((dear.severity, dear.effect.high()), (Severity::Amber, Some(0.4)));
        assert!(dear.title.contains("10 ×") || dear.title.contains("10.0 ×"), "{}", dear.title);
        assert!(dear.evidence[1].found.contains("a rare value of jobs.state"), "{dear:?}");
        assert!(dear.next.contains("force_custom_plan"));
        assert!(found(0, 0.0, Some(80.0)).is_none(), "costs are estimates");
        assert!(found(0, 0.0, None).is_none());
    }

    #[test]
    fn where_plans_are_not_counted_the_sessions_say_which_the_statement_had() {
        let found = |prepared: Option<(u64, u64)>| {
            let mut one = statement(1, 400.0, 1000, "a", &[]);
            one.text = "SELECT v FROM jobs WHERE state = $1".into();
            let values = "a rare value of jobs.state".to_owned();
            one.custom_plan = Some(CustomPlan { hash: "b".into(), cost: 10.0, generic_cost: 100.0, values });
            let sent = one.text.clone();
            let staged = Staged::new().statements(vec![one, statement(2, 600.0, 10, "c", &[])]);
            let staged = match prepared {
                Some((generic, custom)) => staged.prepared(&sent, generic, custom),
                None => staged,
            };
            find(&staged.done()).pop()
        };
        let dear = found(Some((995, 5))).unwrap();
        assert_eq!((dear.severity, dear.effect.high()), (Severity::Amber, Some(0.4)));
        assert!(dear.evidence[1].found.contains("995 executions with the generic plan and 5"), "{dear:?}");
        assert!(found(Some((1, 999))).is_none() && found(None).is_none());
    }

    #[test]
    fn planning_for_each_execution_is_amber_with_its_share() {
        let long = found(1000, 1000.0, None).unwrap();
        assert_eq!((long.severity, long.effect.high()), (Severity::Amber, Some(0.5)));
        assert!(
            long.next.contains("force_generic_plan") && long.evidence[1].found.contains("1 ms")
                || long.evidence[1].found.contains("1.00 ms"),
            "{long:?}"
        );
        assert!(found(1000, 10.0, None).is_none());
        assert!(found(3, 1000.0, None).is_none(), "a few that are long are not planned each time");
    }

    #[test]
    fn of_both_the_larger_decides_and_uncounted_plans_are_nothing() {
        let wanted = |planning_ms| {
            let mut generic = statement(1, 400.0, 1000, "a", &[]);
            generic.planning = Some(Planning::default());
            let values = String::from("a rare value of jobs.state");
            generic.custom_plan =
                Some(CustomPlan { hash: "b".into(), cost: 1.0, generic_cost: 100.0, values });
            let mut custom = statement(2, 600.0, 1000, "c", &[]);
            custom.planning = Some(Planning { plans: 1000, ms: planning_ms });
            super::wanted(&Staged::new().statements(vec![generic, custom]).done(), 0)
        };
        assert_eq!(wanted(100.0), Some(PlanKind::Custom));
        assert_eq!(wanted(2000.0), Some(PlanKind::Generic));
        assert!(find(&Staged::new().statements(vec![statement(1, 1.0, 1, "a", &[])]).done()).is_empty());
    }
}

//! Did parallel statements get the workers that their plans have?

use super::FindingDefinition;
use super::query_plans::{self, Affected};
use crate::{Effect, Evidence, EvidenceLine, Finding, PointEvidence, Severity};
use kelvin_measure::text;
use kelvin_observe::metric;

pub(super) const ABOUT: FindingDefinition = FindingDefinition {
    id: "parallel-workers",
    question: "Did parallel statements get their planned workers?",
    find,
};

/// Share of the planned workers that were started below which plans do not do what they were costed for.
const STARTED: f64 = 0.9;
/// Workers a second planned from which the share means something.
const PLANNED: f64 = 1.0;

fn find(evidence: &Evidence) -> Vec<Finding> {
    let of_points: Vec<Finding> = evidence.points().filter_map(|point| of_point(evidence, point)).collect();
    if of_points.is_empty() { of_queries(evidence).into_iter().collect() } else { of_points }
}

/// By the plans of the queries themselves: what one of them gets that runs alone.
fn of_queries(evidence: &Evidence) -> Option<Finding> {
    let short = Affected::by(evidence, |one| {
        let (planned, started) = (one.workers_planned as f64, one.workers_launched as f64);
        (started < STARTED * planned).then_some(planned - started)
    })?;
    let mut facts = short.lines("started parallel workers", |one| {
        format!("{} of {}", one.workers_launched, one.workers_planned)
    });
    facts.extend(settings(evidence));
    let title =
        format!("{} all of the planned parallel workers", short.subject("did not get", "did not get"));
    Some(Finding {
        threshold: "less than 90 % of a query's planned workers, when it was executed alone after the load"
            .into(),
        next: NEXT.into(),
        ..query_plans::amber(ABOUT.id, title, facts, Effect::unknown(NOT_MEASURED))
    })
}

fn settings(evidence: &Evidence) -> impl Iterator<Item = EvidenceLine> {
    let names = ["max_parallel_workers", "max_worker_processes", "max_parallel_workers_per_gather"];
    names.into_iter().filter_map(|name| Some(EvidenceLine::new(name, evidence.setting(name)?)))
}

const NEXT: &str = "Raise max_parallel_workers and max_worker_processes to users × \
    max_parallel_workers_per_gather if there are CPUs for them; otherwise lower \
    max_parallel_workers_per_gather, so that plans do not rely on unavailable workers.";

const NOT_MEASURED: &str = "the time of the statements with all of their workers was not measured";

fn of_point(evidence: &Evidence, point: &PointEvidence) -> Option<Finding> {
    let of = |name: &str| evidence.mean(point.point, name);
    let (planned, started) = (of(metric::PLANNED_WORKERS)?, of(metric::LAUNCHED_WORKERS)?);
    if planned < PLANNED || started >= STARTED * planned {
        return None;
    }
    let share = text::percent(started / planned);
    let mut facts = vec![
        EvidenceLine::new("workers planned per second", text::number(planned)),
        EvidenceLine::new("workers started per second", text::number(started)),
    ];
    facts.extend(settings(evidence));
    Some(Finding {
        id: ABOUT.id,
        severity: Severity::Amber,
        point: Some(point.point),
        title: format!("Only {share} of the planned parallel workers were started"),
        evidence: facts,
        effect: Effect::unknown(NOT_MEASURED),
        below_precision: false,
        threshold: "less than 90 % of the planned workers, if statements plan at least one worker per second"
            .into(),
        next: NEXT.into(),
    })
}

#[cfg(test)]
mod tests {
    use kelvin_measure::query_analysis::QueryAnalysis;

    use super::super::query_plans::tests::{analysis, execution};
    use super::super::staged::Staged;
    use super::*;

    #[test]
    fn queries_without_their_workers_are_named() {
        let found = |workers_launched| {
            let short = QueryAnalysis { workers_planned: 2, workers_launched, ..analysis("Q1") };
            let staged = Staged::new().setting("max_parallel_workers", "0");
            find(&staged.queries(&[execution("Q1", 1.0, "a")]).analyses(&[short, analysis("Q2")]).done())
        };
        let short = found(0);
        assert_eq!((short.len(), short[0].severity), (1, Severity::Amber));
        assert!(short[0].title.starts_with("Q1 did not get"), "{}", short[0].title);
        assert_eq!(short[0].evidence[0].found, "0 of 2");
        assert!(found(2).is_empty());
    }

    #[test]
    fn workers_that_were_not_to_be_had_are_amber() {
        let found = |planned: f64, started: f64| {
            let staged = Staged::new()
                .metric("postgres.parallel_workers.planned", planned)
                .metric("postgres.parallel_workers.launched", started);
            find(&staged.done()).first().map(|found| found.severity)
        };
        assert_eq!(found(20.0, 8.0), Some(Severity::Amber));
        assert_eq!(found(20.0, 20.0), None);
        assert_eq!(found(0.1, 0.0), None);
        assert!(find(&Staged::new().done()).is_empty());
    }
}

//! Did parallel statements get the workers that their plans have?

use super::FindingDefinition;
use crate::{Effect, Evidence, EvidenceLine, Finding, PointEvidence, Severity};
use kelvin_measure::text;

pub(super) const ABOUT: FindingDefinition = FindingDefinition {
    id: "parallel-workers",
    question: "Did parallel statements get the workers that they planned for?",
    find,
};

/// Share of the planned workers that were started below which plans do not do what they were costed for.
const STARTED: f64 = 0.9;
/// Workers a second planned from which the share means something.
const PLANNED: f64 = 1.0;

fn find(evidence: &Evidence) -> Vec<Finding> {
    evidence.points().filter_map(|point| of_point(evidence, point)).collect()
}

fn of_point(evidence: &Evidence, point: &PointEvidence) -> Option<Finding> {
    let of = |name: &str| evidence.mean(point.point, &format!("postgres.parallel_workers.{name}"));
    let (planned, started) = (of("planned")?, of("launched")?);
    if planned < PLANNED || started >= STARTED * planned {
        return None;
    }
    let share = text::percent(started / planned);
    let mut facts = vec![
        EvidenceLine::new("workers planned per second", text::number(planned)),
        EvidenceLine::new("workers started per second", text::number(started)),
    ];
    for setting in ["max_parallel_workers", "max_worker_processes", "max_parallel_workers_per_gather"] {
        facts.extend(evidence.setting(setting).map(|value| EvidenceLine::new(setting, value)));
    }
    Some(Finding {
        id: ABOUT.id,
        severity: Severity::Amber,
        point: Some(point.point),
        title: format!("Only {share} of the planned parallel workers were started"),
        evidence: facts,
        effect: Effect::unknown("the time of the statements with all of their workers was not measured"),
        below_precision: false,
        threshold: "less than 90 % of the planned workers, if statements plan for one a second or more".into(),
        next: "Raise max_parallel_workers and max_worker_processes to users × max_parallel_workers_per_gather if \
            there are CPUs for them; otherwise lower max_parallel_workers_per_gather, so that plans do not count on \
            workers that they do not get."
            .into(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::staged::Staged;
    use super::*;

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

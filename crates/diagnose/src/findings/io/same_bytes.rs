//! Whether several workers go through the same bytes in the same order.

use kelvin_storage::Direction;
use kelvin_storage::probe::StorageFacts;

use super::{IoFindingDefinition, is_null};
use crate::{Effect, EffectBasis, EvidenceLine, Finding, Severity};

pub(super) const ABOUT: IoFindingDefinition = IoFindingDefinition {
    id: "io-same-bytes",
    question: "Do several workers read or write the same bytes sequentially?",
    find,
};

fn find(facts: &StorageFacts) -> Vec<Finding> {
    let jobs = facts.jobs.iter().filter(|job| job.same_bytes > 1 && !is_null(job));
    jobs.map(|job| {
        let what = if job.does[Direction::Write] { "write" } else { "read" };
        // What the first one read, the others find in the page cache.
        let cached = !job.direct && job.does[Direction::Read];
        Finding {
            id: ABOUT.id,
            severity: if cached { Severity::Red } else { Severity::Amber },
            point: None,
            title: format!(
                "In job {}, {} workers {what} the same bytes from the same offset",
                job.name, job.same_bytes
            ),
            evidence: vec![
                EvidenceLine::new("workers", job.workers.to_string()),
                EvidenceLine::new(
                    "workers that start at the same offset of the same target",
                    job.same_bytes.to_string(),
                ),
            ],
            effect: Effect::up_to(1.0 - 1.0 / job.same_bytes as f64, EffectBasis::Figure),
            below_precision: false,
            threshold:
                "two workers with sequential I/O that start at the same offset; red if the page cache serves \
                all but the first"
                    .into(),
            next:
                "Give each worker its own part with `offset_increment=` (such as `offset_increment=25%` for \
                four), \
                or its own file (without `filename=`)."
                    .into(),
        }
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::super::staged::{before, buffered, severities};
    use super::*;

    #[test]
    fn workers_in_each_others_steps_are_reported() {
        let with = |same| {
            let mut facts = before();
            (facts.jobs[0].same_bytes, facts.jobs[0].workers) = (same, 4);
            facts
        };
        assert_eq!(severities(&ABOUT, &with(1)), []);
        assert_eq!(severities(&ABOUT, &with(4)), [Severity::Amber]);
        assert_eq!(severities(&ABOUT, &buffered(with(4))), [Severity::Red]);
    }
}

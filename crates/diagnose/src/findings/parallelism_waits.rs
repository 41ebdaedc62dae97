//! Are parallelism waits the largest, and do they say anything?
//!
//! The threads of a parallel statement wait for one another while others of them work: these waits are a sum over threads, and
//! no time of a transaction. In one study 40 % of the waits were parallelism waits; two rounds of tuning by them changed nothing,
//! and one statement's plan changed everything.

use kelvin_measure::text;
use kelvin_observe::metric;

use super::{FindingDefinition, setting};
use crate::load::cpu_by_the_server;
use crate::{Effect, Evidence, EvidenceLine, Finding, Severity};

pub(super) const ABOUT: FindingDefinition = FindingDefinition {
    id: "parallelism-waits",
    question: "Are parallelism waits frequent, and are they a limit?",
    find,
};

/// Share of the counted waits from which a reader of a wait list would act on them: half of what was seen in the study.
const KNOWN: f64 = 0.2;
/// Seconds a second in which something waited at all.
const LEAST: f64 = 0.1;

/// The signal part is counted in each of the others already.
const SIGNAL: &str = "signal";

fn find(evidence: &Evidence) -> Vec<Finding> {
    evidence.points().filter_map(|point| of_point(evidence, point.point)).collect()
}

fn of_point(evidence: &Evidence, point: u32) -> Option<Finding> {
    let class = |name: &str| name.strip_prefix(metric::LOAD_WAITS).map(str::to_owned);
    let mut waits: Vec<(String, f64)> = evidence
        .names(metric::LOAD_WAITS, "")
        .filter_map(|name| Some((class(name)?, evidence.mean(point, name)?)))
        .filter(|(class, _)| class != SIGNAL)
        .collect();
    waits.sort_by(|a, b| b.1.total_cmp(&a.1));
    let all: f64 = waits.iter().map(|(_, seconds)| seconds).sum();
    let parallel = waits.iter().find(|(class, _)| class == "parallel")?.1;
    let share = parallel / all;
    if share.is_nan() || share < KNOWN || parallel < LEAST {
        return None;
    }
    let mut facts: Vec<EvidenceLine> = waits
        .iter()
        .take(4)
        .map(|(class, seconds)| {
            let found = format!("{} s per second ({})", text::number(*seconds), text::percent(seconds / all));
            EvidenceLine::new(format!("waits of the load's sessions: {}", class.replace('_', " ")), found)
        })
        .collect();
    facts.extend(
        cpu_by_the_server(evidence, point)
            .map(|busy| EvidenceLine::new("CPUs in use by the server's own count", text::percent(busy))),
    );
    for name in ["max degree of parallelism", "cost threshold for parallelism"] {
        facts.extend(setting::setting_value(evidence, name).map(|value| EvidenceLine::new(name, value)));
    }
    let workers = evidence.active(point, |group| group.backend == "parallel worker").by(|group| group.query);
    let statements = evidence.statements(point).map_or(&[][..], |(statements, _)| statements);
    facts.extend(workers.iter().take(3).filter_map(|(query, threads)| {
        let of = statements.iter().find(|statement| Some(statement.query) == *query)?;
        let found = format!("{} threads on average", text::number(*threads));
        Some(EvidenceLine::new(format!("runs in parallel: {}", text::statement(&of.text)), found))
    }));
    Some(Finding {
        id: ABOUT.id,
        severity: Severity::Note,
        point: Some(point),
        title: format!("Parallelism waits are {} of the counted waits, but not a limit", text::percent(share)),
        evidence: facts,
        effect: Effect::unknown(
            "the threads of a statement wait for one another while others of them work: these waits are not \
             part of any transaction's time",
        ),
        below_precision: false,
        threshold: "20 % of the waits that the server counts for the load's sessions; in one study they were 40 %, and \
            max degree of parallelism changed the throughput by less than 1 %"
            .into(),
        next: "Do not lower max degree of parallelism because of them. Find out why a statement of this load needs several \
            threads: a plan that reads a whole table (`top-statement-dominates`, `changed-plan`, \
            `scan-without-index`); without it these waits disappear."
            .into(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::staged::Staged;
    use super::*;

    fn waits(parallel: f64, log: f64) -> Staged {
        Staged::new()
            .metric("sqlserver.load_waits.parallel", parallel)
            .metric("sqlserver.load_waits.log", log)
            .metric("sqlserver.load_waits.signal", 50.0)
    }

    #[test]
    fn they_are_a_note_and_never_more() {
        let found = find(&waits(4.0, 6.0).done());
        assert_eq!((found.len(), found[0].severity), (1, Severity::Note));
        assert!(found[0].title.contains("40 %"), "{}", found[0].title);
        assert!(find(&waits(0.9, 6.0).done()).is_empty());
        assert!(find(&waits(0.05, 0.01).done()).is_empty());
        assert!(find(&Staged::new().done()).is_empty());
    }
}

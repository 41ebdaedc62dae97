//! Did tasks wait for memory?

use super::{FindingDefinition, swapping};
use crate::engine::engine_advice;
use crate::{
    Effect, EffectBasis, Evidence, EvidenceLine, Finding, HostResource, ProcessUse, Severity, top_processes,
};
use kelvin_measure::text;
use kelvin_observe::metric;

pub(super) const ABOUT: FindingDefinition = FindingDefinition {
    id: "memory-pressure",
    question: "Did tasks wait for memory during the window?",
    find,
};

/// Share of the time in which all tasks stalled for lack of memory, and in which at least one did.
const ALL: f64 = 0.05;
const SOME: f64 = 0.02;

fn find(evidence: &Evidence) -> Vec<Finding> {
    evidence.points().filter_map(|point| of_point(evidence, point.point)).collect()
}

fn of_point(evidence: &Evidence, point: u32) -> Option<Finding> {
    let some = evidence.mean(point, metric::MEMORY_PRESSURE)?;
    let all = evidence.mean(point, metric::FULL_MEMORY_PRESSURE).unwrap_or(0.0);
    if some < SOME && all < ALL {
        return None;
    }
    // Swapping is the closer word for the same want.
    let swaps = (swapping::ABOUT.find)(evidence)
        .iter()
        .any(|f| f.severity == Severity::Red && f.point == Some(point));
    let mut facts = vec![
        EvidenceLine::new("time in which at least one task waited for memory", text::percent(some)),
        EvidenceLine::new("time in which all tasks waited for memory", text::percent(all)),
    ];
    for (name, what) in [
        (metric::DIRECT_SCANS, "pages scanned in direct reclaim"),
        (metric::ALLOCATION_STALLS, "allocations stalled by direct reclaim"),
        (metric::REFAULTS, "file pages read again soon after eviction"),
    ] {
        if let Some(rate) = evidence.mean(point, name).filter(|rate| *rate > 0.0) {
            facts.push(EvidenceLine::new(what, format!("{} per second", text::number(rate))));
        }
    }
    facts.extend(top_processes(evidence, point, HostResource::Memory).iter().map(ProcessUse::line));
    Some(Finding {
        id: ABOUT.id,
        severity: if all >= ALL && !swaps { Severity::Red } else { Severity::Amber },
        point: Some(point),
        title: format!("Tasks waited for memory for {} of the window", text::percent(some)),
        evidence: facts,
        effect: Effect::up_to(some.max(all), EffectBasis::TransactionTime),
        below_precision: false,
        threshold:
            "amber when at least one task waited for memory for 2 % of the time, red when all tasks waited \
            for 5 % of the time (kernel pressure stall information; the verdict uses the same counter)"
                .into(),
        next: format!(
            "Find out what uses the memory ({}, other processes, a control group's limit) and reduce it, or \
            add memory to the host.",
            engine_advice(evidence).host().memory
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::super::staged::Staged;
    use super::*;

    fn severity(some: f64, all: f64) -> Option<Severity> {
        let staged =
            Staged::new().metric("host.pressure.memory.some", some).metric("host.pressure.memory.full", all);
        find(&staged.done()).first().map(|finding| finding.severity)
    }

    #[test]
    fn it_is_judged_by_the_time_lost() {
        assert_eq!(severity(0.2, 0.1), Some(Severity::Red));
        assert_eq!(severity(0.04, 0.01), Some(Severity::Amber));
        assert_eq!(severity(0.005, 0.001), None);
        assert!(find(&Staged::new().done()).is_empty());
    }

    #[test]
    fn where_the_host_swaps_that_is_the_red_one() {
        let staged = Staged::new()
            .metric("host.pressure.memory.some", 0.2)
            .metric("host.pressure.memory.full", 0.1)
            .metric("host.pages.swap_in", 900.0);
        assert_eq!(find(&staged.done())[0].severity, Severity::Amber);
    }
}

//! Did the host swap during the window?

use super::FindingDefinition;
use crate::engine::engine_advice;
use crate::{
    Effect, EffectBasis, Evidence, EvidenceLine, Finding, HostResource, ProcessUse, Severity, top_processes,
};
use kelvin_measure::text;
use kelvin_observe::metric;

pub(super) const ABOUT: FindingDefinition =
    FindingDefinition { id: "swapping", question: "Did the host swap during the window?", find };

/// Pages per second read from swap, on average over the window. The figures of a host that swaps are not valid (METHOD B6);
/// fewer pages may come from processes that were swapped out before the run.
const WAITED: f64 = 10.0;

fn find(evidence: &Evidence) -> Vec<Finding> {
    evidence.points().filter_map(|point| of_point(evidence, point.point)).collect()
}

fn of_point(evidence: &Evidence, point: u32) -> Option<Finding> {
    let read = evidence.mean(point, metric::SWAP_IN)?;
    let written = evidence.mean(point, metric::SWAP_OUT).unwrap_or(0.0);
    let severity = match (read, written) {
        (read, _) if read >= WAITED => Severity::Red,
        (_, written) if written >= WAITED => Severity::Amber,
        (read, written) if read + written > 0.0 => Severity::Note,
        _ => return None,
    };
    let mut facts = vec![
        EvidenceLine::new("pages read from swap", format!("{} per second", text::number(read))),
        EvidenceLine::new("pages written to swap", format!("{} per second", text::number(written))),
    ];
    if let Some(available) = evidence.newest(metric::MEMORY_AVAILABLE) {
        facts.push(EvidenceLine::new("memory available without swapping", text::memory(available)));
    }
    facts.extend(top_processes(evidence, point, HostResource::Memory).iter().map(ProcessUse::line));
    Some(Finding {
        id: ABOUT.id,
        severity,
        point: Some(point),
        title: format!(
            "The host swapped: {} pages per second in, {} out",
            text::number(read),
            text::number(written)
        ),
        evidence: facts,
        effect: Effect::up_to_or(
            evidence.mean(point, metric::MEMORY_PRESSURE),
            EffectBasis::TransactionTime,
            "the kernel does not report how long tasks waited for memory",
        ),
        below_precision: false,
        threshold:
            "red from 10 pages per second read from swap (the verdict's own threshold: results from a \
            swapping host are unusable), amber from 10 pages per second written to swap"
                .into(),
        next: format!(
            "Give less memory to {} or other processes, or add memory to the host; `swapoff` shows whether \
            everything fits.",
            engine_advice(evidence).host().memory
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::super::staged::Staged;
    use super::*;

    fn severity(read: f64, written: f64) -> Option<Severity> {
        let staged = Staged::new().metric("host.pages.swap_in", read).metric("host.pages.swap_out", written);
        find(&staged.done()).first().map(|finding| finding.severity)
    }

    #[test]
    fn it_is_judged_by_who_waited() {
        assert_eq!(severity(500.0, 0.0), Some(Severity::Red));
        assert_eq!(severity(1.0, 500.0), Some(Severity::Amber));
        assert_eq!(severity(0.5, 0.0), Some(Severity::Note));
        assert_eq!(severity(0.0, 0.0), None);
        assert!(find(&Staged::new().done()).is_empty());
    }
}

//! Were there seconds in which nothing was done at all?

use super::FindingDefinition;
use crate::{Effect, EffectBasis, Evidence, EvidenceLine, Finding, PointEvidence, Severity, Span};
use kelvin_measure::text;

pub(super) const ABOUT: FindingDefinition =
    FindingDefinition { id: "outage", question: "Were there seconds without a single transaction?", find };

/// At this many transactions per second, an empty second is not chance: e⁻²⁰ for Poisson arrivals.
const USUAL: f64 = 20.0;

fn find(evidence: &Evidence) -> Vec<Finding> {
    evidence.points().filter_map(|point| of_point(evidence, point)).collect()
}

fn of_point(evidence: &Evidence, point: &PointEvidence) -> Option<Finding> {
    let pace = point.throughput();
    let working: Vec<f64> = pace.iter().copied().filter(|pace| *pace > 0.0).collect();
    let usual = working.iter().sum::<f64>() / working.len().max(1) as f64;
    let empty: Vec<usize> = (0..pace.len()).filter(|&second| pace[second] == 0.0).collect();
    let first = *empty.first()?;
    if usual < USUAL {
        return None;
    }
    let share = empty.len() as f64 / pace.len() as f64;
    let window = evidence.window(point.point)?;
    let seconds = |at: u64| (at as f64 - window.from as f64) / 1e9;
    let mut facts = vec![
        EvidenceLine::new("seconds without a transaction", format!("{} of {}", empty.len(), pace.len())),
        EvidenceLine::new("first of these seconds", format!("{first} s after the window opened")),
        EvidenceLine::new("transactions per second in the other seconds", text::number(usual)),
    ];
    // A moment before as well: what ended the work came before its effect.
    let around = Span { from: window.from.saturating_sub(1_000_000_000), to: window.to };
    for restart in evidence.occurrences("restart", around) {
        let back = restart.to.map_or("not back".into(), |to| format!("back at {:.1} s", seconds(to)));
        facts.push(EvidenceLine::new(
            "the server restarted",
            format!("down at {:.1} s, {back}", seconds(restart.from)),
        ));
    }
    let lost: u64 = point.errors.iter().filter(|e| e.class.contains("connection")).map(|e| e.count).sum();
    if lost > 0 {
        facts.push(EvidenceLine::new("connections lost or refused", lost.to_string()));
    }
    Some(Finding {
        id: ABOUT.id,
        severity: Severity::Red,
        point: Some(point.point),
        title: format!("No transaction ended in {} of the {} s of the window", empty.len(), pace.len()),
        evidence: facts,
        effect: Effect::between(share, share, EffectBasis::Throughput),
        below_precision: false,
        threshold: format!(
            "one whole second without a transaction, if the other seconds have {USUAL} or more on average: \
            by chance this happens only once in 10⁸ seconds"
        ),
        next: "Look at the errors and at the server's log for that time: a restart, a lock held by another \
            session, a stalled device or network. The mean over such a window describes neither normal \
            operation nor the outage."
            .into(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::staged::Staged;
    use super::*;

    #[test]
    fn seconds_without_work_are_reported_with_the_restart_beside_them() {
        let stopped = Staged::new().throughput(|second| if (4..7).contains(&second) { 0 } else { 500 });
        let found = find(&stopped.occurrence("restart", "server", 3.8, 6.5).done());
        assert_eq!((found.len(), found[0].severity), (1, Severity::Red));
        assert!(found[0].title.contains("in 3 of"), "{found:?}");
        assert!(found[0].evidence.iter().any(|fact| fact.what == "the server restarted"), "{found:?}");
    }

    #[test]
    fn a_steady_load_and_a_slow_one_have_none() {
        assert!(find(&Staged::new().done()).is_empty());
        let slow = Staged::new().throughput(|second| u64::from(second % 3 == 0));
        assert!(find(&slow.done()).is_empty());
    }
}

//! Whether more than a few transactions failed or had to be retried.

use std::collections::BTreeMap;

use kelvin_stats::proportion;

use super::FindingDefinition;
use crate::{Effect, EffectBasis, Evidence, EvidenceLine, Finding, PointEvidence, Severity};
use kelvin_measure::text::percent;

pub(super) const ABOUT: FindingDefinition = FindingDefinition {
    id: "errors-and-retries",
    question: "Did more than 1 % of the transactions fail or have to be retried?",
    find,
};

const BOUND: f64 = 0.01;
/// Share of retried transactions from which the finding is red: retried work does not count in the figure.
const RETRIES: f64 = 0.10;

fn find(evidence: &Evidence) -> Vec<Finding> {
    evidence.points().filter_map(of_point).collect()
}

fn of_point(point: &PointEvidence) -> Option<Finding> {
    let sums = point.transactions();
    let all = sums.good() + sums.failed;
    if all == 0 {
        return None;
    }
    let failed = sums.failed as f64 / all as f64;
    let retried = sums.retries as f64 / all as f64;
    let of_errors: u64 = point.errors.iter().filter(|e| e.second >= 0).map(|e| e.count).sum();
    if failed <= BOUND && retried <= BOUND {
        return None;
    }
    let mut facts = vec![
        EvidenceLine::new("failed permanently", format!("{} of {all} ({})", sums.failed, percent(failed))),
        EvidenceLine::new("retries", format!("{} ({} of the transactions)", sums.retries, percent(retried))),
    ];
    let mut classes: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for error in point.errors.iter().filter(|error| error.second >= 0) {
        *classes.entry((&error.class, &error.code)).or_default() += error.count;
    }
    let mut classes: Vec<_> = classes.into_iter().collect();
    classes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    for ((class, code), count) in classes.into_iter().take(3) {
        facts.push(EvidenceLine::new(format!("{class} {code}"), format!("{count} of {of_errors} errors")));
    }
    let (_, by_chance) = proportion::accepted_counts(all, 0.0, BOUND, 0.01);
    let surely = sums.failed > by_chance;
    let red = failed > BOUND && surely || retried > RETRIES;
    let title = if failed > BOUND {
        format!("{} of the transactions failed", percent(failed))
    } else {
        format!("{} of the transactions had to be retried", percent(retried))
    };
    Some(Finding {
        id: ABOUT.id,
        severity: if red { Severity::Red } else { Severity::Amber },
        point: Some(point.point),
        title,
        evidence: facts,
        effect: Effect::up_to(
            (sums.failed + sums.retries) as f64 / (all + sums.retries) as f64,
            EffectBasis::Transactions,
        ),
        below_precision: false,
        threshold:
            "1 % of the transactions; red when significantly more than 1 % failed (binomial test at the 1 % \
            level), or when 10 % had to be retried"
                .into(),
        next: "Look at the error messages in the report. Deadlocks and serialization failures come from too \
            many users on too few rows: use more warehouses, fewer users, or a lower isolation level."
            .into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::{Scene, severities};

    #[test]
    fn failures_are_red_and_repetitions_only_when_many() {
        let found = |failed, retries| {
            let scene = Scene { failed, retries, ..Scene::healthy() };
            severities(&find(&scene.evidence()))
        };
        assert_eq!(found(0, 5), []);
        assert_eq!(found(30, 0), [Severity::Red]);
        assert_eq!(found(0, 30), [Severity::Amber]);
        assert_eq!(found(0, 300), [Severity::Red]);
    }

    #[test]
    fn nothing_done_is_no_share() {
        let scene = Scene { window: vec![0; 20], ..Scene::healthy() };
        assert_eq!(find(&Scene { retries: 0, ..scene }.evidence()), []);
    }
}

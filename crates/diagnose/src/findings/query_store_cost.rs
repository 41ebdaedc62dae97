//! Did the load's sessions wait for Query Store?

use kelvin_measure::text;
use kelvin_observe::metric;

use super::{FindingDefinition, setting};
use crate::{Effect, EffectBasis, Evidence, EvidenceLine, Finding, Severity, is_client};

pub(super) const ABOUT: FindingDefinition = FindingDefinition {
    id: "query-store-cost",
    question: "Did the load's sessions wait for Query Store?",
    find,
};

/// Share of the active sessions' time from which it should be known: what a comparison of two runs can resolve.
const KNOWN: f64 = 0.02;
/// Share from which a class is the limit (METHOD B6).
const LIMIT: f64 = 0.4;

fn find(evidence: &Evidence) -> Vec<Finding> {
    evidence.points().filter_map(|point| of_point(evidence, point.point)).collect()
}

fn of_point(evidence: &Evidence, point: u32) -> Option<Finding> {
    let waited = evidence.mean(point, &format!("{}query_store", metric::LOAD_WAITS))?;
    let active = evidence.active(point, is_client).sessions();
    let share = waited / active;
    if share.is_nan() || share < KNOWN {
        return None;
    }
    let mut facts =
        vec![EvidenceLine::of_active("sessions waiting for Query Store (QDS waits)", waited, active)];
    facts.extend(
        setting::setting_value(evidence, "is_query_store_on")
            .map(|on| EvidenceLine::new("is_query_store_on", on)),
    );
    Some(Finding {
        id: ABOUT.id,
        severity: if share >= LIMIT { Severity::Red } else { Severity::Amber },
        point: Some(point),
        title: format!("Sessions waited for Query Store: {} of their active time", text::percent(share)),
        evidence: facts,
        effect: Effect::up_to(share, EffectBasis::TransactionTime),
        below_precision: false,
        threshold: "amber from 2 % of the active sessions' time, red from 40 % (the verdict's own threshold)"
            .into(),
        next:
            "Set QUERY_CAPTURE_MODE = AUTO and a longer DATA_FLUSH_INTERVAL_SECONDS, or switch Query Store \
            off, and compare both as an A/B; statements with literals instead of parameters fill it fastest. \
            State the setting with the result."
                .into(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::staged::Staged;
    use super::*;

    #[test]
    fn a_share_of_the_active_time_is_reported() {
        let of = |waited: f64| {
            let staged = Staged::new().metric("sqlserver.load_waits.query_store", waited);
            find(&staged.sessions(&[("client backend", "CPU", "", 4.0)], &[]).done())
        };
        assert_eq!(of(0.4)[0].severity, Severity::Amber);
        assert!(of(0.01).is_empty());
        assert!(find(&Staged::new().done()).is_empty());
    }
}

//! Whether throughput was still rising when the window opened.

use kelvin_stats::level::change;
use kelvin_stats::mser::mser;
use kelvin_stats::trend::trend;

use super::FindingDefinition;
use crate::load::seconds;
use crate::{Effect, EffectBasis, Evidence, EvidenceLine, Finding, PointEvidence, Severity};
use kelvin_measure::text::percent;

pub(super) const ABOUT: FindingDefinition = FindingDefinition {
    id: "ramp-up-too-short",
    question: "Was throughput still rising when the window opened?",
    find,
};

/// The reduction of the window's mean by the slow beginning.
const AMBER: f64 = 0.005;
const RED: f64 = 0.01;
/// A rise over the whole window without a steady state: twice SNIA's bound.
const RISE: f64 = 0.20;

fn find(evidence: &Evidence) -> Vec<Finding> {
    evidence.points().filter_map(|point| of_point(evidence, point)).collect()
}

fn of_point(evidence: &Evidence, point: &PointEvidence) -> Option<Finding> {
    let values = point.headline();
    // Scheduled arrivals do not show the capacity of the database.
    if values.len() < 10 || !point.arrivals.is_empty() {
        return None;
    }
    // TPROC-H's queries are a few unlike ones in an order, some of them longer than all others: their rate is never steady.
    if evidence.queries().iter().any(|query| query.point == point.point) {
        return None;
    }
    let ramp: Vec<f64> = point.seconds.range(..0).map(|(_, counts)| counts.headline as f64).collect();
    if let Some(found) = nothing_yet(evidence, point, &ramp, &values) {
        return Some(found);
    }
    let last = &ramp[ramp.len().saturating_sub(3)..];
    let before = (!last.is_empty()).then(|| last.iter().sum::<f64>() / last.len() as f64);
    let batch = if values.len() >= 50 { 5 } else { 1 };
    let cut = mser(&values, batch)?;
    let mut facts =
        vec![EvidenceLine::new("ramp-up", format!("{:.0} s", seconds(evidence.ramp_up(point.point))))];
    facts.extend(before.map(|before| {
        EvidenceLine::new(
            "headline transactions per second at the end of the ramp-up",
            format!("{before:.0}"),
        )
    }));
    let trend = trend(&values)?;
    if trend.change > RISE && trend.p < 0.001 && !cut.settled {
        facts.push(EvidenceLine::new(
            "fitted rise over the window",
            format!("{}, p = {:.4}", percent(trend.change), trend.p),
        ));
        facts.push(EvidenceLine::new(format!("MSER-{batch}"), "no part is steady"));
        let title = format!("Throughput rose throughout the window, by {}", percent(trend.change));
        let effect = Effect::unknown("throughput did not become steady, so its level is not known");
        return Some(finding(point.point, Severity::Red, title, effect, facts));
    }
    let found = change(&values, cut.values).filter(|_| cut.settled && cut.values > 0)?;
    let loss = (1.0 - found.ratio) * cut.values as f64 / values.len() as f64;
    // MSER tested every position for a cut, so the significance is corrected for that many tests.
    let sure = found.p * (values.len() / 2) as f64;
    // A ramp-up that had reached the level of the rest was long enough: something else held the beginning up.
    let risen = before.is_some_and(|before| before > f64::midpoint(found.first, found.rest));
    if found.ratio >= 1.0 || loss < AMBER || sure >= 0.01 || risen {
        return None;
    }
    facts.push(EvidenceLine::new(
        format!("MSER-{batch}"),
        format!("the first {} s differ from the rest", cut.values),
    ));
    facts.push(EvidenceLine::new(
        "headline transactions per second in these seconds, and after",
        format!(
            "{:.0}, {:.0} (p = {:.4}, corrected for all cut points)",
            found.first,
            found.rest,
            sure.min(1.0)
        ),
    ));
    facts.push(EvidenceLine::new("lost from the window's mean", percent(loss)));
    let title = format!("Throughput was still rising for the first {} s of the window", cut.values);
    let severity = if loss >= RED { Severity::Red } else { Severity::Amber };
    Some(finding(point.point, severity, title, Effect::between(loss, loss, EffectBasis::Throughput), facts))
}

/// The first transaction of the headline's type came later than the others' rate explains by chance: users with keying
/// and thinking times, or long transactions, need a correspondingly long ramp-up.
fn nothing_yet(evidence: &Evidence, point: &PointEvidence, ramp: &[f64], values: &[f64]) -> Option<Finding> {
    let empty = values.iter().take_while(|count| **count == 0.0).count();
    let all: f64 = values.iter().sum();
    if empty < 2 || empty == values.len() || ramp.iter().any(|count| *count > 0.0) {
        return None;
    }
    let rate = all / (values.len() - empty) as f64;
    let p = (-rate * (empty + ramp.len()) as f64).exp();
    if p >= 0.01 {
        return None;
    }
    let facts = vec![
        EvidenceLine::new("ramp-up", format!("{:.0} s", seconds(evidence.ramp_up(point.point)))),
        EvidenceLine::new(
            "seconds of the window without a transaction of the headline type",
            empty.to_string(),
        ),
        EvidenceLine::new(
            "headline transactions per second afterwards",
            format!("{rate:.2} (p = {p:.5} for a gap this long)"),
        ),
        EvidenceLine::new("lost from the window's mean", percent(empty as f64 / values.len() as f64)),
    ];
    let title = format!("The first headline transaction ended {empty} s after the window opened");
    let lost = empty as f64 / values.len() as f64;
    Some(finding(
        point.point,
        Severity::Red,
        title,
        Effect::between(lost, lost, EffectBasis::Throughput),
        facts,
    ))
}

fn finding(
    point: u32,
    severity: Severity,
    title: String,
    effect: Effect,
    evidence: Vec<EvidenceLine>,
) -> Finding {
    Finding {
        id: ABOUT.id,
        severity,
        point: Some(point),
        title,
        evidence,
        effect,
        below_precision: false,
        threshold: "the slow start lowers the window's mean by 0.5 %, red from 1 %; it is found by MSER \
            (White 1997) and tested at 1 % against the scatter of the rest, corrected for all cut points"
            .into(),
        next: "Lengthen the ramp-up (`--ramp-up`) until throughput has reached its level: caches, plans and \
            connections have to be warm."
            .into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::{Scene, severities};

    fn scene(ramp: &[u64], begin: &[u64]) -> Vec<Severity> {
        let mut scene = Scene { ramp: ramp.to_vec(), ..Scene::healthy() };
        for (count, begin) in scene.window.iter_mut().zip(begin) {
            *count = *begin;
        }
        severities(&find(&scene.evidence()))
    }

    #[test]
    fn a_slow_beginning_is_seen_unless_the_ramp_up_had_arrived() {
        let healthy = Scene::healthy();
        assert_eq!(find(&healthy.evidence()), []);
        assert_eq!(scene(&[], &[500, 800, 900]), [Severity::Red]);
        assert_eq!(scene(&[100, 300], &[500, 800, 900]), [Severity::Red]);
        assert_eq!(scene(&[400, 1000, 1010, 1005], &[500, 800, 900]), [], "held up, and not cold");
        assert_eq!(scene(&[], &[890]), [Severity::Amber]);
    }

    #[test]
    fn a_sequence_of_queries_has_no_ramp() {
        let window = (0..60).map(|second| u64::from(second >= 18)).collect();
        let mut evidence = Scene { ramp: Vec::new(), window, ..Scene::healthy() }.evidence();
        assert_eq!(severities(&find(&evidence)), [Severity::Red]);
        let query = super::super::query_plans::tests::execution("Q9", 18.0, "a");
        evidence.event(&kelvin_measure::Event::Query(query));
        assert_eq!(find(&evidence), []);
    }

    #[test]
    fn a_rise_without_end_is_red() {
        let window: Vec<u64> = (0..20).map(|i| 500 + 40 * i + i * 37 % 11).collect();
        let scene = Scene { window, ..Scene::healthy() };
        assert_eq!(severities(&find(&scene.evidence())), [Severity::Red]);
    }

    #[test]
    fn a_window_that_opens_before_the_first_transaction_is_red() {
        let scene = |late: usize, ramp: Vec<u64>| {
            let window = (0..60).map(|i| u64::from(i >= late && i % 2 == 0)).collect();
            find(&Scene { ramp, window, ..Scene::healthy() }.evidence())
        };
        assert_eq!(severities(&scene(18, Vec::new())), [Severity::Red]);
        assert_eq!(scene(8, Vec::new()), [], "by chance");
        assert_eq!(scene(18, vec![0, 1, 0, 1]), []);
    }

    #[test]
    fn scatter_is_no_ramp() {
        let mut random = kelvin_stats::bootstrap::Resampler::new(9);
        let mut found = 0;
        for _ in 0..200 {
            let window: Vec<u64> = (0..20).map(|_| (1000.0 + 100.0 * random.normal()) as u64).collect();
            let scene = Scene { window, ramp: Vec::new(), ..Scene::healthy() };
            found += find(&scene.evidence()).len();
        }
        assert!(found <= 4, "{found} of 200");
    }
}

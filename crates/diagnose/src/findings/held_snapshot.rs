//! Did a transaction keep old row versions alive?
//!
//! VACUUM and the pruning of pages remove only what no transaction can see any more. One that stays open keeps every version since
//! its beginning: hot rows grow chains of versions, and every lookup walks them.

use kelvin_measure::observation::{CaptureTime, Occurrence};
use kelvin_measure::text;

use super::{FindingDefinition, effect};
use crate::{Effect, Evidence, EvidenceLine, Finding, PointEvidence, Severity, Span};

pub(super) const ABOUT: FindingDefinition = FindingDefinition {
    id: "held-snapshot",
    question: "Did a transaction keep old row versions from being removed?",
    find,
};

/// Seconds of the window from which it matters: pages are pruned all the time, tables vacuumed once in autovacuum_naptime.
const SECONDS: f64 = 10.0;
/// Transactions that began meanwhile, each of which may have left row versions.
const BEHIND: f64 = 1000.0;

fn find(evidence: &Evidence) -> Vec<Finding> {
    evidence.points().filter_map(|point| of_point(evidence, point)).collect()
}

fn of_point(evidence: &Evidence, point: &PointEvidence) -> Option<Finding> {
    let window = evidence.window(point.point)?;
    let figure = |one: &Occurrence, name: &str| one.figures.get(name).copied().unwrap_or(0.0);
    let held: Vec<&Occurrence> = evidence
        .occurrences("held-snapshot", window)
        .filter(|one| figure(one, "transactions") >= BEHIND)
        .collect();
    let spans: Vec<Span> = effect::spans(held.iter().copied(), window);
    let covered = effect::covered(&spans);
    let longest = held.iter().max_by(|a, b| figure(a, "seconds").total_cmp(&figure(b, "seconds")))?;
    if covered < SECONDS {
        return None;
    }
    let contrast = effect::on_throughput(evidence, point.point, &spans);
    let costly = contrast.is_some_and(|contrast| contrast.costly);
    let mut facts = vec![
        EvidenceLine::new("seconds of the window", format!("{covered:.0} of {:.0}", window.seconds())),
        EvidenceLine::new("held by", longest.subject.clone()),
        EvidenceLine::new("its age in the last sample", text::short_seconds(figure(longest, "seconds"))),
        EvidenceLine::new(
            "transactions that began during it",
            text::rounded(figure(longest, "transactions")),
        ),
    ];
    facts.extend(contrast.map(effect::Contrast::fact));
    facts.extend(dead_rows(evidence));
    Some(Finding {
        id: ABOUT.id,
        severity: if costly { Severity::Red } else { Severity::Amber },
        point: Some(point.point),
        title: format!(
            "A transaction held its snapshot for {covered:.0} s of the window ({}): no row version was removed",
            longest.subject
        ),
        evidence: facts,
        effect: match contrast {
            Some(seen) => effect::on_figure(Some(seen), covered / window.seconds()),
            None => Effect::unknown("the window has too few seconds without it for a comparison"),
        },
        below_precision: false,
        threshold: "10 s of the window with a snapshot during which 1000 transactions or more began; red if \
            the throughput during it was significantly lower than in the rest of the window"
            .into(),
        next: "End the session, or find out why it does not end its transaction; \
            idle_in_transaction_session_timeout ends forgotten sessions. Vacuum the tables before the next \
            run, or reset the data."
            .into(),
    })
}

/// The tables with the most dead rows after the load.
fn dead_rows(evidence: &Evidence) -> Vec<EvidenceLine> {
    let Some((after, _)) = evidence.relations(CaptureTime::After) else { return Vec::new() };
    let mut tables: Vec<_> =
        after.iter().filter(|one| one.dead_rows.is_some_and(|dead| dead >= 1000)).collect();
    tables.sort_by_key(|one| std::cmp::Reverse(one.dead_rows));
    let fact = |one: &&kelvin_measure::observation::Relation| {
        EvidenceLine::new(
            format!("dead rows of {} after the load", one.name),
            format!(
                "{} beside {} live ones",
                text::rounded(one.dead_rows.unwrap_or(0) as f64),
                text::rounded(one.rows.unwrap_or(0) as f64)
            ),
        )
    };
    tables.iter().take(3).map(fact).collect()
}

#[cfg(test)]
mod tests {
    use super::super::staged::Staged;
    use super::*;

    fn held(from: f64, to: f64, transactions: f64, slow: u64) -> Option<Severity> {
        let during = from as i64 - 6..to as i64 - 6;
        let figures = [("seconds", to - from), ("transactions", transactions)];
        let staged = Staged::new()
            .throughput(move |second| {
                1000 + second.rem_euclid(3) as u64 - if during.contains(&second) { slow } else { 0 }
            })
            .told("held-snapshot", "psql (process 7, idle in transaction)", from, to, &figures);
        find(&staged.done()).first().map(|found| found.severity)
    }

    #[test]
    fn one_that_slows_the_load_is_red_and_a_short_or_idle_one_is_nothing() {
        assert_eq!(held(10.0, 22.0, 12_000.0, 500), Some(Severity::Red));
        assert_eq!(held(10.0, 22.0, 12_000.0, 0), Some(Severity::Amber));
        assert_eq!(held(1.0, 26.0, 25_000.0, 0), Some(Severity::Amber));
        assert_eq!(held(10.0, 15.0, 12_000.0, 500), None);
        assert_eq!(held(10.0, 22.0, 30.0, 0), None, "nothing was written");
    }
}

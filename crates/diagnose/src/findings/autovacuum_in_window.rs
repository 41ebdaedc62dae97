//! Did autovacuum work on the load's tables within the measured window?
//!
//! Small tables that are updated all the time are vacuumed every minute at little cost. Vacuum work is relevant if it
//! takes most of the window, or worker time that the load needed.

use super::{FindingDefinition, effect};
use crate::{Evidence, EvidenceLine, Finding, Severity, Span};
use kelvin_measure::text;

pub(super) const ABOUT: FindingDefinition = FindingDefinition {
    id: "autovacuum-in-window",
    question: "Did autovacuum run during the measured window, and what did it cost?",
    find,
};

/// Share of the window from which vacuums are part of the measured state, or rounds per minute in which the same table was
/// vacuumed; by default there is one round per minute (`autovacuum_naptime`).
const MOST_OF_IT: f64 = 0.5;
const ROUNDS: usize = 4;
/// Average number of active workers from which this counts: with fewer, they slept nearly all the time, or waited to
/// truncate a table.
const AT_WORK: f64 = 0.05;
/// Average number of active workers that is sufficient by itself. Measured with PostgreSQL 15 on two cores: up to 0.07
/// (throughput unchanged), 0.3 (-17 %), 1.4 (-32 %).
const BUSY: f64 = 0.12;
/// Share of the window below which vacuums are only a note.
const IN_PASSING: f64 = 0.02;
/// A minute, the unit of `ROUNDS`: a shorter window needs as many rounds.
const MINUTE: f64 = 60.0;

fn find(evidence: &Evidence) -> Vec<Finding> {
    evidence.points().filter_map(|point| of_point(evidence, point.point)).collect()
}

/// Whether it is a system catalog and not one of the load's tables.
fn of_the_catalog(relation: &str) -> bool {
    let relation = relation.rsplit_once("pg_catalog.").map_or(relation, |_| "pg_catalog.");
    relation.starts_with("pg_catalog.")
        || relation.starts_with("information_schema.")
        || relation.contains("pg_toast")
}

fn of_point(evidence: &Evidence, point: u32) -> Option<Finding> {
    let window = evidence.window(point)?;
    let all =
        || ["autovacuum", "autoanalyze"].into_iter().flat_map(|kind| evidence.occurrences(kind, window));
    let of_the_load = || all().filter(|o| !of_the_catalog(&o.subject));
    let vacuums = effect::spans(of_the_load().filter(|o| o.kind == "autovacuum"), window);
    let spans = effect::spans(of_the_load(), window);
    all().next()?;
    // A vacuum that is only known from the tables' counters has no length, but it did happen.
    let catalog_only = of_the_load().next().is_none();
    let busy = busy(evidence, window, &vacuums, &spans);
    let covered = effect::covered(&vacuums) / window.seconds();
    let effect = effect::on_throughput(evidence, point, &vacuums);
    let costly = effect.is_some_and(|effect| effect.costly);
    let rounds = rounds(of_the_load().filter(|o| o.kind == "autovacuum").map(|o| o.subject.as_str()));
    let often = rounds as f64 >= ROUNDS as f64 * (window.seconds() / MINUTE).max(1.0);
    // If sessions were not sampled, a vacuum may have slept through the window: only rounds count then.
    let most = busy.map_or(often, |busy| busy >= AT_WORK && (often || covered >= MOST_OF_IT));
    let red = most || costly || busy.is_some_and(|busy| busy >= BUSY);
    let in_passing = effect::covered(&spans) < IN_PASSING * window.seconds();
    let severity = match (red, catalog_only || in_passing) {
        (true, _) => Severity::Red,
        (false, false) => Severity::Amber,
        (false, true) => Severity::Note,
    };
    let mut facts = by_relation(all(), window);
    facts.push(EvidenceLine::new(
        "part of the window with a vacuum of the load's tables",
        text::percent(covered),
    ));
    facts.extend(
        busy.map(|busy| EvidenceLine::new("autovacuum workers active, on average", text::number(busy))),
    );
    facts.extend(effect.map(effect::Contrast::fact));
    facts.extend(effect::on_log_device(evidence, window, &vacuums));
    Some(Finding {
        id: ABOUT.id,
        severity,
        point: Some(point),
        title: if catalog_only {
            "Autovacuum processed only system catalogs during the measured window".into()
        } else {
            let vacuums = if covered < 0.001 { "< 0.1 %".into() } else { text::percent(covered) };
            format!("Autovacuum ran during the measured window: vacuums took {vacuums} of it")
        },
        evidence: facts,
        effect: effect::on_figure(effect, covered),
        below_precision: false,
        threshold: "red when workers were active on the load's tables for 12 % of the time (up to 7 % is \
            harmless, 30 % cost 17 % of the throughput on two cores); or for 5 % if vacuums took half of the \
            window or a table was vacuumed four times a minute (and at least four times; if sessions were \
            not sampled, this alone is enough); or when throughput during vacuums was lower than the ±10 % \
            of a steady state allows (99 % confidence, SNIA PTS)"
            .into(),
        next: "Run `vacuum (analyze)` on the tables before the load; then either set autovacuum = off for a \
            run of minutes, or use a window that is long enough for many autovacuum rounds."
            .into(),
    })
}

/// Number of vacuums of the table that was vacuumed most often.
fn rounds<'a>(relations: impl Iterator<Item = &'a str>) -> usize {
    let mut counts = std::collections::HashMap::new();
    relations.for_each(|relation| *counts.entry(relation).or_insert(0) += 1);
    counts.into_values().max().unwrap_or(0)
}

/// Average number of workers that vacuum the load's tables; `None` if sessions were not sampled. Sessions do not show
/// the work of a worker, so it is divided by the duration of vacuums and analyzes.
fn busy(evidence: &Evidence, window: Span, vacuums: &[Span], spans: &[Span]) -> Option<f64> {
    let (mut from, mut sum, mut known) = (None, 0.0, false);
    for (to, groups) in evidence.sessions_over_time() {
        let Some(from) = from.replace(to) else { continue };
        let within = |spans: &[Span]| -> f64 {
            let cut =
                |s: &Span| Span { from: s.from.max(from).max(window.from), to: s.to.min(to).min(window.to) };
            // Added up and not joined: two workers are two.
            spans.iter().map(|s| cut(s).seconds()).sum()
        };
        known |= to > window.from && from < window.to;
        let (of_vacuums, of_all) = (within(vacuums), within(spans));
        if of_all > 0.0 {
            // Only the wait event distinguishes a sleeping worker from an active one.
            let at_work =
                groups.iter().filter(|(g, _)| g.backend == "autovacuum worker" && g.class != "Timeout");
            let at_work: f64 = at_work.map(|(_, sessions)| sessions).sum();
            sum += at_work * of_vacuums / of_all * Span { from, to }.seconds();
        }
    }
    known.then(|| sum / window.seconds())
}

/// Number and duration of the operations on each relation, the longest first.
fn by_relation<'a>(
    all: impl Iterator<Item = &'a kelvin_measure::observation::Occurrence>,
    window: Span,
) -> Vec<EvidenceLine> {
    let mut sums: Vec<(String, usize, f64)> = Vec::new();
    for occurrence in all {
        let seconds = effect::covered(&effect::spans([occurrence], window));
        let what = format!("{} of {}", occurrence.kind, occurrence.subject);
        match sums.iter_mut().find(|(known, ..)| *known == what) {
            Some((_, number, sum)) => (*number, *sum) = (*number + 1, *sum + seconds),
            None => sums.push((what, 1, seconds)),
        }
    }
    sums.sort_by(|a, b| b.2.total_cmp(&a.2));
    let fact = |(what, number, seconds): (String, usize, f64)| {
        let length = if seconds > 0.0 { text::short_seconds(seconds) } else { "too short to time".into() };
        EvidenceLine::new(what, format!("{} in the window, {length}", text::count(number, "time")))
    };
    sums.into_iter().take(6).map(fact).collect()
}

#[cfg(test)]
mod tests {
    use super::super::staged::Staged;
    use super::*;

    fn severity(staged: Staged) -> Option<Severity> {
        find(&staged.done()).first().map(|finding| finding.severity)
    }

    fn workers(staged: Staged, at_work: f64, asleep: f64) -> Staged {
        staged.sessions(
            &[
                ("client backend", "CPU", "", 2.0),
                ("autovacuum worker", "CPU", "", at_work),
                ("autovacuum worker", "Timeout", "VacuumDelay", asleep),
            ],
            &[],
        )
    }

    #[test]
    fn most_of_the_window_is_red() {
        let staged = || {
            Staged::new().occurrence("autovacuum", "public.stock", 5.0, 14.0).occurrence(
                "autovacuum",
                "public.customer",
                14.0,
                25.0,
            )
        };
        assert_eq!(severity(staged()), Some(Severity::Amber));
        assert_eq!(severity(workers(staged(), 0.33, 1.1)), Some(Severity::Red));
        assert_eq!(severity(workers(staged(), 0.02, 1.4)), Some(Severity::Amber));
    }

    #[test]
    fn in_passing_it_is_amber() {
        let staged = Staged::new()
            .occurrence("autovacuum", "public.warehouse", 9.0, 9.1)
            .occurrence("autovacuum", "public.stock", 9.1, 13.0)
            .occurrence("autoanalyze", "public.stock", 13.0, 15.0);
        assert_eq!(severity(workers(staged, 0.1, 0.3)), Some(Severity::Amber));
    }

    #[test]
    fn a_worker_that_works_or_costs_is_red() {
        let staged = || Staged::new().occurrence("autovacuum", "public.stock", 8.0, 14.0);
        assert_eq!(severity(workers(staged(), 0.7, 0.0)), Some(Severity::Red));
        let slow = |second: i64| {
            if (2..8).contains(&second) { 600 + second.unsigned_abs() } else { 1000 + second.unsigned_abs() }
        };
        assert_eq!(severity(staged().throughput(slow)), Some(Severity::Red));
        assert_eq!(severity(staged()), Some(Severity::Amber));
    }

    #[test]
    fn analyzing_alone_is_not_red() {
        let staged = || {
            Staged::new().occurrence("autoanalyze", "public.stock", 8.0, 20.0).occurrence(
                "autovacuum",
                "public.warehouse",
                20.0,
                20.1,
            )
        };
        assert_eq!(severity(workers(staged(), 0.6, 0.0)), Some(Severity::Amber));
        let waits = || Staged::new().occurrence("autovacuum", "public.stock", 6.0, 26.0);
        assert_eq!(severity(workers(waits(), 0.03, 0.9)), Some(Severity::Amber));
    }

    /// As with a naptime of a second: short vacuums of the same tables, repeatedly.
    #[test]
    fn round_after_round_is_red() {
        let staged = |every: usize| {
            (7..25).step_by(every).fold(Staged::new(), |staged, second| {
                let at = f64::from(second);
                staged.occurrence("autovacuum", "public.stock", at, at + 0.2)
            })
        };
        assert_eq!(severity(workers(staged(2), 0.7, 0.0)), Some(Severity::Red));
        assert_eq!(severity(workers(staged(9), 0.07, 0.0)), Some(Severity::Amber));
    }

    #[test]
    fn trial_d8_one_too_short_to_be_seen_is_a_note() {
        assert_eq!(
            severity(Staged::new().occurrence("autovacuum", "public.stock", 8.0, 8.0)),
            Some(Severity::Note)
        );
    }

    #[test]
    fn the_catalog_alone_is_a_note_and_nothing_is_nothing() {
        let catalog = Staged::new()
            .occurrence("autovacuum", "pg_catalog.pg_statistic", 6.0, 25.0)
            .occurrence("autovacuum", "t1.pg_toast.pg_toast_2619", 6.0, 25.0);
        assert_eq!(severity(workers(catalog, 0.9, 0.0)), Some(Severity::Note));
        assert_eq!(severity(Staged::new()), None);
        assert_eq!(severity(Staged::new().occurrence("autovacuum", "public.stock", 1.0, 5.0)), None);
    }
}

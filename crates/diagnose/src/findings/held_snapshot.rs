//! Did a transaction or a replication slot keep old row versions alive?
//!
//! VACUUM and the pruning of pages remove only what no transaction can see any more. One that stays open, prepared ones among them, and a
//! slot whose reader does not follow keep every version since their beginning: hot rows grow chains of versions, and every lookup walks them.

use kelvin_measure::observation::{CaptureTime, Occurrence};
use kelvin_measure::text;
use kelvin_observe::metric;

use super::{FindingDefinition, effect};
use crate::{Effect, Evidence, EvidenceLine, Finding, PointEvidence, Severity, Span};

pub(super) const ABOUT: FindingDefinition = FindingDefinition {
    id: "held-snapshot",
    question: "Did a transaction or a replication slot keep old row versions from being removed?",
    find,
};

/// Seconds of the window from which it matters: pages are pruned all the time, tables vacuumed once in autovacuum_naptime.
const SECONDS: f64 = 10.0;
/// Transactions that began meanwhile, each of which may have left row versions.
const BEHIND: f64 = 1000.0;

/// What may hold row versions: the occurrence's kind, what it did, and what ends it.
const HOLDERS: [(&str, &str, &str); 5] = [
    (
        "held-snapshot",
        "A transaction held its snapshot",
        "End the session, or find out why it does not end its transaction; idle_in_transaction_session_timeout ends \
            forgotten ones.",
    ),
    (
        "held-by-prepared",
        "A prepared transaction held its snapshot",
        "End the prepared transaction, once its coordinator is known not to need it: ROLLBACK PREPARED or COMMIT PREPARED with its \
            name, in its database.",
    ),
    (
        "held-by-slot",
        "A replication slot held back the xmin horizon",
        "If the slot is active, end the standby's long-running query, or turn off its hot_standby_feedback; \
        if it is inactive, let the standby catch up, or drop the slot: pg_drop_replication_slot with its \
        name.",
    ),
    (
        VERSION_STORE,
        "A transaction held the version store",
        "End the session, or find out why it does not end its transaction: the version store cannot be cleaned up \
        past it.",
    ),
    (
        CATALOGS,
        "A replication slot held back the xmin horizon",
        "Let the slot's consumer catch up, advance the slot (pg_replication_slot_advance), or drop it: \
        pg_drop_replication_slot with its name. The slot also retains WAL.",
    ),
];
/// It holds the versions of the system catalogs' rows only.
const CATALOGS: &str = "catalogs-held-by-slot";
/// SQL Server's, whose versions are in tempdb.
const VERSION_STORE: &str = "held-version-store";

fn find(evidence: &Evidence) -> Vec<Finding> {
    let of_point = |point| {
        let [tables, catalogs] = [false, true].map(|catalogs| of_point(evidence, point, catalogs));
        tables.into_iter().chain(catalogs)
    };
    evidence.points().flat_map(of_point).collect()
}

fn of_point(evidence: &Evidence, point: &PointEvidence, catalogs: bool) -> Option<Finding> {
    let window = evidence.window(point.point)?;
    let figure = |one: &Occurrence, name: &str| one.figures.get(name).copied().unwrap_or(0.0);
    let kinds = HOLDERS.iter().filter(|(kind, ..)| (*kind == CATALOGS) == catalogs);
    let held: Vec<&Occurrence> = kinds
        .flat_map(|(kind, ..)| evidence.occurrences(kind, window))
        .filter(|one| figure(one, "transactions") >= BEHIND)
        .collect();
    let spans: Vec<Span> = effect::spans(held.iter().copied(), window);
    let covered = effect::covered(&spans);
    // Only when the oldest has gone does the next one matter.
    let oldest =
        held.iter().max_by(|a, b| figure(a, "transactions").total_cmp(&figure(b, "transactions")))?;
    if covered < SECONDS {
        return None;
    }
    let (_, did, next) = HOLDERS.iter().find(|(kind, ..)| *kind == oldest.kind)?;
    let contrast = effect::on_throughput(evidence, point.point, &spans).filter(|_| !catalogs);
    let mut facts = vec![
        EvidenceLine::new("seconds of the window", format!("{covered:.0} of {:.0}", window.seconds())),
        EvidenceLine::new("held by", oldest.subject.clone()),
        EvidenceLine::new(
            if oldest.kind.ends_with("by-slot") { "observed for" } else { "its age when last seen" },
            text::short_seconds(figure(oldest, "seconds")),
        ),
        EvidenceLine::new(
            "transactions that began in the meantime",
            text::rounded(figure(oldest, "transactions")),
        ),
    ];
    let others = held.iter().filter(|one| one.subject != oldest.subject).take(3);
    facts.extend(others.map(|one| EvidenceLine::new("held by, too", one.subject.clone())));
    facts.extend(contrast.map(effect::Contrast::fact));
    if !catalogs {
        facts.extend(dead_rows(evidence));
    }
    let sizes = evidence.values_within(metric::VERSION_STORE, window);
    if let (Some(first), Some(last)) = (sizes.first(), sizes.last()) {
        let size = |kilobytes: f64| text::binary((kilobytes * 1024.0) as u64);
        let found = format!("{} at the window's start, {} at its end", size(first.value), size(last.value));
        facts.push(EvidenceLine::new("version store", found));
    }
    let next = if oldest.kind == VERSION_STORE {
        (*next).to_owned()
    } else {
        format!("{next} Vacuum the tables before the next run, or reset the data.")
    };
    let what = if catalogs { "no newer row version of the system catalogs" } else { "no newer row version" };
    Some(Finding {
        id: ABOUT.id,
        severity: match contrast {
            _ if catalogs => Severity::Note,
            Some(contrast) if contrast.costly => Severity::Red,
            _ => Severity::Amber,
        },
        point: Some(point.point),
        title: format!("{did} for {covered:.0} s of the window ({}): {what} was removed", oldest.subject),
        evidence: facts,
        effect: match contrast {
            _ if catalogs => Effect::unknown("the cost of larger catalogs was not measured"),
            Some(seen) => effect::on_figure(Some(seen), covered / window.seconds()),
            None => Effect::unknown("the window has too few seconds without it for a comparison"),
        },
        below_precision: false,
        threshold: "a snapshot held for 10 s of the window while 1,000 transactions or more began; red if \
        the throughput during it was significantly lower than in the rest of the window; a note if only row \
        versions of the catalogs are held"
            .into(),
        next,
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
                "{} dead, {} live",
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
            .reported("held-snapshot", "psql (process 7, idle in transaction)", from, to, &figures);
        find(&staged.done()).first().map(|found| found.severity)
    }

    #[test]
    fn the_oldest_holder_is_named_with_what_ends_it() {
        let figures = |transactions| [("seconds", 20.0), ("transactions", transactions)];
        let (two, slot) =
            ("prepared transaction two, database shop", "replication slot old, physical, inactive");
        let found = |slot_kind| {
            let staged = Staged::new().reported("held-by-prepared", two, 6.0, 26.0, &figures(5000.0));
            find(&staged.reported(slot_kind, slot, 6.0, 26.0, &figures(9000.0)).done())
        };
        let by_slot = found("held-by-slot").remove(0);
        assert!(
            by_slot.title.starts_with("A replication slot held back the xmin horizon for 20 s"),
            "{by_slot:?}"
        );
        assert!(by_slot.next.contains("pg_drop_replication_slot"), "{by_slot:?}");
        assert!(by_slot.evidence.iter().any(|line| line.what == "held by, too" && line.found == two));
        let both = found(CATALOGS);
        let severities: Vec<Severity> = both.iter().map(|one| one.severity).collect();
        assert_eq!(severities, [Severity::Amber, Severity::Note]);
        assert!(both[0].next.starts_with("End the prepared transaction"), "{both:?}");
        let remedies: Vec<_> = crate::remedies(&Staged::new().done(), &both);
        assert_eq!(remedies[0].title, format!("release the row versions held by {two}"));
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

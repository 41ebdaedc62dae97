//! How much of what was written were large values, which are stored beside their table?

use kelvin_measure::observation::{CaptureTime, Relation};
use kelvin_measure::text;
use kelvin_observe::metric;

use super::FindingDefinition;
use crate::verdict::time::model;
use crate::{Class, Effect, EffectBasis, Evidence, EvidenceLine, Finding, Severity, Span};

pub(super) const ABOUT: FindingDefinition = FindingDefinition {
    id: "toast-volume",
    question: "How much of the WAL was TOAST data (large values)?",
    find,
};

/// Bytes of a piece at most, with pages of 8 kB.
const PIECE: f64 = 1996.0;
/// Share of the WAL from which it is reported.
const MUCH: f64 = 0.25;

fn find(evidence: &Evidence) -> Vec<Finding> {
    of_run(evidence).into_iter().collect()
}

/// Pieces that the load stored, by table, the most first.
fn stored<'a>(before: &[Relation], after: &'a [Relation]) -> Vec<(&'a str, u64)> {
    let each = after.iter().filter_map(|one| {
        let earlier = before.iter().find(|other| other.kind == one.kind && other.name == one.name)?;
        let stored = one.pieces?.saturating_sub(earlier.pieces?);
        (stored > 0).then_some((one.name.as_str(), stored))
    });
    let mut all: Vec<_> = each.collect();
    all.sort_by_key(|(_, stored)| std::cmp::Reverse(*stored));
    all
}

fn of_run(evidence: &Evidence) -> Option<Finding> {
    let (before, _) = evidence.relations(CaptureTime::Before)?;
    let (after, _) = evidence.relations(CaptureTime::After)?;
    let tables = stored(before, after);
    let mut points = evidence.points();
    let point = points.next()?;
    // Both readings are of the whole load, which says nothing of each of several points.
    if points.next().is_some() {
        return None;
    }
    let window = evidence.window(point.point)?;
    let seconds = evidence.ramp_up(point.point).map_or(0.0, Span::seconds) + window.seconds();
    let bytes = tables.iter().map(|(_, pieces)| *pieces as f64).sum::<f64>() * PIECE / seconds.max(1.0);
    let log = evidence.mean(point.point, metric::WAL_BYTES).filter(|log| *log > 0.0)?;
    let share = (bytes / log).min(1.0);
    if share < MUCH {
        return None;
    }
    let waiting = model(evidence, point).and_then(|model| Some(model.share(Class::Log)?.high));
    let mut facts = vec![
        EvidenceLine::new("large values, at most", text::disk_rate(bytes)),
        EvidenceLine::new("WAL", text::disk_rate(log)),
    ];
    facts.extend(tables.iter().take(5).map(|(table, pieces)| {
        EvidenceLine::new(*table, format!("at most {} chunks of 2 kB", text::rounded(*pieces as f64)))
    }));
    Some(Finding {
        id: ABOUT.id,
        severity: Severity::Note,
        point: Some(point.point),
        title: format!("Up to {} of the WAL was TOAST data (large values)", text::percent(share)),
        evidence: facts,
        effect: Effect::up_to_or(
            waiting.map(|waiting| waiting * share),
            EffectBasis::TransactionTime,
            "the wait events of the sessions were not sampled",
        ),
        below_precision: false,
        threshold: "a quarter of the WAL's bytes or more, at 2 kB per chunk, over ramp-up and window".into(),
        next: "An update of other columns does not write such a value; an update that replaces the value \
            writes all of it. Compare `default_toast_compression = lz4`, and store large values that change \
            often in a separate table."
            .into(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::staged::{Staged, table};
    use super::*;

    fn found(pieces: u64, waiting: f64) -> Option<Finding> {
        let of = |pieces| vec![Relation { pieces: Some(pieces), ..table("public.documents", 1000, 0) }];
        let sessions = [("client backend", "IO", "WALSync", waiting), ("client backend", "CPU", "", 4.0)];
        let staged = Staged::new()
            .sessions(&sessions, &[])
            .metric(metric::WAL_BYTES, 4e6)
            .relations(CaptureTime::Before, of(1000), 1 << 30)
            .relations(CaptureTime::After, of(1000 + pieces), 1 << 30);
        find(&staged.done()).pop()
    }

    #[test]
    fn many_pieces_are_a_note_with_their_table_and_their_share_of_the_log() {
        // 25 s of load with 1000 pieces a second are half of the log.
        let one = found(25_000, 4.0).unwrap();
        assert_eq!(one.severity, Severity::Note);
        assert!(one.title.contains("50 %"), "{}", one.title);
        assert!(
            one.evidence[2].what == "public.documents" && one.evidence[2].found.contains("25"),
            "{one:?}"
        );
        assert!((0.2..0.35).contains(&one.effect.high().unwrap()), "{:?}", one.effect);
        assert!(found(5_000, 4.0).is_none() && found(0, 4.0).is_none());
        assert!(find(&Staged::new().done()).is_empty());
    }
}

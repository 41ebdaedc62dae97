//! How much of the WAL is full-page images, and what may that cost?

use kelvin_measure::text;
use kelvin_observe::metric;

use super::FindingDefinition;
use crate::verdict::time::model;
use crate::{Class, Effect, EffectBasis, Evidence, EvidenceLine, Finding, PointEvidence, Severity};

pub(super) const ABOUT: FindingDefinition =
    FindingDefinition { id: "full-page-images", question: "How much of the WAL was full-page images?", find };

/// Bytes of an image at most: the block size of nearly every server, less what is unused in the page or compressed.
const PAGE: f64 = 8192.0;
/// Share of the WAL's bytes from which images are most of it.
const MOST: f64 = 0.5;
/// Share of the transactions' time in the log below which the WAL's volume limits nothing.
const WAITING: f64 = 0.1;

fn find(evidence: &Evidence) -> Vec<Finding> {
    evidence.points().filter_map(|point| of_point(evidence, point)).collect()
}

fn of_point(evidence: &Evidence, point: &PointEvidence) -> Option<Finding> {
    let images = evidence.mean(point.point, metric::FULL_PAGE_IMAGES).filter(|images| *images > 0.0)?;
    let bytes = evidence.mean(point.point, metric::WAL_BYTES).filter(|bytes| *bytes > 0.0)?;
    let share = (images * PAGE / bytes).min(1.0);
    let model = model(evidence, point)?;
    let waiting = model.share(Class::Log).filter(|log| log.share >= WAITING)?;
    if share < MOST {
        return None;
    }
    Some(Finding {
        id: ABOUT.id,
        severity: Severity::Note,
        point: Some(point.point),
        title: format!("Up to {} of the WAL were full-page images", text::percent(share)),
        evidence: vec![
            EvidenceLine::new("WAL", text::disk_rate(bytes)),
            EvidenceLine::new(
                "full-page images (each page's first change after a checkpoint)",
                format!(
                    "{} per second, {} at most",
                    text::number(images),
                    text::disk_rate((images * PAGE).min(bytes))
                ),
            ),
            EvidenceLine::new("transaction time spent writing the WAL", text::percent(waiting.share)),
        ],
        effect: Effect::up_to(waiting.high * share, EffectBasis::TransactionTime),
        below_precision: false,
        threshold: "half of the WAL's bytes or more, with 8 kB per image, and 10 % of the transactions' \
        time or more spent writing the WAL"
            .into(),
        next: "The first change of a page after a checkpoint writes a full-page image to the WAL. Use a \
        longer window, or start it later after a checkpoint, so that it contains the long-term share. Fewer \
            checkpoints (checkpoint_timeout, max_wal_size) or wal_compression reduce the share: `kelvin \
            advise` lists these changes, and --prove measures the gain."
            .into(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::staged::Staged;
    use super::*;

    fn found(images: f64, waiting: f64) -> Option<Finding> {
        let sessions = [("client backend", "IO", "WALSync", waiting), ("client backend", "CPU", "", 4.0)];
        let staged = Staged::new()
            .sessions(&sessions, &[])
            .metric(metric::WAL_BYTES, 8_192_000.0)
            .metric(metric::FULL_PAGE_IMAGES, images);
        find(&staged.done()).pop()
    }

    #[test]
    fn most_of_the_wal_matters_where_the_log_does() {
        let one = found(750.0, 4.0).unwrap();
        assert_eq!(one.severity, Severity::Note);
        assert!(one.title.contains("75 %"), "{}", one.title);
        // Three quarters of half of the time.
        assert!((0.3..0.5).contains(&one.effect.high().unwrap()), "{:?}", one.effect);
        assert!(found(2000.0, 4.0).unwrap().title.contains("100 %"), "not more than all");
        assert!(found(300.0, 4.0).is_none() && found(750.0, 0.1).is_none());
        assert!(find(&Staged::new().done()).is_empty());
    }
}

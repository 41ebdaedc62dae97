//! Checkpoints, by the pages that they write.
//!
//! With a recovery target of 0 the server writes all dirty pages at a time (automatic checkpoints, and CHECKPOINT); with another,
//! its default since 2016, the background writer writes them all the time, and only a checkpoint that is asked for shows here.

use std::collections::BTreeMap;

use kelvin_measure::Nanos;
use kelvin_measure::observation::Occurrence;

/// Pages of a checkpoint below which nobody notices it (8 MB): those of system databases are smaller.
const LITTLE: f64 = 1000.0;

/// One that is under way.
#[derive(Debug)]
struct UnderWay {
    from: Nanos,
    pages: f64,
    /// Its number, once it was reported.
    id: Option<u32>,
}

/// Follows the checkpoints.
#[derive(Debug, Default)]
pub(super) struct Checkpoints {
    under_way: Option<UnderWay>,
}

impl Checkpoints {
    /// So many pages were written by checkpoints since a reading.
    pub(super) fn wrote(
        &mut self,
        pages: f64,
        before: Nanos,
        number: impl FnOnce() -> u32,
    ) -> Option<Occurrence> {
        let occurrence = |id: u32, one: &UnderWay, to: Option<Nanos>| Occurrence {
            id,
            kind: "checkpoint".into(),
            subject: "automatic".into(),
            from: one.from,
            to,
            figures: BTreeMap::from([("buffers".to_owned(), one.pages)]),
        };
        if pages <= 0.0 {
            let ended = self.under_way.take()?;
            // It ended within the reading before, which was the last that wrote.
            return ended.id.map(|id| occurrence(id, &ended, Some(before)));
        }
        let one = self.under_way.get_or_insert(UnderWay { from: before, pages: 0.0, id: None });
        one.pages += pages;
        if one.id.is_none() && one.pages >= LITTLE {
            let id = number();
            one.id = Some(id);
            return Some(occurrence(id, one, None));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use kelvin_measure::SECOND;

    use super::*;

    #[test]
    fn one_lasts_as_long_as_it_writes_and_small_ones_are_nothing() {
        let mut seen = Checkpoints::default();
        let mut sent = Vec::new();
        for (second, pages) in [0.0, 300.0, 0.0, 800.0, 5000.0, 200.0, 0.0, 0.0].into_iter().enumerate() {
            sent.extend(seen.wrote(pages, second as Nanos * SECOND, || 7));
        }
        let one: Vec<_> = sent.iter().map(|one| (one.id, one.from, one.to, one.figures["buffers"])).collect();
        assert_eq!(one, [(7, 3 * SECOND, None, 5800.0), (7, 3 * SECOND, Some(6 * SECOND), 6000.0)]);
    }
}

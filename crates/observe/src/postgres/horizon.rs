//! The transaction behind which no row version is removed, while it lasts.

use std::collections::BTreeMap;

use kelvin_measure::Nanos;
use kelvin_measure::observation::{Observation, Occurrence};

use super::link::{Link, Once};
use super::sql;
use crate::server::shortened;
use crate::watch::Feed;

/// Follows it.
#[derive(Debug, Default)]
pub(super) struct Horizon {
    ask: Once,
    held: Option<(i64, Occurrence)>,
}

impl Horizon {
    /// Asks for it, once a second: the oldest transaction of a client if it is older than five seconds.
    pub(super) fn look(&mut self, link: &mut Link, feed: &mut Feed) -> Result<(), String> {
        let rows = self.ask.run(link, |_| sql::horizon())?;
        let now = feed.now();
        if rows.is_empty() {
            self.ended(now, feed);
            return Ok(());
        }
        let read = || -> kelvin_database::Result<_> {
            Ok((
                rows.int(0, 0)?,
                rows.text(0, 1)?.to_owned(),
                rows.text(0, 2)?.to_owned(),
                rows.float(0, 3)?,
                rows.float(0, 4)?,
            ))
        };
        let (pid, application, doing, seconds, behind) = read().map_err(|error| error.to_string())?;
        let from = now.saturating_sub((seconds * 1e9) as Nanos);
        // The same process in a later transaction is another holder.
        let same =
            self.held.as_ref().is_some_and(|(of, held)| *of == pid && from <= held.from + 1_000_000_000);
        if !same {
            self.ended(now, feed);
        }
        let name = if application.is_empty() { "a session".to_owned() } else { shortened(&application) };
        let (_, held) = self.held.get_or_insert_with(|| {
            let occurrence = Occurrence {
                id: feed.occurrence(),
                kind: "held-snapshot".into(),
                subject: format!("{name}, process {pid}, {doing}"),
                from,
                to: None,
                figures: BTreeMap::new(),
            };
            (pid, occurrence)
        });
        let first = held.figures.is_empty();
        held.figures = BTreeMap::from([("seconds".into(), seconds), ("transactions".into(), behind)]);
        if first {
            feed.send(Observation::Occurrence(held.clone()));
        }
        Ok(())
    }

    /// It is over, or nobody looks any more: with what was known of it last.
    pub(super) fn ended(&mut self, at: Nanos, feed: &mut Feed) {
        if let Some((_, mut held)) = self.held.take() {
            held.to = Some(at);
            feed.send(Observation::Occurrence(held));
        }
    }
}

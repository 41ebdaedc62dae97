//! What row versions are kept for, while it lasts: transactions of sessions, prepared transactions,
//! replication slots.

use std::collections::BTreeMap;

use kelvin_database::Rows;
use kelvin_measure::observation::{Observation, Occurrence};
use kelvin_measure::{Nanos, SECOND};

use super::shortened;
use crate::watch::Feed;

/// How long a transaction must last to be one that holds row versions.
const HELD: Nanos = 5 * SECOND;
/// How long a slot must have been at the same transaction: a standby that follows reports its own every 10 s by default
/// (`wal_receiver_status_interval`).
const STUCK: Nanos = 30 * SECOND;

/// Follows them.
#[derive(Debug, Default)]
pub(crate) struct Horizon {
    held: Vec<Held>,
}

/// One of them.
#[derive(Debug)]
struct Held {
    holder: Holder,
    from: Nanos,
    reported: Option<Occurrence>,
}

/// Which it is.
#[derive(Debug, PartialEq, Eq)]
struct Holder {
    kind: String,
    /// The process, or the transaction that a prepared one is or a slot is at.
    id: String,
    name: String,
}

impl Holder {
    /// Kind of the occurrence, and what it is about.
    fn describe(&self, more: &str) -> (&'static str, String) {
        let Self { kind, id, name } = self;
        match kind.as_str() {
            "prepared" => ("held-by-prepared", format!("prepared transaction {name}, {more}")),
            "slot" => ("held-by-slot", format!("replication slot {name}, {more}")),
            "versions" => ("held-version-store", format!("{}, session {id}, {more}", shortened(name))),
            "catalogs" => ("catalogs-held-by-slot", format!("replication slot {name}, {more}")),
            _ if name.is_empty() => ("held-snapshot", format!("a session, process {id}, {more}")),
            _ => ("held-snapshot", format!("{}, process {id}, {more}", shortened(name))),
        }
    }
}

impl Horizon {
    /// Compares the oldest of each kind with those of a second ago: kind, identity, name, more of it, seconds (NULL where the server
    /// does not know), and how many transactions have begun since.
    pub(crate) fn compare(&mut self, rows: &Rows, feed: &mut Feed) -> Result<(), String> {
        let now = feed.now();
        let mut held = std::mem::take(&mut self.held);
        for row in 0..rows.len() {
            let read = || -> kelvin_database::Result<_> {
                let text = |column| rows.text(row, column).map(str::to_owned);
                let holder = Holder { kind: text(0)?, id: text(1)?, name: text(2)? };
                Ok((holder, text(3)?, rows.optional(row, 4, Rows::float)?, rows.float(row, 5)?))
            };
            let (holder, more, seconds, behind) = read().map_err(|error| error.to_string())?;
            // One that is older than the run began at its beginning.
            let began = seconds.map(|seconds| now.saturating_sub((seconds * 1e9) as Nanos));
            // The same process in a later transaction is another holder.
            let same =
                |one: &Held| one.holder == holder && began.is_none_or(|from| from <= one.from + SECOND);
            let known = held.iter().position(same).map(|at| held.swap_remove(at));
            let mut one = known.unwrap_or(Held { holder, from: began.unwrap_or(now), reported: None });
            one.observed(now, &more, seconds, behind, feed);
            self.held.push(one);
        }
        for one in held {
            one.ended(now, feed);
        }
        Ok(())
    }

    /// They are over, or nobody looks any more: with what was known of them last.
    pub(crate) fn ended(&mut self, at: Nanos, feed: &mut Feed) {
        for one in self.held.drain(..) {
            one.ended(at, feed);
        }
    }
}

impl Held {
    /// With the age that the server reports; of a slot it has none, and what counts is how long it has been observed.
    fn observed(&mut self, now: Nanos, more: &str, age: Option<f64>, behind: f64, feed: &mut Feed) {
        let least = if age.is_some() { HELD } else { STUCK };
        let seconds = age.unwrap_or(now.saturating_sub(self.from) as f64 / 1e9);
        if seconds < least as f64 / 1e9 {
            return;
        }
        let figures = BTreeMap::from([("seconds".to_owned(), seconds), ("transactions".to_owned(), behind)]);
        if let Some(reported) = &mut self.reported {
            reported.figures = figures;
            return;
        }
        let (kind, subject) = self.holder.describe(more);
        let (id, from) = (feed.occurrence(), self.from);
        let reported = Occurrence { id, kind: kind.into(), subject, from, to: None, figures };
        feed.send(Observation::Occurrence(reported.clone()));
        self.reported = Some(reported);
    }

    fn ended(self, at: Nanos, feed: &mut Feed) {
        if let Some(mut reported) = self.reported {
            reported.to = Some(at);
            feed.send(Observation::Occurrence(reported));
        }
    }
}

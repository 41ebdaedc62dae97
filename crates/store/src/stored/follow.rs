//! A run that goes on, read as it is written.

use std::collections::BTreeMap;

use kelvin_measure::event::{Event, Status};

use super::{FIRST, StoredRun, end, read_events, read_observed, read_seconds, unpack};
use crate::error::{Error, Result};
use crate::run::RunId;
use crate::store::Store;
use crate::values::Unpacker;

/// A run that another process writes, followed through the store: it never disturbs the writer, which commits every second.
#[derive(Debug)]
pub struct Follower {
    store: Store,
    run: StoredRun,
    values: Unpacker,
    /// The last second that was read.
    last: Option<(u32, i64)>,
    /// The last place among the readings and waits that was read.
    observed: i64,
}

impl Follower {
    /// Begins to follow a run, from its first event on.
    ///
    /// # Errors
    /// When there is no such run, or it is damaged.
    pub fn new(store: Store, id: RunId) -> Result<Self> {
        let (info, liveness) = store.info(id)?;
        let run = StoredRun {
            id,
            info,
            status: Status::Partial,
            liveness,
            error: None,
            void: None,
            path: store.path().to_path_buf(),
            events: Vec::new(),
            seconds: Vec::new(),
            totals: Vec::new(),
            observed: Vec::new(),
            sources: BTreeMap::new(),
        };
        Ok(Self { store, run, values: Unpacker::default(), last: None, observed: FIRST })
    }

    /// Reads what was written since the last call: the events but for the seconds, in their order but for the observations,
    /// which come last.
    ///
    /// # Errors
    /// When the store cannot be read, or is damaged.
    pub fn advance(&mut self) -> Result<Vec<Event>> {
        let (path, id) = (self.run.path.clone(), self.run.id);
        let conn = self.store.connection();
        let snapshot = conn.unchecked_transaction().map_err(|e| Error::sqlite(&path, e))?;
        let after = self.run.events.last().map_or(FIRST, |(seq, _)| *seq);
        let events = read_events(&snapshot, &path, id, after, &mut self.run.sources)?;
        // The last second may have come in part.
        let from = self.last.map_or((FIRST, FIRST), |(point, second)| (point.into(), second));
        self.run.seconds = read_seconds(&snapshot, &path, id, self.run.info.kinds.len(), from)?;
        let observed = read_observed(&snapshot, &path, id, self.observed, &mut self.run.sources)?;
        drop(snapshot);
        self.last = self.run.seconds.iter().map(|second| (second.point, second.second)).max().or(self.last);
        self.observed = observed.last().map_or(self.observed, |(seq, _)| *seq);
        let mut news: Vec<Event> = events.iter().map(|(_, event)| event.clone()).collect();
        for (_, seen) in &observed {
            news.push(unpack(&path, id, seen, &mut self.values)?);
        }
        self.run.events.extend(events);
        match end(&self.run.events) {
            Some((status, error, liveness)) => {
                (self.run.status, self.run.error, self.run.liveness) = (status, error, liveness);
            }
            None => self.run.liveness = self.store.info(id)?.1,
        }
        Ok(news)
    }

    /// The run with all of its events, and of its seconds those that the last call read.
    pub fn run(&self) -> &StoredRun {
        &self.run
    }
}

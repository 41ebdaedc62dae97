//! Counting sessions by what they wait for, from one event to the next.

use std::collections::HashMap;

use kelvin_measure::observation::{Observation, WaitGroup, WaitSamples};

use crate::watch::Feed;

/// States that are distinguished by their statement; beyond that a load without prepared statements would fill the
/// memory with identifiers.
const MOST_GROUPS: usize = 4096;

/// Sessions by state since the last event.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    known: HashMap<WaitGroup, usize>,
    /// The run's number of each group that we found.
    numbers: Vec<u32>,
    /// Sessions seen, by group.
    seen: Vec<u32>,
    looks: u32,
    rows: HashMap<String, u32>,
    lock_looks: u32,
    /// Those of this sample that are not named yet.
    fresh: Vec<WaitGroup>,
}

impl Counted {
    /// A session in this state.
    pub(crate) fn session(&mut self, mut group: WaitGroup) {
        if self.known.len() >= MOST_GROUPS && !self.known.contains_key(&group) {
            group.query = None;
        }
        let index = self.known.get(&group).copied().unwrap_or_else(|| {
            let index = self.seen.len();
            self.known.insert(group.clone(), index);
            self.seen.push(0);
            self.fresh.push(group);
            index
        });
        self.seen[index] += 1;
    }

    /// The sample is complete; states that are new get their numbers.
    pub(crate) fn looked(&mut self, feed: &mut Feed) {
        self.looks += 1;
        if !self.fresh.is_empty() {
            let fresh = std::mem::take(&mut self.fresh);
            let count = fresh.len() as u32;
            let first = feed.groups(fresh);
            self.numbers.extend(first..first + count);
        }
    }

    /// Sessions that wait for rows of `relation`.
    pub(crate) fn rows(&mut self, relation: &str, sessions: u32) {
        *self.rows.entry(relation.to_owned()).or_default() += sessions;
    }

    /// The sample of the locks is complete.
    pub(crate) fn looked_at_locks(&mut self) {
        self.lock_looks += 1;
    }

    /// Looks since the last event.
    pub(crate) fn looks(&self) -> u32 {
        self.looks
    }

    /// Sends the event and begins anew.
    pub(crate) fn send(&mut self, feed: &mut Feed) {
        if self.looks == 0 {
            return;
        }
        let seen = self.seen.iter_mut().zip(&self.numbers);
        let seen = seen.filter(|(seen, _)| **seen > 0).map(|(seen, number)| (*number, std::mem::take(seen)));
        let seen = seen.collect();
        let mut rows: Vec<_> = self.rows.drain().collect();
        rows.sort_unstable();
        let waits = WaitSamples {
            at: feed.now(),
            looks: std::mem::take(&mut self.looks),
            seen,
            rows,
            lock_looks: std::mem::take(&mut self.lock_looks),
        };
        feed.send(Observation::Waits(waits));
    }
}

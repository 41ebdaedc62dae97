//! Who sleeps until when.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

/// Sleeping fibers by their deadlines. An entry is good for one sleep, which `generation` names: who was woken
/// before its deadline leaves an entry that nobody heeds any more.
#[derive(Debug, Default)]
pub(crate) struct Timers(BinaryHeap<Reverse<(Instant, usize, u64)>>);

impl Timers {
    pub(crate) fn with_capacity(fibers: usize) -> Self {
        Self(BinaryHeap::with_capacity(2 * fibers))
    }

    pub(crate) fn add(&mut self, until: Instant, fiber: usize, generation: u64) {
        self.0.push(Reverse((until, fiber, generation)));
    }

    /// The next deadline.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.0.peek().map(|Reverse((until, ..))| *until)
    }

    /// A fiber whose deadline has come.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<(usize, u64)> {
        if self.next()? > now {
            return None;
        }
        self.0.pop().map(|Reverse((_, fiber, generation))| (fiber, generation))
    }
}

//! Timers of sleeping fibers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

/// Sleeping fibers by their deadlines. An entry is valid for one sleep, identified by `generation`: a fiber that was
/// woken before its deadline leaves a stale entry, which is ignored.
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

    /// Removes and returns a fiber whose deadline has passed, with its generation.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<(usize, u64)> {
        if self.next()? > now {
            return None;
        }
        self.0.pop().map(|Reverse((_, fiber, generation))| (fiber, generation))
    }
}

//! `verify_only`: compares the repeated random choices with the data.
//!
//! A job draws its places and the numbers of its writes by its name and its place in the run. One that looks at what
//! another wrote draws others: of a block of the other's it knows whether it is whole and where it belongs, and not which
//! write was the last. Where it draws only some of the places, a place without a header may never have been written.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::seed_at;
use crate::Direction;
use crate::data::header::{Header, Number};
use crate::data::seeds::Seeds;
use crate::job::{Distribution, Job};

/// What identifies a worker's writes, and which were seen; shared by all examiners.
#[derive(Debug, Clone)]
pub(super) struct OwnDraws {
    seeds: Seeds,
    /// Every place of the regions is written, whatever is drawn, and always the same length at each.
    everywhere: bool,
    own: Arc<AtomicBool>,
    doubtful: Arc<AtomicU64>,
}

impl OwnDraws {
    pub(super) fn new(job: &Job, seeds: Seeds) -> Self {
        Self { seeds, everywhere: is_everywhere(job), own: Arc::default(), doubtful: Arc::default() }
    }

    /// Whether this worker's draws made the write that a header is of.
    pub(super) fn is_own(&self, found: &Header) -> bool {
        let Number::Whole(number) = found.number else { return false };
        let own = seed_at(self.seeds.seed_of(number), self.seeds.repeat(), found.offset) == found.seed;
        if own {
            self.own.store(true, Ordering::Relaxed);
        }
        own
    }

    /// What should be at a place is not there: whether that may be because another job drew other places. Counted.
    pub(super) fn may_be_unwritten(&self) -> bool {
        let doubtful = !self.everywhere && !self.own.load(Ordering::Relaxed);
        if doubtful {
            self.doubtful.fetch_add(1, Ordering::Relaxed);
        }
        doubtful
    }

    /// How many chunks were doubtful, and whether they are no more: some of the draws turned out to be this worker's.
    pub(super) fn doubts(&self) -> (u64, bool) {
        (self.doubtful.load(Ordering::Relaxed), self.own.load(Ordering::Relaxed))
    }
}

fn is_everywhere(job: &Job) -> bool {
    let (pattern, targets) = (&job.pattern, &job.targets);
    let sizes = &job.blocks.sizes[Direction::Write];
    let once = !pattern.random
        || (!pattern.no_random_map
            && pattern.percentage_random[Direction::Write] >= 100.0
            && pattern.distribution[Direction::Write] == Distribution::Uniform
            && targets.io_size.is_none()
            && targets.number_ios.is_none()
            && targets.file_size.is_none());
    let alone = pattern.writes && !pattern.reads && !pattern.trims;
    alone
        && once
        && sizes.smallest() == sizes.largest()
        && pattern.modifier.is_none()
        && pattern.zones.is_none()
}

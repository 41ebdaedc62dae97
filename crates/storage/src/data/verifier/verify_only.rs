//! `verify_only`: compares the repeated random choices with the data.
//!
//! A job draws its offsets and the numbers of its writes from a seed that includes its name and its place in the
//! run. A job that verifies another job's blocks draws different ones: of such a block it knows whether it is intact
//! and where it belongs, but not which write was the last. If it draws only some of the offsets, one without a
//! header may never have been written.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::seed_at;
use crate::Direction;
use crate::data::header::{Header, Number};
use crate::data::seeds::Seeds;
use crate::job::{Distribution, Job};

/// Identifies a worker's writes, and records which were seen; shared by all examiners.
#[derive(Debug, Clone)]
pub(super) struct OwnDraws {
    seeds: Seeds,
    /// Every offset of the regions is written, whatever is drawn, and always with the same length.
    everywhere: bool,
    own: Arc<AtomicBool>,
    doubtful: Arc<AtomicU64>,
}

impl OwnDraws {
    pub(super) fn new(job: &Job, seeds: Seeds) -> Self {
        Self { seeds, everywhere: is_everywhere(job), own: Arc::default(), doubtful: Arc::default() }
    }

    /// Whether this worker's random choices produced the write that a header is from.
    pub(super) fn is_own(&self, found: &Header) -> bool {
        let Number::Whole(number) = found.number else { return false };
        let own = seed_at(self.seeds.seed_of(number), self.seeds.repeat(), found.offset) == found.seed;
        if own {
            self.own.store(true, Ordering::Relaxed);
        }
        own
    }

    /// Whether missing data at an offset may be due to another job's different offsets. If so, counts it as doubtful.
    pub(super) fn may_be_unwritten(&self) -> bool {
        let doubtful = !self.everywhere && !self.own.load(Ordering::Relaxed);
        if doubtful {
            self.doubtful.fetch_add(1, Ordering::Relaxed);
        }
        doubtful
    }

    /// The number of doubtful chunks, and whether they are doubtful no longer: some of the writes were this worker's.
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

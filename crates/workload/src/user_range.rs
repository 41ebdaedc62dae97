//! The virtual users of a run that one generator drives.

use std::ops::Range;

use kelvin_measure::Random;

/// Some of the virtual users of a point. Users are numbered from 0 over all generators of a run, and all random values
/// of a user depend on the run's seed and the user's number: a user behaves identically on every generator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserRange {
    first: u32,
    end: u32,
    total: u32,
}

impl UserRange {
    /// All users of a point.
    pub const fn all(total: u32) -> Self {
        Self { first: 0, end: total, total }
    }

    /// The users of `total` whose numbers are in `range`; `None` where the range exceeds them.
    pub fn part(range: Range<u32>, total: u32) -> Option<Self> {
        let Range { start: first, end } = range;
        (first <= end && end <= total).then_some(Self { first, end, total })
    }

    /// The number of the first.
    pub fn first(self) -> u32 {
        self.first
    }

    /// The number of users.
    pub fn count(self) -> u32 {
        self.end - self.first
    }

    /// The number of users that all generators of the point drive together.
    pub fn total(self) -> u32 {
        self.total
    }

    /// Each user's number with its stream of random numbers.
    pub(crate) fn streams(self, seed: u64) -> impl Iterator<Item = (u32, Random)> {
        (self.first..self.end).zip(Random::users(seed).skip(self.first as usize))
    }
}

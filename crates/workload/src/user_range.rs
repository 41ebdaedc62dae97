//! Which of a run's virtual users one generator drives.

use std::ops::Range;

use kelvin_measure::Random;

/// Some of the virtual users of a point. Users are numbered from 0 over all generators of a run, and everything that is drawn
/// for a user depends on the run's seed and its number: a user is the same whoever drives it.
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

    /// Those of `total` users whose numbers are in `range`; none where the range is not within them.
    pub fn part(range: Range<u32>, total: u32) -> Option<Self> {
        let Range { start: first, end } = range;
        (first <= end && end <= total).then_some(Self { first, end, total })
    }

    /// The number of the first.
    pub fn first(self) -> u32 {
        self.first
    }

    /// How many they are.
    pub fn count(self) -> u32 {
        self.end - self.first
    }

    /// How many users all generators of the point drive together.
    pub fn total(self) -> u32 {
        self.total
    }

    /// Each user's number with its stream of random numbers.
    pub(crate) fn streams(self, seed: u64) -> impl Iterator<Item = (u32, Random)> {
        (self.first..self.end).zip(Random::users(seed).skip(self.first as usize))
    }
}

//! The virtual users that one generator drives.

use std::ops::Range;

use kelvin_measure::Random;
use serde::{Deserialize, Serialize};

/// A range of the virtual users of a point. Users are numbered from 0 over all generators of a run. A user's
/// random values depend only on the run's seed and the user's number, so a user behaves identically on every
/// generator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "(u32, u32, u32)", into = "(u32, u32, u32)")]
pub struct UserRange {
    first: u32,
    end: u32,
    total: u32,
}

/// Checks a range that was received from another host.
impl TryFrom<(u32, u32, u32)> for UserRange {
    type Error = String;

    fn try_from((first, end, total): (u32, u32, u32)) -> Result<Self, String> {
        Self::part(first..end, total).ok_or_else(|| format!("{first} to {end} of {total} are no users"))
    }
}

impl From<UserRange> for (u32, u32, u32) {
    fn from(range: UserRange) -> Self {
        (range.first, range.end, range.total)
    }
}

impl UserRange {
    /// All users of a point.
    pub const fn all(total: u32) -> Self {
        Self { first: 0, end: total, total }
    }

    /// The users of `total` with the numbers in `range`; `None` if the range exceeds them.
    pub fn part(range: Range<u32>, total: u32) -> Option<Self> {
        let Range { start: first, end } = range;
        (first <= end && end <= total).then_some(Self { first, end, total })
    }

    /// The users of generator `index` of `generators`, which share `total` users and differ by at most one
    /// user; `None` if `index` is out of range.
    pub fn share(total: u32, index: u32, generators: u32) -> Option<Self> {
        let before = |index: u32| u64::from(total) * u64::from(index) / u64::from(generators);
        let range = (index < generators).then(|| before(index) as u32..before(index + 1) as u32)?;
        Self::part(range, total)
    }

    /// This range's share of `amount`, in proportion to its number of users. The shares of all generators add
    /// up to `amount`.
    pub fn share_of(self, amount: u64) -> u64 {
        let before = |user: u32| u128::from(amount) * u128::from(user) / u128::from(self.total.max(1));
        (before(self.end) - before(self.first)) as u64
    }

    /// Their numbers.
    pub fn numbers(self) -> Range<u32> {
        self.first..self.end
    }

    /// The number of the first.
    pub fn first(self) -> u32 {
        self.first
    }

    /// The number of users.
    pub fn count(self) -> u32 {
        self.end - self.first
    }

    /// The number of users of all generators of the point together.
    pub fn total(self) -> u32 {
        self.total
    }

    /// Each user's number and its stream of random numbers.
    pub(crate) fn streams(self, seed: u64) -> impl Iterator<Item = (u32, Random)> {
        (self.first..self.end).zip(Random::users(seed).skip(self.first as usize))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_shares_of_all_generators_are_all_users(total in 0_u32..200_000, generators in 1_u32..300, amount: u64) {
            let shares: Vec<UserRange> =
                (0..generators).map(|index| UserRange::share(total, index, generators).unwrap()).collect();
            let mut next = 0;
            for share in &shares {
                prop_assert_eq!((share.first(), share.total()), (next, total));
                next += share.count();
                prop_assert!(share.count().abs_diff(total / generators) <= 1);
            }
            prop_assert_eq!(next, total);
            prop_assert_eq!(UserRange::share(total, generators, generators), None);
            if total > 0 {
                let sum: u128 = shares.iter().map(|share| u128::from(share.share_of(amount))).sum();
                prop_assert_eq!(sum, u128::from(amount));
            }
        }
    }

    #[test]
    fn what_is_no_range_is_refused_from_another_host() {
        let range = UserRange::part(4..8, 12).unwrap();
        let numbers: (u32, u32, u32) = range.into();
        assert_eq!((numbers, UserRange::try_from(numbers)), ((4, 8, 12), Ok(range)));
        assert!(UserRange::try_from((4, 13, 12)).unwrap_err().contains("of 12 are no users"));
        assert!(UserRange::try_from((5, 4, 12)).is_err());
    }
}

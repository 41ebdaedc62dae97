//! What a larger cache would miss in the place of the one above the device, whose misses the trace has.
//!
//! The requests of the trace are what a cache of some size did not have. A larger LRU cache has a block if fewer others were
//! accessed since the block's last access than it has room for. The trace has the others that were missed since the
//! block was last missed. It lacks those that never left the smaller cache in between, at most as many as that has blocks,
//! which bounds the misses from above; and it lacks the block's own hits in between, which would make the distance
//! shorter. Both are few if the smaller cache is small: the distance of the trace is the estimate. A block's first
//! access in the trace lies at least as far back as there were different blocks before it, which decides about caches
//! smaller than these; what is before the counted part of the trace fills the cache.

use super::StackDistances;

/// The distances of a trace's accesses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Growth {
    /// Accesses that were counted.
    accesses: u64,
    /// Of those that had one before, how many had each distance.
    distances: Vec<u64>,
    /// Of first accesses, how many different blocks had been accessed before, in ascending order.
    firsts: Vec<u64>,
}

/// A miss ratio that is known to lie between two.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize, serde::Deserialize)]
pub struct MissRange {
    /// At least this.
    pub low: f64,
    /// At most this.
    pub high: f64,
}

impl Growth {
    /// Of accesses in the order of time, with whether each counts: the ones before fill the cache.
    pub fn from_accesses(accesses: impl Iterator<Item = (u64, bool)>) -> Self {
        let mut stack = StackDistances::new();
        let mut found = Self::default();
        for (block, counts) in accesses {
            let before = stack.first_accesses();
            let distance = stack.access(block);
            if !counts {
                continue;
            }
            found.accesses += 1;
            match distance {
                Some(distance) => {
                    let place = distance as usize;
                    if found.distances.len() <= place {
                        found.distances.resize(place + 1, 0);
                    }
                    found.distances[place] += 1;
                }
                None => found.firsts.push(before),
            }
        }
        found
    }

    /// Accesses that were counted.
    pub fn accesses(&self) -> u64 {
        self.accesses
    }

    /// Misses of an LRU cache of so many blocks as a share of the trace's, if all distances are those of the trace: of
    /// first accesses that nothing is known about, none or all.
    pub fn miss_range(&self, blocks: u64) -> Option<MissRange> {
        if self.accesses == 0 {
            return None;
        }
        let hits: u64 = self.distances.iter().take(usize::try_from(blocks).unwrap_or(usize::MAX)).sum();
        let again: u64 = self.distances.iter().sum();
        let unknown = self.firsts.partition_point(|before| *before < blocks) as u64;
        let sure = (again - hits) + (self.firsts.len() as u64 - unknown);
        let share = |misses: u64| misses as f64 / self.accesses as f64;
        Some(MissRange { low: share(sure), high: share(sure + unknown) })
    }

    /// What a cache of so many blocks misses at most in the place of one of `smaller` blocks.
    pub fn most_misses(&self, smaller: u64, blocks: u64) -> Option<f64> {
        self.miss_range(blocks.saturating_sub(smaller)).map(|range| range.high)
    }
}

#[cfg(test)]
mod tests {
    use kelvin_measure::Random;
    use proptest::prelude::*;

    use super::*;

    /// The accesses that an LRU cache of a size misses, in their order.
    fn misses(accesses: &[u64], size: usize) -> Vec<bool> {
        let mut stack: Vec<u64> = Vec::new();
        let mut miss = |block: &u64| {
            let found = stack.iter().position(|other| other == block);
            if let Some(place) = found {
                stack.remove(place);
            }
            stack.insert(0, *block);
            stack.truncate(size);
            found.is_none()
        };
        accesses.iter().map(&mut miss).collect()
    }

    proptest! {
        #[test]
        fn a_larger_cache_misses_what_the_smaller_ones_trace_says(
            accesses in prop::collection::vec(0..40_u64, 50..400), smaller in 1..10_usize, more in 1..25_usize,
        ) {
            let larger = smaller + more;
            let (small, large) = (misses(&accesses, smaller), misses(&accesses, larger));
            // What a block trace has, the last two thirds of which count; at its beginning the caches are empty.
            let from = accesses.len() / 3;
            let trace = accesses.iter().enumerate().filter(|(at, _)| small[*at]).map(|(at, block)| (*block, at >= from));
            let found = Growth::from_accesses(trace);
            let count = |missed: &[bool]| missed[from..].iter().filter(|one| **one).count() as u64;
            prop_assert_eq!(found.accesses(), count(&small));
            if let Some(most) = found.most_misses(smaller as u64, larger as u64) {
                let share = count(&large) as f64 / found.accesses() as f64;
                prop_assert!(share <= most + 1e-9, "{} of {}", share, most);
            }
                // Of all accesses the range is exact but for first accesses.
            let every = Growth::from_accesses(accesses.iter().enumerate().map(|(at, block)| (*block, at >= from)));
            let range = every.miss_range(larger as u64).unwrap();
            let share = count(&large) as f64 / every.accesses() as f64;
            prop_assert!((range.low - 1e-9..=range.high + 1e-9).contains(&share), "{} of {:?}", share, range);
        }
    }

    #[test]
    fn a_filled_cache_is_known_from_what_came_before() {
        // Uniform accesses to 10,000 blocks: a cache of 6,000 misses four of ten, one of 1,000 nine of ten.
        let mut random = Random::part(4, 0, 0);
        let accesses: Vec<u64> = (0..60_000).map(|_| random.range(0, 9_999) as u64).collect();
        let small = misses(&accesses, 1000);
        let missed = || accesses.iter().zip(&small).enumerate().filter(|(_, (_, missed))| **missed);
        let found = Growth::from_accesses(missed().map(|(at, (block, _))| (*block, at >= 30_000)));
        let range = found.miss_range(6000).unwrap();
        assert!((range.low - 0.4 / 0.9).abs() < 0.02 && range.high - range.low < 0.001, "{range:?}");
        let most = found.most_misses(1000, 6000).unwrap();
        assert!((0.4 / 0.9..0.6).contains(&most), "{most}");
        assert_eq!(Growth::default().miss_range(5), None);
    }
}

//! Stack distances: how many different blocks were accessed since a block's last access.
//!
//! Mattson's stack (IBM Systems Journal 1970), by Olken's method (LBL-32370, 1981): a tree over time has a mark at the
//! last access of each block, and the distance is the number of marks behind it. The tree is Fenwick's (Software:
//! Practice and Experience 1994); when its times are used up, they are given anew, so that it needs memory for the
//! different blocks only.

use std::collections::HashMap;

use super::BlockHash;

const SMALLEST: usize = 1024;

/// Counts the distances of accesses.
#[derive(Debug)]
pub struct StackDistances {
    last: HashMap<u64, u32, BlockHash>,
    /// Fenwick's sums over the times, the first at 1.
    sums: Vec<u32>,
    now: usize,
    /// Accesses at each distance.
    histogram: Vec<u64>,
    first_accesses: u64,
}

impl Default for StackDistances {
    fn default() -> Self {
        Self {
            last: HashMap::default(),
            sums: vec![0; SMALLEST + 1],
            now: 0,
            histogram: Vec::new(),
            first_accesses: 0,
        }
    }
}

impl StackDistances {
    /// Nothing was accessed yet.
    pub fn new() -> Self {
        Self::default()
    }

    fn add(&mut self, mut time: usize, by: i32) {
        while let Some(sum) = self.sums.get_mut(time) {
            *sum = sum.wrapping_add_signed(by);
            time += time & time.wrapping_neg();
        }
    }

    /// Marks up to a time.
    fn marks(&self, mut time: usize) -> u32 {
        let mut marks = 0;
        while time > 0 {
            marks += self.sums.get(time).copied().unwrap_or(0);
            time &= time - 1;
        }
        marks
    }

    /// Accesses a block. Returns how many others were accessed since its last access; none at its first.
    pub fn access(&mut self, block: u64) -> Option<u64> {
        if self.now + 1 >= self.sums.len() {
            self.renumber();
        }
        self.now += 1;
        let now = self.now;
        let before = self.last.insert(block, now as u32);
        let distance = before.map(|before| {
            // The marks are as many as the blocks; that of this block is still at its old time.
            let behind = (self.last.len() as u32).wrapping_sub(self.marks(before as usize));
            self.add(before as usize, -1);
            u64::from(behind)
        });
        self.add(now, 1);
        match distance {
            Some(distance) => {
                let place = distance as usize;
                if self.histogram.len() <= place {
                    self.histogram.resize(place + 1, 0);
                }
                self.histogram[place] += 1;
            }
            None => self.first_accesses += 1,
        }
        distance
    }

    /// Gives the blocks new times, in the order of the old ones, and room for as many accesses as there are blocks.
    fn renumber(&mut self) {
        let mut blocks: Vec<(u32, u64)> = self.last.iter().map(|(block, time)| (*time, *block)).collect();
        blocks.sort_unstable();
        let size = (blocks.len() * 2).max(SMALLEST);
        // A tree of marks at the times 1 to n, the sums of which are known at once.
        self.sums = vec![0; size + 1];
        for (time, (_, block)) in (1_u32..).zip(&blocks) {
            self.last.insert(*block, time);
            self.sums[time as usize] = 1;
        }
        for time in 1..=size {
            let above = time + (time & time.wrapping_neg());
            if above <= size {
                self.sums[above] += self.sums[time];
            }
        }
        self.now = blocks.len();
    }

    /// Accesses by their distance.
    pub fn histogram(&self) -> &[u64] {
        &self.histogram
    }

    /// First accesses, which are the number of different blocks.
    pub fn first_accesses(&self) -> u64 {
        self.first_accesses
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// LRU as one would write it down.
    fn misses(accesses: &[u64], size: usize) -> u64 {
        let mut stack: Vec<u64> = Vec::new();
        let mut misses = 0;
        for block in accesses {
            match stack.iter().position(|other| other == block) {
                Some(place) => {
                    stack.remove(place);
                }
                None => misses += 1,
            }
            stack.insert(0, *block);
            stack.truncate(size);
        }
        misses
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn all_sizes_are_those_of_lru(accesses in prop::collection::vec(0..40_u64, 0..300)) {
            let mut distances = StackDistances::new();
            for block in &accesses {
                distances.access(*block);
            }
            for size in 1..42 {
                let hits: u64 = distances.histogram().iter().take(size).sum();
                prop_assert_eq!(accesses.len() as u64 - hits, misses(&accesses, size), "size {}", size);
            }
        }
    }

    #[test]
    fn times_are_given_anew() {
        let mut random = kelvin_measure::Random::part(5, 0, 0);
        let accesses: Vec<u64> = (0..20_000).map(|_| random.range(0, 2500) as u64).collect();
        let mut distances = StackDistances::new();
        for block in &accesses {
            distances.access(*block);
        }
        assert!(distances.sums.len() < 6000);
        for size in [1, 100, 1000, 2400] {
            let hits: u64 = distances.histogram().iter().take(size).sum();
            assert_eq!(accesses.len() as u64 - hits, misses(&accesses, size));
        }
    }
}

//! Units of a target that were used in this pass: a bit for each, with a bit for every full word above, and so on.
//!
//! Only jobs with several block sizes need it; those with one draw from a [`super::permutation::Permutation`].

/// Maximum memory for the maps of one worker, in bytes: sufficient for 140 TB in units of 4 KiB.
pub(crate) const LIMIT: u64 = 4 << 30;

/// Used units.
#[derive(Debug, Clone)]
pub(crate) struct Map {
    /// The lowest level has the units; a bit of a higher level is set if the word below it is full.
    levels: Vec<Vec<u64>>,
    units: u64,
    used: u64,
}

impl Map {
    /// The bytes that a map of `units` units takes.
    pub(crate) fn bytes(units: u64) -> u64 {
        units.div_ceil(64).saturating_mul(8).saturating_add(units / 500 + 64)
    }

    /// An empty map of `units` units, at least one.
    pub(crate) fn new(units: u64) -> Self {
        let mut levels = Vec::new();
        let mut bits = units.max(1);
        loop {
            let words = bits.div_ceil(64);
            levels.push(vec![0_u64; words as usize]);
            if words == 1 {
                break;
            }
            bits = words;
        }
        let mut new = Self { levels, units: units.max(1), used: 0 };
        new.close_ends();
        new
    }

    /// Marks the bits beyond the end as used.
    fn close_ends(&mut self) {
        let mut bits = self.units;
        for level in &mut self.levels {
            if let Some(last) = level.last_mut().filter(|_| !bits.is_multiple_of(64)) {
                *last |= u64::MAX << (bits % 64);
            }
            bits = bits.div_ceil(64);
        }
    }

    /// Marks all units as unused.
    pub(crate) fn clear(&mut self) {
        for level in &mut self.levels {
            level.fill(0);
        }
        self.used = 0;
        self.close_ends();
    }

    /// The number of unused units.
    #[cfg(test)]
    pub(crate) fn left(&self) -> u64 {
        self.units - self.used
    }

    #[cfg(test)]
    pub(crate) fn is_free(&self, unit: u64) -> bool {
        unit < self.units && self.levels[0][(unit / 64) as usize] >> (unit % 64) & 1 == 0
    }

    /// The number of consecutive free units from `unit`, at most `most`.
    pub(crate) fn free_run(&self, unit: u64, most: u64) -> u64 {
        let most = most.min(self.units.saturating_sub(unit));
        let mut run = 0;
        while run < most {
            let at = unit + run;
            let word = self.levels[0][(at / 64) as usize] >> (at % 64);
            let here = u64::from(word.trailing_zeros()).min(64 - at % 64);
            run += here;
            if here < 64 - at % 64 {
                break;
            }
        }
        run.min(most)
    }

    /// Marks `count` units from `unit` as used. All must be free.
    pub(crate) fn take(&mut self, unit: u64, count: u64) {
        let mut at = unit;
        let end = unit + count;
        while at < end {
            let here = (64 - at % 64).min(end - at);
            let mask = (u64::MAX >> (64 - here)) << (at % 64);
            let mut index = (at / 64) as usize;
            debug_assert_eq!(self.levels[0][index] & mask, 0);
            self.levels[0][index] |= mask;
            let mut full = self.levels[0][index] == u64::MAX;
            for level in 1..self.levels.len() {
                if !full {
                    break;
                }
                let bit = index % 64;
                index /= 64;
                self.levels[level][index] |= 1 << bit;
                full = self.levels[level][index] == u64::MAX;
            }
            at += here;
        }
        self.used += count;
    }

    /// The first free unit from `unit`, with wrap-around at the end; `None` if all are used.
    pub(crate) fn next_free(&self, unit: u64) -> Option<u64> {
        self.free_from(unit).or_else(|| self.free_from(0))
    }

    fn free_from(&self, unit: u64) -> Option<u64> {
        if unit >= self.units {
            return None;
        }
        // Ascends until a word has a free bit at or after the position, then descends along the first free bits.
        let mut place = unit;
        for level in 0..self.levels.len() {
            let index = (place / 64) as usize;
            let free = !self.levels[level].get(index)? & (u64::MAX << (place % 64));
            if free != 0 {
                let mut found = index as u64 * 64 + u64::from(free.trailing_zeros());
                for below in (0..level).rev() {
                    found = found * 64 + u64::from((!self.levels[below][found as usize]).trailing_zeros());
                }
                return Some(found);
            }
            // The word has no more free bits: continue with the next one.
            place = place / 64 + 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_map_does_what_a_list_of_flags_does(
            units in 1_u64..20_000,
            steps in proptest::collection::vec((any::<u64>(), 1_u64..300), 1..300),
        ) {
            let mut map = Map::new(units);
            let mut flags = vec![false; units as usize];
            for (at, most) in steps {
                let at = at % units;
                let expected = (at..units).chain(0..at).find(|unit| !flags[*unit as usize]);
                prop_assert_eq!(map.next_free(at), expected);
                let Some(free) = expected else { break };
                prop_assert!(map.is_free(free));
                let run = map.free_run(free, most);
                let by_flags = (free..units).take(most as usize).take_while(|unit| !flags[*unit as usize]).count();
                prop_assert_eq!(run, by_flags as u64);
                map.take(free, run);
                flags[free as usize..(free + run) as usize].fill(true);
                prop_assert_eq!(map.left(), flags.iter().filter(|used| !**used).count() as u64);
            }
            map.clear();
            prop_assert_eq!(map.left(), units);
            prop_assert_eq!(map.next_free(units - 1), Some(units - 1));
        }

        #[test]
        fn all_units_can_be_used_one_by_one(units in 1_u64..9000, from: u64) {
            let mut map = Map::new(units);
            let mut count = 0;
            while let Some(unit) = map.next_free(from % units) {
                map.take(unit, 1);
                count += 1;
            }
            prop_assert_eq!((count, map.left()), (units, 0));
        }
    }
}

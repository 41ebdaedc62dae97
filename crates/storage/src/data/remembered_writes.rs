//! The remembered writes: for each offset the last one counts.

use std::collections::BTreeMap;

use super::chunks::Chunks;

/// Maximum number of remembered writes before a pass is requested. A million blocks take 34 MB if written in random
/// order, and 42 MB in ascending order (measured): 20 bytes each, in nodes that are at least half full.
pub(super) const MOST: usize = 8 << 20;

/// Address of a write: the target, then the offset.
pub(super) type BlockAddress = (u32, u64);

/// The last write or trim at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RememberedBlock {
    /// Length in bytes.
    pub(super) length: u32,
    number: [u32; 2],
}

/// Flags in the upper half of the number.
const TRIMMED: u32 = 1 << 31;
const AT_LEAST: u32 = 1 << 30;

impl RememberedBlock {
    /// A write with this number.
    pub(super) fn written(length: u32, number: u64) -> Self {
        Self { length, number: [number as u32, (number >> 32) as u32 & !(TRIMMED | AT_LEAST)] }
    }

    /// A trim, after which zeros are read.
    pub(super) fn trimmed(length: u32) -> Self {
        Self { length, number: [0, TRIMMED] }
    }

    /// The same block, but a later write is accepted, too.
    pub(super) fn or_later(mut self) -> Self {
        self.number[1] |= AT_LEAST;
        self
    }

    /// The number of the write; `None` for a trim.
    pub(super) fn number(self) -> Option<u64> {
        let upper = self.number[1] & !(TRIMMED | AT_LEAST);
        (self.number[1] & TRIMMED == 0).then(|| u64::from(upper) << 32 | u64::from(self.number[0]))
    }

    /// Whether a later write is accepted, too.
    pub(super) fn is_at_least(self) -> bool {
        self.number[1] & AT_LEAST != 0
    }

    fn with_length(self, length: u32) -> Self {
        Self { length, ..self }
    }
}

/// The last writes by address.
#[derive(Debug, Clone, Default)]
pub(super) struct RememberedWrites {
    targets: Vec<BTreeMap<u64, RememberedBlock>>,
    count: usize,
}

impl RememberedWrites {
    pub(super) fn new(targets: usize) -> Self {
        Self { targets: vec![BTreeMap::new(); targets], count: 0 }
    }

    /// The number of remembered writes.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Remembers the content at an address from now on.
    pub(super) fn insert(
        &mut self,
        (target, offset): BlockAddress,
        entry: RememberedBlock,
        chunks: Option<Chunks>,
    ) {
        self.forget((target, offset), entry.length, chunks);
        if self.targets.len() <= target as usize {
            self.targets.resize(target as usize + 1, BTreeMap::new());
        }
        if self.targets[target as usize].insert(offset, entry).is_none() {
            self.count += 1;
        }
    }

    /// Forgets the content at an address. If a block is only partly overwritten, its other chunks stay known, provided
    /// that chunks can be verified individually.
    pub(super) fn forget(&mut self, (target, offset): BlockAddress, length: u32, chunks: Option<Chunks>) {
        let Some(map) = self.targets.get_mut(target as usize) else { return };
        let end = offset + u64::from(length);
        // The common case: the same block again, or an address that was never written.
        while let Some((at, entry)) = map
            .range(..end)
            .next_back()
            .map(|(at, entry)| (*at, *entry))
            .filter(|(at, entry)| at + u64::from(entry.length) > offset)
        {
            map.remove(&at);
            self.count -= 1;
            let Some(chunks) = chunks else { continue };
            if at >= offset && at + u64::from(entry.length) <= end {
                continue;
            }
            let (mut before, mut after) = (0, entry.length);
            for chunk in chunks.split(entry.length as usize) {
                if at + chunk.end as u64 <= offset {
                    before = chunk.end as u32;
                }
                if at + chunk.start as u64 >= end {
                    after = after.min(chunk.start as u32);
                }
            }
            if after < entry.length {
                map.insert(at + u64::from(after), entry.with_length(entry.length - after));
                self.count += 1;
            }
            if before > 0 {
                map.insert(at, entry.with_length(before));
                self.count += 1;
                // It ends before `offset`, and so does everything before it.
                break;
            }
        }
    }

    /// Addresses and entries that overlap a range, ascending.
    pub(super) fn overlapping(
        &self,
        (target, offset): BlockAddress,
        length: u32,
    ) -> impl Iterator<Item = (u64, RememberedBlock)> {
        let end = offset + u64::from(length);
        let map = self.targets.get(target as usize);
        let first = map
            .and_then(|map| map.range(..=offset).next_back())
            .filter(|(at, entry)| *at + u64::from(entry.length) > offset)
            .map_or(offset, |(at, _)| *at);
        map.into_iter().flat_map(move |map| map.range(first..end.max(first))).map(|(at, entry)| (*at, *entry))
    }

    /// Removes and returns the first entry at or after an address, or else the first of all.
    pub(super) fn take_from(
        &mut self,
        (target, offset): BlockAddress,
    ) -> Option<(BlockAddress, RememberedBlock)> {
        let found = (target as usize..self.targets.len())
            .find_map(|index| {
                let from = if index == target as usize { offset } else { 0 };
                self.targets[index].range(from..).next().map(|(at, _)| (index as u32, *at))
            })
            .or_else(|| self.iter().next().map(|(place, _)| place))?;
        let entry = self.targets[found.0 as usize].remove(&found.1)?;
        self.count -= 1;
        Some((found, entry))
    }

    /// All entries, ascending.
    pub(super) fn iter(&self) -> impl Iterator<Item = (BlockAddress, RememberedBlock)> {
        self.targets
            .iter()
            .enumerate()
            .flat_map(|(target, map)| map.iter().map(move |(at, entry)| ((target as u32, *at), *entry)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(remembered: &RememberedWrites) -> Vec<(u64, u32, u64)> {
        remembered.iter().map(|((_, at), entry)| (at, entry.length, entry.number().unwrap())).collect()
    }

    #[test]
    fn an_entry_keeps_what_it_is() {
        let entry = RememberedBlock::written(4096, 0x1234_5678_9abc);
        assert_eq!((entry.number(), entry.is_at_least()), (Some(0x1234_5678_9abc), false));
        assert_eq!(
            (entry.or_later().number(), entry.or_later().is_at_least()),
            (Some(0x1234_5678_9abc), true)
        );
        assert_eq!(RememberedBlock::trimmed(512).number(), None);
        assert_eq!(size_of::<RememberedBlock>(), 12);
    }

    #[test]
    fn the_last_write_counts_and_whole_chunks_beside_it_stay() {
        let chunks = Some(Chunks { interval: Some(512), least: 45 });
        let mut remembered = RememberedWrites::new(1);
        remembered.insert((0, 0), RememberedBlock::written(4096, 1), chunks);
        remembered.insert((0, 4096), RememberedBlock::written(4096, 2), chunks);
        remembered.insert((0, 0), RememberedBlock::written(4096, 3), chunks);
        assert_eq!(all(&remembered), [(0, 4096, 3), (4096, 4096, 2)]);
        remembered.insert((0, 1000), RememberedBlock::written(100, 4), chunks);
        assert_eq!(all(&remembered), [(0, 512, 3), (1000, 100, 4), (1536, 2560, 3), (4096, 4096, 2)]);
        remembered.insert((0, 0), RememberedBlock::written(16384, 5), None);
        assert_eq!(all(&remembered), [(0, 16384, 5)]);
        remembered.forget((0, 8192), 1, None);
        assert_eq!(remembered.len(), 0);
    }

    proptest! {
        #[test]
        fn it_knows_what_a_plain_map_of_chunks_knows(
            writes in prop::collection::vec((0_u64..64, 1_u32..16, prop::bool::ANY), 1..60),
        ) {
            // Offsets and lengths are multiples of the chunk, so every chunk of the last write stays known.
            let chunks = Some(Chunks { interval: Some(512), least: 45 });
            let mut remembered = RememberedWrites::new(1);
            let mut plain = BTreeMap::new();
            for (number, (at, length, write)) in writes.into_iter().enumerate() {
                let place = (0, at * 512);
                if write {
                    remembered.insert(place, RememberedBlock::written(length * 512, number as u64), chunks);
                } else {
                    remembered.forget(place, length * 512, chunks);
                }
                for chunk in at..at + u64::from(length) {
                    if write { plain.insert(chunk, number as u64); } else { plain.remove(&chunk); }
                }
                let known: BTreeMap<u64, u64> = remembered
                    .iter()
                    .flat_map(|((_, at), entry)| {
                        let number = entry.number().unwrap();
                        (0..u64::from(entry.length) / 512).map(move |chunk| (at / 512 + chunk, number))
                    })
                    .collect();
                prop_assert_eq!(&known, &plain);
                prop_assert_eq!(remembered.iter().count(), remembered.len());
                let seen: Vec<_> = remembered.overlapping((0, 512 * 10), 512 * 20).map(|(at, _)| at).collect();
                let expected: Vec<_> = remembered
                    .iter()
                    .filter(|((_, at), entry)| *at < 512 * 30 && at + u64::from(entry.length) > 512 * 10)
                    .map(|((_, at), _)| at)
                    .collect();
                prop_assert_eq!(seen, expected);
            }
        }
    }
}

//! Drawing read bytes from a recording while it is read, and finding which of their blocks were written in it.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashSet};

use kelvin_measure::{Nanos, Random};

use super::BLOCK;
use crate::SECTOR;
use crate::{Operation, Request, Visitor};

/// Domain of the random numbers, so that they are no others'.
const DOMAIN: u64 = 41;

/// A sector that was drawn: when its request was issued, its device's place in the trace, its place in bytes.
pub(super) type DrawnSector = (Nanos, u16, u64);

/// Draws sectors of reads with replacement, each with the same chance, from a stream whose length is not known before.
///
/// After W sectors a slot holds each of them with the chance 1/W, if sector k takes it with the chance 1/(k+1). That none of
/// the sectors from W up to x takes it has the chance W/x: with U from (0, 1] the next to take it is ⌊W/U⌋.
#[derive(Debug)]
pub(super) struct Draw {
    random: Random,
    slots: Vec<Option<DrawnSector>>,
    /// Which sector takes a slot next.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    sectors: u64,
}

impl Draw {
    pub(super) fn new(slots: usize, seed: u64) -> Self {
        Self {
            random: Random::part(seed, DOMAIN, 0),
            slots: vec![None; slots],
            next: (0..slots).map(|slot| Reverse((0, slot))).collect(),
            sectors: 0,
        }
    }

    /// Bytes that were read.
    pub(super) fn read_bytes(&self) -> u64 {
        self.sectors * SECTOR
    }

    /// What was drawn, in an order that says nothing: the first of them are a sample as well.
    pub(super) fn drawn(&self) -> impl Iterator<Item = DrawnSector> + '_ {
        self.slots.iter().flatten().copied()
    }
}

impl Visitor for Draw {
    fn request(&mut self, request: &Request) {
        if request.operation != Operation::Read {
            return;
        }
        let (begin, end) = (self.sectors, self.sectors + u64::from(request.length) / SECTOR);
        while let Some(Reverse((sector, slot))) = self.next.peek().copied().filter(|next| next.0.0 < end) {
            self.next.pop();
            let place = request.offset + (sector - begin) * SECTOR;
            if let Some(slot) = self.slots.get_mut(slot) {
                *slot = Some((request.at, request.device, place));
            }
            let chance = 1.0 - self.random.unit();
            let next = ((sector + 1) as f64 / chance) as u64;
            self.next.push(Reverse((next.max(sector + 1), slot)));
        }
        self.sectors = end;
    }
}

/// Which of some blocks were written or discarded.
#[derive(Debug)]
pub(super) struct Changes {
    /// Device and number of the block.
    blocks: BTreeSet<(u16, u64)>,
    pub(super) changed: HashSet<(u16, u64)>,
}

/// The number of a place's block.
pub(super) fn block(place: u64) -> u64 {
    place / u64::from(BLOCK)
}

impl Changes {
    pub(super) fn for_sectors(drawn: impl Iterator<Item = DrawnSector>) -> Self {
        let blocks = drawn.map(|(_, device, place)| (device, block(place))).collect();
        Self { blocks, changed: HashSet::new() }
    }
}

impl Visitor for Changes {
    fn request(&mut self, request: &Request) {
        if !matches!(request.operation, Operation::Write | Operation::Discard) || request.length == 0 {
            return;
        }
        let (device, first, last) = (request.device, block(request.offset), block(request.end() - 1));
        self.changed.extend(self.blocks.range((device, first)..=(device, last)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Flags;

    fn request(at: Nanos, operation: Operation, offset: u64, length: u32) -> Request {
        let (file, flags, took) = (Request::NO_FILE, Flags::default(), Request::UNKNOWN);
        Request { at, offset, length, device: 0, process: 0, file, operation, flags, took }
    }

    #[test]
    fn every_read_byte_has_the_same_chance() {
        // A long request, then short ones, then a long one: 1, 98 and 1 of them with 400, 98 · 4 and 208 sectors of 1000.
        let mut draw = Draw::new(20_000, 7);
        draw.request(&request(0, Operation::Read, 0, 400 * 512));
        draw.request(&request(1, Operation::Write, 0, 4096));
        for at in 0..98 {
            draw.request(&request(10 + at, Operation::Read, 1 << 30, 4 * 512));
        }
        draw.request(&request(500, Operation::Read, 1 << 40, 208 * 512));
        assert_eq!(draw.read_bytes(), 1000 * 512);
        let share = |of: &dyn Fn(&DrawnSector) -> bool| draw.drawn().filter(of).count() as f64 / 20_000.0;
        // Four standard errors are 0.014.
        assert!((share(&|(at, ..)| *at == 0) - 0.4).abs() < 0.014);
        assert!((share(&|(at, ..)| (10..108).contains(at)) - 0.392).abs() < 0.014);
        assert!((share(&|(at, ..)| *at == 500) - 0.208).abs() < 0.014);
        // Within a request as well: the first quarter of the first.
        assert!((share(&|(at, _, place)| *at == 0 && *place < 100 * 512) - 0.1).abs() < 0.009);
        // The first half of what was drawn is no other sample than the second.
        let half = draw.drawn().take(10_000).filter(|(at, ..)| *at == 0).count() as f64 / 10_000.0;
        assert!((half - 0.4).abs() < 0.02, "{half}");
    }

    #[test]
    fn what_was_written_or_discarded_is_known_by_block() {
        let drawn = [(1, 0, 512), (2, 0, 8192), (3, 1, 512), (4, 0, 1 << 20)];
        let mut changes = Changes::for_sectors(drawn.into_iter());
        changes.request(&request(9, Operation::Read, 0, 1 << 30));
        changes.request(&request(9, Operation::Flush, 0, 0));
        changes.request(&request(9, Operation::Write, 2048, 512));
        changes.request(&request(9, Operation::Write, 4096, 4096));
        changes.request(&request(9, Operation::Discard, 1 << 19, 1 << 20));
        let mut changed: Vec<_> = changes.changed.into_iter().collect();
        changed.sort_unstable();
        assert_eq!(changed, [(0, 0), (0, 256)]);
    }
}

//! The simple jobs, in as few steps as possible: one file, one direction, one size, no other options.

use kelvin_measure::Random;

use super::distribution::even;
use super::permutation::Permutation;
use super::seeds::Streams;
use crate::{Io, NextIo};

/// One block after the other.
#[derive(Debug, Clone)]
pub(crate) struct Sequential {
    next: Io,
    begin: u64,
    /// Where the last I/O begins; `None` if not even one fits.
    last: Option<u64>,
}

impl Sequential {
    /// Repeats `first` at increasing offsets up to `end`.
    pub(crate) fn new(first: Io, end: u64) -> Self {
        let size = u64::from(first.length);
        let count = end.saturating_sub(first.offset) / size.max(1);
        let last = count.checked_sub(1).map(|before| first.offset + before * size);
        Self { next: first, begin: first.offset, last }
    }

    #[inline]
    pub(crate) fn next(&mut self) -> NextIo {
        if self.last.is_none_or(|last| self.next.offset > last) {
            return NextIo::End;
        }
        let io = self.next;
        self.next.offset += u64::from(io.length);
        NextIo::Io(io)
    }

    pub(crate) fn restart(&mut self) {
        self.next.offset = self.begin;
    }
}

/// Uniformly distributed blocks.
#[derive(Debug, Clone)]
pub(crate) struct Scattered {
    io: Io,
    begin: u64,
    count: u64,
    /// I/Os of a pass, and the number of remaining ones.
    ios: u64,
    left: u64,
    order: Option<Permutation>,
    random: Random,
}

impl Scattered {
    /// `ios` I/Os of `count` blocks, of which `first` is the first; each block is used once if `once` is set.
    pub(crate) fn new(first: Io, (count, ios): (u64, u64), once: bool, streams: &mut Streams) -> Self {
        let order = once.then(|| Permutation::new(count.max(1), streams.keys.bits()));
        let random = streams.offsets.clone();
        Self { io: first, begin: first.offset, count, ios, left: ios, order, random }
    }

    #[inline]
    pub(crate) fn next(&mut self) -> NextIo {
        if self.left == 0 {
            return NextIo::End;
        }
        self.left -= 1;
        let block = match &mut self.order {
            Some(order) => match order.next() {
                Some(block) => block,
                None => return NextIo::End,
            },
            None => even(&mut self.random, self.count),
        };
        NextIo::Io(Io { offset: self.begin + block * u64::from(self.io.length), ..self.io })
    }

    /// Begins another pass, with the same random choices if `again` has streams.
    pub(crate) fn restart(&mut self, again: Option<&mut Streams>, key: u64) {
        self.left = self.ios;
        if let Some(streams) = again {
            self.random = streams.offsets.clone();
            if let Some(order) = &mut self.order {
                order.rewind();
            }
        } else if let Some(order) = &mut self.order {
            order.restart(key);
        }
    }
}

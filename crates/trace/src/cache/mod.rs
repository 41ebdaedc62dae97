//! What a cache in front of the device would bring: miss-ratio curves.
//!
//! Every block of a read or write is an access; a write puts its block into the cache as a read does (write-back). Of LRU
//! one pass gives the misses of all sizes: exactly ([`StackDistances`]), or of a sample of blocks (SHARDS). ARC and
//! S3-FIFO are simulated size by size ([`policy`]), with a sample on a cache that is smaller by the sampling rate.

mod curve;
mod distance;
mod growth;
mod list;
pub mod policy;
mod sampler;

use std::hash::{BuildHasher, Hasher};
use std::ops::Range;

pub use curve::{Curve, Sampled, Sampler, exact, mean_absolute_error, sampled};
pub use distance::StackDistances;
pub use growth::{Growth, MissRange};
pub use sampler::{SampledTrace, Sampling, sample_file};

use crate::{Operation, Request, Trace};

/// Bits of a block's number; those above are the device's.
const DEVICE_SHIFT: u32 = 48;

/// Which requests a cache would serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accesses {
    /// Reads and writes: a write-back cache.
    All,
    /// Reads only: writes go past the cache.
    Reads,
}

impl Accesses {
    /// Whether a cache would serve a request.
    pub fn has(self, request: &Request) -> bool {
        match self {
            Self::All => request.moves_data(),
            Self::Reads => request.operation == Operation::Read,
        }
    }
}

/// The blocks that a request touches: the device in the upper bits.
pub fn blocks(request: &Request, block: u64) -> impl Iterator<Item = u64> + use<> {
    let device = u64::from(request.device) << DEVICE_SHIFT;
    places(request, block).map(move |place| device | (place & ((1 << DEVICE_SHIFT) - 1)))
}

fn places(request: &Request, block: u64) -> Range<u64> {
    match request.length {
        0 => 0..0,
        _ => request.offset / block..request.end().saturating_sub(1) / block + 1,
    }
}

/// The accesses of a trace to blocks of this size, in the order of time.
pub fn accesses(trace: &Trace, block: u64, which: Accesses) -> impl Iterator<Item = u64> + '_ {
    trace
        .requests
        .iter()
        .filter(move |request| which.has(request))
        .flat_map(move |request| blocks(request, block))
}

/// How many accesses [`accesses`] gives, without going through them.
pub fn count_accesses(trace: &Trace, block: u64, which: Accesses) -> u64 {
    let requests = trace.requests.iter().filter(|request| which.has(request));
    requests.map(|request| places(request, block)).map(|places| places.end - places.start).sum()
}

/// A number whose bits all depend on all bits of the block and the seed (the finaliser of SplitMix64).
pub fn mixed(block: u64, seed: u64) -> u64 {
    let mut z = block.wrapping_add(seed.wrapping_mul(2).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Hashes block numbers, which nobody chooses to collide.
#[derive(Debug, Clone, Copy, Default)]
pub struct BlockHash;

/// The hasher of [`BlockHash`].
#[derive(Debug, Clone, Copy, Default)]
pub struct BlockHasher(u64);

impl BuildHasher for BlockHash {
    type Hasher = BlockHasher;

    fn build_hasher(&self) -> BlockHasher {
        BlockHasher(0)
    }
}

impl Hasher for BlockHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = mixed(self.0 ^ value, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Flags;

    #[test]
    fn unaligned_requests_touch_each_block_that_they_reach() {
        let request = |offset, length| Request {
            at: 0,
            offset,
            length,
            device: 1,
            process: 0,
            operation: Operation::Read,
            flags: Flags::default(),
            file: Request::NO_FILE,
            took: Request::UNKNOWN,
        };
        let of = |offset, length| {
            blocks(&request(offset, length), 4096).map(|key| key - (1 << 48)).collect::<Vec<_>>()
        };
        assert_eq!(of(0, 4096), [0]);
        assert_eq!(of(512, 4096), [0, 1]);
        assert_eq!(of(8192, 512), [2]);
        assert!(of(8192, 0).is_empty());
        assert_eq!(of(u64::MAX - 10, 4096).len(), 1, "beyond the end of numbers");
        let write = Request { operation: Operation::Write, ..request(0, 4096) };
        let trace = Trace { requests: vec![request(512, 4096), write], ..Trace::default() };
        for (which, expected) in [(Accesses::All, 3), (Accesses::Reads, 2)] {
            assert_eq!(count_accesses(&trace, 4096, which), expected);
            assert_eq!(accesses(&trace, 4096, which).count(), expected as usize);
        }
    }
}

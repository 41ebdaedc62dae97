//! Hashes and the pseudorandom permutation, bit-compatible with pgbench since PostgreSQL 15.

/// FNV-1a over the eight bytes of `value`, least significant first; the seed is mixed into the offset basis.
pub(super) fn fnv1a(value: i64, seed: i64) -> i64 {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let hash = value
        .to_le_bytes()
        .iter()
        .fold(BASIS ^ seed as u64, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME));
    hash as i64
}

/// MurmurHash2, 64-bit variant A, of one eight-byte block.
pub(super) fn murmur2(value: i64, seed: i64) -> i64 {
    const M: u64 = 0xc6a4_a793_5bd1_e995;
    let mut block = (value as u64).wrapping_mul(M);
    block ^= block >> 47;
    block = block.wrapping_mul(M);
    let mut hash = (seed as u64 ^ M.wrapping_mul(8) ^ block).wrapping_mul(M);
    hash ^= hash >> 47;
    hash = hash.wrapping_mul(M);
    (hash ^ (hash >> 47)) as i64
}

/// xoroshiro128** (Blackman and Vigna), seeded with SplitMix64: generates the permutation's keys.
struct Keys(u64, u64);

impl Keys {
    fn new(seed: u64) -> Self {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        };
        let (first, second) = (next(), next());
        Self(first, second)
    }

    fn next(&mut self) -> u64 {
        let mixed = self.1 ^ self.0;
        let out = self.0.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        self.0 = self.0.rotate_left(24) ^ mixed ^ (mixed << 16);
        self.1 = mixed.rotate_left(37);
        out
    }

    /// A uniform integer from 0 to `highest`, by rejection.
    fn up_to(&mut self, highest: u64) -> u64 {
        if highest == 0 {
            return 0;
        }
        let shift = highest.leading_zeros();
        loop {
            let value = self.next() >> shift;
            if value <= highest {
                return value;
            }
        }
    }
}

const ROUNDS: usize = 6;

/// The position of `value` (modulo `size`) in the permutation of 0 … `size` − 1 chosen by `seed`; `size` must
/// be positive.
///
/// Each round scrambles the largest power-of-two range at the bottom, then at the top, and rotates the whole.
pub(super) fn permute(value: i64, size: i64, seed: i64) -> i64 {
    if size < 2 {
        return 0;
    }
    let size = size as u64;
    let mut keys = Keys::new(seed as u64);
    let mut at = value as u64 % size;
    let bits = size.ilog2();
    let mask = (1_u64 << bits) - 1;
    let scramble = |keys: &mut Keys, at: u64| {
        let multiplier = (keys.next() & mask) | 1;
        let flip = keys.next() & mask;
        if at > mask {
            return at;
        }
        let mixed = (at.wrapping_mul(multiplier) ^ flip) & mask;
        ((mixed << 1) & mask) | (mixed >> (bits - 1))
    };
    for _ in 0..ROUNDS {
        at = scramble(&mut keys, at);
        at = size - 1 - scramble(&mut keys, size - 1 - at);
        let turn = keys.up_to(size - 1);
        at = ((u128::from(at) + u128::from(turn)) % u128::from(size)) as u64;
    }
    at as i64
}

//! Seeded randomness whose values never change between versions.
//!
//! The generator is xoshiro256++ (Blackman and Vigna, 2019). The distributions are implemented here because a run must
//! be repeatable from its seed for years, which the `rand` crate's distributions do not guarantee.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Named in every result: with the seed it determines every random value of a run.
pub const ALGORITHM: &str = "xoshiro256++, jump per user, Lemire ranges";

const ALPHANUMERIC: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789Zz";

/// One stream of random numbers.
#[derive(Debug, Clone)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// The streams of users 0, 1, 2, …: one sequence from `seed`, split by jumps of 2^128 numbers, so that no two users
    /// ever use the same stretch.
    pub fn users(seed: u64) -> impl Iterator<Item = Self> {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(seed);
        std::iter::repeat_with(move || {
            let current = generator.clone();
            generator.jump();
            Self(current)
        })
    }

    /// The stream for one numbered part of a data set (`domain` is the kind of part), which does not depend on the
    /// number of other parts or on who generates them.
    pub fn part(seed: u64, domain: u64, index: u64) -> Self {
        let mut mixed = split_mix(seed);
        mixed = split_mix(mixed ^ domain);
        mixed = split_mix(mixed ^ index);
        Self(Xoshiro256PlusPlus::seed_from_u64(mixed))
    }

    /// 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// An integer from `low` to `high`, both included, each equally likely (Lemire 2019, without bias).
    #[inline]
    pub fn range(&mut self, low: i64, high: i64) -> i64 {
        debug_assert!(low <= high);
        let span = high.wrapping_sub(low) as u64;
        if span == u64::MAX {
            return self.bits() as i64;
        }
        let span = span + 1;
        let mut product = u128::from(self.bits()) * u128::from(span);
        if (product as u64) < span {
            let threshold = span.wrapping_neg() % span;
            while (product as u64) < threshold {
                product = u128::from(self.bits()) * u128::from(span);
            }
        }
        low.wrapping_add((product >> 64) as i64)
    }

    /// True in `part` of `whole` cases.
    #[inline]
    pub fn chance(&mut self, part: u32, whole: u32) -> bool {
        self.range(1, i64::from(whole)) <= i64::from(part)
    }

    /// A number in [0, 1), of 53 random bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// A number of the negative exponential distribution with the given mean.
    #[inline]
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }

    /// Appends `length` letters and digits: ten of them for each 64 random bits. Two of the 64 code points duplicate
    /// letters, which is irrelevant for filler text.
    #[inline]
    pub fn alphanumeric(&mut self, into: &mut Vec<u8>, length: usize) {
        let mut left = length;
        while left > 0 {
            let mut bits = self.bits();
            for _ in 0..left.min(10) {
                into.push(ALPHANUMERIC[(bits & 63) as usize]);
                bits >>= 6;
            }
            left -= left.min(10);
        }
    }

    /// Appends `length` digits.
    #[inline]
    pub fn digits(&mut self, into: &mut Vec<u8>, length: usize) {
        for _ in 0..length {
            into.push(b'0' + self.range(0, 9) as u8);
        }
    }

    /// Puts the slice into random order (Fisher and Yates, in Durstenfeld's form).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.range(0, last as i64) as usize);
        }
    }
}

/// SplitMix64's finaliser (Steele, Lea and Flood 2014): spreads consecutive seeds over all 64 bits.
fn split_mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers_for_ever() {
        // Values of the reference implementation's xoshiro256++ seeded through SplitMix64 with 42: a change
        // here would silently change every stored seed's meaning.
        let mut first = Random::users(42).next().unwrap();
        let numbers: Vec<u64> = (0..3).map(|_| first.bits()).collect();
        assert_eq!(
            numbers,
            [15_021_278_609_987_233_951, 5_881_210_131_331_364_753, 18_149_643_915_985_481_100]
        );
    }

    #[test]
    fn ranges_are_even_and_keep_their_bounds() {
        let mut random = Random::part(1, 2, 3);
        let mut seen = [0_u32; 7];
        for _ in 0..70_000 {
            seen[(random.range(-3, 3) + 3) as usize] += 1;
        }
        // Chi-square with 6 degrees of freedom: 22.46 is exceeded once in a thousand.
        let chi: f64 = seen.iter().map(|&n| (f64::from(n) - 10_000.0).powi(2) / 10_000.0).sum();
        assert!(chi < 22.46, "chi-square {chi}, counts {seen:?}");
        assert_eq!(random.range(5, 5), 5);
        let _ = random.range(i64::MIN, i64::MAX);
    }

    #[test]
    fn users_and_parts_have_streams_of_their_own() {
        let mut all: Vec<u64> = Random::users(7).take(100).map(|mut r| r.bits()).collect();
        all.extend((0..100).map(|i| Random::part(7, 1, i).bits()));
        all.extend((0..100).map(|i| Random::part(7, 2, i).bits()));
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 300);
    }

    #[test]
    fn the_exponential_has_its_mean() {
        let mut random = Random::part(9, 0, 0);
        let mean = (0..100_000).map(|_| random.exponential(12.0)).sum::<f64>() / 100_000.0;
        assert!((mean - 12.0).abs() < 0.2, "mean {mean}");
    }

    #[test]
    fn a_shuffle_is_a_permutation() {
        let mut items: Vec<u32> = (0..1000).collect();
        Random::part(1, 1, 1).shuffle(&mut items);
        assert_ne!(items, (0..1000).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..1000).collect::<Vec<_>>());
    }
}

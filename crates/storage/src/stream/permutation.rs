//! A random order of the numbers below n that needs no memory: each number occurs once, without a list of used ones.
//!
//! A generalised Feistel network (Black and Rogaway, Ciphers with Arbitrary Finite Domains, 2002) on pairs (left,
//! right) with left below a = ⌈√n⌉ and right below b = ⌈n/a⌉: each round adds a function of one half to the other.
//! Whatever the functions, this is a permutation of the a·b pairs, which are fewer than n + a. The few pairs that
//! represent numbers from n on are skipped.
//!
//! The alternative, a map of used blocks, takes a bit per block (3 GiB for 100 TB in 4 KiB blocks), misses the cache at
//! each draw, and has to search once most blocks are used. The steps here depend only on a counter, so that the CPU can
//! compute the next number while the last is still used.

const ROUNDS: usize = 4;
/// Shorter orders are shuffled: so few pairs cannot be mixed well, and the list is small.
const SHUFFLED: u64 = 1024;
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// A random order of `0..n`.
#[derive(Debug, Clone)]
pub(crate) struct Permutation {
    keys: [u64; ROUNDS],
    /// The order itself, if it is short.
    list: Vec<u32>,
    n: u64,
    lefts: u64,
    rights: u64,
    left: u64,
    right: u64,
    /// The number that the first round adds to the left half while the right one stays the same.
    turn: u64,
}

/// A number below `below` (at most 2^32) that depends on all bits of `x` and of the key.
#[inline]
fn spread(x: u64, key: u64, below: u64) -> u64 {
    let product = (x ^ key).wrapping_mul(FACTOR);
    // Both halves are combined, otherwise adjacent numbers would be evenly spaced instead of random.
    let folded = (product ^ (product >> 32)) & 0xffff_ffff;
    (folded * below) >> 32
}

/// Reduces a sum of two numbers below `below` to below it, without a branch, which would be unpredictable.
#[inline]
fn wrapped(sum: u64, below: u64) -> u64 {
    sum.min(sum.wrapping_sub(below))
}

impl Permutation {
    /// The order of the numbers below `n` for a key.
    pub(crate) fn new(n: u64, key: u64) -> Self {
        let lefts = (n.isqrt() + u64::from(n.isqrt().saturating_mul(n.isqrt()) < n)).max(1);
        let rights = n.div_ceil(lefts).max(1);
        let mut new =
            Self { keys: [0; ROUNDS], list: Vec::new(), n, lefts, rights, left: 0, right: 0, turn: 0 };
        new.restart(key);
        new
    }

    /// Restarts in another order.
    pub(crate) fn restart(&mut self, key: u64) {
        let mut random = kelvin_measure::Random::part(key, 0, 0);
        self.keys = std::array::from_fn(|_| random.bits());
        if self.n <= SHUFFLED {
            self.list = (0..self.n as u32).collect();
            random.shuffle(&mut self.list);
        }
        self.rewind();
    }

    /// Restarts in the same order.
    pub(crate) fn rewind(&mut self) {
        self.turn_to(0);
    }

    fn turn_to(&mut self, right: u64) {
        (self.left, self.right) = (0, right);
        self.turn = spread(right, self.keys[0], self.lefts);
    }

    /// The number of a pair; `turn` is the number that the first round adds.
    #[inline]
    fn number(&self, left: u64, right: u64, turn: u64) -> u64 {
        let left = wrapped(left + turn, self.lefts);
        let right = wrapped(right + spread(left, self.keys[1], self.rights), self.rights);
        let left = wrapped(left + spread(right, self.keys[2], self.lefts), self.lefts);
        let right = wrapped(right + spread(left, self.keys[3], self.rights), self.rights);
        right * self.lefts + left
    }

    /// The next number; `None` after the last.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<u64> {
        if self.n <= SHUFFLED {
            let number = self.list.get(self.left as usize).copied().map(u64::from);
            self.left += 1;
            return number;
        }
        loop {
            if self.right >= self.rights {
                return None;
            }
            let number = self.number(self.left, self.right, self.turn);
            self.left += 1;
            if self.left >= self.lefts {
                self.turn_to(self.right + 1);
            }
            if number < self.n {
                return Some(number);
            }
        }
    }

    /// The number at an index of the order, `place` below n. Skips the rare numbers beyond n.
    pub(crate) fn at(&self, place: u64) -> u64 {
        if let Some(number) = self.list.get(place as usize) {
            return u64::from(*number);
        }
        let mut number = place;
        loop {
            let (left, right) = (number % self.lefts, number / self.lefts);
            number = self.number(left, right, spread(right, self.keys[0], self.lefts));
            if number < self.n {
                return number;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::stream::statistics::chi_squared;

    proptest! {
        #[test]
        fn each_number_comes_once(n in 1_u64..5000, key: u64) {
            let mut order = Permutation::new(n, key);
            let mut all: Vec<u64> = std::iter::from_fn(|| order.next()).collect();
            all.sort_unstable();
            prop_assert!(all.iter().copied().eq(0..n));
            let mut scattered: Vec<u64> = (0..n).map(|place| order.at(place)).collect();
            scattered.sort_unstable();
            prop_assert!(scattered.into_iter().eq(0..n));
        }

        #[test]
        fn any_size_has_an_order(n in 1_u64.., key: u64) {
            let mut order = Permutation::new(n, key);
            prop_assert!(order.next().unwrap() < n);
            prop_assert!(order.at(n - 1) < n);
        }
    }

    /// Every number is equally likely at each index of the order, also in very short orders.
    #[test]
    fn small_orders_are_even() {
        for (n, parts, orders) in
            [(2_u64, 2_u64, 20_000), (3, 3, 20_000), (37, 37, 20_000), (1030, 20, 1000), (5003, 20, 300)]
        {
            let mut seen = vec![0_u64; (parts * parts) as usize];
            for key in 0..orders {
                let mut order = Permutation::new(n, key);
                for place in 0..n {
                    let part = |x: u64| x * parts / n;
                    seen[(part(place) * parts + part(order.next().unwrap())) as usize] += 1;
                }
            }
            let size = |part: u64| ((part + 1) * n).div_ceil(parts) - (part * n).div_ceil(parts);
            let weights: Vec<f64> =
                (0..parts * parts).map(|cell| (size(cell / parts) * size(cell % parts)) as f64).collect();
            let p = chi_squared(&seen, &weights, (parts - 1) * (parts - 1));
            assert!(p > 1e-4, "n = {n}: {p}");
        }
    }

    /// The next number is independent of the last, in its position and in its distance from it, near and far.
    #[test]
    fn followers_are_independent() {
        for n in [4096_u64, 100_000, 2 << 20, 1 << 33] {
            for lag in [1_usize, 2, 64, (n.isqrt() as usize).min(60_000)] {
                let mut order = Permutation::new(n, n + 7);
                let count = n.min(200_000) as usize;
                let numbers: Vec<u64> = std::iter::from_fn(|| order.next()).take(count).collect();
                let (mut pairs, mut gaps) = (vec![0_u64; 256], vec![0_u64; 64]);
                for (a, b) in numbers.iter().zip(numbers.iter().skip(lag)) {
                    let part = |x: u64| (u128::from(x) * 16 / u128::from(n)) as usize;
                    pairs[part(*a) * 16 + part(*b)] += 1;
                    let gap = (b + n - a) % n;
                    gaps[(u128::from(gap) * 64 / u128::from(n)) as usize] += 1;
                }
                let p = chi_squared(&pairs, &[1.0; 256], 255);
                assert!(p > 1e-5, "n = {n}, lag {lag}: pairs {p}");
                let p = chi_squared(&gaps, &[1.0; 64], 63);
                assert!(p > 1e-5, "n = {n}, lag {lag}: gaps {p}");
            }
        }
    }

    /// Any section of the order is spread over the whole range, as random draws are.
    #[test]
    fn any_stretch_is_even() {
        let n = 1_u64 << 21;
        let mut order = Permutation::new(n, 3);
        for stretch in 0..20 {
            let values: Vec<f64> =
                std::iter::from_fn(|| order.next()).take(1000).map(|x| (x as f64 + 0.5) / n as f64).collect();
            let found = kelvin_stats::kolmogorov::one_sample(&values, |x| x).unwrap();
            assert!(found.p > 1e-4, "stretch {stretch}: {found:?}");
        }
    }
}

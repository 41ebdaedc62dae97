//! Caches that are simulated: LRU, ARC and S3-FIFO.

use serde::Serialize;

use super::curve::{is_sampled, limit};
use super::list::List;

/// Blocks of a cache that stands for a larger one: of fewer S3-FIFO's small queue is no tenth.
const FEWEST: usize = 10;

/// Which blocks a cache keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// The most recently accessed ones.
    Lru,
    /// Megiddo and Modha, FAST 2003.
    Arc,
    /// Yang, Zhang, Qiu, Yue and Rashmi, SOSP 2023.
    S3Fifo,
}

impl Policy {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lru => "LRU",
            Self::Arc => "ARC",
            Self::S3Fifo => "S3-FIFO",
        }
    }

    /// The share of accesses that a cache of so many blocks (at least 1) misses. With a `rate` below 1 of a sample of
    /// blocks, on a cache that is smaller by the rate (Waldspurger et al., USENIX ATC 2017). None if nothing was
    /// accessed, or if the smaller cache has less than 10 blocks, which says nothing of the large one.
    pub fn miss_ratio(self, accesses: impl Iterator<Item = u64>, blocks: u64, rate: f64) -> Option<f64> {
        let (limit, rate) = limit(rate);
        let size = ((blocks as f64 * rate).round() as usize).max(1);
        if rate < 1.0 && size < FEWEST {
            return None;
        }
        let mut cache: Box<dyn Cache> = match self {
            Self::Lru => Box::new(Lru { size, list: List::default() }),
            Self::Arc => Box::new(Arc { size, ..Arc::default() }),
            Self::S3Fifo => Box::new(S3Fifo::new(size)),
        };
        let (mut all, mut misses) = (0_u64, 0_u64);
        for block in accesses {
            if is_sampled(block, 1, limit) {
                all += 1;
                misses += u64::from(!cache.access(block));
            }
        }
        (all > 0).then(|| misses as f64 / all as f64)
    }
}

/// A cache of a policy.
trait Cache {
    /// Accesses a block; whether it was there.
    fn access(&mut self, block: u64) -> bool;
}

#[derive(Debug)]
struct Lru {
    size: usize,
    list: List,
}

impl Cache for Lru {
    fn access(&mut self, block: u64) -> bool {
        let hit = self.list.remove(block);
        if !hit && self.list.len() >= self.size {
            self.list.pop();
        }
        self.list.push(block);
        hit
    }
}

/// `recent` and `frequent` are T1 and T2 of the paper, the ghosts B1 and B2, `target` is p.
#[derive(Debug, Default)]
struct Arc {
    size: usize,
    target: usize,
    recent: List,
    frequent: List,
    recent_ghosts: List,
    frequent_ghosts: List,
}

impl Arc {
    /// REPLACE of the paper.
    fn replace(&mut self, was_frequent: bool) {
        let recent = self.recent.len();
        if recent > 0 && (recent > self.target || (was_frequent && recent == self.target)) {
            if let Some((block, _)) = self.recent.pop() {
                self.recent_ghosts.push(block);
            }
        } else if let Some((block, _)) = self.frequent.pop() {
            self.frequent_ghosts.push(block);
        }
    }
}

impl Cache for Arc {
    fn access(&mut self, block: u64) -> bool {
        if self.recent.remove(block) || self.frequent.remove(block) {
            self.frequent.push(block);
            return true;
        }
        let (recent_ghosts, frequent_ghosts) = (self.recent_ghosts.len(), self.frequent_ghosts.len());
        if self.recent_ghosts.has(block) {
            let by = (frequent_ghosts / recent_ghosts.max(1)).max(1);
            self.target = (self.target + by).min(self.size);
            self.replace(false);
            self.recent_ghosts.remove(block);
            self.frequent.push(block);
            return false;
        }
        if self.frequent_ghosts.has(block) {
            let by = (recent_ghosts / frequent_ghosts.max(1)).max(1);
            self.target = self.target.saturating_sub(by);
            self.replace(true);
            self.frequent_ghosts.remove(block);
            self.frequent.push(block);
            return false;
        }
        let first = self.recent.len() + recent_ghosts;
        if first == self.size {
            if self.recent.len() < self.size {
                self.recent_ghosts.pop();
                self.replace(false);
            } else {
                self.recent.pop();
            }
        } else {
            let all = first + self.frequent.len() + frequent_ghosts;
            if all >= self.size {
                if all == 2 * self.size {
                    self.frequent_ghosts.pop();
                }
                self.replace(false);
            }
        }
        self.recent.push(block);
        false
    }
}

/// A small queue of a tenth, the main queue, and ghosts of what left the small one without a second access.
#[derive(Debug)]
struct S3Fifo {
    small_size: usize,
    main_size: usize,
    small: List,
    main: List,
    ghosts: List,
}

impl S3Fifo {
    /// Accesses are counted up to this.
    const MOST: u8 = 3;

    fn new(size: usize) -> Self {
        let small_size = (size / 10).max(1).min(size);
        Self {
            small_size,
            main_size: size - small_size,
            small: List::default(),
            main: List::default(),
            ghosts: List::default(),
        }
    }

    fn evict(&mut self) {
        while self.small.len() + self.main.len() >= self.small_size + self.main_size {
            if self.small.len() >= self.small_size || self.main.len() == 0 {
                self.evict_small();
            } else {
                self.evict_main();
            }
        }
    }

    fn evict_small(&mut self) {
        let Some((block, hits)) = self.small.pop() else { return };
        // Accessed more than once since it came.
        if hits > 1 && self.main_size > 0 {
            if self.main.len() >= self.main_size {
                self.evict_main();
            }
            self.main.push(block);
            return;
        }
        if self.ghosts.len() >= self.main_size.max(1) {
            self.ghosts.pop();
        }
        self.ghosts.push(block);
    }

    fn evict_main(&mut self) {
        while let Some((block, hits)) = self.main.pop() {
            if hits == 0 {
                return;
            }
            self.main.push(block);
            self.main.count_newest(hits - 1);
        }
    }
}

impl Cache for S3Fifo {
    fn access(&mut self, block: u64) -> bool {
        if self.small.hit(block, Self::MOST) || self.main.hit(block, Self::MOST) {
            return true;
        }
        self.evict();
        if self.ghosts.remove(block) && self.main_size > 0 {
            if self.main.len() >= self.main_size {
                self.evict_main();
            }
            self.main.push(block);
        } else {
            self.small.push(block);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use kelvin_measure::Random;
    use proptest::prelude::*;

    use super::*;
    use crate::cache::exact;

    /// ARC over plain vectors, the newest first, line by line as in the paper's figure 4.
    #[derive(Default)]
    struct PlainArc {
        c: usize,
        p: usize,
        lists: [Vec<u64>; 4],
    }

    impl PlainArc {
        fn replace(&mut self, in_b2: bool) {
            let [t1, t2, b1, b2] = &mut self.lists;
            if !t1.is_empty() && (t1.len() > self.p || (in_b2 && t1.len() == self.p)) {
                b1.insert(0, t1.pop().unwrap());
            } else if let Some(x) = t2.pop() {
                b2.insert(0, x);
            }
        }

        fn access(&mut self, x: u64) -> bool {
            let found = self.lists.iter().position(|list| list.contains(&x));
            let [b1, b2] = [self.lists[2].len(), self.lists[3].len()];
            match found {
                Some(2) => self.p = self.c.min(self.p + if b1 >= b2 { 1 } else { b2 / b1 }),
                Some(3) => self.p = self.p.saturating_sub(if b2 >= b1 { 1 } else { b1 / b2 }),
                _ => {}
            }
            if matches!(found, Some(2 | 3)) {
                self.replace(found == Some(3));
            }
            if let Some(list) = found {
                self.lists[list].retain(|y| *y != x);
                self.lists[1].insert(0, x);
                return list < 2;
            }
            let [t1, t2, b1, b2] = [0, 1, 2, 3].map(|list: usize| self.lists[list].len());
            if t1 + b1 == self.c {
                if t1 < self.c {
                    self.lists[2].pop();
                    self.replace(false);
                } else {
                    self.lists[0].pop();
                }
            } else if t1 + t2 + b1 + b2 >= self.c {
                if t1 + t2 + b1 + b2 == 2 * self.c {
                    self.lists[3].pop();
                }
                self.replace(false);
            }
            self.lists[0].insert(0, x);
            false
        }
    }

    proptest! {
        #[test]
        fn arc_is_the_papers(accesses in prop::collection::vec(0..30_u64, 0..400), size in 1..20_usize) {
            let mut plain = PlainArc { c: size, ..PlainArc::default() };
            let mut arc = Arc { size, ..Arc::default() };
            for block in accesses {
                prop_assert_eq!(arc.access(block), plain.access(block));
                prop_assert!(arc.recent.len() + arc.frequent.len() <= size);
                let all = [&arc.recent, &arc.frequent, &arc.recent_ghosts, &arc.frequent_ghosts];
                prop_assert!(all.iter().map(|list| list.len()).sum::<usize>() <= 2 * size);
            }
        }

        #[test]
        fn s3_fifo_keeps_its_size_and_hits_only_what_is_there(accesses in prop::collection::vec(0..30_u64, 0..400), size in 1..25_usize) {
            let mut cache = S3Fifo::new(size);
            for block in accesses {
                let was_there = cache.small.has(block) || cache.main.has(block);
                prop_assert_eq!(cache.access(block), was_there);
                prop_assert!(cache.small.has(block) || cache.main.has(block));
                prop_assert!(cache.small.len() + cache.main.len() <= size);
            }
        }

        #[test]
        fn lru_is_the_one_of_the_curve(accesses in prop::collection::vec(0..30_u64, 1..400), size in 1..30_u64) {
            let curve = exact(accesses.iter().copied());
            let simulated = Policy::Lru.miss_ratio(accesses.iter().copied(), size, 1.0).unwrap();
            prop_assert!((curve.miss_ratio(size as f64) - simulated).abs() < 1e-12);
        }
    }

    #[test]
    fn a_scan_evicts_less_than_from_lru() {
        // Hot blocks, and a scan that never returns to a block.
        let mut random = Random::part(2, 0, 0);
        let mut scan = 1_000_000_u64;
        let accesses: Vec<u64> = (0..100_000)
            .map(|n| {
                scan += 1;
                if n % 2 == 0 { random.range(0, 499) as u64 } else { scan }
            })
            .collect();
        let of = |policy: Policy, rate| policy.miss_ratio(accesses.iter().copied(), 600, rate).unwrap();
        let lru = of(Policy::Lru, 1.0);
        for policy in [Policy::Arc, Policy::S3Fifo] {
            let better = of(policy, 1.0);
            assert!(better < lru - 0.05 && better >= 0.5, "{policy:?}: {better} against {lru}");
            let sampled = of(policy, 0.3);
            assert!((sampled - better).abs() < 0.06, "{policy:?}: {sampled} of a sample, {better} of all");
        }
        assert_eq!(Policy::Arc.miss_ratio(std::iter::empty(), 5, 1.0), None);
        let small = |blocks| Policy::S3Fifo.miss_ratio(accesses.iter().copied(), blocks, 0.1);
        assert!(small(90).is_none() && small(100).is_some());
    }
}

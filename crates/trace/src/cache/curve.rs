//! Miss-ratio curves of LRU: exact, and of a sample.
//!
//! SHARDS (Waldspurger, Park, Garthwaite and Ahmad, FAST 2015): a block is in the sample if its hash is below a limit, so
//! that all of its accesses are or none; distances are then too short by the rate. The number of sampled accesses
//! differs from the expected one if blocks are accessed unequally; the difference is added to the shortest distance
//! (SHARDS-adj).

use serde::Serialize;

use super::{StackDistances, mixed};

/// Hashes are compared in so many bits.
const BITS: u32 = 24;

/// The misses of all sizes.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Curve {
    /// Accesses, of a sample those that were expected.
    pub accesses: f64,
    /// Different blocks, of a sample estimated.
    pub unique: f64,
    /// Blocks of the cache for each step of `hits`: 1, of a sample the inverse of the rate.
    step: f64,
    /// Hits of a cache of so many steps.
    #[serde(skip)]
    hits: Vec<f64>,
}

impl Curve {
    fn from_distances(distances: &StackDistances, step: f64, expected: Option<f64>) -> Self {
        let found: u64 = distances.histogram().iter().sum::<u64>() + distances.first_accesses();
        let accesses = expected.unwrap_or(found as f64);
        let mut sum = accesses - found as f64;
        let mut hits = vec![0.0];
        for count in distances.histogram() {
            sum += *count as f64;
            hits.push(sum.clamp(0.0, accesses));
        }
        Self { accesses, unique: distances.first_accesses() as f64 * step, step, hits }
    }

    /// The share of accesses that a cache of so many blocks misses.
    pub fn miss_ratio(&self, blocks: f64) -> f64 {
        if self.accesses <= 0.0 {
            return 0.0;
        }
        let place = (blocks / self.step).max(0.0);
        let (low, part) = (place.floor() as usize, place.fract());
        let last = self.hits.last().copied().unwrap_or(0.0);
        let at = |place: usize| self.hits.get(place).copied().unwrap_or(last);
        let hits = at(low) + (at(low + 1) - at(low)) * part;
        1.0 - hits / self.accesses
    }

    /// The share of accesses that miss whatever the size: the first access to each block.
    pub fn floor(&self) -> f64 {
        if self.accesses <= 0.0 {
            0.0
        } else {
            1.0 - self.hits.last().copied().unwrap_or(0.0) / self.accesses
        }
    }
}

/// The curve of all accesses.
pub fn exact(accesses: impl Iterator<Item = u64>) -> Curve {
    let mut distances = StackDistances::new();
    for block in accesses {
        distances.access(block);
    }
    Curve::from_distances(&distances, 1.0, None)
}

/// Curves of samples with different seeds.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Sampled {
    /// The share of blocks in a sample.
    pub rate: f64,
    /// A curve for each seed.
    pub curves: Vec<Curve>,
}

impl Sampled {
    /// The median of the samples, and the lowest and the highest.
    pub fn miss_ratio(&self, blocks: f64) -> Option<(f64, f64, f64)> {
        let mut all: Vec<f64> = self.curves.iter().map(|curve| curve.miss_ratio(blocks)).collect();
        all.sort_unstable_by(f64::total_cmp);
        Some((*all.get(all.len() / 2)?, *all.first()?, *all.last()?))
    }
}

/// Whether a block is in the sample of a seed.
pub(super) fn is_sampled(block: u64, seed: u64, limit: u64) -> bool {
    mixed(block, seed) >> (64 - BITS) < limit
}

/// The limit of a rate, and the rate that it has exactly.
pub(super) fn limit(rate: f64) -> (u64, f64) {
    let all = (1_u64 << BITS) as f64;
    let limit = (rate.clamp(0.0, 1.0) * all).round().max(1.0);
    (limit as u64, limit / all)
}

/// Samples the blocks of accesses that come one by one.
#[derive(Debug)]
pub struct Sampler {
    limit: u64,
    rate: f64,
    samples: Vec<StackDistances>,
    accesses: u64,
}

impl Sampler {
    /// Of so many blocks, with different seeds.
    pub fn new(rate: f64, seeds: u64) -> Self {
        let (limit, rate) = limit(rate);
        Self { limit, rate, samples: (0..seeds).map(|_| StackDistances::new()).collect(), accesses: 0 }
    }

    /// Takes an access. Whether it is in the first sample, which is also that of a simulation at this rate.
    pub fn access(&mut self, block: u64) -> bool {
        self.accesses += 1;
        let mut is_first = false;
        for (seed, sample) in (1_u64..).zip(&mut self.samples) {
            if is_sampled(block, seed, self.limit) {
                sample.access(block);
                is_first |= seed == 1;
            }
        }
        is_first
    }

    /// All accesses so far.
    pub fn accesses(&self) -> u64 {
        self.accesses
    }

    /// The curves.
    pub fn finish(&self) -> Sampled {
        let expected = self.accesses as f64 * self.rate;
        let curve = |sample| Curve::from_distances(sample, 1.0 / self.rate, Some(expected));
        Sampled { rate: self.rate, curves: self.samples.iter().map(curve).collect() }
    }
}

/// The curves of samples of so many blocks, a pass for all seeds together.
pub fn sampled(accesses: impl Iterator<Item = u64>, rate: f64, seeds: u64) -> Sampled {
    let mut sampler = Sampler::new(rate, seeds);
    for block in accesses {
        sampler.access(block);
    }
    sampler.finish()
}

/// The mean of the absolute differences at 100 sizes, evenly from nothing to all blocks.
pub fn mean_absolute_error(one: &Curve, other: impl Fn(f64) -> f64) -> f64 {
    const SIZES: u32 = 100;
    let difference = |n: u32| {
        let blocks = one.unique * f64::from(n) / f64::from(SIZES);
        (one.miss_ratio(blocks) - other(blocks)).abs()
    };
    (1..=SIZES).map(difference).sum::<f64>() / f64::from(SIZES)
}

#[cfg(test)]
mod tests {
    use kelvin_measure::Random;

    use super::*;

    #[test]
    fn a_loop_misses_until_it_fits() {
        let curve = exact((0..1000_u64).cycle().take(10_000));
        assert!(curve.miss_ratio(999.0) == 1.0 && (curve.miss_ratio(1000.0) - 0.1).abs() < 1e-12);
        assert!((curve.floor() - 0.1).abs() < 1e-12 && curve.unique == 1000.0);
        assert_eq!(exact(std::iter::empty()).miss_ratio(5.0), 0.0);
    }

    #[test]
    fn a_sample_is_near_the_whole() {
        // A few hot blocks among many: the squares of uniform numbers.
        let mut random = Random::part(11, 0, 0);
        let accesses: Vec<u64> = (0..200_000).map(|_| (random.unit().powi(2) * 50_000.0) as u64).collect();
        let whole = exact(accesses.iter().copied());
        let sample = sampled(accesses.iter().copied(), 0.1, 5);
        let error = mean_absolute_error(&whole, |blocks| sample.miss_ratio(blocks).unwrap().0);
        assert!(error < 0.02, "{error}");
        assert!(sample.curves.iter().all(|curve| (curve.unique / whole.unique - 1.0).abs() < 0.1));
        let all = sampled(accesses.iter().copied(), 1.0, 1);
        assert!(mean_absolute_error(&whole, |blocks| all.curves[0].miss_ratio(blocks)) < 1e-12);
    }
}

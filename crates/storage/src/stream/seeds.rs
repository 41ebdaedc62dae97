//! The random numbers of a worker.

use std::hash::{BuildHasher, Hasher, RandomState};

use kelvin_measure::Random;

use crate::job::{Job, Pattern};

/// The purpose of random numbers. Each has a separate stream, so that for example another mix does
/// not change the offsets.
#[derive(Debug, Clone, Copy)]
enum Purpose {
    Offsets = 1,
    Mix,
    Sizes,
    Files,
    Sequence,
    Trims,
    Keys,
}

/// The streams of a worker.
#[derive(Debug, Clone)]
pub(crate) struct Streams {
    pub(crate) offsets: Random,
    pub(crate) mix: Random,
    pub(crate) sizes: Random,
    pub(crate) files: Random,
    pub(crate) sequence: Random,
    pub(crate) trims: Random,
    pub(crate) keys: Random,
}

/// Whether the random choices of every run, and every pass of a run, must be the same.
pub(crate) fn repeats(pattern: &Pattern) -> bool {
    pattern.repeatable || pattern.all_repeatable || pattern.seed.is_some()
}

/// The seed of a worker's I/Os. It combines the worker's seed, which depends on its number in the run, so that jobs of
/// the same name and `randseed` differ as in fio, the job's name and `randseed`, and the system's randomness if
/// nothing must be repeatable.
pub(crate) fn seed(job: &Job, run: u64) -> u64 {
    let name = hash(job.name.bytes());
    // The standard library seeds its hash maps from the system's randomness once per thread, and then counts.
    let fresh = if repeats(&job.pattern) { 0 } else { RandomState::new().build_hasher().finish() };
    let mixed = Random::part(run, name, fresh).bits();
    job.pattern.seed.map_or(mixed, |seed| Random::part(mixed, seed, 0).bits())
}

/// FNV-1a, whose values never change between releases.
pub(crate) fn hash(bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes
        .into_iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

impl Streams {
    /// The streams of a clone: one sequence for each purpose, which jumps divide among the clones.
    pub(crate) fn new(seed: u64, clone: u32) -> Self {
        let stream = |purpose: Purpose| {
            let seed = Random::part(seed, purpose as u64, 0).bits();
            // The iterator is infinite.
            Random::users(seed).nth(clone as usize).unwrap_or_else(|| Random::part(seed, 0, u64::from(clone)))
        };
        Self {
            offsets: stream(Purpose::Offsets),
            mix: stream(Purpose::Mix),
            sizes: stream(Purpose::Sizes),
            files: stream(Purpose::Files),
            sequence: stream(Purpose::Sequence),
            trims: stream(Purpose::Trims),
            keys: stream(Purpose::Keys),
        }
    }
}

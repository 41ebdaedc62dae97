//! The seed of a write's content, by the number of the write: equal seeds give equal blocks.

use super::content::mix;
use crate::error::{Error, Result};
use crate::job::{Amount, Job};

/// Random numbers for decisions are from other streams than contents.
const DECISION: u64 = 0x6465_6369_6465_2121;
const CHOICE: u64 = 0x6368_6f6f_7365_2121;

/// Seed for jobs that share their working set, unless `randseed` specifies another.
const SHARED: u64 = 0x6b65_6c76_696e_0001;

/// The seeds of a worker's writes. A function of the number alone, so that nothing has to be stored.
#[derive(Debug, Clone)]
pub(super) struct Seeds {
    base: u64,
    equal: Option<Equal>,
}

/// `dedupe_percentage`.
#[derive(Debug, Clone)]
struct Equal {
    /// The probability of a repeated block, as a share of 2^64.
    chance: u64,
    /// All blocks are repeated.
    always: bool,
    set: Option<WorkingSet>,
}

/// `dedupe_mode=working_set`.
#[derive(Debug, Clone)]
struct WorkingSet {
    base: u64,
    blocks: u64,
}

impl Seeds {
    /// The seeds of a job's worker.
    pub(super) fn new(job: &Job, seed: u64) -> Result<Self> {
        let base = mix(seed ^ 0x6461_7461);
        let Some(percent) = job.buffers.dedupe_percentage.filter(|percent| *percent > 0.0) else {
            return Ok(Self { base, equal: None });
        };
        let set = job.buffers.dedupe_working_set.map(|share| working_set(job, base, share)).transpose()?;
        // A float beyond the largest integer is converted to the largest.
        let chance = (percent / 100.0 * 2_f64.powi(64)) as u64;
        Ok(Self { base, equal: Some(Equal { chance, always: percent >= 100.0, set }) })
    }

    /// Whether there are repeated blocks.
    pub(super) fn repeat(&self) -> bool {
        self.equal.is_some()
    }

    /// The seed of the write with this number.
    pub(super) fn seed_of(&self, number: u64) -> u64 {
        let Some(equal) = &self.equal else { return self.distinct_seed(number) };
        let repeats = |number: u64| equal.always || mix(self.base ^ DECISION ^ mix(number)) < equal.chance;
        match &equal.set {
            Some(set) if repeats(number) => {
                let which =
                    (u128::from(mix(self.base ^ CHOICE ^ mix(number))) * u128::from(set.blocks)) >> 64;
                mix(set.base ^ mix(which as u64))
            }
            Some(_) => self.distinct_seed(number),
            None if equal.always => self.distinct_seed(0),
            // Repeats the last write that was no repetition. At 90 % this examines ten numbers on average.
            None => {
                let mut first = number;
                while first > 0 && repeats(first) {
                    first -= 1;
                }
                self.distinct_seed(first)
            }
        }
    }

    fn distinct_seed(&self, number: u64) -> u64 {
        mix(self.base ^ mix(number))
    }
}

fn working_set(job: &Job, base: u64, share: f64) -> Result<WorkingSet> {
    let Some(Amount::Bytes(size)) = job.targets.size else {
        return Err(Error::refused(
            &job.name,
            "dedupe_mode=working_set needs size= in bytes: the working set is a percentage of it",
        ));
    };
    let block = u64::from(job.blocks.sizes[crate::Direction::Write].smallest()).max(1);
    let blocks = ((size as f64 * share / 100.0) as u64 / block).max(1);
    let base = if job.buffers.dedupe_global { mix(job.pattern.seed.unwrap_or(SHARED)) } else { mix(base) };
    Ok(WorkingSet { base, blocks })
}

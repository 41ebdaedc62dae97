//! The content of a write's buffer.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::sync::OnceLock;

use super::content::{BufferContent, mix, random};
use super::seeds::Seeds;
use crate::error::Result;
use crate::job::{Job, VerifyMethod};
use crate::{Direction, Io};

/// Bytes of the template of scrambled blocks: they stay in the processor's second-level cache.
const TEMPLATE: usize = 64 << 10;

/// Bytes of a scrambled block that are changed in the same way: the block size of the finest deduplication.
const SECTOR: usize = 512;

/// Fills the buffers of one worker.
#[derive(Debug, Clone)]
pub struct Filler {
    content: BufferContent,
    seeds: Seeds,
    way: FillMethod,
    /// Number of the next write, or of the next buffer to prepare.
    number: u64,
}

#[derive(Debug, Clone)]
enum FillMethod {
    /// The buffers are never written, or the verifier fills them.
    Nothing,
    /// Once, when the buffer is created.
    Once,
    /// Every time, from random bytes generated once, differently for each sector.
    Scramble { template: Box<[u8]>, key: u64 },
    /// Newly generated every time.
    Anew,
}

impl Filler {
    /// For one worker of a job; `seed` differs for each worker. Refuses a working set of unknown size.
    pub fn new(job: &Job, seed: u64) -> Result<Self> {
        let content = BufferContent::for_buffers(&job.buffers);
        let seeds = Seeds::new(job, seed)?;
        let writes = job.pattern.writes || job.replay.is_some();
        let reads = job.pattern.reads || job.replay.is_some();
        let verified = job.verify.as_ref().is_some_and(|verify| verify.method != VerifyMethod::Null);
        let way = if !writes || verified {
            // The verifier fills the blocks that it verifies: the content is derived from the header.
            FillMethod::Nothing
        } else if job.buffers.refill || seeds.repeat() || matches!(content, BufferContent::Mixed { .. }) {
            FillMethod::Anew
        } else if !content.is_constant() && job.buffers.scramble {
            let mut template = vec![0; TEMPLATE].into_boxed_slice();
            random(seeds.seed_of(u64::MAX), &mut template);
            FillMethod::Scramble { template, key: mix(seed ^ this_run()) }
        } else if reads {
            // A read leaves the medium's data in the buffer.
            FillMethod::Anew
        } else {
            FillMethod::Once
        };
        Ok(Self { content, seeds, way, number: 0 })
    }

    /// Whether writes need no further work: [`Filler::prepare`] was sufficient.
    pub fn is_static(&self) -> bool {
        matches!(self.way, FillMethod::Nothing | FillMethod::Once)
    }

    /// Fills a buffer for the first time. Must be called once for each.
    pub fn prepare(&mut self, buffer: &mut [u8]) {
        if matches!(self.way, FillMethod::Once) {
            // Counted from the other end, so that no write has the number of a buffer.
            self.content.fill(self.seeds.seed_of(u64::MAX - self.number), buffer);
            self.number += 1;
        }
    }

    /// Fills the buffer of a write. Does nothing for other I/Os.
    #[inline]
    pub fn fill(&mut self, io: &Io, buffer: &mut [u8]) {
        if io.direction != Direction::Write {
            return;
        }
        match &self.way {
            FillMethod::Nothing | FillMethod::Once => return,
            FillMethod::Scramble { template, key } => scramble(template, key ^ mix(self.number), buffer),
            FillMethod::Anew => self.content.fill(self.seeds.seed_of(self.number), buffer),
        }
        self.number += 1;
    }
}

/// A different number in each process: a store that deduplicates must not find the blocks of the last run at the same
/// offsets. fio scrambles by the time of day.
fn this_run() -> u64 {
    static NUMBER: OnceLock<u64> = OnceLock::new();
    // The standard library's keys are random numbers from the operating system.
    *NUMBER.get_or_init(|| RandomState::new().hash_one(0))
}

/// Copies the template from an offset that depends on `key`, and changes each sector by a different number. This is as
/// fast as copying memory, no two sectors are equal, and no compressor finds one in another.
fn scramble(template: &[u8], key: u64, buffer: &mut [u8]) {
    let places = template.len() / SECTOR;
    for (index, sector) in buffer.chunks_mut(SECTOR).enumerate() {
        let turn = mix(key.wrapping_add(index as u64));
        let place = (key as usize).wrapping_add(index) % places * SECTOR;
        let from = &template[place..place + sector.len()];
        // With words of a known length, the compiler uses the processor's full width.
        let ((words, rest), (from, from_rest)) = (sector.as_chunks_mut::<8>(), from.as_chunks::<8>());
        for (to, from) in words.iter_mut().zip(from) {
            *to = (u64::from_ne_bytes(*from) ^ turn).to_ne_bytes();
        }
        for ((to, from), turn) in rest.iter_mut().zip(from_rest).zip(turn.to_ne_bytes()) {
            *to = from ^ turn;
        }
    }
}

#[cfg(test)]
mod tests;

//! The content of laid-out files: that of the job's writes, and by default bytes that no device can compress,
//! deduplicate or detect as zeros.

use crate::data::Filler;
use crate::job::Job;
use crate::{Direction, Io, Result};

/// Fills the chunks of one file.
#[derive(Debug, Clone)]
pub(crate) struct Filling {
    job: Box<Job>,
    seed: u64,
    /// The length of the job's writes, in bytes. Shares of equal or compressible blocks refer to blocks of this length.
    block: usize,
}

impl Filling {
    /// For a file of a job; `seed` differs for each file, since otherwise files would be copies of each other.
    pub(crate) fn new(job: &Job, seed: u64) -> Self {
        let mut job = Box::new(job.clone());
        // The content never repeats; the verifier writes headers for `verify=`.
        job.pattern.writes = true;
        (job.verify, job.replay) = (None, None);
        job.buffers.refill = true;
        let block = job.blocks.sizes[Direction::Write].largest().clamp(512, 1 << 20) as usize;
        Self { job, seed, block }
    }

    /// The content of a stretch that begins at `from`. A layout that continues an interrupted one begins a new stretch.
    pub(crate) fn from(&self, from: u64) -> Result<Stretch> {
        let filler = Filler::new(&self.job, self.seed ^ from.rotate_left(32))?;
        Ok(Stretch { filler, block: self.block })
    }
}

/// Fills one chunk after another.
pub(crate) struct Stretch {
    filler: Filler,
    block: usize,
}

impl Stretch {
    pub(crate) fn fill(&mut self, offset: u64, chunk: &mut [u8]) {
        let mut at = offset;
        for block in chunk.chunks_mut(self.block) {
            let io = Io { direction: Direction::Write, target: 0, offset: at, length: block.len() as u32 };
            self.filler.fill(&io, block);
            at += block.len() as u64;
        }
    }
}

//! The probes of a run's environment (crate `kelvin-probe`), with the content of the jobs' writes from [`Filler`].

use crate::data::Filler;
use crate::job::{EngineName, Job, Jobs, VerifyMethod};
use crate::{Direction, Io, Target};

pub use kelvin_probe::*;

/// Inspects the targets of the jobs, as [`kelvin_probe::facts_before_run`] does.
pub fn facts_before_run(plan: &[(String, Vec<Target>)], jobs: &Jobs) -> StorageFacts {
    kelvin_probe::facts_before_run(plan, jobs, &written_content)
}

/// Content of a job's writes, from blocks filled like its buffers. Unknown with verification, where the verifier
/// fills the blocks.
fn written_content(job: &Job) -> Option<Content> {
    const BLOCKS: usize = 64;
    const MOST: usize = 1 << 20;
    let verified = job.verify.as_ref().is_some_and(|verify| verify.method != VerifyMethod::Null);
    if !job.pattern.writes || verified || job.engine.name == EngineName::Null {
        return None;
    }
    let length = job.blocks.sizes[Direction::Write].smallest().clamp(1, MOST as u32);
    let mut filler = Filler::new(job, 1).ok()?;
    let mut buffer = vec![0; length as usize];
    let mut counting = kelvin_probe::Counting::default();
    let writes = (MOST / length as usize).clamp(1, BLOCKS);
    for number in 0..writes {
        // A job has several buffers, each filled once.
        filler.prepare(&mut buffer);
        let io =
            Io { direction: Direction::Write, target: 0, offset: number as u64 * u64::from(length), length };
        filler.fill(&io, &mut buffer);
        for piece in buffer.chunks(BLOCK as usize).take(BLOCKS.div_ceil(writes)) {
            counting.add(piece, None);
        }
    }
    counting.done()
}

//! The next I/O: from a pattern, or from a trace.
//!
//! An [`IoSource`] belongs to one worker. It has no clock: I/Os with a time are preceded by [`NextIo::NotBefore`].

mod distribution;
mod files;
mod follow_ups;
mod map;
mod offsets;
mod pattern;
mod permutation;
mod plain;
mod quota;
pub mod replay;
mod seeds;
mod sizes;
#[cfg(test)]
pub(crate) mod statistics;
mod zipf;

use pattern::IoGenerator;
use plain::{Scattered, Sequential};
pub(crate) use quota::Quota;
use replay::Replaying;
use seeds::Streams;
pub(crate) use seeds::hash;
use sizes::JobSizes;

use crate::job::{Amount, Distribution, Job, RandomGenerator};
use crate::{Direction, Error, Io, NextIo, Result, Target};

/// A worker's source of I/Os.
///
/// A pass covers the regions of all targets once: as many bytes as they have, in whole blocks (for `trimwrite` this
/// many trimmed and this many written). Then [`NextIo::End`] follows, and [`IoSource::restart`] begins another pass.
/// The worker applies `number_ios`, `io_size` and times.
#[derive(Debug)]
pub struct IoSource {
    kind: Kind,
    seed: u64,
    clone: u32,
    repeats: bool,
    streams: Streams,
    pass_bytes: u64,
}

#[derive(Debug)]
enum Kind {
    Sequential(Sequential),
    Scattered(Scattered),
    Pattern(Box<IoGenerator>),
    Replay(Box<Replaying>),
}

impl IoSource {
    /// The source of a clone of a job, over its targets; `seed` is the worker's, which depends on
    /// its number in the run.
    ///
    /// The same job, clone, targets and seed give the same I/Os, except with `randrepeat=0` without `randseed`.
    ///
    /// # Errors
    ///
    /// If no block fits into any target, a map of blocks would need too much memory, or a trace cannot be read or
    /// does not fit the targets.
    pub fn new(job: &Job, clone: u32, targets: &[Target], seed: u64) -> Result<Self> {
        let seed = seeds::seed(job, seed);
        let mut streams = Streams::new(seed, clone);
        let (kind, pass_bytes) = if let Some(replay) = &job.replay {
            let replaying = Replaying::new(job, replay, clone, targets)?;
            let bytes = replaying.bytes();
            (Kind::Replay(Box::new(replaying)), bytes)
        } else if let Some(plain) = plain(job, targets, &mut streams)? {
            plain
        } else {
            let generator = IoGenerator::new(job, targets, &mut streams)?;
            let bytes = generator.pass_bytes();
            (Kind::Pattern(Box::new(generator)), bytes)
        };
        Ok(Self { kind, seed, clone, repeats: seeds::repeats(&job.pattern), streams, pass_bytes })
    }

    /// The next I/O or step.
    #[inline]
    #[allow(clippy::should_implement_trait, reason = "after its end, it continues with the next pass")]
    pub fn next(&mut self) -> NextIo {
        match &mut self.kind {
            Kind::Scattered(scattered) => scattered.next(),
            Kind::Sequential(sequential) => sequential.next(),
            Kind::Pattern(generator) => generator.next(&mut self.streams),
            Kind::Replay(replaying) => replaying.next(),
        }
    }

    /// Begins another pass: with the same random choices if the job is repeatable, otherwise with new ones. Forgets the
    /// blocks used in the last pass. The times of a trace continue from the end of the last pass.
    pub fn restart(&mut self) {
        // In a repeated pass, values drawn at creation (keys of permutations) stay the same.
        let mut again = self.repeats.then(|| Streams::new(self.seed, self.clone));
        match &mut self.kind {
            Kind::Sequential(sequential) => sequential.restart(),
            Kind::Scattered(scattered) => {
                let key = self.streams.keys.bits();
                scattered.restart(again.as_mut(), key);
            }
            Kind::Pattern(generator) => {
                let same = again.is_some();
                if let Some(streams) = again {
                    self.streams = streams;
                }
                generator.restart(same, &mut self.streams);
            }
            Kind::Replay(replaying) => replaying.restart(),
        }
    }

    /// Bytes of a complete pass, for progress. A pass may end slightly earlier if blocks of several sizes, or with gaps
    /// between them, do not fill the regions.
    pub fn pass_bytes(&self) -> u64 {
        self.pass_bytes
    }

    /// The longest read or write of a trace in bytes; 0 if the job determines the lengths.
    pub fn longest(&self) -> u32 {
        match &self.kind {
            Kind::Replay(replaying) => replaying.longest(),
            _ => 0,
        }
    }

    /// The error that occurred while a trace was read in pieces; the source ended there.
    pub fn problem(&mut self) -> Option<Error> {
        match &mut self.kind {
            Kind::Replay(replaying) => replaying.problem(),
            _ => None,
        }
    }
}

/// The fast path for plain jobs; `None` for all others.
fn plain(job: &Job, targets: &[Target], streams: &mut Streams) -> Result<Option<(Kind, u64)>> {
    let pattern = &job.pattern;
    let directions: Vec<Direction> =
        Direction::ALL.into_iter().filter(|direction| pattern.has(*direction)).collect();
    let ([target], [direction]) = (targets, directions.as_slice()) else { return Ok(None) };
    let sizes = JobSizes::new(&job.blocks);
    let random = pattern.random;
    let Some(size) = sizes.for_direction(*direction, random).one() else { return Ok(None) };
    let all_random = pattern.percentage_random[*direction] >= 100.0;
    let even = pattern.distribution[*direction] == Distribution::Uniform;
    let aligned = job.blocks.align[*direction].is_none_or(|align| align == size);
    let is_plain = pattern.modifier.is_none()
        && pattern.zones.is_none()
        && follow_ups::After::new(job).is_none()
        && (!random || (all_random && even && aligned));
    if !is_plain {
        return Ok(None);
    }
    let count = target.length / size.max(1);
    if count == 0 || size == 0 {
        return Err(too_small(job, targets));
    }
    let first = Io { direction: *direction, target: 0, offset: target.begin, length: size as u32 };
    let mut ios = count;
    let kind = if random {
        let once = pattern.generator == RandomGenerator::Lfsr
            || (!pattern.no_random_map && job.blocks.align[*direction].is_none());
        if !once {
            // An I/O that begins below the bound is done completely.
            ios = longer(job, target.length).div_ceil(size);
        }
        Kind::Scattered(Scattered::new(first, (count, ios), once, streams))
    } else {
        Kind::Sequential(Sequential::new(first, target.begin + target.length))
    };
    Ok(Some((kind, ios * size)))
}

/// Bytes of a pass that only its bound ends: those of the regions, or `io_size=` if that is more.
fn longer(job: &Job, regions: u64) -> u64 {
    match job.targets.io_size {
        Some(Amount::Bytes(bytes)) => regions.max(bytes),
        _ => regions,
    }
}

fn too_small(job: &Job, targets: &[Target]) -> Error {
    let longest = targets.iter().map(|target| target.length).max().unwrap_or(0);
    Error::refused(
        &job.name,
        format!(
            "no block fits in any of its {} targets, whose largest region has {longest} bytes; give a \
             larger size= or a smaller bs=",
            targets.len()
        ),
    )
}

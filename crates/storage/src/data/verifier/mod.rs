//! Stamps writes, remembers them, and verifies reads.

mod chunk;
mod dump;
mod examiner;
mod flight;
mod replay;
mod verify_only;

#[cfg(test)]
mod planted_corruption;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod with_fio;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::PathBuf;

use chunk::Sealer;
use dump::Dump;
use examiner::seed_at;
pub(crate) use examiner::{Examiner, ReadExpectation};
use flight::{Flights, Spoiled};
use replay::Replay;
use verify_only::OwnDraws;

use super::Corruption;
use super::chunks::Chunks;
use super::content::{BufferContent, mix};
use super::draws::draws;
use super::header;
use super::pattern::Pattern;
use super::remembered_writes::{BlockAddress, MOST, RememberedBlock, RememberedWrites};
use super::seeds::Seeds;
use super::{checksum, state};
use crate::error::{Error, Result};
use crate::job::{BlockSizes, Distribution, Job, Verify};
use crate::stream::hash;
use crate::{Direction, Io, Target};

/// Maximum alignment of direct I/O, in bytes.
const ALIGNMENT: usize = 4096;

/// Verifies the I/O of one worker.
///
/// Writes are remembered by offset (12 bytes and a key for each block; see `remembered_writes.rs`), up to eight million
/// blocks: then [`Verifier::backlog_due`] requests a pass, which drops the verified ones.
#[derive(Debug)]
pub struct Verifier {
    /// The job, for values derived from it.
    job: Box<Job>,
    clone: u32,
    seed: u64,
    verify: Verify,
    examiner: Examiner,
    /// The worker writes, and does not only verify existing data.
    writes: bool,
    /// Reads and writes can be in flight together.
    concurrent: bool,
    /// How a partly overwritten block is split; `None` when it cannot be split.
    split: Option<Chunks>,
    remembered: RememberedWrites,
    /// Writes that were not remembered for lack of space.
    unremembered: u64,
    flights: Flights,
    /// Reads of the verifying pass that are in flight.
    checking: BTreeMap<BlockAddress, RememberedBlock>,
    /// Number of the next write.
    number: u64,
    /// Writes since the last pass of the backlog.
    since: u64,
    /// The backlog was reported as due.
    asked: Cell<bool>,
    /// Remaining reads of a pass of the backlog.
    left: Option<u64>,
    cursor: BlockAddress,
    replay: Option<Replay>,
    /// The remembered writes are those of an earlier run, whose progress is unknown.
    loaded: bool,
    /// Reads of offsets that the loaded state does not contain.
    unknown: u64,
}

impl Verifier {
    /// For one worker of a job with `verify=`; `seed` differs for each worker. Refuses options that would leave bytes
    /// unverified or no room for a header.
    pub fn new(job: &Job, clone: u32, targets: &[Target], seed: u64) -> Result<Self> {
        let Some(verify) = job.verify.clone() else {
            return Err(Error::refused(&job.name, "nothing to verify: verify= is not given"));
        };
        let sealer = Sealer::new(job, &verify, clone)?;
        // If writes are generated again, a block partly overwritten by another cannot be distinguished from a lost one,
        // so these are remembered.
        let replays = verify.replay_generator && !overlaps(job) || verify.only;
        if replays && (job.pattern.trims || job.trims.percentage > 0.0) {
            return Err(Error::refused(
                &job.name,
                "experimental_verify and verify_only generate the writes again and cannot know which were \
                 trimmed; remove the trims or the option",
            ));
        }
        let whole = verify.interval.is_none_or(|bytes| !(bytes as usize).is_multiple_of(ALIGNMENT));
        let split = (sealer.parts_stand_alone() && !(job.sync.direct && whole)).then(|| sealer.chunks());
        let replay = replays.then(|| Replay::new(job, clone, targets, seed)).transpose()?;
        let seeds = Seeds::new(job, content_seed(job, clone, targets, seed))?;
        Ok(Self {
            examiner: Examiner {
                drawn: verify.only.then(|| OwnDraws::new(job, seeds.clone())),
                seeds,
                dump: verify.dump.then(Dump::new),
                targets: targets.iter().map(|target| target.path.clone()).collect(),
                verify: verify.clone(),
                sealer,
            },
            writes: (job.pattern.writes || job.replay.is_some()) && !verify.only,
            concurrent: job.depth.depth > 1 && job.engine.name.is_asynchronous(),
            split,
            remembered: RememberedWrites::new(targets.len()),
            unremembered: 0,
            flights: Flights::default(),
            checking: BTreeMap::new(),
            number: 0,
            since: 0,
            asked: Cell::new(false),
            left: None,
            cursor: (0, 0),
            replay,
            loaded: false,
            unknown: 0,
            job: Box::new(job.clone()),
            clone,
            seed,
            verify,
        })
    }

    /// The directory for the files of `verify_dump`, instead of the working directory.
    pub fn dump_into(&mut self, directory: PathBuf) {
        if let Some(dump) = &mut self.examiner.dump {
            dump.directory = directory;
        }
    }

    /// Fills the buffer of a write, including headers. Returns the number of the write, which must be passed to
    /// [`Verifier::written`]. Must be called when the write is submitted: from then on, the content at its offset is
    /// unknown. Does nothing for other I/Os.
    pub fn stamp(&mut self, io: &Io, buffer: &mut [u8]) -> u64 {
        let number = self.number;
        if io.direction != Direction::Write {
            return number;
        }
        self.number += 1;
        let Examiner { seeds, sealer, .. } = &mut self.examiner;
        let (base, repeat) = (seeds.seed_of(number), seeds.repeat());
        sealer.write(io.offset, number, buffer, |at| seed_at(base, repeat, at));
        self.unknown(io);
        self.flights.begin(number, io);
        number
    }

    /// A write has completed without error.
    pub fn written(&mut self, io: &Io, number: u64) {
        let spoiled = self.flights.end(number);
        self.since += 1;
        let entry = match spoiled {
            Spoiled::No => RememberedBlock::written(io.length, number),
            Spoiled::AtLeast(least) => RememberedBlock::written(io.length, least).or_later(),
            Spoiled::Lost => {
                self.remembered.forget((io.target, io.offset), io.length, self.split);
                return;
            }
        };
        if self.replay.is_some() || !self.remembers() {
            return;
        }
        if self.remembered.len() >= 2 * MOST || (!self.verify.after && self.remembered.len() >= MOST) {
            self.unremembered += 1;
            return;
        }
        self.remembered.insert((io.target, io.offset), entry, self.split);
    }

    /// A write has failed: the content at its offset stays unknown.
    pub fn failed(&mut self, io: &Io, number: u64) {
        let _forgotten = self.flights.end(number);
        self.remembered.forget((io.target, io.offset), io.length, self.split);
    }

    /// A trim has completed without error: with `trim_verify_zero`, the range must read as zeros.
    pub fn trimmed(&mut self, io: &Io) {
        self.unknown(io);
        // A write that was in flight with it may have been executed before or after.
        let alone = self.flights.spoil(io);
        if alone && self.job.trims.verify_zero && self.remembers() {
            self.remembered.insert((io.target, io.offset), RememberedBlock::trimmed(io.length), self.split);
        }
    }

    /// The next read of the verifying pass, or of a pass of the backlog after [`Verifier::backlog_due`] returned true;
    /// `None` at the end of the pass. A returned block is no longer remembered, and is verified by [`Verifier::check`].
    pub fn next_read(&mut self) -> Option<Io> {
        if self.asked.replace(false) {
            self.since = 0;
            self.left = Some(self.verify.backlog_batch.or(self.verify.backlog).unwrap_or(u64::MAX));
        }
        if self.left == Some(0) {
            self.left = None;
            return None;
        }
        let (place, entry) = self.next_entry().or_else(|| {
            self.left = None;
            None
        })?;
        self.left = self.left.map(|left| left - 1);
        self.checking.insert(place, entry);
        Some(Io { direction: Direction::Read, target: place.0, offset: place.1, length: entry.length })
    }

    fn next_entry(&mut self) -> Option<(BlockAddress, RememberedBlock)> {
        if let Some(replay) = &mut self.replay {
            let written = self.writes.then_some(self.number);
            while let Some((io, number)) = replay.next(written) {
                let place = (io.target, io.offset);
                // The same block is already being read: verifying it once is sufficient.
                if !self.checking.contains_key(&place) {
                    return Some((place, RememberedBlock::written(io.length, number).or_later()));
                }
            }
            return None;
        }
        let (place, entry) = self.remembered.take_from(self.cursor)?;
        self.cursor = (place.0, place.1 + 1);
        Some((place, entry))
    }

    /// Whether a verifying pass is due (`verify_backlog`, or no space for more writes).
    pub fn backlog_due(&self) -> bool {
        let due = self.verify.after
            && self.replay.is_none()
            && (self.verify.backlog.is_some_and(|backlog| self.since >= backlog)
                || self.remembered.len() >= MOST);
        if due {
            self.asked.set(true);
        }
        due
    }

    /// Blocks that are remembered and not yet verified.
    pub fn remaining(&self) -> u64 {
        self.remembered.len() as u64
    }

    /// Writes that could not be remembered because there were too many: they are not verified.
    pub fn unremembered(&self) -> u64 {
        self.unremembered
    }

    /// Reads that could not be verified: reads of offsets that a loaded state does not contain, and blocks without a
    /// header that were found by a job with other offsets than the writer. An error if the writer had the same offsets
    /// after all: then the blocks are lost.
    pub fn doubtful(&self) -> Result<(u64, u64)> {
        let (count, lost) = self.examiner.drawn.as_ref().map_or((0, false), OwnDraws::doubts);
        if lost && count > 0 {
            let what = format!(
                "verify: {count} blocks do not contain what this job wrote: they were never written, or their \
                 data is lost"
            );
            return Err(Error::system(what)(std::io::Error::from_raw_os_error(libc::EILSEQ)));
        }
        Ok((self.unknown, count))
    }

    /// Verifies a read. Reads of the verifying pass are compared with the expected write; other reads of a worker that
    /// writes are compared with the remembered writes, unless reads and writes can be in flight together; reads of a
    /// worker that does not write are checked by their headers alone, unless more is known.
    pub fn check(&mut self, io: &Io, buffer: &[u8]) -> std::result::Result<(), Corruption> {
        let Some(question) = self.expectation_for(io) else { return Ok(()) };
        self.examiner.examine(&question, buffer)
    }

    /// The expectation with which [`Verifier::check`] compares a read, for an examiner in another thread; `None` if
    /// there is nothing to verify. The blocks are no longer remembered.
    pub(crate) fn expectation_for(&mut self, io: &Io) -> Option<ReadExpectation> {
        let place = (io.target, io.offset);
        let limit = (self.writes && !self.loaded).then_some(self.number);
        let of = |blocks| Some(ReadExpectation { io: *io, blocks, limit });
        if let Some(entry) = self.checking.get(&place).copied().filter(|entry| entry.length == io.length) {
            self.checking.remove(&place);
            return of(vec![(io.offset, Some(entry))]);
        }
        if io.direction != Direction::Read || (self.writes && self.concurrent) {
            return None;
        }
        let known = self.remembered.overlapping(place, io.length);
        let known: Vec<_> = known.map(|(at, entry)| (at, Some(entry))).collect();
        match (known.is_empty(), self.writes) {
            (true, true) => None,
            // It is unknown whether the interrupted run wrote this offset.
            (true, false) if self.loaded => {
                self.unknown += 1;
                None
            }
            (true, false) => of(vec![(io.offset, None)]),
            (false, _) => of(known),
        }
    }

    /// Another examiner for the expectations of this verifier.
    pub(crate) fn examiner(&self) -> Examiner {
        self.examiner.clone()
    }

    /// Saves the remembered writes, so that another run can verify them (`verify_state_save`). Writes in flight are not
    /// included. The file is created atomically.
    pub fn save_state(&self, path: &std::path::Path) -> Result<()> {
        let all = self.remembered.iter().chain(self.checking.iter().map(|(place, entry)| (*place, *entry)));
        state::save(path, &self.identity(), &self.examiner.targets, all)
    }

    /// Loads the state saved by an earlier run (`verify_state_load`), whose writes are then verified. Blocks that were
    /// written after the state was saved, and before that run was killed, are also accepted.
    pub fn load_state(&mut self, path: &std::path::Path) -> Result<()> {
        let loaded = state::load(path, &self.examiner.targets)?;
        if (loaded.identity.job.as_str(), loaded.identity.clone) != (self.job.name.as_str(), self.clone) {
            return Err(Error::refused(
                &self.job.name,
                format!(
                    "{} is the verify state of job {:?}, clone {}, not of this job",
                    path.display(),
                    loaded.identity.job,
                    loaded.identity.clone
                ),
            ));
        }
        self.seed = loaded.identity.seed;
        // Later than anything that the earlier run may have written after it saved its state.
        self.number = loaded.identity.writes.saturating_add(1 << 32);
        self.remembered = RememberedWrites::new(self.examiner.targets.len());
        for (place, entry) in loaded.entries {
            self.remembered.insert(
                place,
                if entry.number().is_some() { entry.or_later() } else { entry },
                None,
            );
        }
        self.replay = None;
        self.examiner.drawn = None;
        self.loaded = true;
        self.cursor = (0, 0);
        Ok(())
    }

    fn identity(&self) -> state::Identity {
        state::Identity {
            job: self.job.name.clone(),
            clone: self.clone,
            seed: self.seed,
            writes: self.number,
        }
    }

    /// Whether the writes will be verified.
    fn remembers(&self) -> bool {
        self.verify.after || self.verify.state_save
    }

    /// The content at an offset is unknown from now on.
    fn unknown(&mut self, io: &Io) {
        self.remembered.forget((io.target, io.offset), io.length, self.split);
        let end = io.offset + u64::from(io.length);
        let overlaps = |place: &BlockAddress, entry: &RememberedBlock| {
            place.0 == io.target && place.1 < end && place.1 + u64::from(entry.length) > io.offset
        };
        if !self.checking.is_empty() {
            self.checking.retain(|place, entry| !overlaps(place, entry));
        }
    }
}

/// Whether writes of a pass can overlap partly.
fn overlaps(job: &Job) -> bool {
    let (pattern, blocks) = (&job.pattern, &job.blocks);
    if !pattern.random {
        return pattern.modifier.is_some();
    }
    let one = matches!(blocks.sizes[Direction::Write], BlockSizes::One(_))
        && !blocks.by_sequence
        && blocks.align[Direction::Write].is_none();
    let each_once = !pattern.no_random_map
        && pattern.modifier.is_none()
        && pattern.percentage_random[Direction::Write] >= 100.0
        && pattern.distribution[Direction::Write] == Distribution::Uniform;
    !one && !each_once
}

/// The seed of the contents of a worker's blocks: it differs for a worker with other offsets or another order.
fn content_seed(job: &Job, clone: u32, targets: &[Target], seed: u64) -> u64 {
    mix(seed ^ hash(draws(job, clone, targets).bytes()))
}

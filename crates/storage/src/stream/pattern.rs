//! I/Os by a pattern: any mix of directions, sizes, files and distributions.

use std::collections::VecDeque;

use super::files::FileChooser;
use super::follow_ups::After;
use super::map::{LIMIT, Map};
use super::offsets::{OffsetGenerator, OffsetRules, RepeatAvoidance, once};
use super::seeds::Streams;
use super::{longer, too_small};
use crate::job::{FileChoice, Job};
use crate::{Direction, Error, Io, NextIo, Result, Target};

/// Generates the I/Os of a job that is not plain.
#[derive(Debug)]
pub(crate) struct IoGenerator {
    rules: OffsetRules,
    places: Vec<OffsetGenerator>,
    files: FileChooser,
    mix: Mix,
    after: Option<After>,
    queue: VecDeque<NextIo>,
    /// A finished file begins again.
    come_again: bool,
    /// Bytes of the regions that remain in this pass.
    left: u64,
    all: u64,
}

/// The choice of the next direction.
#[derive(Debug, Clone, Copy)]
enum Mix {
    One(Direction),
    /// Reads with this probability, otherwise the other direction.
    Reads(f64, Direction),
    /// Each block is trimmed, then written.
    TrimThenWrite,
}

impl IoGenerator {
    pub(crate) fn new(job: &Job, targets: &[Target], streams: &mut Streams) -> Result<Self> {
        let count = targets.len() as u32;
        let open = job.targets.open_files;
        let limited =
            job.targets.service.choice == FileChoice::Sequential || open.is_some_and(|open| open < count);
        let mut rules = OffsetRules::new(job, once(job), limited);
        let unit = rules.smallest;
        if unit == 0 || !targets.iter().any(|target| target.length >= rules.needed) {
            return Err(too_small(job, targets));
        }
        if let Some(zones) = rules.zones.filter(|zones| zones.range < rules.needed) {
            let problem = format!(
                "a zone of {} bytes (zonerange=, or zonesize= without it) is too small for a block of {}",
                zones.range, rules.needed
            );
            return Err(Error::refused(&job.name, problem));
        }
        if rules.once == RepeatAvoidance::Map && rules.zones.is_none() {
            let bytes: u64 = targets.iter().map(|target| Map::bytes(target.length / unit)).sum();
            if bytes > LIMIT && job.pattern.soft_random_map {
                rules.once = RepeatAvoidance::No;
            } else if bytes > LIMIT {
                let problem = format!(
                    "the map of used blocks would need {} MiB ({} are allowed); set norandommap=1, \
                     softrandommap=1 or random_generator=lfsr, or use one block size, which needs no map",
                    bytes >> 20,
                    LIMIT >> 20
                );
                return Err(Error::refused(&job.name, problem));
            }
        }
        let pattern = &job.pattern;
        let mix = if pattern.trim_then_write {
            Mix::TrimThenWrite
        } else {
            let mut others =
                [Direction::Write, Direction::Trim].into_iter().filter(|direction| pattern.has(*direction));
            match (pattern.reads, others.next()) {
                (true, Some(other)) => Mix::Reads(pattern.mix_read / 100.0, other),
                (false, Some(other)) => Mix::One(other),
                (_, None) => Mix::One(Direction::Read),
            }
        };
        let files = FileChooser::new(job.targets.service, count, open, &mut streams.keys);
        let places = targets.iter().zip(0..);
        let places = places
            .map(|(target, number)| OffsetGenerator::new(job, &rules, number, target, streams))
            .collect();
        let all = targets.iter().map(|target| target.length).filter(|length| *length >= unit).sum();
        let come_again = job.targets.service.choice.is_uneven();
        // If each block is used once, a pass is limited to all of them.
        let all = if rules.once == RepeatAvoidance::No || come_again { longer(job, all) } else { all };
        let after = After::new(job);
        Ok(Self { rules, places, files, mix, after, queue: VecDeque::new(), come_again, left: all, all })
    }

    pub(crate) fn pass_bytes(&self) -> u64 {
        if matches!(self.mix, Mix::TrimThenWrite) { self.all * 2 } else { self.all }
    }

    #[inline]
    pub(crate) fn next(&mut self, streams: &mut Streams) -> NextIo {
        if let Some(next) = self.queue.pop_front() {
            return next;
        }
        let Some(io) = self.io(streams) else { return NextIo::End };
        self.left = self.left.saturating_sub(u64::from(io.length));
        if matches!(self.mix, Mix::TrimThenWrite) {
            let write = Io { direction: Direction::Write, ..io };
            let barrier = self.after.as_ref().is_some_and(After::barrier_due);
            self.queue.extend(barrier.then_some(NextIo::Drain));
            self.queue.push_back(NextIo::Io(write));
            if let Some(after) = &mut self.after {
                after.written(&write, &mut streams.trims, &mut self.queue);
            }
            return NextIo::Io(io);
        }
        if io.direction == Direction::Write
            && let Some(after) = &mut self.after
        {
            let barrier = after.barrier_due();
            self.queue.extend(barrier.then_some(NextIo::Io(io)));
            after.written(&io, &mut streams.trims, &mut self.queue);
            if barrier {
                return NextIo::Drain;
            }
        }
        NextIo::Io(io)
    }

    #[inline]
    fn io(&mut self, streams: &mut Streams) -> Option<Io> {
        while self.left > 0 {
            let direction = match self.mix {
                Mix::One(direction) => direction,
                Mix::Reads(share, other) => {
                    if streams.mix.unit() < share {
                        Direction::Read
                    } else {
                        other
                    }
                }
                Mix::TrimThenWrite => Direction::Trim,
            };
            let Some(file) = self.files.choose(&mut streams.files) else {
                if self.begin_shares_again(streams) {
                    continue;
                }
                return None;
            };
            let place = self.places.get_mut(file as usize)?;
            let mut next = place.next(&self.rules, direction, self.left, streams);
            if next.is_none() && self.come_again {
                place.restart(false, streams);
                next = place.next(&self.rules, direction, self.left, streams);
            }
            if next.is_some() {
                return next;
            }
            self.files.finished();
        }
        None
    }

    /// If files end only by their shares, and the pass is longer than the sum of the shares, each gets its share once
    /// more.
    fn begin_shares_again(&mut self, streams: &mut Streams) -> bool {
        let endless =
            self.rules.random && self.rules.once == RepeatAvoidance::No && self.rules.zones.is_none();
        if !endless || !self.places.iter().all(|place| place.has_its_share(&self.rules)) {
            return false;
        }
        self.files.restart();
        self.places.iter_mut().for_each(|place| place.restart(false, streams));
        true
    }

    /// Begins another pass, with the same random choices or with others.
    pub(crate) fn restart(&mut self, same: bool, streams: &mut Streams) {
        self.left = self.all;
        self.queue.clear();
        self.files.restart();
        if let Some(after) = &mut self.after {
            after.restart();
        }
        for place in &mut self.places {
            place.restart(same, streams);
        }
    }
}

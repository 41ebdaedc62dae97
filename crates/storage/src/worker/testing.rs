//! A simple source of I/Os, and workers on real files, for the tests of the loop.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use kelvin_measure::event::LoadPart;
use kelvin_measure::{Clock, Random, Stop};

use super::measured::{Loop, Made};
use super::parts::{Check, Fill, IoStream, WorkerParts};
use super::{Shared, WorkerPlan, run_parts};
use crate::engine::testing::file;
use crate::engine::{BufferPool, Files, IoEngine};
use crate::job::{EngineName, Job};
use crate::message::{Message, WorkerEnd};
use crate::result::DirectionOutcome;
use crate::tick::{DepthCounts, Tick};
use crate::{Direction, Io, NextIo, PerDirection, Target};

/// Blocks of one size, in order or at random, of one direction or alternating between two.
pub(super) struct Blocks {
    random: Option<Random>,
    directions: Vec<Direction>,
    count: u64,
    size: u32,
    issued: u64,
    /// Steps before an I/O, by its index.
    pub(super) also: Vec<(u64, NextIo)>,
}

impl Blocks {
    pub(super) fn new(job: &Job, length: u64) -> Self {
        let size = job.blocks.sizes[Direction::Read].largest();
        let directions = Direction::ALL.into_iter().filter(|direction| job.pattern.has(*direction)).collect();
        let random = job.pattern.random.then(|| Random::part(1, 2, 3));
        Self { random, directions, count: length / u64::from(size), size, issued: 0, also: Vec::new() }
    }
}

impl IoStream for Blocks {
    #[inline]
    fn next(&mut self) -> NextIo {
        if let Some((at, next)) = self.also.first().copied()
            && at == self.issued
        {
            self.also.remove(0);
            return next;
        }
        if self.issued == self.count {
            return NextIo::End;
        }
        let block = match &mut self.random {
            Some(random) => ((u128::from(random.bits()) * u128::from(self.count)) >> 64) as u64,
            None => self.issued,
        };
        let direction = self.directions[self.issued as usize % self.directions.len()];
        self.issued += 1;
        NextIo::Io(Io { direction, target: 0, offset: block * u64::from(self.size), length: self.size })
    }

    fn restart(&mut self) {
        self.issued = 0;
    }
}

/// Each block begins with its offset.
pub(super) struct Offsets;

impl Fill for Offsets {
    fn is_static(&self) -> bool {
        false
    }

    fn prepare(&mut self, buffer: &mut [u8]) {
        buffer.fill(0x5a);
    }

    fn fill(&mut self, io: &Io, buffer: &mut [u8]) {
        buffer[..8].copy_from_slice(&io.offset.to_le_bytes());
    }
}

/// The sum of a worker's messages.
#[derive(Debug, Default)]
pub(super) struct Sent {
    pub(super) end: WorkerEnd,
    pub(super) ticks: Vec<Tick>,
    pub(super) measured: PerDirection<DirectionOutcome>,
    pub(super) ramp: PerDirection<DirectionOutcome>,
    pub(super) depth: DepthCounts,
    pub(super) notes: Vec<String>,
}

impl Sent {
    /// Adds up the messages in the channel; asserts the invariants of every run's ticks.
    pub(super) fn from_messages(messages: &Receiver<Message>) -> Self {
        let mut sent = Self::default();
        for message in messages.try_iter() {
            match message {
                Message::Tick(tick) => sent.ticks.push(*tick),
                Message::End(end) => sent.end = *end,
                Message::Note(_, note) => sent.notes.push(note),
                _ => {}
            }
        }
        for tick in &sent.ticks {
            let into = if tick.part == LoadPart::RampUp { &mut sent.ramp } else { &mut sent.measured };
            for (direction, tally) in tick.targets.iter().flat_map(PerDirection::iter) {
                if let Some(tally) = tally {
                    into[direction].add(tally);
                }
            }
            sent.depth.merge(&tick.depth);
        }
        for pair in sent.ticks.windows(2) {
            assert_eq!(pair[0].to, pair[1].from, "ticks follow each other without a gap");
        }
        sent
    }

    pub(super) fn read(&self) -> &DirectionOutcome {
        &self.measured[Direction::Read]
    }

    pub(super) fn written(&self) -> &DirectionOutcome {
        &self.measured[Direction::Write]
    }
}

/// A plan for one worker on these targets.
pub(super) fn plan(job: &Job, targets: Vec<Target>) -> WorkerPlan {
    WorkerPlan {
        number: 0,
        job: Arc::new(job.clone()),
        clone: 0,
        group: 0,
        targets,
        seed: 7,
        pinned: None,
        aux_directory: None,
    }
}

/// Runs a job on a file of this length.
pub(super) fn run(job: &Job, path: &Path, length: u64) -> Sent {
    run_on(job, file(path, length), &Stop::new(), |_| {})
}

/// As [`run`], on a target, with a stop request and a change of its parts.
pub(super) fn run_on(
    job: &Job,
    target: Target,
    stop: &Stop,
    change: impl FnOnce(&mut WorkerParts<Blocks>),
) -> Sent {
    let (messages, received) = channel();
    let shared = Shared::new(Clock::real(), stop.clone(), messages, &[job.flow]);
    let mut parts =
        WorkerParts { stream: Blocks::new(job, target.length), fill: Box::new(Offsets), check: None };
    change(&mut parts);
    run_parts(&plan(job, vec![target]), &shared, || Ok(parts));
    Sent::from_messages(&received)
}

/// Runs a job with a test engine.
pub(super) fn run_engine<E: IoEngine>(job: &Job, engine: E, length: u64, stop: &Stop) -> Sent {
    run_engine_with(job, engine, length, stop, |_| {})
}

/// As [`run_engine`], with a change of its stream.
pub(super) fn run_engine_with<E: IoEngine>(
    job: &Job,
    engine: E,
    length: u64,
    stop: &Stop,
    change: impl FnOnce(&mut Blocks),
) -> Sent {
    let (messages, received) = channel();
    let shared = Shared::new(Clock::real(), stop.clone(), messages, &[None]);
    let mut job = job.clone();
    job.engine.name = EngineName::Null;
    let plan = plan(&job, vec![file(Path::new("/nowhere"), length)]);
    let files = Arc::new(Files::open(&job, &plan.targets).unwrap());
    let depth = job.depth.depth;
    let pool = BufferPool::new(depth as usize, 4096, &job.buffers, None).unwrap();
    let mut stream = Blocks::new(&job, length);
    change(&mut stream);
    let parts = WorkerParts { stream, fill: Box::new(Offsets), check: None };
    let made = Made { files, pool, parts, depth, notes: Vec::new() };
    let course = Loop::new(&shared, &plan, engine, made).run();
    let mut sent = Sent::from_messages(&received);
    sent.end.error = course.halt.map(|halt| (halt.number, halt.message));
    sent.end.notes = course.notes;
    sent
}

/// Checks whether read data begin with their offset, as [`Offsets`] writes it.
#[derive(Default)]
pub(super) struct Looks {
    pub(super) written: Vec<Io>,
}

impl Check for Looks {
    fn stamp(&mut self, io: &Io, buffer: &mut [u8]) -> u64 {
        Offsets.fill(io, buffer);
        io.offset
    }

    fn written(&mut self, io: &Io, number: u64) {
        assert_eq!(number, io.offset);
        self.written.push(Io { direction: Direction::Read, ..*io });
    }

    fn failed(&mut self, _io: &Io, _number: u64) {}

    fn trimmed(&mut self, _io: &Io) {}

    fn check(&mut self, io: &Io, buffer: &[u8]) -> std::result::Result<(), String> {
        let found = u64::from_le_bytes(buffer[..8].try_into().unwrap());
        if found == io.offset
            && buffer.len() == io.length as usize
            && buffer[8..].iter().all(|byte| *byte == 0x5a)
        {
            return Ok(());
        }
        Err(format!("verify: offset {}: found {found}", io.offset))
    }

    fn next_read(&mut self) -> Option<Io> {
        self.written.pop()
    }

    fn backlog_due(&self) -> bool {
        self.written.len() >= 64
    }

    fn finish(&mut self, _complete: bool) -> crate::Result<Option<String>> {
        Ok(None)
    }
}

//! The loop: fill the queue, hand over, take back what ended, count.
//!
//! The clock is read when a batch begins, when it was handed over, and when the reaping call has returned. I/Os of one
//! batch share the first two readings, since they are handed over by one call; completions that one call brings
//! share the third, since the worker learns of all of them at that moment (fio does the same). Nothing else is
//! shared: a worker at depth 1 reads the clock three times for each I/O, twice where the call is the I/O.

use std::sync::Arc;

use kelvin_measure::Nanos;
use kelvin_measure::event::Part;

use super::counter::{Counter, Times};
use super::flow::Share;
use super::goal::{Search, Step};
use super::halt::{self, Halt};
use super::pace::{Minimum, Pacer};
use super::parts::{Check, Fill, Parts, Stream};
use super::ticker::Ticker;
use super::usage::Usage;
use super::{Shared, WorkerPlan};
use crate::engine::{BufferPool, Ended, Engine, Files, Request, Wait, discard};
use crate::event::State;
use crate::job::{Amount, Job};
use crate::log::{Done, Recorder};
use crate::message::Message;
use crate::result::DirectionOutcome;
use crate::tick::{Failures, TICK};
use crate::{Bins, Direction, Io, Next, PerDirection, SyncCall};

/// How often flags of others are looked at.
const GLANCE: Nanos = 20_000_000;
/// How long I/Os may be under way at the end before somebody is told.
const PATIENCE: Nanos = 10_000_000_000;
/// No time: of I/Os that may start at any.
const ANY_TIME: Nanos = Nanos::MAX;
/// How often an I/O that the kernel wants to have asked again is.
const TRIES: u32 = 1_000_000;

/// An I/O under way.
#[derive(Debug, Clone, Copy)]
struct Flight {
    io: Io,
    /// When handing over began and when it ended.
    begin: Nanos,
    handed: Nanos,
    /// When it should have started.
    intended: Nanos,
    /// Bytes moved by earlier parts.
    moved: u32,
    /// The verifier's number of a write.
    number: u64,
    /// It is read to be looked at, and in no figure.
    apart: bool,
}

const NO_FLIGHT: Flight = Flight {
    io: Io { direction: Direction::Read, target: 0, offset: 0, length: 0 },
    begin: 0,
    handed: 0,
    intended: ANY_TIME,
    moved: 0,
    number: 0,
    apart: false,
};

/// Why nothing more is issued at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Blocked {
    /// It is.
    No,
    /// Not before this time.
    Until(Nanos),
    /// Not before one that is under way has ended.
    One,
    /// Not before all that is under way has ended; then what is named.
    Drain(Then),
}

/// What comes when nothing is under way any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    GoOn,
    Sync(u32, SyncCall),
    Think,
    NextPass,
    Verify,
    End,
}

/// Where I/Os come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// The job's stream.
    Work,
    /// The verifier, until it has no more; then the stream again.
    Backlog,
    /// The verifier, at the end.
    Verify,
}

/// How many are handed over and taken back at a time.
#[derive(Debug, Clone, Copy)]
struct Batch {
    submit: u32,
    least: u32,
    most: u32,
    low: u32,
}

/// Which of the things that most jobs do not want is wanted: the hot path asks for two flags and no more.
#[derive(Debug, Clone, Copy, Default)]
struct Wanted {
    /// Before an I/O is issued there is something to look at.
    gate: bool,
    /// There is something to do for each write.
    fill: bool,
    /// There is something to do for each I/O that has ended.
    extras: bool,
}

/// Pauses.
#[derive(Debug, Clone, Copy)]
struct Thinker {
    rule: crate::job::Thinking,
    /// I/Os since the last pause, and when it was.
    count: u64,
    since: Nanos,
}

/// A worker at work.
pub(super) struct Loop<'a, E, S> {
    shared: &'a Shared,
    plan: &'a WorkerPlan,
    job: Arc<Job>,
    engine: E,
    synchronous: bool,
    files: Arc<Files>,
    pool: BufferPool,
    stream: S,
    data: Box<dyn Fill>,
    check: Option<Box<dyn Check>>,
    recorder: Option<Recorder>,

    ticker: Ticker,
    /// The last reading.
    now: Nanos,
    /// When there is housekeeping to be done.
    due: Nanos,
    begun: Nanos,
    part: Part,
    measured_from: Nanos,
    counter: Counter,
    before: Usage,

    flights: Vec<Flight>,
    free: Vec<u32>,
    fresh: Vec<u32>,
    resumed: Vec<u32>,
    ended: Vec<Ended>,
    under_way: u32,
    depth: u32,
    filling: bool,
    batch: Batch,
    wanted: Wanted,

    source: Source,
    blocked: Blocked,
    held: Option<Io>,
    /// A trim that waits for the batch before it to go.
    trim: Option<(Io, Nanos)>,
    not_before: Nanos,
    left_bytes: u64,
    left_ios: u64,
    passes: u64,
    pass_ios: u64,
    retries: u32,

    pacer: Option<Pacer>,
    minimum: Option<Minimum>,
    thinker: Option<Thinker>,
    share: Option<Share>,
    search: Option<Search>,
    writes: bool,
    /// By target: where it was written to since the last sync, begin and end.
    dirty: Vec<(u64, u64)>,

    ending: bool,
    told_of_waiting: bool,
    gave_up: bool,
    halt: Option<Halt>,
    verified: Option<Box<PerDirection<DirectionOutcome>>>,
    notes: Vec<String>,
    issued: u64,
    dropped_as_error: u64,
    apart: u64,
}

/// What was made for a worker before its first I/O.
pub(super) struct Made<S> {
    pub(super) files: Arc<Files>,
    pub(super) pool: BufferPool,
    pub(super) parts: Parts<S>,
    pub(super) depth: u32,
    pub(super) notes: Vec<String>,
}

/// What a worker has come to.
pub(super) struct Course {
    pub(super) begun: Nanos,
    pub(super) ended: Nanos,
    pub(super) usage: Usage,
    pub(super) halt: Option<Halt>,
    pub(super) latency_depth: Option<u32>,
    pub(super) verified: Option<PerDirection<DirectionOutcome>>,
    pub(super) notes: Vec<String>,
}

impl<'a, E: Engine, S: Stream> Loop<'a, E, S> {
    pub(super) fn new(shared: &'a Shared, plan: &'a WorkerPlan, engine: E, made: Made<S>) -> Self {
        let Made { files, pool, parts, depth, notes } = made;
        let job = Arc::clone(&plan.job);
        let ticker = Ticker::new(&shared.clock);
        let synchronous = engine.is_synchronous();
        let Parts { stream, fill, check } = parts;
        let share = shared.flow.join(plan.number);
        let recorder = Recorder::new(&job, plan.clone);
        let response = job.rate.limits() || job.replay.as_ref().is_some_and(|replay| !replay.no_stall);
        let now = ticker.now();
        let pacer = Pacer::new(&job.rate, plan.seed, now);
        let search = Search::new(&job.latency, depth, now);
        let thinker = job.thinking.map(|rule| Thinker { rule, count: 0, since: now });
        let wanted = Wanted {
            gate: pacer.is_some() || thinker.is_some() || share.is_some() || job.depth.serialize_overlap,
            fill: check.is_some() || !fill.is_static() || recorder.is_some() || job.sync.range.is_some(),
            extras: check.is_some()
                || recorder.is_some()
                || search.is_some()
                || thinker.is_some()
                || response
                || job.latency.maximum.0.iter().any(Option::is_some),
        };
        // Not given: everything that is free is handed over in one call, and one that has ended is enough to go on.
        // The queue stays as full as with batches of one, and calls are as few as the device lets them be.
        let batch = Batch {
            submit: if synchronous { 1 } else { job.depth.submit.unwrap_or(depth).clamp(1, depth) },
            least: job.depth.complete_min.unwrap_or(1).min(depth),
            most: job.depth.complete_max.filter(|most| *most > 0).unwrap_or(depth).clamp(1, depth),
            low: job.depth.low.unwrap_or(depth).min(depth.saturating_sub(1)),
        };
        let (ramp, apart) = (job.course.ramp > 0, search.as_ref().is_some_and(Search::is_apart));
        let part = if ramp || apart { Part::RampUp } else { Part::Measured };
        let counter = Counter::new(plan.number, files.len(), &job.report, response, synchronous, now);
        let current = search.as_ref().map_or(depth, Search::depth);
        let mut this = Self {
            minimum: Minimum::new(&job.rate, now),
            dirty: vec![(u64::MAX, 0); files.len()],
            flights: vec![NO_FLIGHT; depth as usize],
            free: (0..depth).rev().collect(),
            fresh: Vec::with_capacity(depth as usize),
            resumed: Vec::with_capacity(depth as usize),
            ended: Vec::with_capacity(depth as usize),
            data: fill,
            before: Usage::now(),
            shared,
            plan,
            job,
            engine,
            synchronous,
            files,
            pool,
            stream,
            check,
            recorder,
            ticker,
            now,
            due: now,
            begun: now,
            part,
            measured_from: now,
            counter,
            under_way: 0,
            depth: current,
            filling: true,
            batch,
            wanted,
            source: Source::Work,
            blocked: Blocked::No,
            held: None,
            trim: None,
            not_before: 0,
            left_bytes: u64::MAX,
            left_ios: u64::MAX,
            passes: 0,
            pass_ios: 0,
            retries: 0,
            pacer,
            thinker,
            share,
            search,
            writes: false,
            ending: false,
            told_of_waiting: false,
            gave_up: false,
            halt: None,
            verified: None,
            notes,
            issued: 0,
            dropped_as_error: 0,
            apart: 0,
        };
        this.set_limits();
        this
    }

    /// How much is to be done from here on.
    fn set_limits(&mut self) {
        let targets = &self.job.targets;
        let pass = self.stream.pass_bytes();
        let whole = match targets.io_size {
            Some(Amount::Bytes(bytes)) => bytes,
            Some(amount) => amount.of(pass).unwrap_or(pass),
            None => pass.saturating_mul(self.job.course.loops.max(1)),
        };
        // A trace has its own end, and so has a device that is filled.
        let endless = self.job.course.time_based || self.job.replay.is_some() || targets.fill_device;
        self.left_bytes = if endless { u64::MAX } else { whole };
        self.left_ios = targets.number_ios.unwrap_or(u64::MAX);
    }

    /// From the first I/O to the last.
    pub(super) fn run(mut self) -> Course {
        for buffer in 0..self.pool.count() as u32 {
            let size = self.pool.size();
            self.data.prepare(self.pool.bytes(buffer, size));
        }
        if self.job.verify.as_ref().is_some_and(|verify| verify.only) {
            self.source = Source::Verify;
        }
        self.begun = self.ticker.now();
        self.start_again(self.begun);
        let state = match (self.source, self.part) {
            (Source::Verify, _) => State::Verifying,
            (_, Part::RampUp) => State::RampUp,
            _ => State::Running,
        };
        self.say(state);
        loop {
            match self.step() {
                Ok(true) => {}
                Ok(false) => break,
                Err(halt) => {
                    self.halt.get_or_insert(halt);
                    self.wind_down();
                    break;
                }
            }
        }
        self.finish()
    }

    /// Times count from here: what was done to get here is in no tick.
    fn start_again(&mut self, now: Nanos) {
        self.now = now;
        self.due = now;
        self.measured_from = now;
        self.before = Usage::now();
        let response =
            self.job.rate.limits() || self.job.replay.as_ref().is_some_and(|replay| !replay.no_stall);
        self.counter = Counter::new(
            self.plan.number,
            self.files.len(),
            &self.job.report,
            response,
            self.synchronous,
            now,
        );
        self.pacer = Pacer::new(&self.job.rate, self.plan.seed, now);
        self.minimum = Minimum::new(&self.job.rate, now);
        self.search = Search::new(&self.job.latency, self.flights.len() as u32, now);
        if let Some(recorder) = &mut self.recorder {
            recorder.begin(now);
        }
    }

    /// One round. Whether there is another.
    #[inline]
    fn step(&mut self) -> Result<bool, Halt> {
        if self.now >= self.due {
            self.keep_house()?;
        }
        if self.filling && self.blocked == Blocked::No || !self.resumed.is_empty() {
            let again = self.fill()?;
            if !self.fresh.is_empty() {
                self.hand_over()?;
                if self.synchronous {
                    self.account()?;
                    return Ok(true);
                }
            }
            // The batch is full and the queue is not: the next batch.
            if (again || self.batch.submit < self.depth)
                && self.blocked == Blocked::No
                && self.under_way < self.depth
            {
                return Ok(true);
            }
            if self.under_way >= self.depth {
                self.filling = false;
            }
        }
        if self.under_way == 0 && self.ended.is_empty() {
            return self.idle();
        }
        self.take_back()?;
        Ok(true)
    }

    /// Fills the queue up to a batch. Whether something was done that is not in the batch.
    #[inline]
    fn fill(&mut self) -> Result<bool, Halt> {
        let begin = self.ticker.now();
        self.now = begin;
        while (self.fresh.len() as u32) < self.batch.submit {
            let Some(slot) = self.resumed.pop() else { break };
            self.queue(slot);
        }
        if let Some((io, intended)) = self.trim.take() {
            self.trim(io, intended)?;
            return Ok(true);
        }
        while (self.fresh.len() as u32) < self.batch.submit
            && self.under_way < self.depth
            && self.blocked == Blocked::No
        {
            let Some((io, intended)) = self.pull(begin)? else { break };
            if io.direction == Direction::Trim {
                // A trim has a call of its own: what was queued before goes first.
                self.trim = Some((io, intended));
                return Ok(true);
            }
            let Some(slot) = self.free.pop() else { break };
            // `free` holds places of `flights` only.
            self.flights[slot as usize] = Flight {
                io,
                begin,
                handed: 0,
                intended,
                moved: 0,
                number: 0,
                apart: self.source != Source::Work,
            };
            self.under_way += 1;
            if self.wanted.fill {
                self.before_issue(slot, begin);
            }
            if self.source == Source::Work {
                self.counter.issued(self.under_way);
                self.issued += 1;
            }
            self.queue(slot);
        }
        Ok(false)
    }

    /// Gives an I/O, or the rest of one, to the engine.
    #[inline]
    fn queue(&mut self, slot: u32) {
        let Flight { io, moved, .. } = self.flights[slot as usize];
        #[allow(unsafe_code, reason = "a place within a buffer")]
        // SAFETY: fewer bytes have moved than the I/O has, and it fits into its buffer.
        let address = unsafe { self.pool.address(slot).add(moved as usize) };
        self.engine.queue(Request {
            slot,
            direction: io.direction,
            target: io.target,
            offset: io.offset + u64::from(moved),
            length: io.length - moved,
            address,
        });
        self.fresh.push(slot);
    }

    /// The next I/O, if it may be issued now, and when it should have been.
    #[inline]
    fn pull(&mut self, now: Nanos) -> Result<Option<(Io, Nanos)>, Halt> {
        if self.wanted.gate || self.held.is_some() || self.not_before > 0 || self.source != Source::Work {
            return self.pull_with_care(now);
        }
        Ok(self.pull_work().map(|io| (io, ANY_TIME)))
    }

    /// The next I/O of the stream.
    #[inline]
    fn pull_work(&mut self) -> Option<Io> {
        if self.left_bytes == 0 || self.left_ios == 0 {
            self.blocked = Blocked::Drain(Then::NextPass);
            return None;
        }
        match self.stream.next() {
            Next::Io(io) => {
                self.left_bytes = self.left_bytes.saturating_sub(u64::from(io.length));
                self.left_ios -= 1;
                self.pass_ios += 1;
                Some(io)
            }
            other => {
                self.not_an_io(other);
                None
            }
        }
    }

    #[cold]
    fn not_an_io(&mut self, next: Next) {
        self.blocked = match next {
            Next::NotBefore(time) => {
                self.not_before = self.begun + time;
                Blocked::Until(self.not_before)
            }
            Next::Sync { target, how } => Blocked::Drain(Then::Sync(target, how)),
            Next::Drain => Blocked::Drain(Then::GoOn),
            Next::End | Next::Io(_) => Blocked::Drain(Then::NextPass),
        };
    }

    /// The same where there is something to look at: rates, pauses, shares, overlaps, the verifier's turn.
    fn pull_with_care(&mut self, now: Nanos) -> Result<Option<(Io, Nanos)>, Halt> {
        if self.source != Source::Work {
            let next = self.check.as_mut().and_then(|check| check.next_read());
            if next.is_none() {
                let then = if self.source == Source::Backlog { Then::GoOn } else { Then::End };
                self.blocked = Blocked::Drain(then);
            }
            return Ok(next.map(|io| (io, ANY_TIME)));
        }
        if self.check.as_ref().is_some_and(|check| check.backlog_due()) {
            self.blocked = Blocked::Drain(Then::Verify);
            return Ok(None);
        }
        if self.is_to_think(now) {
            self.blocked = Blocked::Drain(Then::Think);
            return Ok(None);
        }
        if self.share.as_ref().is_some_and(Share::is_ahead) {
            let sleep = self.job.flow.map_or(0, |flow| flow.sleep).max(10_000);
            self.blocked = Blocked::Until(now + sleep);
            return Ok(None);
        }
        let Some(mut io) = self.held.take().or_else(|| self.pull_work()) else { return Ok(None) };
        let mut intended = ANY_TIME;
        if self.not_before > 0 {
            (intended, self.not_before) = (self.not_before, 0);
        }
        if let Some(pacer) = &self.pacer
            && let Some(start) = pacer.start(io.direction)
        {
            if start > now {
                // Of two rates one must not wait for the other: the place is used in the direction that is due.
                let other = pacer.other_due(io.direction, now).filter(|_| self.may_turn(&io));
                let Some(other) = other else {
                    self.held = Some(io);
                    self.blocked = Blocked::Until(start);
                    return Ok(None);
                };
                io.direction = other;
            }
            intended = pacer.start(io.direction).unwrap_or(ANY_TIME);
        }
        if self.job.depth.serialize_overlap && self.overlaps(&io) {
            self.held = Some(io);
            self.blocked = Blocked::One;
            return Ok(None);
        }
        if let Some(pacer) = &mut self.pacer {
            pacer.started(&io);
        }
        if let Some(share) = &mut self.share {
            share.count();
        }
        if let Some(thinker) = self.thinker.as_mut().filter(|thinker| thinker.rule.by_issue) {
            thinker.count += 1;
        }
        Ok(Some((io, intended)))
    }

    /// Whether an I/O of a mix can go in the other direction and still be what the job asked for.
    fn may_turn(&self, io: &Io) -> bool {
        let (pattern, sizes) = (&self.job.pattern, &self.job.blocks.sizes);
        pattern.reads
            && pattern.writes
            && self.check.is_none()
            && self.job.replay.is_none()
            && io.direction != Direction::Trim
            && sizes[Direction::Read] == sizes[Direction::Write]
    }

    fn overlaps(&self, io: &Io) -> bool {
        let end = io.offset + u64::from(io.length);
        let free = &self.free;
        self.flights.iter().enumerate().any(|(slot, flight)| {
            let other = &flight.io;
            other.length > 0
                && other.target == io.target
                && other.offset < end
                && io.offset < other.offset + u64::from(other.length)
                && !free.contains(&(slot as u32))
        })
    }

    fn is_to_think(&self, now: Nanos) -> bool {
        let Some(Thinker { rule, count, since }) = &self.thinker else { return false };
        match rule.io_time {
            Some(time) => now.saturating_sub(*since) >= time && *count > 0,
            None => *count >= rule.blocks.max(1),
        }
    }

    /// What a write needs before it goes, and what is written down of every I/O.
    fn before_issue(&mut self, slot: u32, begin: Nanos) {
        let flight = &mut self.flights[slot as usize];
        let io = flight.io;
        if io.direction == Direction::Write {
            let buffer = self.pool.bytes(slot, io.length as usize);
            match &mut self.check {
                Some(check) => flight.number = check.stamp(&io, buffer),
                None if !self.data.is_static() => self.data.fill(&io, buffer),
                None => {}
            }
            if let Some(range) = self.dirty.get_mut(io.target as usize) {
                *range = (range.0.min(io.offset), range.1.max(io.offset + u64::from(io.length)));
            }
            self.writes = true;
        }
        if let Some(recorder) = self.recorder.as_mut().filter(|_| !flight.apart) {
            recorder.issued(begin, &io);
        }
    }

    /// Hands the batch over.
    #[inline]
    fn hand_over(&mut self) -> Result<(), Halt> {
        let named = self.synchronous && self.shared.under_way.len() > self.plan.number as usize;
        if named && let Some(slot) = self.fresh.first() {
            let flight = &self.flights[*slot as usize];
            self.shared.under_way[self.plan.number as usize].enter(self.now, &flight.io);
        }
        self.engine.commit(&mut self.ended).map_err(|error| {
            Halt::call(&format!("handing over to {}", self.job.engine.name.word()), &error)
        })?;
        let handed = self.ticker.now();
        self.now = handed;
        if named {
            self.shared.under_way[self.plan.number as usize].leave();
        }
        self.counter.submitted(self.fresh.len());
        for slot in self.fresh.drain(..) {
            let flight = &mut self.flights[slot as usize];
            // The rest of an I/O that moved less than asked was handed over before.
            if flight.moved == 0 {
                flight.handed = handed;
            }
        }
        Ok(())
    }

    /// Takes back what has ended, and waits for some where nothing else can be done.
    #[inline]
    fn take_back(&mut self) -> Result<(), Halt> {
        let until = if let Blocked::Until(time) = self.blocked { time.min(self.due) } else { self.due };
        let left = until.saturating_sub(self.now).clamp(1_000, 100_000_000);
        let (least, wait) = match self.blocked {
            Blocked::No if self.batch.least == 0 => (0, Wait::No),
            Blocked::No => (self.batch.least.min(self.under_way), Wait::AtMost(left)),
            _ => (1, Wait::AtMost(left)),
        };
        let reaped = self.engine.reap(least, self.batch.most, wait, &mut self.ended);
        reaped.map_err(|error| {
            Halt::call(&format!("waiting for I/O under way ({})", self.job.engine.name.word()), &error)
        })?;
        self.now = self.ticker.now();
        match self.blocked {
            Blocked::Until(time) if self.now >= time => self.blocked = Blocked::No,
            Blocked::One if !self.ended.is_empty() => self.blocked = Blocked::No,
            _ => {}
        }
        self.account()
    }

    /// Counts what has ended, at the time of `now`.
    #[inline]
    fn account(&mut self) -> Result<(), Halt> {
        let at = self.now;
        if self.ended.is_empty() {
            return Ok(());
        }
        let ended = std::mem::take(&mut self.ended);
        self.counter.completed(ended.len());
        let mut next = 0;
        let mut failure = None;
        while let Some(one) = ended.get(next) {
            next += 1;
            let first = self.flights[one.slot as usize];
            if !is_whole(&first, one.result) || first.apart {
                if let Err(halt) = self.odd(one.slot, one.result, at) {
                    failure.get_or_insert(halt);
                }
                continue;
            }
            let mut ios = 1;
            let mut bytes = u64::from(first.io.length);
            self.release(one.slot, at, &mut failure);
            // I/Os that were handed over together and ended together have the same times.
            while let Some(one) = ended.get(next) {
                let flight = &self.flights[one.slot as usize];
                let alike = flight.handed == first.handed
                    && flight.begin == first.begin
                    && flight.io.direction == first.io.direction
                    && flight.io.target == first.io.target
                    && flight.apart == first.apart
                    && is_whole(flight, one.result);
                if !alike {
                    break;
                }
                ios += 1;
                bytes += u64::from(flight.io.length);
                next += 1;
                self.release(one.slot, at, &mut failure);
            }
            self.counter.record(
                first.io.target,
                first.io.direction,
                ios,
                bytes,
                times(&first, at, self.synchronous),
            );
        }
        self.ended = ended;
        self.ended.clear();
        if self.under_way <= self.batch.low.min(self.depth.saturating_sub(1)) {
            self.filling = true;
        }
        failure.map_or(Ok(()), Err)
    }

    /// The place of an I/O that has ended is free again.
    #[inline]
    fn release(&mut self, slot: u32, at: Nanos, failure: &mut Option<Halt>) {
        if self.wanted.extras
            && let Err(halt) = self.extras(slot, at)
        {
            failure.get_or_insert(halt);
        }
        self.free.push(slot);
        self.under_way -= 1;
    }

    /// What some jobs want to be done for an I/O that has ended.
    fn extras(&mut self, slot: u32, at: Nanos) -> Result<(), Halt> {
        let flight = self.flights[slot as usize];
        let io = flight.io;
        let Times { submission, completion, total } = times(&flight, at, self.synchronous);
        if flight.intended != ANY_TIME {
            self.counter.respond(io.target, io.direction, at.saturating_sub(flight.intended));
        }
        if let Some(search) = &mut self.search {
            search.record(completion);
        }
        if let Some(thinker) = self.thinker.as_mut().filter(|thinker| !thinker.rule.by_issue) {
            thinker.count += 1;
        }
        // What is not measured is in no log.
        if self.part == Part::Measured
            && let Some(recorder) = &mut self.recorder
        {
            let priority = self
                .job
                .process
                .io_priority
                .map_or(0, |(class, level)| (u16::from(class) << 13) | u16::from(level));
            recorder.record(&Done {
                at,
                issued: flight.begin,
                submission,
                completion,
                total,
                offset: io.offset,
                length: io.length,
                priority,
                direction: io.direction,
            });
        }
        self.look(slot)?;
        let most = self.job.latency.maximum[io.direction];
        if let Some(most) = most.filter(|most| total > *most) {
            let message = format!(
                "{} of {} bytes at {} of {} took {} µs, longer than max_latency ({} µs)",
                io.direction,
                io.length,
                io.offset,
                self.files.name(io.target),
                total / 1000,
                most / 1000
            );
            return Err(Halt { number: libc::ETIME, message });
        }
        Ok(())
    }

    /// Tells the verifier of an I/O that has ended.
    fn look(&mut self, slot: u32) -> Result<(), Halt> {
        let flight = self.flights[slot as usize];
        let io = flight.io;
        let Some(check) = &mut self.check else { return Ok(()) };
        match io.direction {
            Direction::Write => check.written(&io, flight.number),
            Direction::Trim => check.trimmed(&io),
            Direction::Read => {
                if let Err(problem) = check.check(&io, self.pool.bytes(slot, io.length as usize)) {
                    let problem = format!("{problem} ({})", self.files.name(io.target));
                    return self.failed(&io, libc::EILSEQ, problem, self.job.errors.go_on_verify, 2);
                }
            }
        }
        Ok(())
    }

    /// An I/O that failed, moved less than asked, or is in no figure.
    #[cold]
    fn odd(&mut self, slot: u32, result: i64, at: Nanos) -> Result<(), Halt> {
        let flight = self.flights[slot as usize];
        let io = flight.io;
        let rest = io.length - flight.moved;
        if flight.apart && is_whole(&flight, result) {
            self.apart += 1;
            let outcome = &mut self.verified.get_or_insert_default()[io.direction];
            let Times { submission, completion, total } = times(&flight, at, self.synchronous);
            outcome.ios += 1;
            outcome.bytes += u64::from(io.length);
            if !self.synchronous {
                outcome.submission.record(submission);
            }
            outcome.completion.record(completion);
            outcome.total.record(total);
            let mut bins = Bins::default();
            bins.record(completion);
            outcome.completion_bins.add(&bins);
            let looked = self.look(slot);
            self.free.push(slot);
            self.under_way -= 1;
            return looked;
        }
        let number = i32::try_from(-result).unwrap_or(libc::EIO);
        let again = number == libc::EINTR || number == libc::EAGAIN && !self.job.engine.no_wait;
        if result < 0 && again && self.retries < TRIES {
            self.retries += 1;
            self.resumed.push(slot);
            self.filling = true;
            return Ok(());
        }
        if result > 0 && (result as u64) < u64::from(rest) {
            self.flights[slot as usize].moved += result as u32;
            if !flight.apart {
                self.counter.tally(io.target, io.direction).short += 1;
            }
            // With O_DIRECT the rest of a torn block cannot be asked for: the file ends there.
            if !(self.job.sync.direct && result % 512 != 0) {
                self.resumed.push(slot);
                self.filling = true;
                return Ok(());
            }
        }
        self.free.push(slot);
        self.under_way -= 1;
        if io.direction == Direction::Write
            && let Some(check) = &mut self.check
        {
            check.failed(&io, flight.number);
        }
        let path = self.files.name(io.target);
        if result < 0 {
            if number == libc::ENOSPC && self.job.targets.fill_device && io.direction == Direction::Write {
                if !flight.apart {
                    self.counter.tally(io.target, io.direction).dropped += 1;
                }
                self.end_work();
                return Ok(());
            }
            let message = halt::failed(&io, &path, number);
            return self.failed_by_direction(&io, number, message, flight.apart);
        }
        let message = halt::ended(&io, &path, self.flights[slot as usize].moved);
        self.failed_by_direction(&io, libc::EIO, message, flight.apart)
    }

    fn failed_by_direction(
        &mut self,
        io: &Io,
        number: i32,
        message: String,
        apart: bool,
    ) -> Result<(), Halt> {
        let reads = io.direction == Direction::Read;
        let errors = &self.job.errors;
        let go_on = if reads { errors.go_on_read } else { errors.go_on_write };
        if apart {
            self.dropped_as_error += 1;
        }
        // Going on is for errors of single blocks, as fio has it; a device that is gone does not come back.
        let go_on = go_on && matches!(number, libc::EIO | libc::EILSEQ);
        self.failed(io, number, message, go_on, usize::from(!reads))
    }

    /// Counts a failure, and ends the job where its rules say so.
    fn failed(
        &mut self,
        io: &Io,
        number: i32,
        message: String,
        go_on: bool,
        kind: usize,
    ) -> Result<(), Halt> {
        let ignored = self.job.errors.ignore.get(kind).is_some_and(|all| all.contains(&number));
        self.counter.fail(Failures {
            target: io.target,
            direction: Some(io.direction),
            number,
            count: 1,
            first: (io.offset, io.length),
            message: message.clone(),
        });
        if go_on || ignored {
            return Ok(());
        }
        Err(Halt { number, message })
    }

    /// A trim: the call returns when it is done.
    fn trim(&mut self, io: Io, intended: Nanos) -> Result<(), Halt> {
        let Some(slot) = self.free.pop() else { return Ok(()) };
        let kind = self.files.target(io.target).map_or(crate::TargetKind::None, |target| target.kind);
        self.under_way += 1;
        self.counter.issued(self.under_way);
        self.issued += 1;
        if let Some(recorder) = &mut self.recorder {
            recorder.issued(self.now, &io);
        }
        let begin = self.ticker.now();
        let answer = discard(self.files.descriptor(io.target), kind, io.offset, io.length);
        let at = self.ticker.now();
        self.now = at;
        // The call is the I/O: nothing lies between its beginning and the completion.
        let flight = Flight { io, begin, handed: begin, intended, moved: 0, number: 0, apart: false };
        self.flights[slot as usize] = flight;
        let result = match answer {
            Ok(()) => i64::from(io.length),
            Err(error) => -i64::from(error.raw_os_error().unwrap_or(libc::EIO)),
        };
        let waiting = std::mem::take(&mut self.ended);
        self.ended.push(Ended { slot, result });
        let counted = self.account();
        self.ended = waiting;
        counted
    }

    /// Nothing is under way: what was waited for is done.
    fn idle(&mut self) -> Result<bool, Halt> {
        match self.blocked {
            Blocked::No | Blocked::One => {
                (self.filling, self.blocked) = (true, Blocked::No);
                Ok(true)
            }
            Blocked::Until(time) => {
                self.ticker.sleep_until(time.min(self.due));
                self.now = self.ticker.now();
                if self.now >= time {
                    self.blocked = Blocked::No;
                }
                Ok(true)
            }
            Blocked::Drain(then) => {
                self.filling = true;
                self.blocked = Blocked::No;
                if !self.resumed.is_empty() {
                    return Ok(true);
                }
                self.after_drain(then)
            }
        }
    }

    #[cold]
    fn after_drain(&mut self, then: Then) -> Result<bool, Halt> {
        match then {
            Then::GoOn => {
                if self.source == Source::Backlog {
                    self.source = Source::Work;
                }
            }
            Then::Sync(target, how) => self.sync(target, how)?,
            Then::Think => self.think(),
            Then::Verify => self.source = Source::Backlog,
            Then::NextPass => return self.next_pass(),
            Then::End => return Ok(false),
        }
        Ok(true)
    }

    /// The pass is over. Another, or the end of the work.
    fn next_pass(&mut self) -> Result<bool, Halt> {
        self.passes += 1;
        if let Some(problem) = self.stream.problem() {
            return Err(problem.into());
        }
        let some = std::mem::take(&mut self.pass_ios) > 0;
        let more = self.left_bytes > 0 && self.left_ios > 0 && !self.ending;
        // Without time or amount that asks for more, the passes are counted.
        let again = self.job.course.time_based
            || self.job.targets.fill_device && self.job.replay.is_none()
            || self.passes < self.job.course.loops
            || self.job.targets.io_size.is_some() && self.job.replay.is_none();
        if more && again && some {
            self.stream.restart();
            return Ok(true);
        }
        self.end_work();
        self.after_work()
    }

    /// The work is over: syncs, then the verifying pass.
    fn after_work(&mut self) -> Result<bool, Halt> {
        if self.source == Source::Verify {
            return Ok(false);
        }
        if (self.job.sync.end_fsync || self.job.sync.fsync_on_close) && self.job.pattern.changes_data() {
            self.say(State::Syncing);
            for target in 0..self.files.len() as u32 {
                self.sync(target, SyncCall::Fsync)?;
            }
        }
        let after = self.job.verify.as_ref().is_some_and(|verify| verify.after);
        let stopped = self.shared.stop.requested() || self.halt.is_some();
        if self.check.is_none() || !after || !self.job.pattern.changes_data() || stopped {
            return Ok(false);
        }
        self.close_measured();
        self.say(State::Verifying);
        self.source = Source::Verify;
        (self.blocked, self.filling, self.ending) = (Blocked::No, true, false);
        Ok(true)
    }

    /// No more work is issued.
    fn end_work(&mut self) {
        self.ending = true;
        (self.held, self.trim) = (None, None);
        self.not_before = 0;
        if self.source != Source::Verify {
            self.source = Source::Work;
            self.blocked = Blocked::Drain(Then::NextPass);
        } else {
            self.blocked = Blocked::Drain(Then::End);
        }
    }

    fn sync(&mut self, target: u32, how: SyncCall) -> Result<(), Halt> {
        let begin = self.ticker.now();
        let all = (0, self.files.target(target).map_or(0, |region| region.begin + region.length));
        let range =
            self.dirty.get_mut(target as usize).map_or(all, |range| std::mem::replace(range, (u64::MAX, 0)));
        let io = Io { direction: Direction::Write, target, offset: 0, length: 0 };
        let named = self.shared.under_way.get(self.plan.number as usize);
        if let Some(named) = named {
            named.enter(begin, &io);
        }
        let answer = self.engine.flush(target, how).and_then(|()| self.files.sync(target, how, range));
        if let Some(named) = named {
            named.leave();
        }
        self.now = self.ticker.now();
        if let Err(error) = answer {
            let number = error.raw_os_error().unwrap_or(libc::EIO);
            let message = format!("sync of {}: {error}", self.files.name(target));
            let failure = Failures { target, direction: None, number, count: 1, first: (0, 0), message };
            let message = failure.message.clone();
            self.counter.fail(failure);
            if self.job.errors.go_on_write && number == libc::EIO
                || self.job.errors.ignore[1].contains(&number)
            {
                return Ok(());
            }
            return Err(Halt { number, message });
        }
        self.counter.synced(self.now.saturating_sub(begin));
        Ok(())
    }

    fn think(&mut self) {
        let Some(thinker) = &mut self.thinker else { return };
        let from = self.ticker.now();
        let rule = thinker.rule;
        while self.ticker.now() < from + rule.spin.min(rule.time) {
            std::hint::spin_loop();
        }
        let until = from + rule.time;
        // Housekeeping goes on meanwhile.
        self.blocked = Blocked::Until(until);
        (thinker.count, thinker.since) = (0, until);
        if self.job.rate.ignore_think_time
            && let Some(pacer) = &mut self.pacer
        {
            pacer.put_off(rule.time);
        }
    }

    /// What is not done for each I/O: flags of others, ticks, the edges of the measured part.
    #[cold]
    #[inline(never)]
    fn keep_house(&mut self) -> Result<(), Halt> {
        let now = self.now;
        self.glance(now)?;
        let course = &self.job.course;
        let (ramp, runtime) = (course.ramp, course.runtime);
        if self.source != Source::Verify {
            if self.part == Part::RampUp && now >= self.begun + ramp && !self.is_searching() {
                self.begin_measured(now);
            }
            let over = self.part == Part::Measured || self.is_searching();
            let from = if self.is_searching() { self.begun + ramp } else { self.measured_from };
            if over && runtime.is_some_and(|runtime| now >= from + runtime) && !self.ending {
                self.end_work();
            }
            self.step_search(now);
        }
        if now >= self.counter.from() + TICK {
            self.cut(now, self.part);
        }
        if let Some(minimum) = &self.minimum
            && now >= minimum.next
        {
            self.cut(now, self.part);
            if let Some(minimum) = &mut self.minimum
                && let Some(below) = minimum.check(now, &self.counter.done)
                && !self.ending
            {
                return Err(Halt { number: libc::EIO, message: below });
            }
        }
        let mut due = (now + GLANCE).min(self.counter.from() + TICK);
        if self.part == Part::RampUp && !self.is_searching() {
            due = due.min(self.begun + ramp);
        } else if let Some(runtime) = runtime.filter(|_| !self.ending) {
            due = due.min(self.measured_from + runtime);
        }
        if let Some(search) = &self.search {
            due = due.min(search.next);
        }
        self.due = due.max(now + 1000);
        Ok(())
    }

    /// Whether somebody wants an end.
    fn glance(&mut self, now: Nanos) -> Result<(), Halt> {
        let stop = &self.shared.stop;
        if (stop.requested() || self.shared.is_to_end(self.plan.number)) && !self.ending {
            self.end_work();
            if self.source == Source::Verify && stop.requested() {
                self.notes.push("the verifying pass was stopped: not everything was looked at".into());
            }
        }
        let waits = matches!(self.blocked, Blocked::Drain(_)) && self.under_way > 0;
        if waits && stop.now() {
            self.gave_up = true;
            let message = format!("gave up waiting for {}", self.what_is_under_way(now));
            return Err(Halt { number: libc::ETIMEDOUT, message });
        }
        if waits && self.ending && !self.told_of_waiting {
            let oldest = self.in_flight().map(|flight| flight.begin).min().unwrap_or(now);
            if now.saturating_sub(oldest) > PATIENCE {
                self.told_of_waiting = true;
                let words = format!("waits for {}; a second Ctrl-C gives up", self.what_is_under_way(now));
                let _ = self.shared.messages.send(Message::Note(self.plan.number, words));
            }
        }
        Ok(())
    }

    fn in_flight(&self) -> impl Iterator<Item = &Flight> {
        let free: std::collections::HashSet<u32> = self.free.iter().copied().collect();
        let slots = self.flights.iter().enumerate();
        slots.filter(move |(slot, _)| !free.contains(&(*slot as u32))).map(|(_, flight)| flight)
    }

    fn what_is_under_way(&self, now: Nanos) -> String {
        const SHOWN: usize = 4;
        let each = self.in_flight().take(SHOWN).map(|Flight { io, begin, .. }| {
            let seconds = now.saturating_sub(*begin) as f64 / 1e9;
            format!(
                "{} of {} bytes at {} of {} since {seconds:.1} s",
                io.direction,
                io.length,
                io.offset,
                self.files.name(io.target)
            )
        });
        let each: Vec<String> = each.collect();
        let more = if (self.under_way as usize) > SHOWN { ", …" } else { "" };
        format!("{} I/Os under way: {}{more}", self.under_way, each.join(", "))
    }

    fn begin_measured(&mut self, now: Nanos) {
        self.cut(now, Part::RampUp);
        self.part = Part::Measured;
        self.measured_from = now;
        self.before = Usage::now();
        self.set_limits();
        self.say(State::Running);
    }

    fn is_searching(&self) -> bool {
        self.search.as_ref().is_some_and(|search| search.is_apart() && search.result().is_none())
    }

    fn step_search(&mut self, now: Nanos) {
        let Some(search) = self.search.as_mut().filter(|search| now >= search.next) else { return };
        match search.close(now) {
            Step::Depth(depth, found) => {
                self.depth = depth;
                self.filling = true;
                if found && self.part == Part::RampUp {
                    self.begin_measured(now);
                }
            }
            Step::Over => self.end_work(),
        }
    }

    /// Cuts the tick at `now` and sends it.
    fn cut(&mut self, now: Nanos, part: Part) {
        if let Some(said) = self.ticker.check() {
            self.notes.push(said);
        }
        let tick = self.counter.cut(now, part, self.shared.spare.take());
        // Nobody listens any more only when the run was given up.
        let _ = self.shared.messages.send(Message::Tick(tick));
        if let Some(chunk) = self.recorder.as_mut().and_then(|recorder| recorder.take(now)) {
            let _ = self.shared.messages.send(Message::Log(self.plan.number, chunk));
        }
    }

    fn say(&self, state: State) {
        let _ = self.shared.messages.send(Message::State(self.plan.number, state));
    }

    /// An error: what is under way is waited for, and counted.
    fn wind_down(&mut self) {
        self.end_work();
        while self.under_way > 0 && !self.gave_up {
            // What is to be resumed is not.
            for slot in std::mem::take(&mut self.resumed) {
                let io = self.flights[slot as usize].io;
                if !self.flights[slot as usize].apart {
                    self.counter.tally(io.target, io.direction).dropped += 1;
                }
                self.free.push(slot);
                self.under_way -= 1;
            }
            if self.under_way == 0 {
                break;
            }
            if self.now >= self.due && self.keep_house().is_err() {
                break;
            }
            if !self.fresh.is_empty() && self.hand_over().is_err() {
                self.gave_up = true;
                break;
            }
            if let Err(halt) = self.take_back() {
                // A second error of an I/O changes nothing; one of the engine's calls is the end.
                self.gave_up |= halt.message.starts_with("waiting");
            }
        }
    }

    /// The figures end here.
    fn close_measured(&mut self) {
        let now = self.now;
        self.cut(now, self.part);
        self.before = Usage::now().since(&self.before);
        self.part = Part::Tail;
    }

    fn finish(mut self) -> Course {
        self.say(State::Finishing);
        if self.part != Part::Tail {
            self.close_measured();
        } else {
            self.cut(self.now, Part::Tail);
        }
        let usage = self.before;
        if self.gave_up {
            self.notes.push(format!("{} I/Os never ended and are in no figure", self.under_way));
        } else if self.halt.is_none() || self.under_way == 0 {
            self.check_counts();
        }
        if let Some(check) = &mut self.check {
            let complete =
                self.halt.is_none() && !self.shared.stop.requested() && self.source == Source::Verify;
            match check.finish(complete) {
                Ok(note) => self.notes.extend(note),
                Err(error) => {
                    self.halt.get_or_insert(Halt::from(error));
                }
            }
        }
        if let Some(chunk) = self.recorder.as_mut().and_then(|recorder| recorder.finish(self.now)) {
            let _ = self.shared.messages.send(Message::Log(self.plan.number, chunk));
        }
        let latency_depth = self.search.as_ref().and_then(Search::result);
        if self.search.is_some() && latency_depth.is_none() {
            self.notes
                .push("latency_target: the depth was not found in this time; there are no figures".into());
        }
        let course = Course {
            begun: self.begun,
            ended: self.now,
            usage,
            halt: self.halt,
            latency_depth,
            verified: self.verified.map(|verified| *verified),
            notes: self.notes,
        };
        if self.gave_up {
            // The device may still write into the buffers.
            std::mem::forget((self.engine, self.pool, self.files));
        }
        course
    }

    /// What was issued has ended in one way or another; and I/Os were under way no longer than there was time for
    /// (Little's law: the sum of their times is the mean number under way times the time).
    fn check_counts(&mut self) {
        let done: u64 = self.counter.done.0.iter().map(|(ios, _)| ios).sum();
        let wrong = self.counter.failed - self.dropped_as_error.min(self.counter.failed);
        let ended = done + wrong + self.counter.dropped;
        let verify_failed = self.counter.failed > 0 && self.check.is_some();
        // A read whose data is wrong has ended and failed.
        let agree = ended == self.issued || verify_failed && ended >= self.issued;
        let time = u128::from(self.now.saturating_sub(self.begun)) * self.flights.len() as u128;
        let possible = self.counter.in_flight <= time + time / 100 + 1_000_000;
        if !agree || !possible {
            let words = format!(
                "{} I/Os issued, {done} done, {} failed, {} given up; {} ns under way of {time}",
                self.issued, self.counter.failed, self.counter.dropped, self.counter.in_flight
            );
            let error = crate::Error::Disagreement(words);
            self.halt.get_or_insert(Halt { number: libc::EPROTO, message: error.to_string() });
        }
    }
}

/// Whether an I/O moved all that was asked of it.
#[inline]
fn is_whole(flight: &Flight, result: i64) -> bool {
    i64::from(flight.moved) + result == i64::from(flight.io.length) && result >= 0
}

#[inline]
fn times(flight: &Flight, at: Nanos, synchronous: bool) -> Times {
    let total = at.saturating_sub(flight.begin);
    if synchronous {
        return Times { submission: 0, completion: total, total };
    }
    Times {
        submission: flight.handed.saturating_sub(flight.begin),
        completion: at.saturating_sub(flight.handed),
        total,
    }
}

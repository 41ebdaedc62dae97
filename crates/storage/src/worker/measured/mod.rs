//! The loop: fill the queue, submit, reap, count.
//!
//! The clock is read when a batch begins (if data is generated for it: when that is done), when it has been
//! submitted, and when the reaping call has returned. I/Os of one batch share the first two readings, since one call
//! submits them. Completions returned by one call share the third, since the worker learns of all of them at that
//! moment (fio does the same). Nothing else is shared: at depth 1 a worker reads the clock three times for each I/O,
//! or twice if the call is the I/O.

mod batch;
mod completions;
mod finish;
mod flight;
mod housekeeping;
mod issue;
mod queue;
mod queue_empty;
mod states;
mod sync;
mod verification;

use super::counter::Counter;
use super::depth_search::Search;
use super::halt::Halt;
use super::lock::Locks;
use super::pace::{Minimum, Pacer};
use super::parts::{Check, Fill, IoStream, WorkerParts};
use super::ticker::Ticker;
use super::usage::Usage;
use super::{Shared, WorkerPlan};
use crate::Direction;
use crate::engine::{BufferPool, Files, IoEngine, Request, Wait};
use crate::event::WorkerState;
use crate::job::Job;
use crate::log::LogRecorder;
use crate::result::Verified;
use crate::stream::Quota;
use kelvin_measure::Nanos;
use kelvin_measure::event::LoadPart;
use std::sync::Arc;

use batch::Batch;
use flight::{ANY_TIME, Flight, is_whole, times};
use queue::Queue;
use states::{
    AfterDrain, Blocked, Call, Ending, Pacing, Supply, Thinker, Timeline, Unsynced, Wanted, WorkOrigin,
    WorkerResults,
};

/// How often flags from other threads are checked.
const GLANCE: Nanos = 20_000_000;
/// How long I/Os may remain in flight at the end before it is reported.
const PATIENCE: Nanos = 10_000_000_000;
/// Maximum number of attempts for an I/O that the kernel asks to retry.
const TRIES: u32 = 1_000_000;

/// A running worker.
pub(super) struct Loop<'a, E, S> {
    shared: &'a Shared,
    plan: &'a WorkerPlan,
    job: Arc<Job>,
    engine: E,
    synchronous: bool,
    files: Arc<Files>,
    /// Declared before the buffers, since its threads may be reading one.
    check: Option<Box<dyn Check>>,
    pool: BufferPool,
    stream: S,
    data: Box<dyn Fill>,
    recorder: Option<LogRecorder>,
    counter: Counter,
    wanted: Wanted,
    timeline: Timeline,
    queue: Queue,
    supply: Supply,
    pacing: Pacing,
    unsynced: Unsynced,
    end: Ending,
    outcome: WorkerResults,
}

/// Resources of a worker that are created before its first I/O.
pub(super) struct Made<S> {
    pub(super) files: Arc<Files>,
    pub(super) pool: BufferPool,
    pub(super) parts: WorkerParts<S>,
    pub(super) depth: u32,
    pub(super) notes: Vec<String>,
}

/// The final state of a worker.
pub(super) struct LoopEnd {
    pub(super) begun: Nanos,
    pub(super) ended: Nanos,
    pub(super) usage: Usage,
    pub(super) halt: Option<Halt>,
    pub(super) latency_depth: Option<u32>,
    pub(super) verified: Option<Verified>,
    pub(super) notes: Vec<String>,
}

impl<'a, E: IoEngine, S: IoStream> Loop<'a, E, S> {
    pub(super) fn new(shared: &'a Shared, plan: &'a WorkerPlan, engine: E, made: Made<S>) -> Self {
        let Made { files, pool, parts, depth, notes } = made;
        let job = Arc::clone(&plan.job);
        let ticker = Ticker::new(&shared.clock);
        let synchronous = engine.is_synchronous();
        let WorkerParts { stream, fill, check } = parts;
        let share = shared.flow.join(plan.number);
        let recorder = LogRecorder::new(&job, plan.clone);
        let response = job.is_open_loop();
        let now = ticker.now();
        let pacer = Pacer::new(&job.rate, plan.seed, now).map(|pacer| pacer.changed_by(&shared.rates));
        let search = Search::new(&job.latency, depth, now);
        let thinker = job.thinking.map(|rule| Thinker { rule, count: 0, since: now });
        let locks = Locks::new(job.targets.lock, &plan.targets);
        let wanted = Wanted {
            gate: job.is_open_loop()
                || thinker.is_some()
                || share.is_some()
                || job.depth.serialize_overlap
                || files.is_limited()
                || locks.is_some(),
            fill: check.is_some() || !fill.is_static() || recorder.is_some() || job.sync.range.is_some(),
            extras: check.is_some()
                || recorder.is_some()
                || search.is_some()
                || thinker.is_some()
                || response
                || !job.engine.command_priorities.is_empty()
                || locks.is_some()
                || job.latency.maximum.0.iter().any(Option::is_some),
        };
        let (ramp, apart) = (job.course.ramp > 0, search.as_ref().is_some_and(Search::excludes_search));
        let part = if ramp || apart { LoadPart::RampUp } else { LoadPart::Measured };
        let current = search.as_ref().map_or(depth, Search::depth);
        let minimum = Minimum::new(&job.rate, now);
        Self {
            counter: Counter::new(plan.number, files.len(), &job.report, response, synchronous, now),
            wanted,
            timeline: Timeline::new(ticker, now, part),
            queue: Queue::new(depth, current, Batch::new(&job.depth, depth, synchronous)),
            supply: Supply::new(Quota::new(&job, &plan.targets)),
            pacing: Pacing { pacer, minimum, thinker, share, locks, search },
            unsynced: Unsynced { writes: false, dirty: vec![(u64::MAX, 0); files.len()] },
            end: Ending::default(),
            outcome: WorkerResults { notes, ..WorkerResults::default() },
            data: fill,
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
        }
    }

    /// Runs from the first I/O to the last.
    pub(super) fn run(mut self) -> LoopEnd {
        for buffer in 0..self.pool.count() as u32 {
            let size = self.pool.size();
            self.data.prepare(self.pool.bytes(buffer, size));
        }
        if self.job.verify.as_ref().is_some_and(|verify| verify.only) {
            self.supply.source = WorkOrigin::Verify;
        }
        self.wait_for_flow();
        self.timeline.begun = self.timeline.ticker.now();
        self.timeline.looking_since = self.timeline.begun;
        self.start_again(self.timeline.begun);
        let state = match (self.supply.source, self.timeline.part) {
            (WorkOrigin::Verify, _) => WorkerState::Verifying,
            (_, LoadPart::RampUp) => WorkerState::RampUp,
            _ => WorkerState::Running,
        };
        self.send_state(state);
        loop {
            match self.step() {
                Ok(true) => {}
                Ok(false) => break,
                Err(halt) => {
                    self.outcome.halt.get_or_insert(halt);
                    self.wind_down();
                    break;
                }
            }
        }
        self.finish()
    }

    /// Restarts the times: earlier work is not included in any tick.
    fn start_again(&mut self, now: Nanos) {
        self.timeline.now = now;
        self.timeline.due = now;
        self.timeline.measured_from = now;
        self.timeline.before = Usage::now();
        self.counter = Counter::new(
            self.plan.number,
            self.files.len(),
            &self.job.report,
            self.job.is_open_loop(),
            self.synchronous,
            now,
        );
        let pacer = Pacer::new(&self.job.rate, self.plan.seed, now);
        self.pacing.pacer = pacer.map(|pacer| pacer.changed_by(&self.shared.rates));
        self.pacing.minimum = Minimum::new(&self.job.rate, now);
        self.pacing.search = Search::new(&self.job.latency, self.queue.flights.len() as u32, now);
        if let Some(recorder) = &mut self.recorder {
            recorder.begin(now);
        }
    }

    /// One round. Returns whether there is another.
    #[inline]
    fn step(&mut self) -> Result<bool, Halt> {
        if self.timeline.now >= self.timeline.due {
            self.do_housekeeping()?;
        }
        if self.queue.filling && self.supply.blocked == Blocked::No || !self.queue.resumed.is_empty() {
            let again = self.fill()?;
            if !self.queue.fresh.is_empty() {
                self.hand_over()?;
                if self.synchronous {
                    self.account()?;
                    return Ok(true);
                }
            }
            // The batch is full and the queue is not: begin the next batch.
            if (again || self.queue.batch.submit < self.queue.depth)
                && self.supply.blocked == Blocked::No
                && self.queue.under_way < self.queue.depth
            {
                return Ok(true);
            }
            if self.queue.under_way >= self.queue.depth {
                self.queue.filling = false;
            }
        }
        if self.queue.under_way == 0 && self.queue.ended.is_empty() {
            return self.idle();
        }
        self.take_back()?;
        Ok(true)
    }

    /// Fills the queue up to a batch. Returns whether something was done outside the batch.
    #[inline]
    fn fill(&mut self) -> Result<bool, Halt> {
        if self.queue.looked_at > 0 {
            self.collect(false)?;
        }
        let begin = self.timeline.ticker.now();
        self.timeline.now = begin;
        while (self.queue.fresh.len() as u32) < self.queue.batch.submit {
            let Some(slot) = self.queue.resumed.pop() else { break };
            self.enqueue(slot);
        }
        if let Some(call) = self.supply.call.take() {
            match call {
                Call::Trim(io, intended) => self.trim(io, intended)?,
                Call::Sync(target, how) => self.sync(target, how)?,
            }
            return Ok(true);
        }
        while (self.queue.fresh.len() as u32) < self.queue.batch.submit
            && self.queue.under_way < self.queue.depth
            && self.supply.blocked == Blocked::No
            && !self.queue.free.is_empty()
        {
            let Some((io, intended)) = self.pull(begin) else {
                if self.supply.call.is_some() && self.carry_sync(begin) {
                    continue;
                }
                break;
            };
            if io.direction == Direction::Trim {
                // A trim has a separate call: requests queued before it are submitted first.
                self.supply.call = Some(Call::Trim(io, intended));
                return Ok(true);
            }
            let Some(slot) = self.queue.free.pop() else { break };
            // `free` holds places of `flights` only.
            self.queue.flights[slot as usize] = Flight {
                io,
                begin,
                handed: 0,
                intended,
                moved: 0,
                number: 0,
                apart: self.supply.source != WorkOrigin::Work,
            };
            self.queue.under_way += 1;
            if self.wanted.fill {
                self.before_issue(slot, begin);
            }
            if self.supply.source == WorkOrigin::Work {
                self.counter.issued(self.queue.under_way);
                self.outcome.issued += 1;
            }
            self.enqueue(slot);
        }
        Ok(self.supply.call.is_some())
    }

    /// Passes an I/O, or the remainder of one, to the engine.
    #[inline]
    fn enqueue(&mut self, slot: u32) {
        let Flight { io, moved, .. } = self.queue.flights[slot as usize];
        #[allow(unsafe_code, reason = "an address within a buffer")]
        // SAFETY: fewer bytes were moved than the I/O has, and the I/O fits into its buffer.
        let address = unsafe { self.pool.address(slot).add(moved as usize) };
        self.engine.queue(Request {
            slot,
            direction: io.direction,
            target: io.target,
            offset: io.offset + u64::from(moved),
            length: io.length - moved,
            address,
        });
        self.queue.fresh.push(slot);
    }

    /// Submits the batch.
    #[inline]
    fn hand_over(&mut self) -> Result<(), Halt> {
        if self.wanted.fill {
            // The time to generate data for the batch is the worker's and not the target's. No I/O has begun yet.
            self.timeline.now = self.timeline.ticker.now();
            for slot in &self.queue.fresh {
                let flight = &mut self.queue.flights[*slot as usize];
                if flight.handed == 0 {
                    flight.begin = self.timeline.now;
                }
            }
        }
        let named = self.synchronous && self.shared.under_way.len() > self.plan.number as usize;
        if named && let Some(slot) = self.queue.fresh.first() {
            let flight = &self.queue.flights[*slot as usize];
            self.shared.under_way[self.plan.number as usize].enter(self.timeline.now, &flight.io);
        }
        self.engine
            .commit(&mut self.queue.ended)
            .map_err(|error| Halt::call(&format!("submitting to {}", self.job.engine.name.word()), &error))?;
        let handed = self.timeline.ticker.now();
        self.timeline.now = handed;
        if named {
            self.shared.under_way[self.plan.number as usize].leave();
        }
        self.counter.submitted(self.queue.fresh.len());
        self.queue.batch.adapt(self.engine.have_all_ended(), self.queue.depth);
        // Not drained: without LTO three functions of the standard library would be called.
        for slot in &self.queue.fresh {
            let flight = &mut self.queue.flights[*slot as usize];
            // A retried I/O, and the remainder of a short one, was submitted before.
            if flight.handed == 0 {
                flight.handed = handed;
            }
        }
        self.queue.fresh.clear();
        Ok(())
    }

    /// Reaps completed I/Os, and waits for some if nothing else can be done.
    #[inline]
    fn take_back(&mut self) -> Result<(), Halt> {
        let until = if let Blocked::Until(time) = self.supply.blocked {
            time.min(self.timeline.due)
        } else {
            self.timeline.due
        };
        let left = until.saturating_sub(self.timeline.now).clamp(1_000, 100_000_000);
        let (least, wait) = match self.supply.blocked {
            // Submission had to make room and reaped some: waiting for others would extend their times.
            _ if !self.queue.ended.is_empty() => (0, Wait::No),
            Blocked::No if self.queue.batch.least == 0 => (0, Wait::No),
            Blocked::No => (self.queue.batch.least.min(self.queue.under_way), Wait::AtMost(left)),
            _ => (1, Wait::AtMost(left)),
        };
        let reaped = self.engine.reap(least, self.queue.batch.most, wait, &mut self.queue.ended);
        reaped.map_err(|error| {
            Halt::call(&format!("waiting for I/O in flight ({})", self.job.engine.name.word()), &error)
        })?;
        self.timeline.now = self.timeline.ticker.now();
        match self.supply.blocked {
            Blocked::Until(time) if self.timeline.now >= time => self.supply.blocked = Blocked::No,
            Blocked::One if !self.queue.ended.is_empty() => self.supply.blocked = Blocked::No,
            _ => {}
        }
        self.account()
    }

    /// Counts the completed I/Os, with `now` as their completion time.
    #[inline]
    fn account(&mut self) -> Result<(), Halt> {
        let at = self.timeline.now;
        if self.queue.ended.is_empty() {
            return Ok(());
        }
        let ended = std::mem::take(&mut self.queue.ended);
        self.counter.completed(ended.len());
        let mut next = 0;
        let mut failure = None;
        while let Some(one) = ended.get(next) {
            next += 1;
            let first = self.queue.flights[one.slot as usize];
            if !is_whole(&first, one.result) || first.apart {
                if let Err(halt) = self.complete_irregular(one.slot, one.result, at) {
                    failure.get_or_insert(halt);
                }
                continue;
            }
            let mut ios = 1;
            let mut bytes = u64::from(first.io.length);
            self.release(one.slot, at, &mut failure);
            // I/Os that were submitted together and ended together have the same times.
            while let Some(one) = ended.get(next) {
                let flight = &self.queue.flights[one.slot as usize];
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
        self.queue.ended = ended;
        self.queue.ended.clear();
        if self.queue.under_way <= self.queue.batch.low.min(self.queue.depth.saturating_sub(1)) {
            self.queue.filling = true;
        }
        failure.map_or(Ok(()), Err)
    }

    /// Frees the slot of a completed I/O.
    #[inline]
    fn release(&mut self, slot: u32, at: Nanos, failure: &mut Option<Halt>) {
        let mut kept = false;
        if self.wanted.extras
            && let Err(halt) = self.extras(slot, at, &mut kept)
        {
            failure.get_or_insert(halt);
        }
        if !kept {
            self.queue.free.push(slot);
        }
        self.queue.under_way -= 1;
    }
}

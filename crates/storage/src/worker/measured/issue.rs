//! The next I/O to issue, and its time.

use super::super::flow::Share;
use super::super::parts::IoStream;
use super::{ANY_TIME, AfterDrain, Blocked, Call, Loop, Thinker, WorkOrigin};
use crate::engine::IoEngine;
use crate::{Direction, Io, NextIo};
use kelvin_measure::Nanos;

/// How long to wait before a lock is tried again.
const LOCK_PAUSE: Nanos = 20_000;

impl<E: IoEngine, S: IoStream> Loop<'_, E, S> {
    /// The next I/O, if it may be issued now, and its intended start.
    #[inline]
    pub(super) fn pull(&mut self, now: Nanos) -> Option<(Io, Nanos)> {
        if self.wanted.gate || self.supply.held.is_some() || self.supply.source != WorkOrigin::Work {
            return self.pull_with_care(now);
        }
        self.pull_work().map(|io| (io, ANY_TIME))
    }

    /// The next I/O of the stream.
    #[inline]
    pub(super) fn pull_work(&mut self) -> Option<Io> {
        if self.supply.quota.is_spent() {
            self.supply.blocked = Blocked::Drain(AfterDrain::NextPass);
            return None;
        }
        match self.stream.next() {
            NextIo::Io(io) => {
                self.supply.quota.take(io.length);
                self.supply.pass_ios += 1;
                Some(io)
            }
            other => {
                self.not_an_io(other);
                None
            }
        }
    }

    #[cold]
    pub(super) fn not_an_io(&mut self, next: NextIo) {
        self.supply.blocked = match next {
            // As with fio, I/Os in flight continue: the sync is an additional one.
            NextIo::Sync { target, how } => {
                self.supply.call = Some(Call::Sync(target, how));
                Blocked::No
            }
            NextIo::NotBefore(time) => {
                self.supply.not_before = self.timeline.begun + time;
                Blocked::Until(self.supply.not_before)
            }
            NextIo::Drain => Blocked::Drain(AfterDrain::GoOn),
            NextIo::End | NextIo::Io(_) => Blocked::Drain(AfterDrain::NextPass),
        };
    }

    /// As [`Self::pull_work`], if checks are needed: rates, pauses, flow shares, overlaps, the verifier's turn.
    pub(super) fn pull_with_care(&mut self, now: Nanos) -> Option<(Io, Nanos)> {
        if self.supply.source != WorkOrigin::Work {
            let next = self.check.as_mut().and_then(|check| check.next_read());
            if next.is_none() {
                let then = if self.supply.source == WorkOrigin::Backlog {
                    AfterDrain::GoOn
                } else {
                    AfterDrain::End
                };
                self.supply.blocked = Blocked::Drain(then);
            }
            return next.filter(|io| self.is_open(io)).map(|io| (io, ANY_TIME));
        }
        if self.check.as_ref().is_some_and(|check| check.backlog_due()) {
            self.supply.blocked = Blocked::Drain(AfterDrain::Verify);
            return None;
        }
        if self.is_to_think(now) {
            self.supply.blocked = Blocked::Drain(AfterDrain::Think);
            return None;
        }
        if self.pacing.share.as_ref().is_some_and(Share::is_ahead) {
            let sleep = self.job.flow.map_or(0, |flow| flow.sleep).max(10_000);
            self.supply.blocked = Blocked::Until(now + sleep);
            return None;
        }
        let mut io = self.supply.held.take().or_else(|| self.pull_work())?;
        let mut intended = ANY_TIME;
        if self.job.replay.is_some() && self.job.is_open_loop() {
            // I/Os of the same time are all due then. Those at time zero are due when the job begins.
            intended = self.supply.not_before.max(self.timeline.begun);
        }
        if let Some(pacer) = &mut self.pacing.pacer {
            pacer.follow();
        }
        if let Some(pacer) = &self.pacing.pacer
            && let Some(start) = pacer.start(io.direction)
        {
            if start > now {
                // A direction must not wait for another's rate: the slot is used for the direction that is due.
                let other = pacer.other_due(io.direction, now).filter(|_| self.may_turn(&io));
                let Some(other) = other else {
                    self.supply.held = Some(io);
                    self.supply.blocked = Blocked::Until(start);
                    return None;
                };
                io.direction = other;
            }
            intended = pacer.start(io.direction).unwrap_or(ANY_TIME);
        }
        if self.job.depth.serialize_overlap && self.queue.overlaps(&io) {
            self.supply.held = Some(io);
            self.supply.blocked = Blocked::One;
            return None;
        }
        if self.pacing.locks.as_ref().is_some_and(|locks| !locks.take(&io)) {
            self.supply.held = Some(io);
            // The holder is an I/O of this worker or of another worker, so it cannot be waited for.
            self.supply.blocked =
                if self.queue.under_way > 0 { Blocked::One } else { Blocked::Until(now + LOCK_PAUSE) };
            return None;
        }
        if !self.is_open(&io) {
            return None;
        }
        if let Some(pacer) = &mut self.pacing.pacer {
            pacer.started(&io);
        }
        if let Some(share) = &mut self.pacing.share {
            share.count();
        }
        if let Some(thinker) = self.pacing.thinker.as_mut().filter(|thinker| thinker.rule.by_issue) {
            thinker.count += 1;
        }
        Some((io, intended))
    }

    /// Updates the start time of a waiting I/O after a change of the rates. Called at every housekeeping, since the
    /// gaps of a low rate are long.
    pub(super) fn follow_rates(&mut self) {
        let (Some(pacer), Some(io)) = (&mut self.pacing.pacer, &self.supply.held) else { return };
        let Some(before) = pacer.start(io.direction) else { return };
        pacer.follow();
        // It may wait for something else: a pause keeps its length.
        if self.supply.blocked == Blocked::Until(before) && pacer.start(io.direction) != Some(before) {
            self.supply.blocked = Blocked::No;
        }
    }

    /// Opens the file of an I/O where the number of open files is limited. Returns whether it is open; if not, the
    /// worker ends.
    fn is_open(&mut self, io: &Io) -> bool {
        if !self.files.is_limited() {
            return true;
        }
        let busy = || {
            let mut under_way = vec![true; self.queue.flights.len()];
            for slot in &self.queue.free {
                under_way[*slot as usize] = false;
            }
            let mut busy = vec![false; self.files.len()];
            for (flight, _) in self.queue.flights.iter().zip(&under_way).filter(|(_, under_way)| **under_way)
            {
                if let Some(busy) = busy.get_mut(flight.io.target as usize) {
                    *busy = true;
                }
            }
            busy
        };
        match self.files.need(&self.job, io.target, busy) {
            Ok(()) => true,
            Err(error) => {
                self.outcome.halt.get_or_insert(error.into());
                self.end_work();
                false
            }
        }
    }

    /// Whether an I/O of a mixed workload can change its direction and still comply with the job.
    pub(super) fn may_turn(&self, io: &Io) -> bool {
        let (pattern, sizes) = (&self.job.pattern, &self.job.blocks.sizes);
        pattern.reads
            && pattern.writes
            && self.check.is_none()
            && self.job.replay.is_none()
            && io.direction != Direction::Trim
            && sizes[Direction::Read] == sizes[Direction::Write]
    }

    pub(super) fn is_to_think(&self, now: Nanos) -> bool {
        let Some(Thinker { rule, count, since }) = &self.pacing.thinker else { return false };
        match rule.io_time {
            Some(time) => now.saturating_sub(*since) >= time && *count > 0,
            None => *count >= rule.blocks.max(1),
        }
    }

    /// Preparation of writes, and logging of every I/O, before it is issued.
    pub(super) fn before_issue(&mut self, slot: u32, begin: Nanos) {
        let flight = &mut self.queue.flights[slot as usize];
        let io = flight.io;
        if io.direction == Direction::Write {
            let buffer = self.pool.bytes(slot, io.length as usize);
            match &mut self.check {
                Some(check) => flight.number = check.stamp(&io, buffer),
                None if !self.data.is_static() => self.data.fill(&io, buffer),
                None => {}
            }
            if let Some(range) = self.unsynced.dirty.get_mut(io.target as usize) {
                *range = (range.0.min(io.offset), range.1.max(io.offset + u64::from(io.length)));
            }
            self.unsynced.writes = true;
        }
        if let Some(recorder) = self.recorder.as_mut().filter(|_| !flight.apart) {
            recorder.issued(begin, &io);
        }
    }
}

//! Work that is not done for each I/O: flags from other threads, ticks, the edges of the measured part.

use super::super::depth_search::Step;
use super::super::halt::Halt;
use super::super::parts::IoStream;
use super::super::usage::Usage;
use super::{Blocked, Flight, GLANCE, Loop, PATIENCE, WorkOrigin};
use crate::engine::IoEngine;
use crate::event::WorkerState;
use crate::message::Message;
use crate::stream::Quota;
use crate::tick::TICK;
use kelvin_measure::Nanos;
use kelvin_measure::event::LoadPart;
use std::time::Duration;

/// How often a worker checks whether the others of its flow have started.
const FLOW_PAUSE: Duration = Duration::from_micros(50);

impl<E: IoEngine, S: IoStream> Loop<'_, E, S> {
    /// Waits until all workers of the flow have started: they begin together.
    pub(super) fn wait_for_flow(&self) {
        let Some(share) = &self.pacing.share else { return };
        while !share.is_complete()
            && !self.shared.stop.requested()
            && !self.shared.is_to_end(self.plan.number)
        {
            std::thread::sleep(FLOW_PAUSE);
        }
    }

    /// Work that is not done for each I/O: flags from other threads, ticks, the edges of the measured part.
    #[cold]
    #[inline(never)]
    pub(super) fn do_housekeeping(&mut self) -> Result<(), Halt> {
        let now = self.timeline.now;
        self.glance(now)?;
        self.follow_rates();
        let course = &self.job.course;
        let (ramp, runtime) = (course.ramp, course.runtime);
        if self.supply.source != WorkOrigin::Verify {
            if self.timeline.part == LoadPart::RampUp
                && now >= self.timeline.begun + ramp
                && !self.is_searching()
            {
                self.begin_measured(now);
            }
            let over = self.timeline.part == LoadPart::Measured || self.is_searching();
            let from =
                if self.is_searching() { self.timeline.begun + ramp } else { self.timeline.measured_from };
            if over && runtime.is_some_and(|runtime| now >= from + runtime) && !self.end.ending {
                self.end_work();
            }
            self.step_search(now);
        }
        if now >= self.counter.from() + TICK {
            self.cut(now, self.timeline.part);
        }
        if let Some(minimum) = &self.pacing.minimum
            && now >= minimum.next
        {
            self.cut(now, self.timeline.part);
            if let Some(minimum) = &mut self.pacing.minimum
                && let Some(below) = minimum.check(now, &self.counter.done)
                && !self.end.ending
            {
                return Err(Halt { number: libc::EIO, message: below });
            }
        }
        let mut due = (now + GLANCE).min(self.counter.from() + TICK);
        if self.timeline.part == LoadPart::RampUp && !self.is_searching() {
            due = due.min(self.timeline.begun + ramp);
        } else if let Some(runtime) = runtime.filter(|_| !self.end.ending) {
            due = due.min(self.timeline.measured_from + runtime);
        }
        if let Some(search) = &self.pacing.search {
            due = due.min(search.next);
        }
        self.timeline.due = due.max(now + 1000);
        Ok(())
    }

    /// Checks whether a stop was requested.
    pub(super) fn glance(&mut self, now: Nanos) -> Result<(), Halt> {
        let stop = &self.shared.stop;
        if (stop.requested() || self.shared.is_to_end(self.plan.number)) && !self.end.ending {
            self.end_work();
            if self.supply.source == WorkOrigin::Verify && stop.requested() {
                self.outcome.notes.push("the verify pass was stopped: not all blocks were verified".into());
            }
        }
        let waits = matches!(self.supply.blocked, Blocked::Drain(_)) && self.queue.under_way > 0;
        if waits && stop.is_immediate() {
            self.end.gave_up = true;
            let message = format!("gave up waiting for {}", self.what_is_under_way(now));
            return Err(Halt { number: libc::ETIMEDOUT, message });
        }
        if waits && self.end.ending && !self.end.told_of_waiting {
            let oldest = self.queue.in_flight().map(|flight| flight.begin).min().unwrap_or(now);
            if now.saturating_sub(oldest) > PATIENCE {
                self.end.told_of_waiting = true;
                let words =
                    format!("waiting for {}; press Ctrl-C again to give up", self.what_is_under_way(now));
                let _ = self.shared.messages.send(Message::Note(self.plan.number, words));
            }
        }
        Ok(())
    }

    pub(super) fn what_is_under_way(&self, now: Nanos) -> String {
        const SHOWN: usize = 4;
        let mut all: Vec<&Flight> = self.queue.in_flight().collect();
        all.sort_by_key(|flight| (flight.begin, flight.io.target, flight.io.offset));
        let each = all.into_iter().take(SHOWN).map(|Flight { io, begin, .. }| {
            let seconds = now.saturating_sub(*begin) as f64 / 1e9;
            format!(
                "{} of {} bytes at {} of {} for {seconds:.1} s",
                io.direction,
                io.length,
                io.offset,
                self.files.name(io.target)
            )
        });
        let each: Vec<String> = each.collect();
        let more = if (self.queue.under_way as usize) > SHOWN { ", …" } else { "" };
        format!("{} I/Os in flight: {}{more}", self.queue.under_way, each.join(", "))
    }

    pub(super) fn begin_measured(&mut self, now: Nanos) {
        self.cut(now, LoadPart::RampUp);
        self.timeline.part = LoadPart::Measured;
        self.timeline.measured_from = now;
        self.timeline.before = Usage::now();
        self.supply.quota = Quota::new(&self.job, &self.plan.targets);
        self.send_state(WorkerState::Running);
    }

    pub(super) fn is_searching(&self) -> bool {
        self.pacing.search.as_ref().is_some_and(|search| search.is_apart() && search.result().is_none())
    }

    pub(super) fn step_search(&mut self, now: Nanos) {
        let Some(search) = self.pacing.search.as_mut().filter(|search| now >= search.next) else { return };
        match search.close(now) {
            Step::Depth(depth, found) => {
                self.queue.depth = depth;
                self.queue.filling = true;
                if found && self.timeline.part == LoadPart::RampUp {
                    self.begin_measured(now);
                }
            }
            Step::Over => self.end_work(),
        }
    }

    /// Cuts the tick at `now` and sends it.
    pub(super) fn cut(&mut self, now: Nanos, part: LoadPart) {
        if let Some(said) = self.timeline.ticker.check() {
            self.outcome.notes.push(said);
        }
        let tick = self.counter.cut(now, part, self.shared.spare.take());
        // The receiver is gone only if the run was abandoned.
        let _ = self.shared.messages.send(Message::Tick(tick));
        if let Some(chunk) = self.recorder.as_mut().and_then(|recorder| recorder.take(now)) {
            let _ = self.shared.messages.send(Message::Log(self.plan.number, chunk));
        }
    }

    pub(super) fn send_state(&self, state: WorkerState) {
        let _ = self.shared.messages.send(Message::State(self.plan.number, state));
    }
}

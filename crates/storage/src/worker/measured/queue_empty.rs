//! Actions when no I/O is in flight: pauses, the next pass, the end of the workload.

use super::super::halt::Halt;
use super::super::parts::IoStream;
use super::{AfterDrain, Blocked, Loop, WorkOrigin};
use crate::engine::IoEngine;
use crate::event::WorkerState;

impl<E: IoEngine, S: IoStream> Loop<'_, E, S> {
    /// Nothing is in flight: carries out the action that waited for this.
    pub(super) fn idle(&mut self) -> Result<bool, Halt> {
        // Reads that other threads verify are not finished, although none is in flight.
        if self.queue.looked_at > 0
            && (self.queue.free.is_empty() || matches!(self.supply.blocked, Blocked::Drain(_)))
        {
            self.collect(true)?;
            return Ok(true);
        }
        match self.supply.blocked {
            Blocked::No | Blocked::One => {
                (self.queue.filling, self.supply.blocked) = (true, Blocked::No);
                Ok(true)
            }
            Blocked::Until(time) => {
                self.timeline.ticker.sleep_until(time.min(self.timeline.due));
                self.timeline.now = self.timeline.ticker.now();
                if self.timeline.now >= time {
                    self.supply.blocked = Blocked::No;
                }
                Ok(true)
            }
            Blocked::Drain(then) => {
                self.queue.filling = true;
                self.supply.blocked = Blocked::No;
                if !self.queue.resumed.is_empty() {
                    return Ok(true);
                }
                self.after_drain(then)
            }
        }
    }

    #[cold]
    pub(super) fn after_drain(&mut self, then: AfterDrain) -> Result<bool, Halt> {
        match then {
            AfterDrain::GoOn => {
                if self.supply.source == WorkOrigin::Backlog {
                    self.supply.source = WorkOrigin::Work;
                    self.count_looking();
                }
            }
            AfterDrain::Think => self.think(),
            AfterDrain::Verify => {
                (self.supply.source, self.timeline.looking_since) = (WorkOrigin::Backlog, self.timeline.now);
            }
            AfterDrain::NextPass => return self.next_pass(),
            AfterDrain::End => return Ok(false),
        }
        Ok(true)
    }

    /// The pass has ended. Begins another one, or ends the workload.
    pub(super) fn next_pass(&mut self) -> Result<bool, Halt> {
        if let Some(problem) = self.stream.problem() {
            return Err(problem.into());
        }
        let some = std::mem::take(&mut self.supply.pass_ios) > 0;
        if !self.end.ending && some && self.supply.quota.begin_another() {
            if self.job.targets.unlink_each_loop {
                self.files.renew(&self.job)?;
            }
            self.stream.restart();
            return Ok(true);
        }
        self.end_work();
        self.after_work()
    }

    /// After the workload: syncs, then the verifying pass.
    pub(super) fn after_work(&mut self) -> Result<bool, Halt> {
        if self.supply.source == WorkOrigin::Verify {
            return Ok(false);
        }
        if (self.job.sync.end_fsync || self.job.sync.fsync_on_close) && self.job.pattern.changes_data() {
            self.send_state(WorkerState::Syncing);
            for target in 0..self.files.len() as u32 {
                self.last_sync(target)?;
            }
        }
        let after = self.job.verify.as_ref().is_some_and(|verify| verify.after);
        let stopped = self.shared.stop.requested() || self.outcome.halt.is_some();
        if self.check.is_none() || !after || !self.job.pattern.changes_data() || stopped {
            return Ok(false);
        }
        self.close_measured();
        if let Some(check) = &mut self.check {
            check.keep()?;
        }
        self.send_state(WorkerState::Verifying);
        (self.supply.source, self.timeline.looking_since) = (WorkOrigin::Verify, self.timeline.ticker.now());
        (self.supply.blocked, self.queue.filling, self.end.ending) = (Blocked::No, true, false);
        Ok(true)
    }

    /// Ends the workload: no more I/O of the stream is issued.
    pub(super) fn end_work(&mut self) {
        self.end.ending = true;
        (self.supply.held, self.supply.call) = (None, None);
        self.supply.not_before = 0;
        if self.supply.source == WorkOrigin::Verify {
            self.supply.blocked = Blocked::Drain(AfterDrain::End);
        } else {
            self.supply.source = WorkOrigin::Work;
            self.supply.blocked = Blocked::Drain(AfterDrain::NextPass);
        }
    }

    pub(super) fn think(&mut self) {
        let Some(thinker) = &mut self.pacing.thinker else { return };
        let from = self.timeline.ticker.now();
        let rule = thinker.rule;
        while self.timeline.ticker.now() < from + rule.spin.min(rule.time) {
            std::hint::spin_loop();
        }
        let until = from + rule.time;
        // Housekeeping continues meanwhile.
        self.supply.blocked = Blocked::Until(until);
        (thinker.count, thinker.since) = (0, until);
        if self.job.rate.ignore_think_time
            && let Some(pacer) = &mut self.pacing.pacer
        {
            pacer.put_off(rule.time);
        }
    }
}

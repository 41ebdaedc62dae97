//! Actions when no I/O is in flight: pauses, the next pass, the end of the work.

use super::super::halt::Halt;
use super::super::parts::IoStream;
use super::{AfterDrain, Blocked, Loop, WorkOrigin};
use crate::engine::IoEngine;
use crate::event::WorkerState;

impl<E: IoEngine, S: IoStream> Loop<'_, E, S> {
    /// Nothing is in flight: what was waited for is done.
    pub(super) fn idle(&mut self) -> Result<bool, Halt> {
        // What others look at is not over, though nothing is in flight.
        if self.looked_at > 0 && (self.free.is_empty() || matches!(self.blocked, Blocked::Drain(_))) {
            self.collect(true)?;
            return Ok(true);
        }
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
    pub(super) fn after_drain(&mut self, then: AfterDrain) -> Result<bool, Halt> {
        match then {
            AfterDrain::GoOn => {
                if self.source == WorkOrigin::Backlog {
                    self.source = WorkOrigin::Work;
                    self.count_looking();
                }
            }
            AfterDrain::Think => self.think(),
            AfterDrain::Verify => (self.source, self.looking_since) = (WorkOrigin::Backlog, self.now),
            AfterDrain::NextPass => return self.next_pass(),
            AfterDrain::End => return Ok(false),
        }
        Ok(true)
    }

    /// The pass is over. Another, or the end of the work.
    pub(super) fn next_pass(&mut self) -> Result<bool, Halt> {
        if let Some(problem) = self.stream.problem() {
            return Err(problem.into());
        }
        let some = std::mem::take(&mut self.pass_ios) > 0;
        if !self.ending && some && self.quota.begin_another() {
            if self.job.targets.unlink_each_loop {
                self.files.renew(&self.job)?;
            }
            self.stream.restart();
            return Ok(true);
        }
        self.end_work();
        self.after_work()
    }

    /// The work is over: syncs, then the verifying pass.
    pub(super) fn after_work(&mut self) -> Result<bool, Halt> {
        if self.source == WorkOrigin::Verify {
            return Ok(false);
        }
        if (self.job.sync.end_fsync || self.job.sync.fsync_on_close) && self.job.pattern.changes_data() {
            self.send_state(WorkerState::Syncing);
            for target in 0..self.files.len() as u32 {
                self.last_sync(target)?;
            }
        }
        let after = self.job.verify.as_ref().is_some_and(|verify| verify.after);
        let stopped = self.shared.stop.requested() || self.halt.is_some();
        if self.check.is_none() || !after || !self.job.pattern.changes_data() || stopped {
            return Ok(false);
        }
        self.close_measured();
        if let Some(check) = &mut self.check {
            check.keep()?;
        }
        self.send_state(WorkerState::Verifying);
        (self.source, self.looking_since) = (WorkOrigin::Verify, self.ticker.now());
        (self.blocked, self.filling, self.ending) = (Blocked::No, true, false);
        Ok(true)
    }

    /// No more work is issued.
    pub(super) fn end_work(&mut self) {
        self.ending = true;
        (self.held, self.call) = (None, None);
        self.not_before = 0;
        if self.source == WorkOrigin::Verify {
            self.blocked = Blocked::Drain(AfterDrain::End);
        } else {
            self.source = WorkOrigin::Work;
            self.blocked = Blocked::Drain(AfterDrain::NextPass);
        }
    }

    pub(super) fn think(&mut self) {
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
}

//! What is done when nothing is under way: pauses, syncs, the next pass.

use super::super::halt::Halt;
use super::super::parts::Stream;
use super::{Blocked, Loop, Source, Then};
use crate::engine::Engine;
use crate::event::State;
use crate::tick::Failures;
use crate::{Direction, Io, SyncCall};

impl<E: Engine, S: Stream> Loop<'_, E, S> {
    /// Nothing is under way: what was waited for is done.
    pub(super) fn idle(&mut self) -> Result<bool, Halt> {
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
    pub(super) fn after_drain(&mut self, then: Then) -> Result<bool, Halt> {
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
    pub(super) fn next_pass(&mut self) -> Result<bool, Halt> {
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
    pub(super) fn after_work(&mut self) -> Result<bool, Halt> {
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
    pub(super) fn end_work(&mut self) {
        self.ending = true;
        (self.held, self.trim) = (None, None);
        self.not_before = 0;
        if self.source == Source::Verify {
            self.blocked = Blocked::Drain(Then::End);
        } else {
            self.source = Source::Work;
            self.blocked = Blocked::Drain(Then::NextPass);
        }
    }

    pub(super) fn sync(&mut self, target: u32, how: SyncCall) -> Result<(), Halt> {
        let begin = self.ticker.now();
        if let Some(recorder) = &mut self.recorder {
            recorder.synced(begin, target, how);
        }
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

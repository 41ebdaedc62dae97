//! Verification of read data, by the worker itself or concurrently by other threads.

use super::super::halt::Halt;
use super::super::parts::{Answer, IoStream};
use super::Loop;
use crate::engine::IoEngine;
use crate::{Direction, Io};

impl<E: IoEngine, S: IoStream> Loop<'_, E, S> {
    /// Passes a completed I/O to the verifier. Sets `kept` if another thread verifies its buffer, which is in use
    /// until [`Loop::collect`] has the answer.
    pub(super) fn verify_io(&mut self, slot: u32, kept: &mut bool) -> Result<(), Halt> {
        let flight = self.queue.flights[slot as usize];
        let io = flight.io;
        let Some(check) = &mut self.check else { return Ok(()) };
        match io.direction {
            Direction::Write => check.written(&io, flight.number),
            Direction::Trim => check.trimmed(&io),
            Direction::Read => {
                if check.hand_over(slot, &io, self.pool.address(slot)) {
                    self.queue.looked_at += 1;
                    *kept = true;
                    return Ok(());
                }
                let result = check.check(&io, self.pool.bytes(slot, io.length as usize));
                return self.record_mismatch(&io, result);
            }
        }
        Ok(())
    }

    /// Collects the results of the other threads, and frees their buffers. Waits a moment for them if
    /// nothing else can be done.
    #[cold]
    pub(super) fn collect(&mut self, wait: bool) -> Result<(), Halt> {
        let mut failure = None;
        let mut wait = wait;
        while self.queue.looked_at > 0 {
            let Some(answer) = self.check.as_mut().and_then(|check| check.answer(wait)) else { break };
            wait = false;
            let Answer { slot, io, result } = answer;
            self.queue.looked_at -= 1;
            self.queue.free.push(slot);
            if let Err(halt) = self.record_mismatch(&io, result) {
                failure.get_or_insert(halt);
            }
        }
        self.timeline.now = self.timeline.ticker.now();
        failure.map_or(Ok(()), Err)
    }

    fn record_mismatch(&mut self, io: &Io, result: std::result::Result<(), String>) -> Result<(), Halt> {
        let Err(problem) = result else { return Ok(()) };
        let problem = format!("{problem} ({})", self.files.name(io.target));
        // verify_fatal= takes precedence over every rule to continue, as with fio.
        let fatal = self.job.verify.as_ref().is_some_and(|verify| verify.fatal);
        let go_on = self.job.errors.go_on_verify && !fatal;
        let kind = if fatal { usize::MAX } else { 2 };
        self.failed(io, libc::EILSEQ, problem, go_on, kind)
    }
}

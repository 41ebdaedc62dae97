//! The end of a worker, and the check of its counts.

use super::super::depth_search::Search;
use super::super::halt::Halt;
use super::super::parts::IoStream;
use super::super::usage::Usage;
use super::{Loop, LoopEnd, WorkOrigin};
use crate::engine::IoEngine;
use crate::event::WorkerState;
use crate::message::Message;
use kelvin_measure::event::LoadPart;

impl<E: IoEngine, S: IoStream> Loop<'_, E, S> {
    /// Winds down after an error: waits for the I/Os in flight and counts them.
    pub(super) fn wind_down(&mut self) {
        self.end_work();
        while self.queue.under_way > 0 && !self.end.gave_up {
            // Incomplete I/Os are not resumed.
            for slot in std::mem::take(&mut self.queue.resumed) {
                let io = self.queue.flights[slot as usize].io;
                if !self.queue.flights[slot as usize].apart {
                    self.counter.tally(io.target, io.direction).dropped += 1;
                    if let Some(locks) = &self.pacing.locks {
                        locks.give(&io);
                    }
                }
                self.queue.free.push(slot);
                self.queue.under_way -= 1;
            }
            if self.queue.under_way == 0 {
                break;
            }
            if self.timeline.now >= self.timeline.due && self.do_housekeeping().is_err() {
                break;
            }
            if !self.queue.fresh.is_empty() && self.hand_over().is_err() {
                self.end.gave_up = true;
                break;
            }
            if let Err(halt) = self.take_back() {
                // A second error of an I/O changes nothing. An error of the engine's calls ends the wait.
                self.end.gave_up |= halt.message.starts_with("waiting");
            }
        }
    }

    /// Ends the measured part.
    pub(super) fn close_measured(&mut self) {
        let now = self.timeline.now;
        self.cut(now, self.timeline.part);
        self.timeline.before = Usage::now().since(&self.timeline.before);
        self.timeline.part = LoadPart::Tail;
    }

    pub(super) fn finish(mut self) -> LoopEnd {
        self.send_state(WorkerState::Finishing);
        while self.queue.looked_at > 0 {
            if let Err(halt) = self.collect(true) {
                self.outcome.halt.get_or_insert(halt);
            }
        }
        if self.timeline.part == LoadPart::Tail {
            self.cut(self.timeline.now, LoadPart::Tail);
        } else {
            self.close_measured();
        }
        if self.supply.source == WorkOrigin::Verify {
            self.count_looking();
        }
        let usage = self.timeline.before;
        if self.end.gave_up {
            self.outcome
                .notes
                .push(format!("{} I/Os never completed and are not in the results", self.queue.under_way));
        } else if self.outcome.halt.is_none() || self.queue.under_way == 0 {
            self.check_counts();
        }
        if let Some(check) = &mut self.check {
            let complete = self.outcome.halt.is_none()
                && !self.shared.stop.requested()
                && self.supply.source == WorkOrigin::Verify;
            match check.finish(complete) {
                Ok(note) => self.outcome.notes.extend(note),
                Err(error) => {
                    self.outcome.halt.get_or_insert(Halt::from(error));
                }
            }
        }
        if let Some(chunk) = self.recorder.as_mut().and_then(|recorder| recorder.finish(self.timeline.now)) {
            let _ = self.shared.messages.send(Message::Log(self.plan.number, chunk));
        }
        let latency_depth = self.pacing.search.as_ref().and_then(Search::result);
        if self.pacing.search.is_some() && latency_depth.is_none() {
            self.outcome
                .notes
                .push("latency_target: no depth was found in this time; there are no results".into());
        }
        let course = LoopEnd {
            begun: self.timeline.begun,
            ended: self.timeline.now,
            usage,
            halt: self.outcome.halt,
            latency_depth,
            verified: self.outcome.verified.map(|verified| *verified),
            notes: self.outcome.notes,
        };
        if self.end.gave_up {
            // The device may still write into the buffers.
            std::mem::forget((self.engine, self.pool, self.files));
        }
        course
    }

    /// Adds the duration of the verifying pass that has ended.
    pub(super) fn count_looking(&mut self) {
        if let Some(verified) = &mut self.outcome.verified {
            verified.time += self.timeline.now.saturating_sub(self.timeline.looking_since);
        }
    }

    /// Every issued I/O must have ended in one way or another, and the time in flight must not exceed what is possible
    /// (Little's law: the sum of the times is the mean number in flight times the elapsed time).
    pub(super) fn check_counts(&mut self) {
        let done: u64 = self.counter.done.0.iter().map(|(ios, _)| ios).sum();
        let wrong = self.counter.failed - self.outcome.dropped_as_error.min(self.counter.failed);
        let ended = done + wrong + self.counter.dropped;
        let verify_failed = self.counter.failed > 0 && self.check.is_some();
        // A read with wrong data has both ended and failed.
        let agree = ended == self.outcome.issued || verify_failed && ended >= self.outcome.issued;
        let time = u128::from(self.timeline.now.saturating_sub(self.timeline.begun))
            * self.queue.flights.len() as u128;
        let possible = self.counter.in_flight <= time + time / 100 + 1_000_000;
        if !agree || !possible {
            let words = format!(
                "{} I/Os issued, {done} completed, {} failed, {} abandoned; {} of {time} ns in flight",
                self.outcome.issued, self.counter.failed, self.counter.dropped, self.counter.in_flight
            );
            let error = crate::Error::Disagreement(words);
            self.outcome.halt.get_or_insert(Halt { number: libc::EPROTO, message: error.to_string() });
        }
    }
}

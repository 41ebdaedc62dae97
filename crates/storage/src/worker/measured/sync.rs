//! Syncs during writes: by an engine that supports them as separate I/Os, else by a call of the worker. Neither waits
//! for the I/Os in flight, as with fio: the queue stays filled during a sync, too.

use std::io;

use super::super::halt::Halt;
use super::super::parts::IoStream;
use super::{ANY_TIME, Call, Flight, Loop};
use crate::engine::IoEngine;
use crate::tick::Failures;
use crate::{Direction, Io, SyncCall};
use kelvin_measure::Nanos;

impl<E: IoEngine, S: IoStream> Loop<'_, E, S> {
    /// Puts the sync that is due into the batch, if the engine supports it. Returns whether it did.
    #[cold]
    pub(super) fn carry_sync(&mut self, begin: Nanos) -> bool {
        let Some(Call::Sync(target, how)) = self.supply.call else { return false };
        let Some(slot) = self.queue.free.last().copied() else { return false };
        let range = self.unsynced.dirty.get(target as usize).copied().unwrap_or((u64::MAX, 0));
        if !self.engine.queue_sync(slot, target, how, range) {
            return false;
        }
        self.note_sync(begin, target, how);
        self.forget_written(target);
        self.queue.free.pop();
        let io = Io { direction: Direction::Write, target, offset: 0, length: 0 };
        // `free` holds places of `flights` only.
        self.queue.flights[slot as usize] =
            Flight { io, begin, handed: 0, intended: ANY_TIME, moved: 0, number: 0, apart: true };
        self.queue.under_way += 1;
        self.queue.fresh.push(slot);
        self.supply.call = None;
        true
    }

    /// Completes a sync that the engine carried out.
    #[cold]
    pub(super) fn sync_ended(&mut self, slot: u32, result: i64, at: Nanos) -> Result<(), Halt> {
        let flight = self.queue.flights[slot as usize];
        self.queue.free.push(slot);
        self.queue.under_way -= 1;
        let answer = if result < 0 {
            Err(io::Error::from_raw_os_error(i32::try_from(-result).unwrap_or(libc::EIO)))
        } else {
            Ok(())
        };
        self.synced(flight.io.target, Some((flight.begin, at)), answer)
    }

    /// A sync by a call of the worker, which returns when it is done.
    pub(super) fn sync(&mut self, target: u32, how: SyncCall) -> Result<(), Halt> {
        let (times, answer) = self.flush(target, how);
        self.synced(target, Some(times), answer)
    }

    /// The sync at the end of the workload, which as in fio is excluded from all results.
    pub(super) fn last_sync(&mut self, target: u32) -> Result<(), Halt> {
        let (_, answer) = self.flush(target, SyncCall::Fsync);
        self.synced(target, None, answer)
    }

    /// The start and end of a sync, and its result.
    fn flush(&mut self, target: u32, how: SyncCall) -> ((Nanos, Nanos), io::Result<()>) {
        let begin = self.timeline.ticker.now();
        self.note_sync(begin, target, how);
        let range = self.forget_written(target);
        let io = Io { direction: Direction::Write, target, offset: 0, length: 0 };
        let named = self.shared.under_way.get(self.plan.number as usize);
        if let Some(named) = named {
            named.enter(begin, &io);
        }
        let answer = self.engine.flush(target, how).and_then(|()| self.files.sync(target, how, range));
        if let Some(named) = named {
            named.leave();
        }
        self.timeline.now = self.timeline.ticker.now();
        ((begin, self.timeline.now), answer)
    }

    fn note_sync(&mut self, begin: Nanos, target: u32, how: SyncCall) {
        if let Some(recorder) = &mut self.recorder {
            recorder.synced(begin, target, how);
        }
    }

    /// Returns the range of a target that was written since the last sync, begin and end, and resets it. All of the
    /// target if the range was not tracked.
    fn forget_written(&mut self, target: u32) -> (u64, u64) {
        let all = (0, self.files.target(target).map_or(0, |region| region.begin + region.length));
        self.unsynced
            .dirty
            .get_mut(target as usize)
            .map_or(all, |range| std::mem::replace(range, (u64::MAX, 0)))
    }

    /// Counts a completed sync, with its times or its error.
    fn synced(
        &mut self,
        target: u32,
        times: Option<(Nanos, Nanos)>,
        answer: io::Result<()>,
    ) -> Result<(), Halt> {
        let Err(error) = answer else {
            if let Some((begin, end)) = times {
                self.counter.synced(end.saturating_sub(begin));
            }
            return Ok(());
        };
        let number = error.raw_os_error().unwrap_or(libc::EIO);
        let message = format!("sync of {}: {error}", self.files.name(target));
        let failure =
            Failures { target, direction: None, number, count: 1, first: (0, 0), message: message.clone() };
        self.counter.fail(failure);
        let goes_on =
            self.job.errors.go_on_write && number == libc::EIO || self.job.errors.ignore[1].contains(&number);
        if goes_on { Ok(()) } else { Err(Halt { number, message }) }
    }
}

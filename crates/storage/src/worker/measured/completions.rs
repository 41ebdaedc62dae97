//! Completion of I/Os that need more work: failed ones, verified ones, those of jobs with special options.

use super::super::counter::IoTimes;
use super::super::halt::{self, Halt};
use super::super::parts::IoStream;
use super::{ANY_TIME, Flight, Loop, TRIES, is_whole, times};
use crate::engine::{CompletedRequest, IoEngine, discard};
use crate::log::CompletedIo;
use crate::message::Message;
use crate::tick::Failures;
use crate::{Direction, Io, bin};
use kelvin_measure::Nanos;
use kelvin_measure::event::LoadPart;

/// Maximum number of ignored errors that are reported individually (`error_dump=`): a failed device has millions.
const MOST_DUMPED: u32 = 1000;

impl<E: IoEngine, S: IoStream> Loop<'_, E, S> {
    /// Additional work of some jobs for a completed I/O. Sets `kept` if its slot is not free yet.
    pub(super) fn extras(&mut self, slot: u32, at: Nanos, kept: &mut bool) -> Result<(), Halt> {
        let flight = self.queue.flights[slot as usize];
        let io = flight.io;
        let IoTimes { submission, completion, total } = times(&flight, at, self.synchronous);
        if flight.intended != ANY_TIME {
            self.counter.respond(io.target, io.direction, at.saturating_sub(flight.intended));
        }
        if let Some(locks) = &self.pacing.locks {
            locks.give(&io);
        }
        if let Some(search) = &mut self.pacing.search {
            search.record(completion);
        }
        if let Some(thinker) = self.pacing.thinker.as_mut().filter(|thinker| !thinker.rule.by_issue) {
            thinker.count += 1;
        }
        let own = self
            .job
            .process
            .io_priority
            .map_or(0, |(class, level)| (u16::from(class) << 13) | u16::from(level));
        let priority = self.engine.priority(slot).unwrap_or(own);
        if !self.job.engine.command_priorities.is_empty() && io.direction != Direction::Trim {
            let times = IoTimes { submission, completion, total };
            self.counter.prioritized(io.target, io.direction, priority, times);
        }
        // I/Os that are not measured are not logged.
        if self.timeline.part == LoadPart::Measured
            && let Some(recorder) = &mut self.recorder
        {
            recorder.record(&CompletedIo {
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
        self.verify_io(slot, kept)?;
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
            // The error number that fio uses.
            return Err(Halt { number: libc::ETIMEDOUT, message });
        }
        Ok(())
    }

    /// An I/O that failed, moved less than requested, or is excluded from the results.
    #[cold]
    pub(super) fn odd(&mut self, slot: u32, result: i64, at: Nanos) -> Result<(), Halt> {
        let flight = self.queue.flights[slot as usize];
        let io = flight.io;
        if flight.apart && io.length == 0 {
            return self.sync_ended(slot, result, at);
        }
        let rest = io.length - flight.moved;
        if flight.apart && is_whole(&flight, result) {
            self.outcome.apart += 1;
            self.count_verified(&io, times(&flight, at, self.synchronous));
            let mut kept = false;
            let looked = self.verify_io(slot, &mut kept);
            if !kept {
                self.queue.free.push(slot);
            }
            self.queue.under_way -= 1;
            return looked;
        }
        let number = i32::try_from(-result).unwrap_or(libc::EIO);
        let again = number == libc::EINTR || number == libc::EAGAIN && !self.job.engine.no_wait;
        // A trim is repeated by its own call: engines know only reads and writes.
        if result < 0 && again && io.direction != Direction::Trim && self.supply.retries < TRIES {
            self.supply.retries += 1;
            self.queue.resumed.push(slot);
            self.queue.filling = true;
            return Ok(());
        }
        if result > 0 && (result as u64) < u64::from(rest) {
            self.queue.flights[slot as usize].moved += result as u32;
            if !flight.apart {
                self.counter.tally(io.target, io.direction).short += 1;
            }
            // With O_DIRECT the remainder of a partial sector cannot be requested: the file ends there.
            if !(self.job.sync.direct && result % 512 != 0) {
                self.queue.resumed.push(slot);
                self.queue.filling = true;
                return Ok(());
            }
        }
        self.queue.free.push(slot);
        self.queue.under_way -= 1;
        if let Some(locks) = self.pacing.locks.as_ref().filter(|_| !flight.apart) {
            locks.give(&io);
        }
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
            let message = halt::failed_io_message(&io, &path, number);
            return self.failed_by_direction(&io, number, message, flight.apart);
        }
        let message = halt::short_io_message(&io, &path, self.queue.flights[slot as usize].moved);
        self.failed_by_direction(&io, libc::EIO, message, flight.apart)
    }

    /// Counts a read of a verifying pass, with the times that the job records.
    fn count_verified(&mut self, io: &Io, times: IoTimes) {
        let report = &self.job.report;
        let outcome = &mut self.outcome.verified.get_or_insert_default().directions[io.direction];
        outcome.ios += 1;
        outcome.bytes += u64::from(io.length);
        if !self.synchronous && !report.disabled.submission {
            outcome.submission.record(times.submission);
            if report.submission_percentiles {
                outcome.submission_bins.add_to(bin(times.submission), 1);
            }
        }
        if !report.disabled.completion {
            outcome.completion.record(times.completion);
            outcome.completion_bins.add_to(bin(times.completion), 1);
        }
        if !report.disabled.latency {
            outcome.total.record(times.total);
            if report.total_percentiles {
                outcome.total_bins.add_to(bin(times.total), 1);
            }
        }
    }

    pub(super) fn failed_by_direction(
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
            self.outcome.dropped_as_error += 1;
        }
        // As in fio, the job continues only after errors of single blocks. A failed device does not recover.
        let go_on = go_on && matches!(number, libc::EIO | libc::EILSEQ);
        self.failed(io, number, message, go_on, usize::from(!reads))
    }

    /// Counts a failure, and ends the job if its rules require that.
    pub(super) fn failed(
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
            if self.job.errors.dump && self.outcome.dumped < MOST_DUMPED {
                self.outcome.dumped += 1;
                let rest = if self.outcome.dumped == MOST_DUMPED {
                    " (further errors are counted but not shown)"
                } else {
                    ""
                };
                let note = format!("error_dump: {message}{rest}");
                let _ = self.shared.messages.send(Message::Note(self.plan.number, note));
            }
            return Ok(());
        }
        Err(Halt { number, message })
    }

    /// A trim: the call returns when it is done, so that no later write can overtake it.
    pub(super) fn trim(&mut self, io: Io, intended: Nanos) -> Result<(), Halt> {
        let Some(slot) = self.queue.free.pop() else { return Ok(()) };
        let kind = self.files.target(io.target).map_or(crate::TargetKind::None, |target| target.kind);
        self.queue.under_way += 1;
        self.counter.issued(self.queue.under_way);
        self.outcome.issued += 1;
        if let Some(recorder) = &mut self.recorder {
            recorder.issued(self.timeline.now, &io);
        }
        let begin = self.timeline.ticker.now();
        let descriptor = self.files.descriptor(io.target);
        let mut answer = discard(descriptor, kind, io.offset, io.length);
        while let Err(error) = &answer
            && matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN))
            && self.supply.retries < TRIES
            && !self.shared.stop.requested()
        {
            self.supply.retries += 1;
            answer = discard(descriptor, kind, io.offset, io.length);
        }
        let at = self.timeline.ticker.now();
        self.timeline.now = at;
        // The call is the I/O: its beginning and its submission are the same.
        let flight = Flight { io, begin, handed: begin, intended, moved: 0, number: 0, apart: false };
        self.queue.flights[slot as usize] = flight;
        let result = match answer {
            Ok(()) => i64::from(io.length),
            Err(error) => -i64::from(error.raw_os_error().unwrap_or(libc::EIO)),
        };
        let waiting = std::mem::take(&mut self.queue.ended);
        self.queue.ended.push(CompletedRequest { slot, result });
        let counted = self.account();
        self.queue.ended = waiting;
        counted
    }
}

//! The loop's interfaces: the source of I/Os, the content of blocks, and their verification.

use std::path::PathBuf;

use super::WorkerPlan;
use super::checkers::Checkers;
use crate::data::{Filler, Verifier, state_name};
use crate::engine;
use crate::stream::IoSource;
use crate::{Error, Io, NextIo, Result};

/// The source of I/Os.
pub(crate) trait IoStream {
    /// The next I/O or step.
    fn next(&mut self) -> NextIo;
    /// Begins another pass.
    fn restart(&mut self);
    /// The length of its longest I/O in bytes, if the job does not determine it (a trace).
    fn longest(&self) -> u32 {
        0
    }
    /// The error with which it ended, if any.
    fn problem(&mut self) -> Option<Error> {
        None
    }
}

/// The content of written blocks.
pub(crate) trait Fill {
    /// Whether nothing has to be done for a write.
    fn is_static(&self) -> bool;
    /// Called for each buffer before the first I/O.
    fn prepare(&mut self, buffer: &mut [u8]);
    /// Called for each write.
    fn fill(&mut self, io: &Io, buffer: &mut [u8]);
}

/// Verification of read data.
pub(crate) trait Check {
    /// Writes the header by which a block is verified later. Returns the number of the write.
    fn stamp(&mut self, io: &Io, buffer: &mut [u8]) -> u64;
    /// A write has ended.
    fn written(&mut self, io: &Io, number: u64);
    /// A write has failed: the content of its blocks is unknown.
    fn failed(&mut self, io: &Io, number: u64);
    /// A trim has ended.
    fn trimmed(&mut self, io: &Io);
    /// Verifies read data; returns the error as text.
    fn check(&mut self, io: &Io, buffer: &[u8]) -> std::result::Result<(), String>;
    /// Passes read data to another thread, which verifies the data at `address` until [`Check::answer`] returns the
    /// slot. Returns whether it did; otherwise the worker verifies the data itself.
    fn hand_over(&mut self, _slot: u32, _io: &Io, _address: *const u8) -> bool {
        false
    }
    /// A result from one of those threads; if there is none yet and `wait` is set, waits a moment.
    fn answer(&mut self, _wait: bool) -> Option<Answer> {
        None
    }
    /// The next read of a verifying pass; `None` at its end.
    fn next_read(&mut self) -> Option<Io>;
    /// Whether enough was written for verification to be due.
    fn backlog_due(&self) -> bool;
    /// The verification pass begins: its state is saved if another run may verify again.
    fn keep(&mut self) -> Result<()> {
        Ok(())
    }
    /// The worker ends; `complete` is set if everything was verified. Returns a note for the user.
    fn finish(&mut self, complete: bool) -> Result<Option<String>>;
}

/// Another thread's result for a read.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) slot: u32,
    pub(crate) io: Io,
    /// The error, as text.
    pub(crate) result: std::result::Result<(), String>,
}

/// The parts of a worker, in addition to the engine.
pub(crate) struct WorkerParts<S> {
    pub(crate) stream: S,
    pub(crate) fill: Box<dyn Fill>,
    pub(crate) check: Option<Box<dyn Check>>,
}

/// Refuses plans that a worker would refuse at its start, which is too late: files were laid out and emptied by then.
pub(crate) fn check(plan: &WorkerPlan) -> Result<()> {
    let job = &*plan.job;
    engine::check(job)?;
    Filler::new(job, plan.seed)?;
    // The trace was already read for its files, and may be a pipe.
    if job.replay.is_none() {
        IoSource::new(job, plan.clone, &plan.targets, plan.seed)?;
    }
    if job.verify.is_some() {
        verifier(plan)?;
    }
    Ok(())
}

/// The verifier of a worker, with the saved state of an earlier run where requested.
fn verifier(plan: &WorkerPlan) -> Result<(Verifier, PathBuf)> {
    let job = &*plan.job;
    let mut verifier = Verifier::new(job, plan.clone, &plan.targets, plan.seed)?;
    let mut state = PathBuf::from(state_name(&job.name, plan.clone));
    if let Some(directory) = &plan.aux_directory {
        state = directory.join(state);
        verifier.dump_into(directory.clone());
    }
    if job.verify.as_ref().is_some_and(|verify| verify.state_load) {
        verifier.load_state(&state)?;
    }
    Ok((verifier, state))
}

impl WorkerParts<IoSource> {
    /// The parts for a job.
    pub(super) fn for_plan(plan: &WorkerPlan) -> Result<Self> {
        let job = &*plan.job;
        let check = job.verify.as_ref().map(|_| Verified::new(plan)).transpose()?;
        Ok(Self {
            stream: IoSource::new(job, plan.clone, &plan.targets, plan.seed)?,
            fill: Box::new(Filler::new(job, plan.seed)?),
            check: check.map(|check| Box::new(check) as Box<dyn Check>),
        })
    }
}

impl IoStream for IoSource {
    #[inline]
    fn next(&mut self) -> NextIo {
        IoSource::next(self)
    }

    fn restart(&mut self) {
        IoSource::restart(self);
    }

    fn longest(&self) -> u32 {
        IoSource::longest(self)
    }

    fn problem(&mut self) -> Option<Error> {
        IoSource::problem(self)
    }
}

impl Fill for Filler {
    fn is_static(&self) -> bool {
        Filler::is_static(self)
    }

    fn prepare(&mut self, buffer: &mut [u8]) {
        Filler::prepare(self, buffer);
    }

    fn fill(&mut self, io: &Io, buffer: &mut [u8]) {
        Filler::fill(self, io, buffer);
    }
}

/// A verifier, and the path where it saves the state for another run.
struct Verified {
    verifier: Verifier,
    state: PathBuf,
    save: bool,
    checkers: Option<Checkers>,
}

impl Verified {
    fn new(plan: &WorkerPlan) -> Result<Self> {
        let job = &*plan.job;
        let (verifier, state) = verifier(plan)?;
        let verify = job.verify.as_ref();
        let save = verify.is_some_and(|verify| verify.state_save && !verify.only) && job.pattern.writes;
        let threads = verify.map_or(0, |verify| verify.threads);
        let cpus = verify.map_or(&[][..], |verify| &verify.thread_cpus);
        let checkers = (threads > 0).then(|| Checkers::new(threads, cpus, || verifier.examiner()));
        let checkers =
            checkers.transpose().map_err(Error::system("cannot start the threads of verify_async"))?;
        Ok(Self { verifier, state, save, checkers })
    }
}

impl Check for Verified {
    fn stamp(&mut self, io: &Io, buffer: &mut [u8]) -> u64 {
        self.verifier.stamp(io, buffer)
    }

    fn written(&mut self, io: &Io, number: u64) {
        self.verifier.written(io, number);
    }

    fn failed(&mut self, io: &Io, number: u64) {
        self.verifier.failed(io, number);
    }

    fn trimmed(&mut self, io: &Io) {
        self.verifier.trimmed(io);
    }

    fn check(&mut self, io: &Io, buffer: &[u8]) -> std::result::Result<(), String> {
        self.verifier.check(io, buffer).map_err(|corruption| format!("verify: {corruption}"))
    }

    fn hand_over(&mut self, slot: u32, io: &Io, address: *const u8) -> bool {
        let Some(checkers) = &self.checkers else { return false };
        // Without expected data there is nothing to verify.
        self.verifier.expectation_for(io).map(|question| checkers.ask(slot, io, question, address)).is_some()
    }

    fn answer(&mut self, wait: bool) -> Option<Answer> {
        self.checkers.as_ref()?.answer(wait)
    }

    fn next_read(&mut self) -> Option<Io> {
        self.verifier.next_read()
    }

    fn backlog_due(&self) -> bool {
        self.verifier.backlog_due()
    }

    fn keep(&mut self) -> Result<()> {
        // As in fio, the state is saved after a normal end, too.
        if self.save { self.verifier.save_state(&self.state) } else { Ok(()) }
    }

    fn finish(&mut self, complete: bool) -> Result<Option<String>> {
        let unseen = self.verifier.unremembered();
        if unseen > 0 {
            return Ok(Some(format!(
                "{unseen} writes were not verified, because there were too many to remember"
            )));
        }
        let (unknown, unwritten) = self.verifier.doubtful()?;
        if unknown > 0 {
            return Ok(Some(format!(
                "{unknown} reads were not verified, because their blocks are not in {}",
                self.state.display()
            )));
        }
        if unwritten > 0 {
            return Ok(Some(format!(
                "{unwritten} blocks were not verified: nothing was written to them. The job that wrote the \
                 data had another name or position in its run, and therefore used other offsets"
            )));
        }
        // The state from before the pass contains the verified blocks; this one contains the remaining ones.
        if complete || !self.save || self.verifier.remaining() == 0 {
            return Ok(None);
        }
        self.verifier.save_state(&self.state)?;
        Ok(Some(format!(
            "{} blocks were not verified: {} lists them (verify_only=1 with verify_state_load=1 verifies \
             them)",
            self.verifier.remaining(),
            self.state.display()
        )))
    }
}

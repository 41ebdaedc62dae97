//! `experimental_verify` and `verify_only`: the writes are generated again instead of being remembered.

use crate::error::{Error, Result};
use crate::job::Job;
use crate::stream::{IoSource, Quota};
use crate::{Direction, Io, NextIo, Target};

/// The source of the writes.
pub(super) trait Draws: std::fmt::Debug + Send {
    fn next(&mut self) -> NextIo;
    /// Begins another pass.
    fn restart(&mut self);
}

impl Draws for IoSource {
    fn next(&mut self) -> NextIo {
        Self::next(self)
    }

    fn restart(&mut self) {
        Self::restart(self);
    }
}

/// The writes of a job, generated again in order.
#[derive(Debug)]
pub(super) struct Replay {
    source: Box<dyn Draws>,
    /// The limit of a pass.
    quota: Option<Quota>,
    /// Number of the next write.
    number: u64,
}

impl Replay {
    /// The writes of a clone of a job to its targets. Refuses a job whose random choices are not repeatable.
    pub(super) fn new(job: &Job, clone: u32, targets: &[Target], seed: u64) -> Result<Self> {
        if !job.pattern.repeatable && !job.pattern.all_repeatable && job.pattern.seed.is_none() {
            return Err(Error::refused(
                &job.name,
                "experimental_verify and verify_only generate the writes again, which randrepeat=0 \
                 prevents; add randseed=, or remove randrepeat=0",
            ));
        }
        let source = Box::new(IoSource::new(job, clone, targets, seed)?);
        Ok(Self { source, quota: Some(Quota::new(job, targets)), number: 0 })
    }

    #[cfg(test)]
    pub(super) fn from_draws(source: Box<dyn Draws>) -> Self {
        Self { source, quota: None, number: 0 }
    }

    /// The next write and its number. `written` is the number of writes; `None` if an earlier run
    /// completed all writes of the job.
    pub(super) fn next(&mut self, written: Option<u64>) -> Option<(Io, u64)> {
        if written.is_some_and(|written| self.number >= written) {
            return None;
        }
        let mut restarted = false;
        loop {
            let spent = self.quota.as_ref().is_some_and(Quota::is_spent);
            let next = if spent { NextIo::End } else { self.source.next() };
            if let (NextIo::Io(io), Some(quota)) = (next, &mut self.quota) {
                quota.take(io.length);
            }
            match next {
                NextIo::Io(io) if io.direction == Direction::Write => {
                    let number = self.number;
                    self.number += 1;
                    return Some((io, number));
                }
                NextIo::End => {
                    let another = self.quota.as_mut().map_or(written.is_some(), Quota::begin_another);
                    if restarted || !another {
                        return None;
                    }
                    self.source.restart();
                    restarted = true;
                }
                NextIo::Io(_) | NextIo::Sync { .. } | NextIo::NotBefore(_) | NextIo::Drain => {}
            }
        }
    }
}

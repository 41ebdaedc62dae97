//! What does the I/O: one engine a worker, behind one trait, so that the loop around it is compiled for each.

mod blocking;
mod files;
mod libaio;
mod mapped;
mod memory;
mod null;
mod numa;
mod offload;
mod priority;
#[cfg(test)]
pub(crate) mod testing;
mod trim;
mod uring;

use std::io;

use kelvin_measure::Nanos;

use crate::job::{EngineName, Job};
use crate::{Direction, Result, SyncCall};

pub(crate) use blocking::Blocking;
pub(crate) use files::Files;
pub(crate) use libaio::Libaio;
pub(crate) use mapped::Mapped;
pub(crate) use memory::BufferPool;
pub(crate) use null::Null;
pub(crate) use offload::Offload;
pub(crate) use trim::discard;
pub(crate) use uring::Uring;

/// The deepest queue: an io_uring has no more places.
pub(crate) const DEEPEST: u32 = 32_768;

/// Whether this kernel has the engine that a job wants: asked before its files are touched.
pub(crate) fn check(job: &Job) -> Result<()> {
    let depth = job.depth.depth.clamp(1, DEEPEST);
    match job.engine.name {
        EngineName::IoUring => Uring::check(job, depth),
        EngineName::Libaio => Libaio::check(depth),
        _ => Ok(()),
    }
}

/// An I/O, or the rest of one, on its way to the kernel.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request {
    /// Its place among the worker's I/Os in flight, which is the number of its buffer too.
    pub(crate) slot: u32,
    /// Read or write; trims go another way.
    pub(crate) direction: Direction,
    /// Which file.
    pub(crate) target: u32,
    /// Where in the file.
    pub(crate) offset: u64,
    /// How many bytes.
    pub(crate) length: u32,
    /// Where they come from or go to. Nothing else touches them before the I/O has ended.
    pub(crate) address: *mut u8,
}

// SAFETY: the memory at the address is nobody else's until the I/O has ended.
#[allow(unsafe_code, reason = "may run in another thread")]
unsafe impl Send for Request {}

/// An I/O that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CompletedRequest {
    /// Which.
    pub(crate) slot: u32,
    /// Bytes moved, or the kernel's error number below 0.
    pub(crate) result: i64,
}

impl CompletedRequest {
    fn of(slot: u32, result: io::Result<usize>) -> Self {
        let result = match result {
            Ok(bytes) => bytes as i64,
            Err(error) => -i64::from(error.raw_os_error().unwrap_or(libc::EIO)),
        };
        Self { slot, result }
    }
}

/// For how long to wait for what is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Not at all: take what has ended.
    No,
    /// This long at most.
    AtMost(Nanos),
}

/// A way of doing I/O. Errors of a call are those of the engine as a whole; those of an I/O are its result.
pub(crate) trait IoEngine {
    /// Whether an I/O has ended when `commit` returns, so that there is nothing to reap.
    fn is_synchronous(&self) -> bool;

    /// Takes an I/O. No more are taken than the depth the engine was made with.
    fn queue(&mut self, request: Request);

    /// Hands over what was queued.
    fn commit(&mut self, ended: &mut Vec<CompletedRequest>) -> io::Result<()>;

    /// Takes at most `most` that have ended, and waits until it is at least `least`.
    /// Nothing of engines whose I/Os end as they are handed over.
    fn reap(
        &mut self,
        _least: u32,
        _most: u32,
        _wait: Wait,
        _ended: &mut Vec<CompletedRequest>,
    ) -> io::Result<()> {
        Ok(())
    }

    /// Whether all that is in flight has ended already and can be taken without waiting, as far as that is seen without
    /// a call.
    fn have_all_ended(&mut self) -> bool {
        false
    }

    /// Takes a sync as an I/O of its own, which ends in its slot, with the range that was written since the last one.
    /// Whether it can: where not, the worker makes the call itself.
    fn queue_sync(&mut self, _slot: u32, _target: u32, _how: SyncCall, _range: (u64, u64)) -> bool {
        false
    }

    /// The priority that an I/O in flight was given for itself.
    fn priority(&self, _slot: u32) -> Option<u16> {
        None
    }

    /// Brings to the medium what an engine keeps to itself; the file's own sync follows. Only maps do.
    fn flush(&mut self, _target: u32, _how: SyncCall) -> io::Result<()> {
        Ok(())
    }
}

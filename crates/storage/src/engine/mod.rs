//! I/O engines: one per worker, behind one trait, so that the loop around it is compiled for each.

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

/// The deepest queue: the maximum size of an io_uring.
pub(crate) const DEEPEST: u32 = 32_768;

/// Whether this kernel supports the engine of a job: checked before its files are touched.
pub(crate) fn check(job: &Job) -> Result<()> {
    let depth = job.depth.depth.clamp(1, DEEPEST);
    match job.engine.name {
        EngineName::IoUring => Uring::check(job, depth),
        EngineName::Libaio => Libaio::check(depth),
        _ => Ok(()),
    }
}

/// An I/O, or the remainder of one, to be submitted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request {
    /// Its slot in the worker's queue, which is also the number of its buffer.
    pub(crate) slot: u32,
    /// Read or write; trims have a separate call.
    pub(crate) direction: Direction,
    /// The file.
    pub(crate) target: u32,
    /// The offset in the file.
    pub(crate) offset: u64,
    /// The length in bytes.
    pub(crate) length: u32,
    /// The memory it is read into or written from. Nothing else accesses it before the I/O has ended.
    pub(crate) address: *mut u8,
}

// SAFETY: nothing else uses the memory at the address until the I/O has ended.
#[allow(unsafe_code, reason = "may run in another thread")]
unsafe impl Send for Request {}

/// A completed I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CompletedRequest {
    /// The slot of the request.
    pub(crate) slot: u32,
    /// Bytes moved, or the kernel's error number below 0.
    pub(crate) result: i64,
}

impl CompletedRequest {
    fn from_result(slot: u32, result: io::Result<usize>) -> Self {
        let result = match result {
            Ok(bytes) => bytes as i64,
            Err(error) => -i64::from(error.raw_os_error().unwrap_or(libc::EIO)),
        };
        Self { slot, result }
    }
}

/// How long to wait for completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// No wait: take the completed ones.
    No,
    /// This long at most.
    AtMost(Nanos),
}

/// A method of I/O. Errors of a call are those of the engine as a whole; those of an I/O are its result.
pub(crate) trait IoEngine {
    /// Whether an I/O has ended when `commit` returns, so that there is nothing to reap.
    fn is_synchronous(&self) -> bool;

    /// Queues an I/O. The caller never exceeds the depth that the engine was created with.
    fn queue(&mut self, request: Request);

    /// Submits the queued requests.
    fn commit(&mut self, ended: &mut Vec<CompletedRequest>) -> io::Result<()>;

    /// Takes at most `most` completed requests, and waits until there are at least `least`. Does nothing for engines
    /// whose I/Os end when they are submitted.
    fn reap(
        &mut self,
        _least: u32,
        _most: u32,
        _wait: Wait,
        _ended: &mut Vec<CompletedRequest>,
    ) -> io::Result<()> {
        Ok(())
    }

    /// Whether all I/Os in flight have completed and can be taken without waiting, as far as that is visible without a
    /// system call.
    fn have_all_ended(&mut self) -> bool {
        false
    }

    /// Queues a sync as a separate I/O, which completes in its slot, with the range that was written since the last
    /// one. Returns whether the engine supports that. If not, the worker makes the call itself.
    fn queue_sync(&mut self, _slot: u32, _target: u32, _how: SyncCall, _range: (u64, u64)) -> bool {
        false
    }

    /// The separate priority of an I/O in flight.
    fn priority(&self, _slot: u32) -> Option<u16> {
        None
    }

    /// Writes back data that an engine holds; the file's own sync follows. Only the mmap engine does so.
    fn flush(&mut self, _target: u32, _how: SyncCall) -> io::Result<()> {
        Ok(())
    }
}

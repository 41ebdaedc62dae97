//! Engines whose call returns when the I/O has completed: sync, psync, pvsync, pvsync2.

use std::io;
use std::sync::Arc;

use super::{CompletedRequest, Files, IoEngine, Request};
use crate::Direction;
use crate::job::{EngineName, Job};

/// The calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Calls {
    /// lseek, read, write.
    Seek,
    /// pread, pwrite.
    Positioned,
    /// preadv, pwritev.
    Vectored,
    /// preadv2, pwritev2 with these flags; the second flags are used for this many of 2³² reads and writes.
    Flags(i32, i32, u32),
}

/// Does an I/O in the calling thread.
#[derive(Debug)]
pub(crate) struct Blocking {
    calls: Calls,
    files: Arc<Files>,
    queued: Option<Request>,
    /// The current position of each file; `None` when unknown.
    positions: Vec<Option<u64>>,
    /// Random numbers for percentages.
    random: kelvin_measure::Random,
}

/// Flags of preadv2 and pwritev2, and of an io_uring entry's `rw_flags`, for a job.
pub(super) fn call_flags(job: &Job) -> i32 {
    // linux/fs.h: RWF_DONTCACHE and RWF_ATOMIC are newer than some C libraries.
    const DONTCACHE: i32 = 0x80;
    const ATOMIC: i32 = 0x40;
    let flag = |wanted: bool, flag: i32| if wanted { flag } else { 0 };
    flag(job.engine.no_wait, libc::RWF_NOWAIT)
        | flag(job.engine.uncached, DONTCACHE)
        | flag(job.sync.atomic, ATOMIC)
}

/// A percentage as a share of 2³², for comparison with 32 random bits.
pub(super) fn chance(percent: f64) -> u64 {
    (percent.clamp(0.0, 100.0) / 100.0 * (1_u64 << 32) as f64) as u64
}

impl Blocking {
    pub(crate) fn new(job: &Job, files: Arc<Files>, seed: u64) -> Self {
        let calls = match job.engine.name {
            EngineName::Sync => Calls::Seek,
            EngineName::Pvsync => Calls::Vectored,
            EngineName::Pvsync2 => {
                let percent = job.engine.high_priority_percentage.unwrap_or(100.0);
                let part = if job.engine.high_priority { chance(percent) } else { 0 };
                Calls::Flags(call_flags(job), libc::RWF_HIPRI, part.min(u64::from(u32::MAX)) as u32)
            }
            _ => Calls::Positioned,
        };
        let positions = vec![None; files.len()];
        Self {
            calls,
            files,
            queued: None,
            positions,
            random: kelvin_measure::Random::part(seed, 0x0065_6e67, 0),
        }
    }

    /// Does an I/O.
    #[allow(unsafe_code, reason = "reads and writes memory by address")]
    fn call(&mut self, request: &Request) -> io::Result<usize> {
        let file = self.files.descriptor(request.target);
        let (address, length) = (request.address.cast::<libc::c_void>(), request.length as usize);
        let offset = request.offset as i64;
        let writes = request.direction == Direction::Write;
        let vector = libc::iovec { iov_base: address, iov_len: length };
        // SAFETY: `address` has `length` bytes that are owned by the request until it has completed, which is when the
        // call returns.
        let answer = unsafe {
            match self.calls {
                Calls::Positioned if writes => libc::pwrite(file, address, length, offset),
                Calls::Positioned => libc::pread(file, address, length, offset),
                Calls::Vectored if writes => libc::pwritev(file, &raw const vector, 1, offset),
                Calls::Vectored => libc::preadv(file, &raw const vector, 1, offset),
                Calls::Flags(flags, sometimes, part) => {
                    let drawn = part > 0 && (self.random.bits() as u32) <= part;
                    let flags = if drawn { flags | sometimes } else { flags };
                    if writes {
                        libc::pwritev2(file, &raw const vector, 1, offset, flags)
                    } else {
                        libc::preadv2(file, &raw const vector, 1, offset, flags)
                    }
                }
                Calls::Seek => {
                    let position = self.positions.get(request.target as usize).copied().flatten();
                    if position != Some(request.offset) && libc::lseek(file, offset, libc::SEEK_SET) < 0 {
                        return Err(io::Error::last_os_error());
                    }
                    let answer = if writes {
                        libc::write(file, address, length)
                    } else {
                        libc::read(file, address, length)
                    };
                    if let Some(position) = self.positions.get_mut(request.target as usize)
                        && self.files.stays_open()
                    {
                        *position = u64::try_from(answer).ok().map(|moved| request.offset + moved);
                    }
                    answer
                }
            }
        };
        usize::try_from(answer).map_err(|_| io::Error::last_os_error())
    }
}

impl IoEngine for Blocking {
    #[inline]
    fn is_synchronous(&self) -> bool {
        true
    }

    #[inline]
    fn queue(&mut self, request: Request) {
        debug_assert!(self.queued.is_none(), "one at a time");
        self.queued = Some(request);
    }

    #[inline]
    fn commit(&mut self, ended: &mut Vec<CompletedRequest>) -> io::Result<()> {
        if let Some(request) = self.queued.take() {
            let result = self.call(&request);
            ended.push(CompletedRequest::from_result(request.slot, result));
        }
        Ok(())
    }
}

//! libaio: the kernel's older asynchronous calls, without the library.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::blocking::call_flags;
use super::priority::Priorities;
use super::{CompletedRequest, Files, IoEngine, Request, Wait};
use crate::Direction;
use crate::error::{Error, Result};
use crate::job::Job;

/// `struct iocb` of linux/aio_abi.h on a little-endian machine.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Block {
    data: u64,
    key: u32,
    flags: i32,
    operation: u16,
    priority: i16,
    file: u32,
    buffer: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    options: u32,
    event_file: u32,
}

/// `struct io_event`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Event {
    data: u64,
    object: u64,
    result: i64,
    more: i64,
}

/// `struct aio_ring` of the kernel's fs/aio.c. The context's number is its address.
#[repr(C)]
struct Ring {
    id: u32,
    count: u32,
    head: AtomicU32,
    tail: AtomicU32,
    magic: u32,
    compatible: u32,
    incompatible: u32,
    header: u32,
}

const MAGIC: u32 = 0xa10a_10a1;
const PREAD: u16 = 0;
const PWRITE: u16 = 1;
/// `IOCB_FLAG_IOPRIO`.
const WITH_PRIORITY: u32 = 2;

/// A context of asynchronous I/O.
#[derive(Debug)]
pub(crate) struct Libaio {
    context: usize,
    files: Arc<Files>,
    /// By slot: the kernel reads them during submission.
    blocks: Box<[Block]>,
    queued: Vec<*mut Block>,
    events: Vec<Event>,
    under_way: u32,
    /// The ring in memory has the expected layout.
    readable_ring: bool,
    /// Completions are read from it.
    userspace_reap: bool,
    flags: i32,
    priorities: Priorities,
}

impl Libaio {
    /// Creates a context, or explains why the kernel refuses it.
    fn context(depth: u32) -> Result<usize> {
        setup(depth).map_err(|error| {
            let hint = match error.raw_os_error() {
                Some(libc::EAGAIN) => ": the limit fs.aio-max-nr is reached; raise it",
                Some(libc::ENOSYS) => ": not supported by this kernel; use ioengine=io_uring",
                _ => "",
            };
            Error::system(format!("libaio{hint}"))(error)
        })
    }

    /// Whether a context of this depth can be created.
    pub(super) fn check(depth: u32) -> Result<()> {
        Self::context(depth).map(destroy)
    }

    pub(crate) fn new(job: &Job, files: Arc<Files>, depth: u32, seed: u64) -> Result<Self> {
        let context = Self::context(depth)?;
        let mut flags = call_flags(job);
        if job.engine.high_priority {
            flags |= libc::RWF_HIPRI;
        }
        let mut this = Self {
            context,
            files,
            blocks: vec![Block::default(); depth as usize].into(),
            queued: Vec::with_capacity(depth as usize),
            events: vec![Event::default(); depth as usize],
            under_way: 0,
            readable_ring: false,
            userspace_reap: false,
            flags,
            priorities: Priorities::new(job, depth, seed, 0x0061_696f),
        };
        this.readable_ring = this.has_readable_ring();
        this.userspace_reap = job.engine.userspace_reap && this.readable_ring;
        Ok(this)
    }

    #[allow(unsafe_code, reason = "the kernel maps the ring at the address of the context")]
    fn ring(&self) -> &Ring {
        // SAFETY: io_setup maps at least a page at the context's address, which stays until io_destroy.
        unsafe { &*(self.context as *const Ring) }
    }

    fn has_readable_ring(&self) -> bool {
        let ring = self.ring();
        ring.magic == MAGIC && ring.incompatible == 0 && ring.header as usize == size_of::<Ring>()
    }

    /// Takes completions from the ring without a system call.
    #[allow(unsafe_code, reason = "reads the ring that the kernel writes")]
    fn take(&mut self, most: u32, ended: &mut Vec<CompletedRequest>) -> u32 {
        let ring = self.ring();
        let mut head = ring.head.load(Ordering::Relaxed);
        let mut taken = 0;
        while taken < most && head != ring.tail.load(Ordering::Acquire) {
            // SAFETY: `count` events follow the header; the kernel writes only those outside head..tail.
            let event = unsafe {
                *((self.context + size_of::<Ring>()) as *const Event)
                    .add(head as usize % ring.count.max(1) as usize)
            };
            ended.push(CompletedRequest { slot: event.data as u32, result: event.result });
            head = (head + 1) % ring.count.max(1);
            taken += 1;
        }
        ring.head.store(head, Ordering::Release);
        self.under_way -= taken;
        taken
    }

    #[allow(unsafe_code, reason = "a system call")]
    fn events(
        &mut self,
        least: u32,
        most: u32,
        wait: Wait,
        ended: &mut Vec<CompletedRequest>,
    ) -> io::Result<()> {
        let nanos = if let Wait::AtMost(nanos) = wait { nanos } else { 0 };
        let time = [(nanos / 1_000_000_000) as i64, (nanos % 1_000_000_000) as i64];
        let most = (most as usize).min(self.events.len());
        // SAFETY: `events` has room for `most`; the time outlives the call.
        let answer = unsafe {
            libc::syscall(
                libc::SYS_io_getevents,
                self.context,
                i64::from(least.min(most as u32)),
                most,
                self.events.as_mut_ptr(),
                &raw const time,
            )
        };
        let Ok(count) = usize::try_from(answer) else {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::Interrupted { Ok(()) } else { Err(error) };
        };
        let events = self.events.iter().take(count);
        ended.extend(events.map(|event| CompletedRequest { slot: event.data as u32, result: event.result }));
        self.under_way -= count as u32;
        Ok(())
    }
}

#[allow(unsafe_code, reason = "a system call")]
fn setup(depth: u32) -> io::Result<usize> {
    let mut context = 0_usize;
    // SAFETY: the kernel writes one number, which outlives the call.
    match unsafe { libc::syscall(libc::SYS_io_setup, depth, &raw mut context) } {
        0 => Ok(context),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Destroys a context that has no I/O in flight.
#[allow(unsafe_code, reason = "io_destroy has no safe wrapper")]
fn destroy(context: usize) {
    // SAFETY: a number; the kernel refuses one that is no context.
    unsafe { libc::syscall(libc::SYS_io_destroy, context) };
}

impl IoEngine for Libaio {
    #[inline]
    fn is_synchronous(&self) -> bool {
        false
    }

    #[inline]
    fn queue(&mut self, request: Request) {
        let writes = request.direction == Direction::Write;
        let priority = self.priorities.draw(&request);
        let Some(block) = self.blocks.get_mut(request.slot as usize) else { return };
        *block = Block {
            data: u64::from(request.slot),
            flags: self.flags,
            operation: if writes { PWRITE } else { PREAD },
            priority: priority.map_or(0, |value| value as i16),
            options: if priority.is_some() { WITH_PRIORITY } else { 0 },
            file: self.files.descriptor(request.target) as u32,
            buffer: request.address as u64,
            bytes: u64::from(request.length),
            offset: request.offset as i64,
            ..Block::default()
        };
        self.queued.push(block);
    }

    fn priority(&self, slot: u32) -> Option<u16> {
        self.priorities.for_slot(slot)
    }

    #[allow(unsafe_code, reason = "a system call")]
    fn commit(&mut self, ended: &mut Vec<CompletedRequest>) -> io::Result<()> {
        let mut from = 0;
        while from < self.queued.len() {
            let rest = &self.queued[from..];
            // SAFETY: the pointers are to blocks that live as long as the context, with requests that own their memory
            // until they have completed.
            let answer =
                unsafe { libc::syscall(libc::SYS_io_submit, self.context, rest.len(), rest.as_ptr()) };
            if let Ok(count) = usize::try_from(answer) {
                self.under_way += count as u32;
                from += count;
                continue;
            }
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::EINTR) => {}
                // No room in the kernel: completed I/Os free some.
                Some(libc::EAGAIN) if self.under_way > 0 => {
                    self.events(1, u32::MAX, Wait::AtMost(1_000_000), ended)?;
                }
                // The first of them cannot be submitted; the others can.
                Some(number) => {
                    // SAFETY: a block of `blocks`, by `queue`.
                    let slot = unsafe { (*self.queued[from]).data } as u32;
                    ended.push(CompletedRequest { slot, result: -i64::from(number) });
                    from += 1;
                }
                None => return Err(error),
            }
        }
        self.queued.clear();
        Ok(())
    }

    fn reap(
        &mut self,
        least: u32,
        most: u32,
        wait: Wait,
        ended: &mut Vec<CompletedRequest>,
    ) -> io::Result<()> {
        if self.under_way == 0 {
            return Ok(());
        }
        let least = if wait == Wait::No { 0 } else { least.min(self.under_way).min(most) };
        if self.userspace_reap {
            let taken = self.take(most, ended);
            if taken >= least {
                return Ok(());
            }
            return self.events(least - taken, most - taken, wait, ended);
        }
        self.events(least, most, wait, ended)
    }
}

impl Drop for Libaio {
    #[allow(unsafe_code, reason = "a system call")]
    fn drop(&mut self) {
        // Destroying a context waits for its I/Os in flight, which would never complete on a hung device.
        if self.under_way == 0 {
            destroy(self.context);
        } else {
            std::mem::forget(std::mem::take(&mut self.blocks));
        }
    }
}

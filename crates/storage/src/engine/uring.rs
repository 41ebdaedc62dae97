//! io_uring.

use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;

use io_uring::{IoUring, opcode, squeue, types};

use super::blocking::call_flags;
use super::priority::Priorities;
use super::{BufferPool, CompletedRequest, Files, IoEngine, Request, Wait};
use crate::error::{Error, Result};
use crate::job::Job;
use crate::{Direction, SyncCall};

// io_uring_enter's and io_uring_register's numbers (linux/io_uring.h).
const ENTER_GETEVENTS: u32 = 1;
const ENTER_SQ_WAKEUP: u32 = 1 << 1;
const ENTER_EXT_ARG: u32 = 1 << 3;
const ENTER_REGISTERED_RING: u32 = 1 << 4;
const REGISTER_RING_FDS: u32 = 20;

/// How long a kernel thread that polls the queue continues without requests, in milliseconds.
const POLL_IDLE: u32 = 1000;

/// Maximum number of times that submission is tried when the kernel has no room for it.
const TRIES: u32 = 10_000;

/// A ring, and its registered resources.
pub(crate) struct Uring {
    ring: ManuallyDrop<IoUring>,
    files: Arc<Files>,
    /// The ring's descriptor, or its index among the thread's registered ones.
    enter: (RawFd, u32),
    fixed_files: bool,
    fixed_buffers: bool,
    sq_poll: bool,
    /// Completions are polled for.
    polls: bool,
    vectors: Option<Box<[libc::iovec]>>,
    flags: i32,
    force_async: (u32, u32),
    priorities: Priorities,
    queued: u32,
    under_way: u32,
}

impl std::fmt::Debug for Uring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Uring").field("under_way", &self.under_way).finish_non_exhaustive()
    }
}

impl Uring {
    /// Creates the ring, or explains why the kernel refuses it.
    fn ring(job: &Job, depth: u32) -> Result<IoUring> {
        build(job, depth).map_err(|error| {
            let hint = match error.raw_os_error() {
                Some(libc::ENOSYS) => ": not supported by this kernel; use ioengine=libaio",
                Some(libc::EPERM) => {
                    ": forbidden here (kernel.io_uring_disabled, or a container's seccomp profile); use \
                     ioengine=libaio"
                }
                Some(libc::ENOMEM) => ": the locked-memory limit is too small (ulimit -l)",
                _ => "",
            };
            Error::system(format!("io_uring{hint}"))(error)
        })
    }

    /// Whether a job can have a ring.
    pub(super) fn check(job: &Job, depth: u32) -> Result<()> {
        Self::ring(job, depth).map(drop)
    }

    /// A ring for `depth` I/Os, created in the thread that uses it. Available kernel features are used; a missing
    /// feature that the job requests is an error or, where it only affects speed, a note.
    pub(crate) fn new(
        job: &Job,
        files: Arc<Files>,
        buffers: &BufferPool,
        depth: u32,
        seed: u64,
        notes: &mut Vec<String>,
    ) -> Result<Self> {
        let options = &job.engine;
        let ring = Self::ring(job, depth)?;
        let mut this = Self {
            enter: (ring.as_raw_fd(), 0),
            ring: ManuallyDrop::new(ring),
            fixed_files: false,
            fixed_buffers: false,
            sq_poll: options.sq_poll,
            polls: options.high_priority,
            vectors: None,
            flags: call_flags(job),
            force_async: (options.force_async, 0),
            priorities: Priorities::new(job, depth, seed, 0x0075_7269_6e67),
            queued: 0,
            under_way: 0,
            files,
        };
        this.register_ring();
        this.register_files(options.register_files, notes)?;
        this.register_buffers(options.fixed_buffers, buffers, notes)?;
        if !options.nonvectored && !this.fixed_buffers {
            let empty = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
            this.vectors = Some(vec![empty; buffers.count()].into());
        }
        Ok(this)
    }

    /// Registers the ring's descriptor, which saves a lookup in each call. Without it the loss is small.
    #[allow(unsafe_code, reason = "a raw system call: no wrapper returns the registered number")]
    fn register_ring(&mut self) {
        /// `struct io_uring_rsrc_update`.
        #[repr(C)]
        struct Update {
            offset: u32,
            reserved: u32,
            data: u64,
        }
        let mut update = Update { offset: u32::MAX, reserved: 0, data: self.enter.0 as u64 };
        // SAFETY: the kernel reads and writes one update, which outlives the call.
        let answer = unsafe {
            libc::syscall(libc::SYS_io_uring_register, self.enter.0, REGISTER_RING_FDS, &raw mut update, 1)
        };
        if answer == 1 {
            self.enter = (update.offset as RawFd, ENTER_REGISTERED_RING);
        }
    }

    fn register_files(&mut self, wanted: Option<bool>, notes: &mut Vec<String>) -> Result<()> {
        if wanted == Some(false) {
            return Ok(());
        }
        if !self.files.stays_open() {
            if wanted == Some(true) {
                notes.push(
                    "registerfiles has no effect: files are closed and reopened (openfiles, unlink_each_loop)"
                        .into(),
                );
            }
            return Ok(());
        }
        let all: Vec<RawFd> =
            (0..self.files.len() as u32).map(|target| self.files.descriptor(target)).collect();
        match self.ring.submitter().register_files(&all) {
            Ok(()) => self.fixed_files = true,
            Err(error) if wanted == Some(true) => return Err(Error::system("registerfiles")(error)),
            Err(error) => notes.push(format!("files are not registered with io_uring: {error}")),
        }
        Ok(())
    }

    #[allow(unsafe_code, reason = "registers memory that outlives the ring")]
    fn register_buffers(
        &mut self,
        wanted: Option<bool>,
        pool: &BufferPool,
        notes: &mut Vec<String>,
    ) -> Result<()> {
        if wanted == Some(false) {
            return Ok(());
        }
        let vector = |buffer| libc::iovec { iov_base: pool.address(buffer).cast(), iov_len: pool.size() };
        let all: Vec<libc::iovec> = (0..pool.count() as u32).map(vector).collect();
        // SAFETY: the worker drops its engine before its buffers, and leaks both when I/Os are still in flight.
        match unsafe { self.ring.submitter().register_buffers(&all) } {
            Ok(()) => self.fixed_buffers = true,
            Err(error) if wanted == Some(true) => {
                let hint = if error.raw_os_error() == Some(libc::ENOMEM) { " (see ulimit -l)" } else { "" };
                return Err(Error::system(format!("fixedbufs{hint}"))(error));
            }
            Err(error) => notes.push(format!("buffers are not registered with io_uring: {error}")),
        }
        Ok(())
    }

    #[inline]
    fn entry(&mut self, request: &Request) -> squeue::Entry {
        // A registered file is identified by its index, which is its target's number.
        let number =
            if self.fixed_files { request.target as RawFd } else { self.files.descriptor(request.target) };
        let file = types::Fd(number);
        let (address, length, offset) = (request.address, request.length, request.offset);
        let writes = request.direction == Direction::Write;
        let priority = self.priorities.draw(request).unwrap_or(0);
        let buffer = request.slot as u16;
        // The builders differ in type and have only their setters' names in common.
        macro_rules! built {
            ($operation:expr) => {
                $operation.offset(offset).rw_flags(self.flags).ioprio(priority).build()
            };
        }
        let entry = if self.fixed_buffers {
            if writes {
                built!(opcode::WriteFixed::new(file, address, length, buffer))
            } else {
                built!(opcode::ReadFixed::new(file, address, length, buffer))
            }
        } else if let Some(vector) = self.vectors.as_mut().and_then(|all| all.get_mut(request.slot as usize))
        {
            *vector = libc::iovec { iov_base: address.cast(), iov_len: length as usize };
            if writes {
                built!(opcode::Writev::new(file, vector, 1))
            } else {
                built!(opcode::Readv::new(file, vector, 1))
            }
        } else if writes {
            built!(opcode::Write::new(file, address, length))
        } else {
            built!(opcode::Read::new(file, address, length))
        };
        let mut flags = if self.fixed_files { squeue::Flags::FIXED_FILE } else { squeue::Flags::empty() };
        if self.force_async.0 > 0 {
            self.force_async.1 += 1;
            if self.force_async.1 >= self.force_async.0 {
                self.force_async.1 = 0;
                flags |= squeue::Flags::ASYNC;
            }
        }
        entry.flags(flags).user_data(u64::from(request.slot))
    }

    /// Calls `io_uring_enter`.
    #[inline]
    #[allow(unsafe_code, reason = "a system call")]
    fn enter(&self, submit: u32, least: u32, flags: u32, wait: Wait) -> io::Result<u32> {
        /// `struct io_uring_getevents_arg`.
        #[repr(C)]
        struct Argument {
            signals: u64,
            signals_size: u32,
            min_wait: u32,
            time: u64,
        }
        let Wait::AtMost(nanos) = wait else {
            // SAFETY: entries that were queued are valid, by `queue`; no memory is passed.
            let answer = unsafe {
                libc::syscall(
                    libc::SYS_io_uring_enter,
                    self.enter.0,
                    submit,
                    least,
                    flags | self.enter.1,
                    std::ptr::null::<u8>(),
                    0,
                )
            };
            return u32::try_from(answer).map_err(|_| io::Error::last_os_error());
        };
        let time = [(nanos / 1_000_000_000) as i64, (nanos % 1_000_000_000) as i64];
        let argument = Argument { signals: 0, signals_size: 0, min_wait: 0, time: (&raw const time) as u64 };
        let flags = flags | self.enter.1 | ENTER_EXT_ARG;
        // SAFETY: as above; the argument and the time it points to outlive the call.
        let answer = unsafe {
            libc::syscall(
                libc::SYS_io_uring_enter,
                self.enter.0,
                submit,
                least,
                flags,
                &raw const argument,
                size_of::<Argument>(),
            )
        };
        u32::try_from(answer).map_err(|_| io::Error::last_os_error())
    }

    /// Takes up to `most` entries from the completion queue.
    #[inline]
    fn take(&mut self, most: u32, ended: &mut Vec<CompletedRequest>) -> u32 {
        let mut taken = 0;
        for entry in self.ring.completion().take(most as usize) {
            ended
                .push(CompletedRequest { slot: entry.user_data() as u32, result: i64::from(entry.result()) });
            taken += 1;
        }
        self.under_way -= taken;
        taken
    }

    /// Wakes the kernel thread that polls the queue, if it sleeps. Otherwise it takes entries itself.
    fn wake(&mut self) -> io::Result<()> {
        let mut queue = self.ring.submission();
        queue.sync();
        let sleeps = queue.need_wakeup();
        drop(queue);
        if sleeps {
            self.enter(self.queued, 0, ENTER_SQ_WAKEUP, Wait::No)?;
        }
        self.queued = 0;
        Ok(())
    }
}

impl IoEngine for Uring {
    #[inline]
    fn is_synchronous(&self) -> bool {
        false
    }

    #[inline]
    #[allow(unsafe_code, reason = "passes addresses to the kernel")]
    fn queue(&mut self, request: Request) {
        let entry = self.entry(&request);
        // SAFETY: the request owns its memory until it has ended; vectors live as long as the ring.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        // The ring has room for the depth, and no more than that is queued.
        debug_assert!(pushed.is_ok());
        self.queued += 1;
        self.under_way += 1;
    }

    fn priority(&self, slot: u32) -> Option<u16> {
        self.priorities.for_slot(slot)
    }

    #[cold]
    #[allow(unsafe_code, reason = "passes an entry to the kernel")]
    fn queue_sync(&mut self, slot: u32, target: u32, how: SyncCall, range: (u64, u64)) -> bool {
        // A ring that polls for completions supports no syncs; a range without writes needs none.
        if self.polls || matches!(how, SyncCall::Range(_)) && range.0 >= range.1 {
            return false;
        }
        let number = if self.fixed_files { target as RawFd } else { self.files.descriptor(target) };
        if number < 0 {
            return false;
        }
        let file = types::Fd(number);
        let entry = match how {
            SyncCall::Fsync => opcode::Fsync::new(file).build(),
            SyncCall::Fdatasync => opcode::Fsync::new(file).flags(types::FsyncFlags::DATASYNC).build(),
            SyncCall::Range(flags) => {
                let Ok(length) = u32::try_from(range.1 - range.0) else { return false };
                opcode::SyncFileRange::new(file, length).offset(range.0).flags(flags).build()
            }
        };
        let flags = if self.fixed_files { squeue::Flags::FIXED_FILE } else { squeue::Flags::empty() };
        let entry = entry.flags(flags).user_data(u64::from(slot));
        // SAFETY: no memory is passed.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        if pushed.is_err() {
            return false;
        }
        self.queued += 1;
        self.under_way += 1;
        true
    }

    #[inline]
    fn commit(&mut self, ended: &mut Vec<CompletedRequest>) -> io::Result<()> {
        if self.sq_poll {
            return self.wake();
        }
        let mut tries = 0;
        while self.queued > 0 {
            match self.enter(self.queued, 0, 0, Wait::No) {
                Ok(submitted) => self.queued -= submitted.min(self.queued),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // No room in the kernel: completed requests free some.
                Err(error)
                    if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EBUSY)) && tries < TRIES =>
                {
                    tries += 1;
                    let wait = Wait::AtMost(1_000_000);
                    self.enter(0, u32::from(self.under_way > self.queued), ENTER_GETEVENTS, wait)
                        .or_else(expected)?;
                    self.take(u32::MAX, ended);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    #[inline]
    fn have_all_ended(&mut self) -> bool {
        self.ring.completion().len() == self.under_way as usize
    }

    #[inline]
    fn reap(
        &mut self,
        least: u32,
        most: u32,
        wait: Wait,
        ended: &mut Vec<CompletedRequest>,
    ) -> io::Result<()> {
        let taken = self.take(most, ended);
        if wait == Wait::No {
            if taken == 0 {
                // Lets the kernel run the completion work that it has deferred.
                self.enter(0, 0, ENTER_GETEVENTS, Wait::No).or_else(expected)?;
                self.take(most, ended);
            }
            return Ok(());
        }
        let least = least.min(self.under_way + taken).min(most);
        if taken < least {
            self.enter(0, least - taken, ENTER_GETEVENTS, wait).or_else(expected)?;
            self.take(most - taken, ended);
        }
        Ok(())
    }
}

impl Drop for Uring {
    #[allow(unsafe_code, reason = "the ring is dropped only here")]
    fn drop(&mut self) {
        // Closing a ring waits for its I/Os in flight, which would never end on a hung device.
        if self.under_way == 0 {
            // SAFETY: dropped once, here, and not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.ring) };
        }
    }
}

/// A wait that was interrupted by a signal or timed out is not an error.
fn expected(error: io::Error) -> io::Result<u32> {
    match error.raw_os_error() {
        Some(libc::EINTR | libc::ETIME | libc::EAGAIN | libc::EBUSY) => Ok(0),
        _ => Err(error),
    }
}

/// Creates a ring with the features that this kernel supports: each attempt requests fewer.
fn build(job: &Job, depth: u32) -> io::Result<IoUring> {
    let entries = depth.next_power_of_two().clamp(1, 32_768);
    let options = &job.engine;
    let mut last = None;
    for attempt in 0..4 {
        let mut builder = IoUring::builder();
        builder.dontfork().setup_clamp();
        if options.high_priority {
            builder.setup_iopoll();
        }
        if options.sq_poll {
            builder.setup_sqpoll(POLL_IDLE);
            if let Some(cpu) = options.sq_poll_cpu {
                builder.setup_sqpoll_cpu(cpu);
            }
        }
        // One thread submits and reaps, and the kernel defers completions until it asks for them: signals and task work
        // do not interrupt the loop (5.19 to 6.6).
        if attempt < 3 && !options.sq_poll {
            builder.setup_coop_taskrun();
        }
        if attempt < 2 {
            builder.setup_single_issuer();
            if !options.sq_poll {
                builder.setup_defer_taskrun();
            }
        }
        if attempt < 1 {
            builder.setup_no_sqarray();
        }
        match builder.build(entries) {
            Ok(ring) => return Ok(ring),
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => last = Some(error),
            Err(error) => return Err(error),
        }
    }
    Err(last.unwrap_or_else(|| io::Error::from_raw_os_error(libc::EINVAL)))
}

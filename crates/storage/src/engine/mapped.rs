//! mmap: files are mapped, and an I/O is a copy. Access to a page that the file no longer has (it was truncated, or its
//! device fails) raises SIGBUS, which becomes an error of the I/O and does not end the process.

use std::io;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Once, OnceLock};

use super::{CompletedRequest, Files, IoEngine, Request};
use crate::error::{Error, Result};
use crate::job::Job;
use crate::{Direction, SyncCall};

/// Maximum number of maps of a process in which SIGBUS is handled.
const GUARDS: usize = 4096;
const PAGE: usize = 4096;

/// A map in which SIGBUS means a failed I/O.
struct Guard {
    /// 0 for a free entry.
    begin: AtomicUsize,
    end: AtomicUsize,
    hit: AtomicBool,
}

static ALL: [Guard; GUARDS] =
    [const { Guard { begin: AtomicUsize::new(0), end: AtomicUsize::new(0), hit: AtomicBool::new(false) } };
        GUARDS];

/// The previous handler of SIGBUS: Rust's handler for stack overflows.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// Maps a page of zeros where the file has none, so that the copy continues, and marks the map. Uses only operations
/// that are allowed in a signal handler: atomics and mmap.
#[allow(unsafe_code, reason = "a signal handler")]
extern "C" fn on_bus_error(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid siginfo for SIGBUS.
    let address = unsafe { (*info).si_addr() } as usize;
    for guard in &ALL {
        let begin = guard.begin.load(Ordering::Acquire);
        if begin != 0 && (begin..guard.end.load(Ordering::Acquire)).contains(&address) {
            guard.hit.store(true, Ordering::Release);
            let page = (address / PAGE * PAGE) as *mut libc::c_void;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
            // SAFETY: the page lies within a map of this module, which maps the file again afterwards.
            let mapped = unsafe { libc::mmap(page, PAGE, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
            if mapped != libc::MAP_FAILED {
                return;
            }
        }
    }
    match BEFORE.get() {
        Some(before) if before.sa_sigaction != libc::SIG_DFL && before.sa_sigaction != libc::SIG_IGN => {
            // SAFETY: a handler that was installed with these arguments (SA_SIGINFO), or takes the first only.
            let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) =
                unsafe { std::mem::transmute(before.sa_sigaction) };
            handler(signal, info, context);
        }
        // SAFETY: the default action ends the process when the instruction is repeated.
        _ => unsafe {
            libc::signal(signal, libc::SIG_DFL);
        },
    }
}

#[allow(unsafe_code, reason = "installs a signal handler")]
fn catch_bus_errors() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: zeroed is a valid sigaction; the handler has the signature that SA_SIGINFO requires.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) = on_bus_error;
            action.sa_sigaction = handler as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
            let mut before: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(libc::SIGBUS, &raw const action, &raw mut before) == 0 {
                let _ = BEFORE.set(before);
            }
        }
    });
}

/// A map of a target's region.
#[derive(Debug)]
struct Map {
    begin: *mut u8,
    length: usize,
    /// The offset in the file at which the map begins.
    offset: u64,
    guard: usize,
    access: i32,
}

/// Copies from and to maps.
#[derive(Debug)]
pub(crate) struct Mapped {
    files: Arc<Files>,
    maps: Vec<Option<Map>>,
    queued: Option<Request>,
}

impl Mapped {
    pub(crate) fn new(job: &Job, files: Arc<Files>) -> Result<Self> {
        catch_bus_errors();
        let access = if job.pattern.changes_data() || job.replay.is_some() {
            libc::PROT_READ | libc::PROT_WRITE
        } else {
            libc::PROT_READ
        };
        let mut this = Self { maps: Vec::new(), queued: None, files };
        for target in 0..this.files.len() as u32 {
            let map = this
                .map(target, access)
                .map_err(Error::system(format!("mmap of {}", this.files.name(target))))?;
            this.maps.push(map);
        }
        Ok(this)
    }

    #[allow(unsafe_code, reason = "maps a file")]
    fn map(&self, target: u32, access: i32) -> io::Result<Option<Map>> {
        let Some(region) = self.files.target(target).filter(|region| region.length > 0) else {
            return Ok(None);
        };
        let offset = region.begin / PAGE as u64 * PAGE as u64;
        let length = (region.begin + region.length - offset) as usize;
        let file = self.files.descriptor(target);
        // SAFETY: a new map at an address of the kernel's choice.
        let begin =
            unsafe { libc::mmap(ptr::null_mut(), length, access, libc::MAP_SHARED, file, offset as i64) };
        if begin == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let guard = ALL.iter().position(|guard| {
            guard.begin.compare_exchange(0, begin as usize, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        });
        let Some(guard) = guard else {
            // SAFETY: the map was made above.
            unsafe { libc::munmap(begin, length) };
            return Err(io::Error::other(format!("more than {GUARDS} files are mapped")));
        };
        ALL[guard].hit.store(false, Ordering::Release);
        ALL[guard].end.store(begin as usize + length.next_multiple_of(PAGE), Ordering::Release);
        Ok(Some(Map { begin: begin.cast(), length, offset, guard, access }))
    }

    #[allow(unsafe_code, reason = "copies to and from a mapping")]
    fn copy(&self, request: &Request) -> io::Result<usize> {
        let beyond = || io::Error::from_raw_os_error(libc::EINVAL);
        let map = self.maps.get(request.target as usize).and_then(Option::as_ref).ok_or_else(beyond)?;
        let at = request.offset.checked_sub(map.offset).ok_or_else(beyond)? as usize;
        let length = (request.length as usize).min(map.length.checked_sub(at).ok_or_else(beyond)?);
        // SAFETY: within the map and within the request's memory, which do not overlap; where the file has no page the
        // handler maps one.
        unsafe {
            if request.direction == Direction::Write {
                ptr::copy_nonoverlapping(request.address, map.begin.add(at), length);
            } else {
                ptr::copy_nonoverlapping(map.begin.add(at), request.address, length);
            }
        }
        if ALL[map.guard].hit.swap(false, Ordering::AcqRel) {
            self.put_back(request.target, map, at, length);
            return Err(io::Error::from_raw_os_error(libc::EIO));
        }
        Ok(length)
    }

    /// Maps the file again where the handler has mapped other pages.
    #[allow(unsafe_code, reason = "maps a file")]
    fn put_back(&self, target: u32, map: &Map, at: usize, length: usize) {
        let from = at / PAGE * PAGE;
        let length = (at + length).next_multiple_of(PAGE) - from;
        let file = self.files.descriptor(target);
        let flags = libc::MAP_SHARED | libc::MAP_FIXED;
        // SAFETY: replaces pages of this engine's map by the same pages of the same file.
        unsafe {
            libc::mmap(
                map.begin.add(from).cast(),
                length,
                map.access,
                flags,
                file,
                (map.offset as usize + from) as i64,
            )
        };
    }
}

impl IoEngine for Mapped {
    #[inline]
    fn is_synchronous(&self) -> bool {
        true
    }

    #[inline]
    fn queue(&mut self, request: Request) {
        self.queued = Some(request);
    }

    #[inline]
    fn commit(&mut self, ended: &mut Vec<CompletedRequest>) -> io::Result<()> {
        if let Some(request) = self.queued.take() {
            ended.push(CompletedRequest::from_result(request.slot, self.copy(&request)));
        }
        Ok(())
    }

    #[allow(unsafe_code, reason = "msync")]
    fn flush(&mut self, target: u32, _how: SyncCall) -> io::Result<()> {
        let Some(Some(map)) = self.maps.get(target as usize) else { return Ok(()) };
        // SAFETY: a map of this engine.
        match unsafe { libc::msync(map.begin.cast(), map.length, libc::MS_SYNC) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for Mapped {
    #[allow(unsafe_code, reason = "unmaps")]
    fn drop(&mut self) {
        for map in self.maps.iter().flatten() {
            ALL[map.guard].end.store(0, Ordering::Release);
            ALL[map.guard].begin.store(0, Ordering::Release);
            // SAFETY: mapped by `map`, and there are no pointers into it any more.
            unsafe { libc::munmap(map.begin.cast(), map.length) };
        }
    }
}

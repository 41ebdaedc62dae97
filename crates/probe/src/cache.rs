//! The part of a file in the page cache (cachestat, since Linux 6.5), and the alignment required of direct I/O.

use std::fs::File;
use std::os::fd::AsRawFd;

use rustix::fs::{AtFlags, StatxAttributes, StatxFlags};

use super::facts::{Alignment, Cached};

/// The number of `cachestat`, the same on every architecture of Linux that Rust's standard library is built for.
const CACHESTAT: libc::c_long = 451;

/// `struct cachestat_range`; a length of 0 extends to the end.
#[repr(C)]
struct Range {
    offset: u64,
    length: u64,
}

/// `struct cachestat`, in pages.
#[repr(C)]
#[derive(Default)]
struct Answer {
    cached: u64,
    dirty: u64,
    write_back: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// The part of `begin..end` of a file in the page cache; `None` if the kernel does not report it.
#[allow(unsafe_code, reason = "no crate wraps cachestat")]
pub(crate) fn cached(file: &File, (begin, end): (u64, u64)) -> Option<Cached> {
    if begin >= end {
        return Some(Cached::default());
    }
    let range = Range { offset: begin, length: end - begin };
    let mut answer = Answer::default();
    let (from, to): (*const Range, *mut Answer) = (&raw const range, &raw mut answer);
    // SAFETY: both structures have the kernel's layout and outlive the call, which only reads one and fills the
    // other; an unknown number returns ENOSYS.
    let done = unsafe { libc::syscall(CACHESTAT, file.as_raw_fd(), from, to, 0) };
    let page = rustix::param::page_size() as u64;
    (done == 0)
        .then(|| Cached { bytes: answer.cached * page, dirty: (answer.dirty + answer.write_back) * page })
}

/// What `statx` reports besides sizes.
#[derive(Debug, Default)]
pub(crate) struct Attributes {
    pub(crate) alignment: Option<Alignment>,
    pub(crate) compressed: bool,
    pub(crate) encrypted: bool,
    pub(crate) dax: bool,
}

/// Calls `statx`. Kernels before 6.1 and some filesystems report no alignment.
pub(crate) fn attributes(file: &File) -> Attributes {
    let asked = StatxFlags::BASIC_STATS | StatxFlags::DIOALIGN;
    let Ok(facts) = rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, asked) else {
        return Attributes::default();
    };
    let has = |attribute: StatxAttributes| facts.stx_attributes.contains(attribute);
    let reported = facts.stx_mask & StatxFlags::DIOALIGN.bits() != 0 && facts.stx_dio_offset_align > 0;
    Attributes {
        alignment: reported.then(|| Alignment {
            memory: facts.stx_dio_mem_align,
            offset: facts.stx_dio_offset_align,
            source: "statx".into(),
        }),
        compressed: has(StatxAttributes::COMPRESSED),
        encrypted: has(StatxAttributes::ENCRYPTED),
        dax: has(StatxAttributes::DAX),
    }
}

//! The stored bytes of a file: by FIEMAP, or by seeking holes on a filesystem without it.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::time::Instant;

use rustix::fs::SeekFrom;

use super::facts::Coverage;

/// Extents per call.
const AT_ONCE: usize = 256;
/// Maximum number of extents. Those beyond are not examined, as [`Coverage::bytes`] shows.
const MOST: u64 = 200_000;

/// `FS_IOC_FIEMAP`: `_IOWR('f', 11, struct fiemap)`.
const FIEMAP: u32 = 0xC020_660B;
/// Write dirty pages first: without this, ranges that are dirty look unwritten.
const SYNC: u32 = 1;

const LAST: u32 = 0x1;
const UNKNOWN: u32 = 0x2;
const DELAYED: u32 = 0x4;
const ENCODED: u32 = 0x8;
const NOT_ALIGNED: u32 = 0x100;
const INLINE: u32 = 0x200;
const TAIL: u32 = 0x400;
/// Reserved, never written.
const UNWRITTEN: u32 = 0x800;
const SHARED: u32 = 0x2000;

/// `struct fiemap_extent`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved: [u64; 2],
    flags: u32,
    reserved_flags: [u32; 3],
}

/// `struct fiemap` with room for the answer.
#[repr(C)]
struct Request {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    count: u32,
    reserved: u32,
    extents: [Extent; AT_ONCE],
}

/// The stored part of `begin..end` of a file, as far as the file extends. `sync` writes its dirty pages first. Ends at
/// `until` at the latest.
///
/// # Errors
/// The kernel's error where the filesystem supports neither method.
pub(crate) fn coverage(
    file: &File,
    (begin, end): (u64, u64),
    sync: bool,
    until: Instant,
) -> io::Result<Coverage> {
    let end = end.min(file.metadata()?.len());
    if begin >= end {
        return Ok(Coverage { by: "fiemap".into(), synced: sync, ..Coverage::default() });
    }
    by_map(file, begin, end, sync, until).or_else(|_| by_seeking(file, begin, end, until))
}

fn by_map(file: &File, begin: u64, end: u64, sync: bool, until: Instant) -> io::Result<Coverage> {
    let mut found = Coverage { by: "fiemap".into(), synced: sync, ..Coverage::default() };
    let mut at = begin;
    let looked = walk(file, begin..end, sync, &mut |part| {
        found.hole += part.logical.start - at;
        at = part.logical.end;
        found.add(part.flags, part.logical.end - part.logical.start);
        found.extents < MOST && (!found.extents.is_multiple_of(AT_ONCE as u64) || Instant::now() <= until)
    })?;
    found.hole += looked - at;
    found.bytes = looked - begin;
    Ok(found)
}

/// A stored part of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePart {
    /// Its bytes in the file.
    pub logical: Range<u64>,
    /// Its offset on the filesystem's device, in bytes: see [`FilePart::has_place`].
    pub physical: u64,
    flags: u32,
}

impl FilePart {
    /// Whether it is allocated and was never written: the filesystem returns zeros without reading it.
    pub fn is_unwritten(&self) -> bool {
        self.flags & UNWRITTEN != 0
    }

    /// Whether it has a location on the device where its bytes are stored as in the file.
    pub fn has_place(&self) -> bool {
        self.flags & (UNKNOWN | DELAYED | ENCODED | NOT_ALIGNED | INLINE | TAIL) == 0
    }
}

/// Calls `each` for the extents of `range`, ascending and clipped to it, until `each` stops it. `sync` writes dirty
/// pages first. Returns the offset that was reached.
///
/// # Errors
/// The kernel's error; `EOPNOTSUPP` or `ENOTTY` where the filesystem has no FIEMAP.
pub fn walk(
    file: &File,
    range: Range<u64>,
    sync: bool,
    each: &mut dyn FnMut(FilePart) -> bool,
) -> io::Result<u64> {
    let mut at = range.start;
    let mut request = Box::new(Request {
        start: 0,
        length: 0,
        flags: 0,
        mapped: 0,
        count: AT_ONCE as u32,
        reserved: 0,
        extents: [Extent::default(); AT_ONCE],
    });
    while at < range.end {
        request.start = at;
        request.length = range.end - at;
        request.flags = if sync && at == range.start { SYNC } else { 0 };
        request.mapped = 0;
        ask(file, &mut request)?;
        let before = at;
        let mut last = true;
        for extent in request.extents.iter().take(request.mapped as usize) {
            let from = extent.logical.clamp(at, range.end);
            let to = extent.logical.saturating_add(extent.length).clamp(from, range.end);
            at = to;
            last = extent.flags & LAST != 0;
            let physical = extent.physical.wrapping_add(from.wrapping_sub(extent.logical));
            if !each(FilePart { logical: from..to, physical, flags: extent.flags }) {
                return Ok(at);
            }
        }
        if last || request.mapped == 0 {
            return Ok(range.end);
        }
        if at == before {
            return Err(io::Error::other("the filesystem's extent list does not advance"));
        }
    }
    Ok(range.end)
}

#[allow(unsafe_code, reason = "FIEMAP is an ioctl with its own structure")]
fn ask(file: &File, request: &mut Request) -> io::Result<()> {
    let request: *mut Request = request;
    // SAFETY: the descriptor is open; the structure has the layout of `struct fiemap`, has room for the `count` extents
    // that it specifies, and outlives the call.
    let answer = unsafe { libc::ioctl(file.as_raw_fd(), FIEMAP as _, request) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

impl Coverage {
    fn add(&mut self, flags: u32, bytes: u64) {
        self.extents += 1;
        let classes = [
            (UNWRITTEN, &mut self.unwritten),
            (DELAYED, &mut self.delayed),
            (ENCODED, &mut self.encoded),
            (SHARED, &mut self.shared),
        ];
        for (flag, sum) in classes {
            if flags & flag != 0 {
                *sum += bytes;
            }
        }
    }
}

/// Detects holes only. A filesystem that keeps its data in memory supports no other method.
fn by_seeking(file: &File, begin: u64, end: u64, until: Instant) -> io::Result<Coverage> {
    let mut found = Coverage { by: "seek".into(), ..Coverage::default() };
    let mut at = begin;
    while at < end {
        let data = match rustix::fs::seek(file, SeekFrom::Data(at)) {
            Ok(data) => data.clamp(at, end),
            Err(rustix::io::Errno::NXIO) => end,
            Err(error) => return Err(error.into()),
        };
        found.hole += data - at;
        at = data;
        if at < end {
            let hole = rustix::fs::seek(file, SeekFrom::Hole(at))?.clamp(at, end);
            if hole == at {
                return Err(io::Error::other("the filesystem's hole list does not advance"));
            }
            found.extents += 1;
            at = hole;
        }
        if found.extents > MOST || Instant::now() > until {
            break;
        }
    }
    found.bytes = at - begin;
    Ok(found)
}

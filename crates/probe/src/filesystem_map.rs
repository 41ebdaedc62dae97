//! The ranges that a filesystem uses for its own data, by `FS_IOC_GETFSMAP` (ext4, XFS; requires `CAP_SYS_ADMIN`).

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;

/// Records per call.
const AT_ONCE: usize = 192;
/// Maximum number of calls: a filesystem with more records is read in part.
const MOST_CALLS: usize = 20_000;
/// `_IOWR('X', 59, struct fsmap_head)`.
const GETFSMAP: u32 = 0xC0C0_583B;

/// The owner is a constant of the filesystem and not an inode number.
const SPECIAL_OWNER: u32 = 0x10;
const LAST: u32 = 0x20;
/// Owners of both filesystems (`FMR_OWN_FREE`, `FMR_OWN_UNKNOWN`, the latter also of files' data).
const FREE: u64 = 1;
const UNKNOWN: u64 = 2;
/// `XFS_FMR_OWN_LOG`, which ext4 uses as well.
const LOG: u64 = (b'X' as u64) << 32 | 2;
/// `XFS_FMR_OWN_COW` and `_DEFECTIVE`: copy-on-write staging extents, and bad blocks.
const COPIES: u64 = (b'X' as u64) << 32 | 7;
const DEFECTIVE: u64 = (b'X' as u64) << 32 | 8;

/// `struct fsmap`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Record {
    device: u32,
    flags: u32,
    physical: u64,
    owner: u64,
    offset: u64,
    length: u64,
    reserved: [u64; 3],
}

/// `struct fsmap_head` with room for the answer.
#[repr(C)]
struct Request {
    flags_in: u32,
    flags_out: u32,
    count: u32,
    entries: u32,
    reserved: [u64; 6],
    keys: [Record; 2],
    records: [Record; AT_ONCE],
}

/// A range of the device that holds no file's data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilesystemPart {
    /// Its bytes on the filesystem's device.
    pub physical: Range<u64>,
    /// Whether it is the journal. Otherwise it is metadata: superblocks, bitmaps, inodes.
    pub is_journal: bool,
}

/// The ranges on the main device of the filesystem of an open file or directory that hold its journal and metadata.
/// Directory blocks and extent trees of ext4 are not included: the kernel does not distinguish them from file data.
///
/// # Errors
/// The kernel's error; `EOPNOTSUPP` or `ENOTTY` where the filesystem has no such map.
pub fn filesystem_parts(file: &File) -> io::Result<Vec<FilesystemPart>> {
    let empty = Record::default();
    let all = u64::MAX;
    let highest =
        Record { device: u32::MAX, flags: u32::MAX, physical: all, owner: all, offset: all, ..empty };
    let mut request = Box::new(Request {
        flags_in: 0,
        flags_out: 0,
        count: AT_ONCE as u32,
        entries: 0,
        reserved: [0; 6],
        keys: [empty, highest],
        records: [empty; AT_ONCE],
    });
    let mut parts = Vec::new();
    let mut main = None;
    for _ in 0..MOST_CALLS {
        request.entries = 0;
        ask(file, &mut request)?;
        let found = request.records.get(..(request.entries as usize).min(AT_ONCE)).unwrap_or_default();
        let Some(last) = found.last().copied() else { break };
        for record in found {
            // A journal on a separate device would be taken for a range of this one.
            if *main.get_or_insert(record.device) != record.device {
                continue;
            }
            let is_own = record.flags & SPECIAL_OWNER != 0
                && ![FREE, UNKNOWN, COPIES, DEFECTIVE].contains(&record.owner);
            if is_own && record.length > 0 {
                let end = record.physical.saturating_add(record.length);
                parts
                    .push(FilesystemPart { physical: record.physical..end, is_journal: record.owner == LOG });
            }
        }
        if last.flags & LAST != 0 {
            break;
        }
        // The next call begins after the last record of this one.
        request.keys[0] = last;
    }
    Ok(parts)
}

#[allow(unsafe_code, reason = "GETFSMAP is an ioctl with its own structure")]
fn ask(file: &File, request: &mut Request) -> io::Result<()> {
    let request: *mut Request = request;
    // SAFETY: the descriptor is open; the structure has the layout of `struct fsmap_head`, has room for the `count`
    // records that it specifies, and outlives the call.
    let answer = unsafe { libc::ioctl(file.as_raw_fd(), GETFSMAP as _, request) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structures_are_as_long_as_the_kernels() {
        assert_eq!(size_of::<Record>(), 64);
        assert_eq!(size_of::<Request>(), 192 + 64 * AT_ONCE);
    }
}

//! Which parts of a file were never written: holes, and extents that were only reserved.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;

use rustix::fs::SeekFrom;

/// The parts of `range` that reading would take from nowhere, ascending and joined where they meet.
pub(crate) fn unwritten(file: &File, range: Range<u64>) -> io::Result<Vec<Range<u64>>> {
    match mapped(file, range.clone()) {
        Ok(written) => Ok(rest(range, &written)),
        // Filesystems without FIEMAP, such as tmpfs.
        Err(error)
            if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOTTY | libc::EINVAL)) =>
        {
            holes(file, range)
        }
        Err(error) => Err(error),
    }
}

/// What is left of `range` without the ascending `parts`.
fn rest(range: Range<u64>, parts: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut left = Vec::new();
    let mut at = range.start;
    for part in parts {
        if part.start > at {
            left.push(at..part.start.min(range.end));
        }
        at = at.max(part.end);
    }
    if at < range.end {
        left.push(at..range.end);
    }
    left
}

fn holes(file: &File, range: Range<u64>) -> io::Result<Vec<Range<u64>>> {
    let mut holes = Vec::new();
    let mut at = range.start;
    while at < range.end {
        let hole = rustix::fs::seek(file, SeekFrom::Hole(at))?;
        if hole >= range.end {
            break;
        }
        at = match rustix::fs::seek(file, SeekFrom::Data(hole)) {
            Ok(data) => data.min(range.end),
            // No data behind it.
            Err(rustix::io::Errno::NXIO) => range.end,
            Err(error) => return Err(error.into()),
        };
        holes.push(hole..at);
    }
    Ok(holes)
}

/// `struct fiemap` with room for extents; see `Documentation/filesystems/fiemap.rst`.
#[repr(C)]
struct Request {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    room: u32,
    reserved: u32,
    extents: [Extent; ROOM],
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved: [u64; 2],
    flags: u32,
    more: [u32; 3],
}

const ROOM: usize = 128;
const FS_IOC_FIEMAP: libc::Ioctl = 0xc020_660b_u32 as libc::Ioctl;
const FIEMAP_FLAG_SYNC: u32 = 1;
const LAST: u32 = 1;
const UNWRITTEN: u32 = 0x800;

/// The written extents that touch `range`, ascending.
fn mapped(file: &File, range: Range<u64>) -> io::Result<Vec<Range<u64>>> {
    let mut written = Vec::new();
    let mut at = range.start;
    while at < range.end {
        let mut request = Box::new(Request {
            start: at,
            length: range.end - at,
            // What is still on its way to the medium has no extent yet.
            flags: FIEMAP_FLAG_SYNC,
            mapped: 0,
            room: ROOM as u32,
            reserved: 0,
            extents: [Extent::default(); ROOM],
        });
        // SAFETY: the request is laid out as the kernel's `struct fiemap` and has room for as many extents as it says;
        // the kernel writes to nothing else, and the descriptor is open as long as `file` is borrowed.
        #[allow(unsafe_code)] // no crate at hand wraps this call
        let answer =
            unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP, std::ptr::from_mut(&mut *request)) };
        if answer < 0 {
            return Err(io::Error::last_os_error());
        }
        let extents = request.extents.get(..request.mapped as usize).unwrap_or(&[]);
        let Some(last) = extents.last() else { break };
        let written_ones = extents.iter().filter(|extent| extent.flags & UNWRITTEN == 0);
        written
            .extend(written_ones.map(|extent| extent.logical..extent.logical.saturating_add(extent.length)));
        let next = last.logical.saturating_add(last.length);
        if last.flags & LAST != 0 || next <= at {
            break;
        }
        at = next;
    }
    Ok(written)
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "lists of ranges are meant")]
mod tests {
    use std::os::unix::fs::FileExt;

    use rustix::fs::FallocateFlags;

    use super::*;

    #[test]
    fn the_rest_of_a_range_has_what_no_part_covers() {
        assert_eq!(rest(10..100, &[0..20, 30..40, 90..200]), [20..30, 40..90]);
        assert_eq!(rest(10..100, &[]), [10..100]);
        assert_eq!(rest(10..100, &[0..200]), Vec::<Range<u64>>::new());
        assert_eq!(rest(10..100, &[200..300]), [10..100]);
    }

    #[test]
    fn holes_and_reserved_extents_are_found_and_data_is_not() {
        const PAGE: u64 = 65_536;
        for directory in [std::env::temp_dir(), "/dev/shm".into()] {
            let file = tempfile::tempfile_in(directory).unwrap();
            file.set_len(8 * PAGE).unwrap();
            file.write_all_at(&vec![7; PAGE as usize], PAGE).unwrap();
            rustix::fs::fallocate(&file, FallocateFlags::empty(), 4 * PAGE, 2 * PAGE).unwrap();
            file.write_all_at(&vec![7; PAGE as usize], 5 * PAGE).unwrap();
            assert_eq!(
                unwritten(&file, 0..8 * PAGE).unwrap(),
                [0..PAGE, 2 * PAGE..5 * PAGE, 6 * PAGE..8 * PAGE]
            );
            assert_eq!(unwritten(&file, PAGE..2 * PAGE).unwrap(), Vec::<Range<u64>>::new());
            assert_eq!(unwritten(&file, 3 * PAGE..4 * PAGE).unwrap(), [3 * PAGE..4 * PAGE]);
        }
    }
}

//! The parts of a file that were never written: holes, and extents that are only reserved.

use std::fs::File;
use std::io;
use std::ops::Range;

use rustix::fs::SeekFrom;

use crate::probe::extents;

/// The parts of `range` that were never written, ascending, with adjacent ones joined.
pub(crate) fn unwritten(file: &File, range: Range<u64>) -> io::Result<Vec<Range<u64>>> {
    match mapped(file, range.clone()) {
        Ok(written) => Ok(subtract(range, &written)),
        // Filesystems without FIEMAP, such as tmpfs.
        Err(error)
            if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOTTY | libc::EINVAL)) =>
        {
            holes(file, range)
        }
        Err(error) => Err(error),
    }
}

/// `range` without the ascending `parts`.
fn subtract(range: Range<u64>, parts: &[Range<u64>]) -> Vec<Range<u64>> {
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
            // There is no data after this offset.
            Err(rustix::io::Errno::NXIO) => range.end,
            Err(error) => return Err(error.into()),
        };
        holes.push(hole..at);
    }
    Ok(holes)
}

/// The written extents that touch `range`, ascending.
fn mapped(file: &File, range: Range<u64>) -> io::Result<Vec<Range<u64>>> {
    let mut written = Vec::new();
    // Dirty pages may have no extent yet.
    extents::walk(file, range, true, &mut |part| {
        if !part.is_unwritten() {
            written.push(part.logical);
        }
        true
    })?;
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
        assert_eq!(subtract(10..100, &[0..20, 30..40, 90..200]), [20..30, 40..90]);
        assert_eq!(subtract(10..100, &[]), [10..100]);
        assert_eq!(subtract(10..100, &[0..200]), Vec::<Range<u64>>::new());
        assert_eq!(subtract(10..100, &[200..300]), [10..100]);
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

//! Trims: marking blocks of a device or a file as unused.

use std::io;
use std::os::fd::RawFd;

use crate::TargetKind;

/// `_IO(0x12, 119)` of linux/fs.h.
const BLKDISCARD: libc::Ioctl = 0x1277;

/// Discards `length` bytes from `offset` on a block device, or makes them a hole in a file.
#[allow(unsafe_code, reason = "ioctl and fallocate with these flags")]
pub(crate) fn discard(file: RawFd, kind: TargetKind, offset: u64, length: u32) -> io::Result<()> {
    let answer = match kind {
        TargetKind::None => 0,
        TargetKind::Block => {
            let range = [offset, u64::from(length)];
            // SAFETY: BLKDISCARD reads two numbers, which live over the call.
            unsafe { libc::ioctl(file, BLKDISCARD, range.as_ptr()) }
        }
        TargetKind::File | TargetKind::Character => {
            let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
            // SAFETY: a call on an open descriptor, without memory.
            unsafe { libc::fallocate(file, mode, offset as i64, i64::from(length)) }
        }
    };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

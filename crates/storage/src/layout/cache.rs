//! The cached pages of targets before the first I/O.

use std::fs::File;
use std::io;
use std::num::NonZeroU64;

use rustix::fs::Advice;

use crate::{Target, TargetKind};

/// Drops the cached pages of a worker's region (`invalidate=`). Dirty pages would stay, so they are written to the
/// medium first. Returns a note if the kernel does not permit it.
pub(crate) fn invalidate(target: &Target) -> Option<String> {
    if !matches!(target.kind, TargetKind::File | TargetKind::Block) {
        return None;
    }
    let dropped = File::open(&target.path).and_then(|file| {
        if target.kind == TargetKind::Block {
            return drop_device(&file);
        }
        file.sync_data()?;
        Ok(rustix::fs::fadvise(&file, target.begin, NonZeroU64::new(target.length), Advice::DontNeed)?)
    });
    let cause = match dropped {
        Ok(()) => return None,
        // A file that is created when it is opened has no cached pages.
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return None,
        Err(cause) => cause,
    };
    let path = target.path.display();
    Some(format!("{path}: its pages could not be dropped from the page cache (invalidate=1): {cause}"))
}

/// `BLKFLSBUF`: writes back and drops the cached data of a block device.
fn drop_device(file: &File) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    const BLKFLSBUF: libc::Ioctl = 0x1261;
    // SAFETY: the request takes no argument, and the descriptor is open as long as `file` is borrowed.
    #[allow(unsafe_code)] // no crate at hand wraps this call
    let answer = unsafe { libc::ioctl(file.as_raw_fd(), BLKFLSBUF, 0) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

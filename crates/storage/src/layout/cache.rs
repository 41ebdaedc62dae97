//! What the page cache holds of targets, and what it is told of how they will be used.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::num::NonZeroU64;

use kelvin_measure::Stop;
use rustix::fs::Advice;

use super::make::Report;
use crate::job::{Fadvise, Job};
use crate::{Error, Result, Target, TargetKind};

/// Drops what the page cache holds of a worker's region (`invalidate=`). What was written and is not on the medium yet
/// would stay, so it is brought there first. A note when the kernel does not let us.
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
        // A file that comes to be when it is opened has nothing in memory.
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return None,
        Err(cause) => cause,
    };
    let path = target.path.display();
    Some(format!("{path}: what the page cache holds of it could not be dropped (invalidate=1): {cause}"))
}

/// `BLKFLSBUF`: writes back and drops what the kernel holds of a block device.
fn drop_device(file: &File) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    const BLKFLSBUF: libc::Ioctl = 0x1261;
    // SAFETY: the request takes no argument, and the descriptor is open as long as `file` is borrowed.
    #[allow(unsafe_code)] // no crate at hand wraps this call
    let answer = unsafe { libc::ioctl(file.as_raw_fd(), BLKFLSBUF, 0) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Tells the kernel how an open file will be used (`fadvise_hint=`). To be called for each descriptor: the hint is not
/// the file's. A kernel that does not take it changes nothing but speed.
pub fn advise(file: &File, job: &Job, target: &Target) {
    if job.sync.direct || !matches!(target.kind, TargetKind::File | TargetKind::Block) {
        return;
    }
    let advice = match job.targets.fadvise {
        Fadvise::Off => return,
        Fadvise::ByPattern if job.pattern.random => Advice::Random,
        Fadvise::ByPattern | Fadvise::Sequential => Advice::Sequential,
        Fadvise::Random => Advice::Random,
        Fadvise::NoReuse => Advice::NoReuse,
    };
    let _ = rustix::fs::fadvise(file, target.begin, NonZeroU64::new(target.length), advice);
}

/// Reads a worker's regions once, so that the page cache holds them (`pre_read=`).
pub(crate) fn pre_read(worker: u32, targets: &[Target], stop: &Stop, report: Report<'_>) -> Result<()> {
    let regular =
        || targets.iter().filter(|target| matches!(target.kind, TargetKind::File | TargetKind::Block));
    let total = regular().map(|target| target.length).sum();
    let mut done = 0;
    let mut buffer = vec![0; 1 << 20];
    for target in regular() {
        let failed =
            |cause| Error::System { what: format!("cannot read {} before", target.path.display()), cause };
        let what = format!("reading {} before", target.path.display());
        let mut file = File::open(&target.path).map_err(failed)?;
        file.seek(SeekFrom::Start(target.begin)).map_err(failed)?;
        let mut file = file.take(target.length);
        loop {
            let read = file.read(&mut buffer).map_err(failed)?;
            if read == 0 || stop.requested() {
                break;
            }
            done += read as u64;
            report(worker, &what, done, total);
        }
    }
    Ok(())
}

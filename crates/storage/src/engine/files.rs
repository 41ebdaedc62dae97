//! The open files of a worker.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use crate::error::{Error, Result};
use crate::job::{EngineName, Fadvise, Job, SyncOpen};
use crate::{SyncCall, Target, TargetKind};

/// `F_SET_RW_HINT` of linux/fcntl.h.
const SET_RW_HINT: i32 = 1024 + 12;
/// Bytes per read of `pre_read`.
const PIECE: usize = 1 << 20;
/// No descriptor.
const CLOSED: RawFd = -1;

/// The files and devices of a worker in the order of its targets: all open, or with `openfiles=` the most recently used
/// ones. A descriptor is closed only by the worker, and only while none of the file's I/Os is in flight.
#[derive(Debug)]
pub(crate) struct Files {
    targets: Vec<Target>,
    /// [`CLOSED`] if it is not open, and for the null engine, which opens nothing.
    open: Vec<AtomicI32>,
    limit: Option<Limit>,
    /// `create_on_open=`.
    made_when_opened: bool,
    /// `unlink_each_loop=`: the file behind a path changes from pass to pass.
    renewed: bool,
}

/// `openfiles=`.
#[derive(Debug)]
struct Limit {
    most: usize,
    now: AtomicU64,
    /// The last use of each, in counts of `now`.
    used: Vec<AtomicU64>,
}

impl Files {
    /// Opens the job's targets with the flags that the job needs.
    pub(crate) fn open(job: &Job, targets: &[Target]) -> Result<Self> {
        let most = job.targets.open_files.map(|most| most.max(1) as usize);
        let most = most.filter(|most| *most < targets.len() && job.engine.name != EngineName::Null);
        let limit = most.map(|most| Limit {
            most,
            now: AtomicU64::new(0),
            used: targets.iter().map(|_| AtomicU64::new(0)).collect(),
        });
        more_descriptors(most.unwrap_or(targets.len()));
        let this = Self {
            targets: targets.to_vec(),
            open: targets.iter().map(|_| AtomicI32::new(CLOSED)).collect(),
            made_when_opened: job.targets.create_on_open,
            limit,
            renewed: job.targets.unlink_each_loop && job.has_several_passes(),
        };
        if this.limit.is_none() {
            for (target, place) in targets.iter().zip(&this.open) {
                if let Some(file) = open(job, target)? {
                    place.store(file.into_raw_fd(), Ordering::Release);
                }
            }
        }
        Ok(this)
    }

    /// The number of targets.
    pub(crate) fn len(&self) -> usize {
        self.targets.len()
    }

    /// The descriptor of a file; −1 if it is not open.
    #[inline]
    pub(crate) fn descriptor(&self, target: u32) -> RawFd {
        self.open.get(target as usize).map_or(CLOSED, |place| place.load(Ordering::Relaxed))
    }

    /// A target by its number.
    pub(crate) fn target(&self, target: u32) -> Option<&Target> {
        self.targets.get(target as usize)
    }

    /// Its path, for messages.
    pub(crate) fn name(&self, target: u32) -> String {
        self.target(target)
            .map_or_else(|| format!("file {target}"), |target| target.path.display().to_string())
    }

    /// Whether files must be opened by [`Files::need`] before they are used.
    pub(crate) fn is_limited(&self) -> bool {
        self.limit.is_some()
    }

    /// Whether a target's descriptor always refers to the same open file, so that it can be registered and mapped, and
    /// its position remembered.
    pub(crate) fn stays_open(&self) -> bool {
        self.limit.is_none() && !self.renewed
    }

    /// Opens a file that is about to be used. If the limit is exceeded, closes the least recently used one that is not
    /// `busy`.
    pub(crate) fn need(&self, job: &Job, target: u32, busy: impl FnOnce() -> Vec<bool>) -> Result<()> {
        let (Some(limit), Some(place)) = (&self.limit, self.open.get(target as usize)) else { return Ok(()) };
        let now = limit.now.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(used) = limit.used.get(target as usize) {
            used.store(now, Ordering::Relaxed);
        }
        if place.load(Ordering::Relaxed) != CLOSED {
            return Ok(());
        }
        let is_open = |place: &AtomicI32| place.load(Ordering::Relaxed) != CLOSED;
        if self.open.iter().filter(|place| is_open(place)).count() >= limit.most {
            let busy = busy();
            let idle = (0..self.open.len())
                .filter(|other| self.open.get(*other).is_some_and(is_open))
                .filter(|other| !busy.get(*other).copied().unwrap_or(false));
            let oldest = idle
                .min_by_key(|other| limit.used.get(*other).map_or(0, |used| used.load(Ordering::Relaxed)));
            if let Some(oldest) = oldest {
                self.close(job, oldest)?;
            }
        }
        if let Some(file) = self.targets.get(target as usize).map_or(Ok(None), |target| open(job, target))? {
            place.store(file.into_raw_fd(), Ordering::Release);
        }
        Ok(())
    }

    fn close(&self, job: &Job, target: usize) -> Result<()> {
        let closed = self.open.get(target).and_then(|place| owned(place.swap(CLOSED, Ordering::AcqRel)));
        let Some(file) = closed else { return Ok(()) };
        if job.sync.fsync_on_close && job.pattern.changes_data() {
            let what = || format!("sync of {}", self.name(target as u32));
            rustix::fs::fsync(&file).map_err(io::Error::from).map_err(Error::system(what()))?;
        }
        Ok(())
    }

    /// Deletes the files and creates them again under the same descriptors (`unlink_each_loop=`). None of their I/Os is
    /// in flight.
    pub(crate) fn renew(&self, job: &Job) -> Result<()> {
        for (target, place) in self.targets.iter().zip(&self.open) {
            if target.kind != TargetKind::File {
                continue;
            }
            if let Err(error) = std::fs::remove_file(&target.path)
                // Another worker may have deleted it already.
                && error.kind() != io::ErrorKind::NotFound
            {
                return Err(Error::system(format!("deleting {}", target.path.display()))(error));
            }
            drop(owned(place.swap(CLOSED, Ordering::AcqRel)));
            if self.limit.is_none()
                && let Some(file) = open(job, target)?
            {
                place.store(file.into_raw_fd(), Ordering::Release);
            }
        }
        Ok(())
    }

    /// Syncs a file; `range` is the range written since the last sync, begin and end.
    #[allow(unsafe_code, reason = "sync_file_range has no safe wrapper; the file is open")]
    pub(crate) fn sync(&self, target: u32, how: SyncCall, range: (u64, u64)) -> io::Result<()> {
        let descriptor = self.descriptor(target);
        if descriptor == CLOSED {
            // Closed because of the limit: dirty data belong to the file and not to the descriptor.
            return match self.targets.get(target as usize).filter(|_| self.is_limited()) {
                Some(target) => match File::open(&target.path) {
                    // A file that was never opened was never created.
                    Err(error) if error.kind() == io::ErrorKind::NotFound && self.made_when_opened => Ok(()),
                    file => file?.sync_all(),
                },
                None => Ok(()),
            };
        }
        // SAFETY: it is open, and only this thread closes it.
        let file = unsafe { BorrowedFd::borrow_raw(descriptor) };
        match how {
            SyncCall::Fsync => Ok(rustix::fs::fsync(file)?),
            SyncCall::Fdatasync => Ok(rustix::fs::fdatasync(file)?),
            SyncCall::Range(_) if range.0 >= range.1 => Ok(()),
            SyncCall::Range(flags) => {
                let (begin, length) = (range.0 as i64, (range.1 - range.0) as i64);
                // SAFETY: a call on an open descriptor, without memory.
                match unsafe { libc::sync_file_range(descriptor, begin, length, flags) } {
                    0 => Ok(()),
                    _ => Err(io::Error::last_os_error()),
                }
            }
        }
    }

    /// Reads everything once (`pre_read=`), while `go_on` returns true.
    pub(crate) fn read_all(&self, mut go_on: impl FnMut() -> bool) -> Result<()> {
        let mut piece = vec![0_u8; PIECE];
        for target in &self.targets {
            let failed =
                |error| Error::system(format!("reading {} (pre_read)", target.path.display()))(error);
            if target.kind == TargetKind::None {
                continue;
            }
            // Intentionally through the page cache, so without the job's flags.
            let file = File::open(&target.path).map_err(failed)?;
            let end = target.begin + target.length;
            let mut at = target.begin;
            while at < end && go_on() {
                let length = PIECE.min((end - at) as usize);
                match std::os::unix::fs::FileExt::read_at(&file, &mut piece[..length], at).map_err(failed)? {
                    0 => break,
                    read => at += read as u64,
                }
            }
        }
        Ok(())
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        for place in &self.open {
            drop(owned(place.swap(CLOSED, Ordering::AcqRel)));
        }
    }
}

/// Takes ownership of a descriptor that has no other owner.
#[allow(unsafe_code, reason = "takes ownership of a descriptor")]
fn owned(descriptor: RawFd) -> Option<OwnedFd> {
    // SAFETY: the number is of a file that was opened here, and was taken out of its only place.
    (descriptor != CLOSED).then(|| unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn open(job: &Job, target: &Target) -> Result<Option<File>> {
    if job.engine.name == EngineName::Null || target.kind == TargetKind::None {
        return Ok(None);
    }
    // A writable map needs read access, and so do blocks that are verified.
    let changes = job.pattern.changes_data() || job.replay.is_some();
    let mut flags = match job.sync.open {
        SyncOpen::None => 0,
        SyncOpen::Sync => libc::O_SYNC,
        SyncOpen::DataSync => libc::O_DSYNC,
    };
    if job.sync.direct && job.engine.name != EngineName::Mmap {
        flags |= libc::O_DIRECT;
    }
    let create = changes && target.kind == TargetKind::File && job.targets.allow_create;
    let open = |flags| {
        let mut options = OpenOptions::new();
        options.read(true).write(changes).create(create).truncate(false);
        options.custom_flags(flags).open(&target.path)
    };
    // A measurement should not update access times for each read (8 % of a read's cost where no device is
    // involved), nor write them to the medium in addition to the job's I/O.
    let opened = match open(flags | libc::O_NOATIME) {
        // Only the file's owner may use the flag.
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => open(flags),
        opened => opened,
    };
    let file = opened.map_err(|error| {
        let direct = if flags & libc::O_DIRECT != 0 && error.raw_os_error() == Some(libc::EINVAL) {
            " (the filesystem does not support O_DIRECT: use direct=0)"
        } else {
            ""
        };
        Error::system(format!("opening {}{direct}", target.path.display()))(error)
    })?;
    hint(job, target, &file)?;
    Ok(Some(file))
}

/// Gives the kernel hints about the access pattern.
#[allow(unsafe_code, reason = "fcntl for write hints has no safe wrapper")]
fn hint(job: &Job, target: &Target, file: &File) -> Result<()> {
    let advise = |advice| {
        let length = std::num::NonZeroU64::new(target.length);
        // A rejected hint is not an error.
        let _ = rustix::fs::fadvise(file, target.begin, length, advice);
    };
    let regular = matches!(target.kind, TargetKind::File | TargetKind::Block);
    if regular {
        match job.targets.fadvise {
            Fadvise::Off => {}
            Fadvise::ByPattern if job.pattern.random => advise(rustix::fs::Advice::Random),
            Fadvise::ByPattern | Fadvise::Sequential => advise(rustix::fs::Advice::Sequential),
            Fadvise::Random => advise(rustix::fs::Advice::Random),
            Fadvise::NoReuse => advise(rustix::fs::Advice::NoReuse),
        }
    }
    if let Some(hint) = job.targets.write_hint.filter(|_| target.kind == TargetKind::File) {
        // SAFETY: the pointer is to a number that outlives the call.
        if unsafe { libc::fcntl(file.as_raw_fd(), SET_RW_HINT, &raw const hint) } != 0 {
            let what = format!("write_hint on {}", target.path.display());
            return Err(Error::system(what)(io::Error::last_os_error()));
        }
    }
    Ok(())
}

/// Raises the process's limit on open files: some jobs have thousands.
fn more_descriptors(files: usize) {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| (files as u64).saturating_add(64) > current) {
        limit.current = limit.maximum;
        // If not, opening fails with the kernel's error.
        let _ = setrlimit(Resource::Nofile, limit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::testing::{file, job, writing};

    #[test]
    fn no_more_are_open_than_asked_for_but_those_that_are_busy() {
        let directory = tempfile::tempdir().unwrap();
        let targets: Vec<Target> =
            (0..4).map(|number| file(&directory.path().join(number.to_string()), 4096)).collect();
        let mut job = writing(job(EngineName::Psync, 1));
        job.targets.open_files = Some(2);
        let files = Files::open(&job, &targets).unwrap();
        let open = || (0..4).filter(|target| files.descriptor(*target) != CLOSED).collect::<Vec<u32>>();
        assert_eq!((files.is_limited(), files.stays_open(), open()), (true, false, vec![]));
        let need = |target: u32, busy: [bool; 4]| files.need(&job, target, || busy.to_vec()).unwrap();
        need(0, [false; 4]);
        need(1, [false; 4]);
        need(0, [false; 4]);
        need(2, [false; 4]);
        assert_eq!(open(), [0, 2], "1 was not used for longest");
        need(3, [true, false, true, false]);
        assert_eq!(open(), [0, 2, 3], "none could be closed");
        need(1, [false; 4]);
        // A closed file can be synced, too.
        assert_eq!(files.descriptor(0), CLOSED);
        files.sync(0, SyncCall::Fsync, (0, 1)).unwrap();
        drop(std::fs::remove_file(&targets[0].path));
        assert!(files.sync(0, SyncCall::Fsync, (0, 1)).is_err());
    }

    #[test]
    fn all_are_open_where_nothing_else_is_asked() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        let job = writing(job(EngineName::Psync, 1));
        let files = Files::open(&job, &[file(&path, 4096)]).unwrap();
        assert!(files.stays_open() && !files.is_limited() && files.descriptor(0) >= 0);
        assert_eq!(files.descriptor(1), CLOSED);
    }
}

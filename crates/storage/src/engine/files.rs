//! The open files of a worker.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;

use crate::error::{Error, Result};
use crate::job::{EngineName, Fadvise, Job, SyncOpen};
use crate::{SyncCall, Target, TargetKind};

/// `F_SET_RW_HINT` of linux/fcntl.h.
const SET_RW_HINT: i32 = 1024 + 12;
/// How much is read at a time by `pre_read`.
const PIECE: usize = 1 << 20;

/// The files and devices of a worker, open, in the order of its targets.
#[derive(Debug)]
pub(crate) struct Files {
    targets: Vec<Target>,
    /// None for the null engine, which opens nothing.
    open: Vec<Option<File>>,
}

impl Files {
    /// Opens what the job reads and writes, in the way that it wants.
    pub(crate) fn open(job: &Job, targets: &[Target]) -> Result<Self> {
        more_descriptors(targets.len());
        let open = targets.iter().map(|target| open(job, target)).collect::<Result<Vec<_>>>()?;
        Ok(Self { targets: targets.to_vec(), open })
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.targets.len()
    }

    /// The number of an open file; −1 where there is none.
    #[inline]
    pub(crate) fn descriptor(&self, target: u32) -> RawFd {
        self.open.get(target as usize).and_then(Option::as_ref).map_or(-1, AsRawFd::as_raw_fd)
    }

    /// What a target is.
    pub(crate) fn target(&self, target: u32) -> Option<&Target> {
        self.targets.get(target as usize)
    }

    /// Its path, for messages.
    pub(crate) fn name(&self, target: u32) -> String {
        self.target(target)
            .map_or_else(|| format!("file {target}"), |target| target.path.display().to_string())
    }

    /// Brings a file to its medium; `range` is where it was written to since the last time, begin and end.
    #[allow(unsafe_code, reason = "sync_file_range has no wrapper")]
    pub(crate) fn sync(&self, target: u32, how: SyncCall, range: (u64, u64)) -> io::Result<()> {
        let Some(Some(file)) = self.open.get(target as usize) else { return Ok(()) };
        match how {
            SyncCall::Fsync => file.sync_all(),
            SyncCall::Fdatasync => file.sync_data(),
            SyncCall::Range(_) if range.0 >= range.1 => Ok(()),
            SyncCall::Range(flags) => {
                let (begin, length) = (range.0 as i64, (range.1 - range.0) as i64);
                // SAFETY: a call on an open descriptor, without memory.
                match unsafe { libc::sync_file_range(file.as_raw_fd(), begin, length, flags) } {
                    0 => Ok(()),
                    _ => Err(io::Error::last_os_error()),
                }
            }
        }
    }

    /// Reads everything once (`pre_read=`), until `go_on` says no.
    pub(crate) fn read_all(&self, mut go_on: impl FnMut() -> bool) -> Result<()> {
        let mut piece = vec![0_u8; PIECE];
        for target in &self.targets {
            let failed =
                |error| Error::system(format!("reading {} (pre_read)", target.path.display()))(error);
            if target.kind == TargetKind::None {
                continue;
            }
            // Through the page cache, which is what it is for: not with the job's own flags.
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

fn open(job: &Job, target: &Target) -> Result<Option<File>> {
    if job.engine.name == EngineName::Null || target.kind == TargetKind::None {
        return Ok(None);
    }
    // A map that is written needs to be read as well, and so do blocks that are looked at again.
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
    // That a file was measured is nobody's use of it: no time of access is kept for each read (a tenth of what one costs
    // where no device is asked), and none is written to the medium beside the job's own I/O.
    let opened = match open(flags | libc::O_NOATIME) {
        // Only its owner may ask for that.
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => open(flags),
        opened => opened,
    };
    let file = opened.map_err(|error| {
        let direct = if flags & libc::O_DIRECT != 0 && error.raw_os_error() == Some(libc::EINVAL) {
            " (the filesystem has no O_DIRECT: take direct=0)"
        } else {
            ""
        };
        Error::system(format!("opening {}{direct}", target.path.display()))(error)
    })?;
    hint(job, target, &file)?;
    Ok(Some(file))
}

/// Tells the kernel what is to come.
#[allow(unsafe_code, reason = "fcntl for write hints has no wrapper")]
fn hint(job: &Job, target: &Target, file: &File) -> Result<()> {
    let advise = |advice| {
        let length = std::num::NonZeroU64::new(target.length);
        // A hint that is not taken changes nothing that is promised.
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
        // SAFETY: the pointer is to a number that lives over the call.
        if unsafe { libc::fcntl(file.as_raw_fd(), SET_RW_HINT, &raw const hint) } != 0 {
            let what = format!("write_hint on {}", target.path.display());
            return Err(Error::system(what)(io::Error::last_os_error()));
        }
    }
    Ok(())
}

/// Lets the process open as many files as it may: some jobs have thousands.
fn more_descriptors(files: usize) {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| (files as u64).saturating_add(64) > current) {
        limit.current = limit.maximum;
        // If not, opening fails with the kernel's own words.
        let _ = setrlimit(Resource::Nofile, limit);
    }
}

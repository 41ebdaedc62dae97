//! Files and devices that a job reads and writes.

use std::path::PathBuf;

/// The targets of a job's I/O.
#[derive(Debug, Clone, PartialEq)]
pub struct Targets {
    /// `filename=`, taken apart at its colons; empty when names are made from the job's name.
    pub filenames: Vec<PathBuf>,
    /// `directory=`, taken apart at its colons: files are made in them in turn.
    pub directories: Vec<PathBuf>,
    /// `filename_format=`, default `$jobname.$jobnum.$filenum`.
    pub filename_format: String,
    /// `unique_filename=`.
    pub unique_filename: bool,
    /// `nrfiles=`: files of each worker, at least 1.
    pub files: u32,
    /// `openfiles=`: how many are open at a time; all when none.
    pub open_files: Option<u32>,
    /// `file_service_type=`: which file is next.
    pub service: FileService,
    /// `size=`: bytes of all files of a worker together; `None` when each target is used at its present size. With
    /// `file_size` it is the number of bytes per pass.
    pub size: Option<Amount>,
    /// `filesize=`: bytes of each file, drawn evenly from the range.
    pub file_size: Option<(u64, u64)>,
    /// `io_size=`: bytes a worker moves at most for each of its loops; `size` when none.
    pub io_size: Option<Amount>,
    /// `fill_device=`: write until there is no space, or as much as the sizes say.
    pub fill_device: bool,
    /// `file_append=`: begin at the file's end.
    pub append: bool,
    /// `offset=`: where the region begins.
    pub offset: Amount,
    /// `offset_align=`: the alignment to which the region's beginning is rounded down, in bytes; 0 for the smallest
    /// block size.
    pub offset_align: u64,
    /// `offset_increment=`: how much further each clone begins.
    pub offset_increment: Amount,
    /// `number_ios=`: I/Os a worker does at most for each of its loops.
    pub number_ios: Option<u64>,
    /// `create_serialize=`, default true: only one worker lays out at a time.
    pub create_serialize: bool,
    /// `create_fsync=`, default true.
    pub create_fsync: bool,
    /// `create_on_open=`: lay nothing out; files are created when opened.
    pub create_on_open: bool,
    /// `create_only=`: lay out and do nothing else.
    pub create_only: bool,
    /// `allow_file_create=`, default true.
    pub allow_create: bool,
    /// `allow_mounted_write=`.
    pub allow_mounted_write: bool,
    /// `pre_read=`: read everything once before.
    pub pre_read: bool,
    /// `unlink=`: delete the files at the end.
    pub unlink: bool,
    /// `unlink_each_loop=`.
    pub unlink_each_loop: bool,
    /// `fallocate=`.
    pub fallocate: Fallocate,
    /// `fadvise_hint=`.
    pub fadvise: Fadvise,
    /// `write_hint=`: the value for `F_SET_RW_HINT`, 1 for none to 5 for extreme.
    pub write_hint: Option<u64>,
    /// `invalidate=`, default true: drop the files' pages from the page cache before the run.
    pub invalidate: bool,
    /// `lockfile=`: readers-writer locks between the workers on a file.
    pub lock: LockFile,
}

impl Targets {
    /// Whether it writes until no space is left: with `fill_device=`, where no other option limits the amount.
    pub fn fills(&self) -> bool {
        self.fill_device && self.size.is_none() && self.file_size.is_none()
    }
}

/// An amount in bytes, or a share of the available bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Amount {
    /// Bytes.
    Bytes(u64),
    /// Percent of the target's size, 0 to 100.
    Percent(f64),
    /// Zones of a zoned target.
    Zones(u64),
}

impl Amount {
    /// In bytes of a whole that has so many, rounded down; none for zones.
    pub fn bytes_of(self, whole: u64) -> Option<u64> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Percent(percent) => Some((whole as f64 * percent / 100.0) as u64),
            Self::Zones(_) => None,
        }
    }
}

/// `file_service_type=`: which of the open files the next I/O goes to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FileService {
    /// How the file is chosen.
    pub choice: FileChoice,
    /// The number of I/Os on one file before the next is chosen, at least 1.
    pub ios_per_switch: u64,
}

/// How the next file is chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FileChoice {
    /// One after another, over and over (the default).
    RoundRobin,
    /// One until it is complete, then the next.
    Sequential,
    /// Evenly at random.
    Random,
    /// Zipf distribution with this exponent.
    Zipf(f64),
    /// Pareto distribution with this power.
    Pareto(f64),
    /// By a normal distribution with this deviation in percent.
    Normal(f64),
}

impl FileChoice {
    /// Whether some files come more often than others: then a file that was gone through begins again, as with fio.
    pub fn is_uneven(self) -> bool {
        matches!(self, Self::Zipf(_) | Self::Pareto(_) | Self::Normal(_))
    }
}

/// `fallocate=`: how space is reserved when a file is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fallocate {
    /// Not.
    None,
    /// The filesystem's native method where it has one (the default).
    Native,
    /// `posix_fallocate`.
    Posix,
    /// `fallocate` with `FALLOC_FL_KEEP_SIZE`.
    Keep,
    /// `ftruncate`: a hole.
    Truncate,
}

/// `fadvise_hint=`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fadvise {
    /// None.
    Off,
    /// By the pattern: sequential or random (the default).
    ByPattern,
    /// `POSIX_FADV_SEQUENTIAL`.
    Sequential,
    /// `POSIX_FADV_RANDOM`.
    Random,
    /// `POSIX_FADV_NOREUSE`.
    NoReuse,
}

/// `lockfile=`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockFile {
    /// None (the default).
    None,
    /// One at a time.
    Exclusive,
    /// Many readers or one writer.
    ReadWrite,
}

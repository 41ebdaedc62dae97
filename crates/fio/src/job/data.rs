//! What is in the blocks, when it is synced, and whether it is verified.

use std::path::PathBuf;

use kelvin_measure::Nanos;

/// What the buffers hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Buffers {
    /// `zero_buffers=`.
    pub zero: bool,
    /// `refill_buffers=`: fill anew for each write.
    pub refill: bool,
    /// `scramble_buffers=`, default true: change something of the buffer for each write, so that no two are equal.
    pub scramble: bool,
    /// `buffer_compress_percentage=`, 0 to 100.
    pub compress_percentage: Option<f64>,
    /// `buffer_compress_chunk=`, bytes.
    pub compress_chunk: u32,
    /// `buffer_pattern=`.
    pub pattern: Option<Vec<u8>>,
    /// `dedupe_percentage=`, 0 to 100.
    pub dedupe_percentage: Option<f64>,
    /// `dedupe_mode=`: none for repeat; `working_set` with its `dedupe_working_set_percentage=`.
    pub dedupe_working_set: Option<f64>,
    /// `dedupe_global=`: the working set is shared by all jobs.
    pub dedupe_global: bool,
    /// `iomem=`.
    pub memory: Memory,
    /// `iomem_align=`, bytes; 0 for the page.
    pub memory_align: u32,
    /// `hugepage-size=`, bytes.
    pub huge_page_size: Option<u64>,
}

/// `iomem=`: where buffers live.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Memory {
    /// The heap (the default).
    Malloc,
    /// System V shared memory.
    Shm,
    /// The same in huge pages.
    ShmHuge,
    /// An anonymous map.
    Mmap,
    /// A map of a file.
    MmapFile(PathBuf),
    /// A map in huge pages.
    MmapHuge(Option<PathBuf>),
    /// A shared map of a file.
    MmapShared(PathBuf),
}

/// How and when data is brought to the medium.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sync {
    /// `direct=`, or `buffered=0`: past the page cache.
    pub direct: bool,
    /// `sync=`: how files are opened.
    pub open: SyncOpen,
    /// `fsync=`: after so many writes; 0 for never.
    pub fsync: u32,
    /// `fdatasync=`.
    pub fdatasync: u32,
    /// `write_barrier=`.
    pub write_barrier: u32,
    /// `sync_file_range=`: flags and after how many writes.
    pub range: Option<(u32, u32)>,
    /// `end_fsync=`: at the end of the job.
    pub end_fsync: bool,
    /// `fsync_on_close=`.
    pub fsync_on_close: bool,
    /// `overwrite=`: files are laid out before they are written.
    pub overwrite: bool,
    /// `atomic=`.
    pub atomic: bool,
}

/// `sync=`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncOpen {
    /// Neither.
    None,
    /// `O_SYNC`.
    Sync,
    /// `O_DSYNC`.
    DataSync,
}

/// `verify=` and what belongs to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Verify {
    /// What is in each block.
    pub method: VerifyMethod,
    /// `do_verify=`, default true: read after a writing job.
    pub after: bool,
    /// `verify_only=`: verify what an earlier run wrote, write nothing.
    pub only: bool,
    /// `verify_interval=`: bytes that have a separate header; the block when none.
    pub interval: Option<u32>,
    /// `verify_offset=`: where in the interval the header stands.
    pub offset: u32,
    /// `verify_pattern=`.
    pub pattern: Option<Pieces>,
    /// `verify_pattern_interval=`, bytes.
    pub pattern_interval: Option<u32>,
    /// `verify_fatal=`: end at the first.
    pub fatal: bool,
    /// `verify_dump=`: keep what was read and what was expected.
    pub dump: bool,
    /// `verify_async=`: threads that check; 0 for none.
    pub threads: u32,
    /// `verify_async_cpus=`: the processors of those threads.
    pub thread_cpus: Vec<u32>,
    /// `verify_backlog=`: verify after this many writes.
    pub backlog: Option<u64>,
    /// `verify_backlog_batch=`.
    pub backlog_batch: Option<u64>,
    /// `verify_state_save=`, default true.
    pub state_save: bool,
    /// `verify_state_load=`.
    pub state_load: bool,
    /// `experimental_verify=`: draw the same I/Os again instead of remembering them.
    pub replay_generator: bool,
    /// `verify_write_sequence=`, default true: headers count the writes.
    pub write_sequence: bool,
    /// `verify_header_seed=`, default true.
    pub header_seed: bool,
}

/// `verify=`: how a block is verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerifyMethod {
    /// MD5.
    Md5,
    /// CRC-64.
    Crc64,
    /// CRC-32C (Castagnoli), in hardware where there is.
    Crc32c,
    /// CRC-32 (IEEE).
    Crc32,
    /// CRC-16.
    Crc16,
    /// CRC-7.
    Crc7,
    /// xxHash32.
    XxHash,
    /// SHA-1.
    Sha1,
    /// SHA-256.
    Sha256,
    /// SHA-512.
    Sha512,
    /// SHA3-224.
    Sha3_224,
    /// SHA3-256.
    Sha3_256,
    /// SHA3-384.
    Sha3_384,
    /// SHA3-512.
    Sha3_512,
    /// A header, and `verify_pattern` behind it where one is given; no sum.
    Meta,
    /// `verify_pattern` and no header.
    Pattern,
    /// `verify_pattern` behind a header.
    PatternHeader,
    /// Written as any, never verified.
    Null,
}

/// A pattern of bytes with places that the block's offset fills.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pieces(pub Vec<Piece>);

/// A piece of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// These bytes.
    Bytes(Vec<u8>),
    /// `%o`: the block's offset, 8 bytes little-endian.
    Offset,
}

/// `read_iolog=` and what belongs to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Replay {
    /// The traces, of which each clone takes one; `-` is standard input.
    pub files: Vec<PathBuf>,
    /// `replay_no_stall=`: as fast as it goes.
    pub no_stall: bool,
    /// `replay_time_scale=`, percent: 50 is half as fast.
    pub time_scale: f64,
    /// `replay_redirect=`: everything goes here.
    pub redirect: Option<PathBuf>,
    /// `replay_align=`: offsets are multiples of this, in bytes.
    pub align: Option<u64>,
    /// `replay_scale=`: offsets are divided by this.
    pub scale: Option<u64>,
    /// `replay_skip=`: directions that are left out.
    pub skip: Vec<ReplaySkip>,
    /// `read_iolog_chunked=`.
    pub chunked: bool,
}

/// `replay_skip=`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplaySkip {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Trims.
    Trim,
    /// Syncs.
    Sync,
}

/// Trims among other I/Os.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Trims {
    /// `trim_percentage=`, 0 to 100.
    pub percentage: f64,
    /// `trim_verify_zero=`.
    pub verify_zero: bool,
    /// `trim_backlog=`.
    pub backlog: Option<u64>,
    /// `trim_backlog_batch=`.
    pub backlog_batch: Option<u64>,
}

/// What errors do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ErrorRules {
    /// `continue_on_error=` for reads.
    pub go_on_read: bool,
    /// For writes (and trims).
    pub go_on_write: bool,
    /// For data that is not what was written.
    pub go_on_verify: bool,
    /// `ignore_error=`: kernel error numbers that do not count, by read, write, verify.
    pub ignore: [Vec<i32>; 3],
    /// `error_dump=`.
    pub dump: bool,
    /// `exitall_on_error=`.
    pub exit_all: bool,
}

/// The longest that a job may wait for something without a separate bound.
pub const LONGEST_WAIT: Nanos = 3600 * 1_000_000_000;

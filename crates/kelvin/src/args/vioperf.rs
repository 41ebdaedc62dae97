//! `kelvin vioperf`'s flags.

use kelvin_measure::text::parse_bytes;
use std::path::PathBuf;

use clap::Args;
use kelvin_run::spec::Span;

/// `kelvin vioperf`.
#[derive(Debug, Args)]
#[command(
    after_help = "Four tests, each a quarter of the duration, one thread per physical core, one file per \
    thread:\n\
    \x20 Write     files grow for half of the time (or until they are large enough), then are overwritten\n\
    \x20 ReWrite   each block is read and written back\n\
    \x20 Read      blocks are read in order\n\
    \x20 SkipRead  blocks are read out of order: seeks/s\n\
    \n\
    The result is MB/s (10^6 bytes) per physical core that this process may use; if a cgroup quota allows \
    less, the quota counts, and the first lines report it. A column store needs 20 MB/s per core, reading \
    and writing at the same time, and should have 40: the slowest of Write, ReWrite (in each direction) and \
    Read decides.\n\
    \n\
    The files take a quarter of the free space and at most 16 GiB of a filesystem, stop growing once three \
    quarters of its free space are used, and are removed at the end and on Ctrl-C. Only existing directories \
    are used, and no other file is changed.\n\
    \n\
    Writes that extend a file and writes that overwrite it are reported separately: the former also write \
    filesystem metadata. The CPU time of checksums (CRC-32C, with the processor's instruction if available) \
    and of everything else is reported per MB, to distinguish a slow processor from slow storage.\n\
    \n\
    Examples:\n\
    \x20 kelvin vioperf /data                        five minutes, like vioperf\n\
    \x20 kelvin vioperf --duration 2m /data /temp    several directories at once\n\
    \x20 kelvin vioperf --require recommended /data && echo fast\n\
    \n\
    Exits with 0 if the verdict is MINIMUM or better (--require recommended: RECOMMENDED), 1 if it is worse, \
    2 if nothing could be measured, 4 after an error, 130 after Ctrl-C; see docs/vioperf.md."
)]
pub(crate) struct VioperfArgs {
    /// Directories to measure, which must exist
    #[arg(required = true, value_name = "DIR")]
    pub(crate) directories: Vec<PathBuf>,
    /// Length of all four tests together, 1s to 1 day
    #[arg(long, value_name = "TIME", default_value = "5m")]
    pub(crate) duration: Span,
    /// Total number of threads [default: one per physical core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) thread_count: Option<u32>,
    /// Do not write or verify block checksums
    #[arg(long)]
    pub(crate) disable_crc: bool,
    /// Use the page cache; cached pages are dropped before files are read
    #[arg(long)]
    pub(crate) disable_direct_io: bool,
    /// Time between two rows of output
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub(crate) log_interval: Span,
    /// File for the rows and the result, as JSON [default: results-DATE-TIME.json in the working directory]
    #[arg(long, value_name = "FILE")]
    pub(crate) log_file: Option<PathBuf>,
    /// Write one log entry per line, instead of one JSON array
    #[arg(long)]
    pub(crate) condense_log: bool,
    /// Size of an I/O, a multiple of 4k up to 64m
    #[arg(long, value_name = "SIZE", default_value = "1m", value_parser = parse_bytes)]
    pub(crate) max_buffer_size: u64,
    /// Total size of all files, at most half of the free space [default: derived from the free space]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub(crate) working_set: Option<u64>,
    /// Keep the files at the end
    #[arg(long)]
    pub(crate) preserve_files: bool,
    /// The lowest verdict that exits with 0
    #[arg(long, value_name = "VERDICT", default_value = "minimum")]
    pub(crate) require: Required,
}

/// The values of `--require`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Required {
    /// 20 MB/s per core
    Minimum,
    /// 40 MB/s per core
    Recommended,
}

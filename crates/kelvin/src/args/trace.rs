//! `kelvin trace`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use kelvin_measure::text::parse_bytes;
use kelvin_run::spec::{Span, TargetName};
use kelvin_trace::import::MOST;

use super::FormatArgs;

#[derive(Debug, Subcommand)]
#[command(
    after_help = "A trace contains each block I/O request with its time, device, offset, size, operation, \
    process and response time. kelvin trace record takes it from the kernel (as root); the other commands \
    also read traces of blktrace, perf script, fio's iologs and CSV files (docs/trace.md).\n\
    \n\
    Examples:\n\
    \x20 kelvin trace record --duration 30s -o io.trace\n\
    \x20 kelvin trace record -o io.trace -- kelvin run pgbench --target postgres\n\
    \x20 kelvin trace show io.trace\n\
    \x20 kelvin trace cache io.trace --sizes 64m,256m,1g\n\
    \x20 kelvin trace to-fio io.trace -o io.fio --verify"
)]
pub(crate) enum TraceCommand {
    /// Record the block I/O requests of this host until Ctrl-C, for a given time, or while a command runs
    Record(TraceRecordArgs),
    /// Show the streams of a trace: sizes, arrivals, depth, sequentiality, and the effect of merging
    Show(TraceShowArgs),
    /// Predict the effect of a cache: miss ratios of LRU, ARC and S3-FIFO by size
    Cache(TraceCacheArgs),
    /// Write a trace as an fio job file: streams with the same sizes, mix, sequentiality, arrivals and depth
    ToFio(TraceToFioArgs),
    /// Write a trace as CSV: one line per request, with its process and, if known, its database object
    Csv(TraceCsvArgs),
}

/// `kelvin trace csv`.
#[derive(Debug, Args)]
pub(crate) struct TraceCsvArgs {
    #[command(flatten)]
    pub(crate) trace: TraceFileArgs,
    /// The file to write; it must not exist [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// `kelvin trace record`.
#[derive(Debug, Args)]
pub(crate) struct TraceRecordArgs {
    /// How long to record [default: until Ctrl-C, or until the command ends]
    #[arg(long, value_name = "TIME")]
    pub(crate) duration: Option<Span>,
    /// Record only these block devices, such as vda or /dev/vda (for a partition, its disk) [default: all]
    #[arg(long, value_name = "DEVICE,…", value_delimiter = ',')]
    pub(crate) device: Vec<String>,
    /// A database whose catalog provides the names of its tables and indexes for their files
    #[arg(long, value_name = "TARGET", conflicts_with = "no_files")]
    pub(crate) target: Option<TargetName>,
    /// Also map the files in this directory to device blocks; may be given several times [default: those of running
    /// database servers, and all files that a process has open]
    #[arg(long, value_name = "DIRECTORY", conflicts_with = "no_files")]
    pub(crate) files: Vec<PathBuf>,
    /// Do not attribute requests to files
    #[arg(long)]
    pub(crate) no_files: bool,
    /// Do not estimate how many of the blocks read contain only zeros
    #[arg(long)]
    pub(crate) no_zeros: bool,
    /// The file to write; it must not exist
    #[arg(long, short, value_name = "FILE", default_value = "kelvin.trace")]
    pub(crate) output: PathBuf,
    /// End the recording when the file reaches this size
    #[arg(long, value_name = "SIZE", default_value = "1g", value_parser = parse_bytes)]
    pub(crate) max_bytes: u64,
    /// Size of the kernel's buffer per CPU
    #[arg(long, value_name = "SIZE", default_value = "4m", value_parser = parse_bytes)]
    pub(crate) buffer: u64,
    /// Run this command, and record while it runs
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// A trace to read.
#[derive(Debug, Args)]
pub(crate) struct TraceFileArgs {
    /// A trace of kelvin trace record, blktrace, perf script, fio (iolog) or CSV; or a run made with --trace
    #[arg(value_name = "FILE|RUN")]
    pub(crate) file: PathBuf,
    /// Read at most this many requests
    #[arg(long, value_name = "N", default_value_t = MOST)]
    pub(crate) max_requests: usize,
    /// For a run, read the whole recording [default: its measured window]
    #[arg(long)]
    pub(crate) whole: bool,
}

/// `kelvin trace show`.
#[derive(Debug, Args)]
pub(crate) struct TraceShowArgs {
    #[command(flatten)]
    pub(crate) trace: TraceFileArgs,
    /// Show what a device would receive if these streams were merged on it: `merge A,B,C`, each a process or a device
    /// of the trace, or the file of another trace
    #[arg(long, num_args = 2, value_names = ["merge", "STREAMS"])]
    pub(crate) what_if: Option<Vec<String>>,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

/// `kelvin trace cache`.
#[derive(Debug, Args)]
pub(crate) struct TraceCacheArgs {
    #[command(flatten)]
    pub(crate) trace: TraceFileArgs,
    /// Sizes of the cache [default: ten sizes up to the amount of data in the trace]
    #[arg(long, value_name = "SIZE,…", value_delimiter = ',', value_parser = parse_bytes)]
    pub(crate) sizes: Vec<u64>,
    /// Size of the cache's blocks
    #[arg(long, value_name = "SIZE", default_value = "4k", value_parser = parse_bytes)]
    pub(crate) block: u64,
    /// Share of the blocks in a sample; five samples are taken to estimate the error. 1 disables sampling
    #[arg(long, value_name = "SHARE", default_value_t = 0.1, value_parser = share)]
    pub(crate) sample: f64,
    /// Omit the exact curve and sample while the trace is read, for traces that do not fit in memory; all requests are
    /// read unless --max-requests limits them
    #[arg(long)]
    pub(crate) sampled_only: bool,
    /// Policies to simulate in addition to LRU: arc, s3-fifo, or none
    #[arg(
        long,
        value_name = "POLICY,…",
        value_delimiter = ',',
        value_enum,
        hide_possible_values = true,
        default_value = "arc,s3-fifo"
    )]
    pub(crate) policies: Vec<TracePolicy>,
    /// Cache reads only: writes bypass the cache [default: a write-back cache of reads and writes]
    #[arg(long)]
    pub(crate) reads: bool,
    /// Response time of a hit, for the predicted mean response time
    #[arg(long, value_name = "TIME", default_value = "2us")]
    pub(crate) hit_time: Span,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

/// The values of `--policies`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TracePolicy {
    /// None
    None,
    /// Megiddo and Modha, 2003
    Arc,
    /// Yang et al., 2023
    S3Fifo,
}

/// `kelvin trace to-fio`.
#[derive(Debug, Args)]
pub(crate) struct TraceToFioArgs {
    #[command(flatten)]
    pub(crate) trace: TraceFileArgs,
    /// How requests are grouped into streams: by class (a database's data, its log, …), object, process, or nothing
    #[arg(long, value_name = "WHAT", value_enum, hide_possible_values = true, default_value = "class")]
    pub(crate) by: TraceStreams,
    /// Devices of the trace [default: the one with the most requests]
    #[arg(long, value_name = "DEVICE,…", value_delimiter = ',')]
    pub(crate) device: Vec<String>,
    /// Replay each request at its original time, with iologs next to the job file, instead of describing the streams by
    /// parameters
    #[arg(long)]
    pub(crate) replay: bool,
    /// The job file to write; it must not exist [default: print it]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Maximum total size of the job's files
    #[arg(long, value_name = "SIZE", default_value = "8g", value_parser = parse_bytes)]
    pub(crate) max_size: u64,
    /// Run the job with kelvin io, record its requests, and compare their properties with those of the trace (as root)
    #[arg(long)]
    pub(crate) verify: bool,
    /// With --verify: directory for the job's files, which are removed afterwards
    #[arg(long, value_name = "DIRECTORY", default_value = ".", requires = "verify")]
    pub(crate) directory: PathBuf,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

/// The values of `--by`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TraceStreams {
    /// A class of files
    Class,
    /// An object or file
    Object,
    /// A process
    Process,
    /// All requests
    Nothing,
}

fn share(text: &str) -> Result<f64, String> {
    let share: f64 = text.parse().map_err(|_| format!("\"{text}\" is not a number"))?;
    if (0.0001..=1.0).contains(&share) {
        return Ok(share);
    }
    Err(format!("a sample of {text} of the blocks is not between 0.0001 and 1"))
}

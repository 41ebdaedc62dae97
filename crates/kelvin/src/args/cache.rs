//! `kelvin cache`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use kelvin_measure::text::parse_bytes;

use super::FormatArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum CacheCommand {
    /// Write a study of several cache sizes, with the misses that a run's trace predicts for each; after its runs,
    /// compare the predictions with the measured reads
    Prove(CacheProveArgs),
}

/// `kelvin cache prove`.
#[derive(Debug, Args)]
#[command(
    after_help = "Make the run with --trace and the smallest cache: a trace does not contain reads that the \
        cache served. Its reads before the measured window fill the simulated cache, so the run needs a \
        ramp-up. The comparison uses the bytes read per transaction, as a share of those at the smallest \
        size.\n\
    \n\
    Examples:\n\
    \x20 kelvin run pgbench -S --target postgres --ramp-up 30s --trace      it is run 7, with shared_buffers = 16 MB\n\
    \x20 kelvin cache prove 7 --sizes 16m,64m,256m,1g --study bigger\n\
    \x20 kelvin study run bigger\n\
    \x20 kelvin cache prove bigger                                          exit code 1 if a prediction was wrong"
)]
pub(crate) struct CacheProveArgs {
    /// A run made with --trace (number or label), to write the study; or the study's folder, to compare
    #[arg(value_name = "RUN|DIR")]
    pub(crate) run: PathBuf,
    /// Sizes of the cache in ascending order; the first is that of the run
    #[arg(long, value_name = "SIZE,…", value_delimiter = ',', value_parser = parse_bytes)]
    pub(crate) sizes: Vec<u64>,
    /// Folder of the study to create
    #[arg(long, value_name = "DIR", requires = "sizes")]
    pub(crate) study: Option<PathBuf>,
    /// The server setting for the size [default: shared_buffers or innodb_buffer_pool_size]
    #[arg(long, value_name = "SETTING")]
    pub(crate) setting: Option<String>,
    /// Limit the memory of this control group instead of changing a setting: its directory, with memory.max or
    /// memory.limit_in_bytes; the sizes are the limits
    #[arg(long, value_name = "DIRECTORY", conflicts_with = "setting")]
    pub(crate) control_group: Option<PathBuf>,
    /// Memory within the limit that is not page cache, such as that of the processes
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = parse_bytes, requires = "control_group")]
    pub(crate) other_memory: u64,
    /// Size of the cache's pages [default: 4k with --control-group, otherwise the database's]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub(crate) block: Option<u64>,
    /// Number of runs of each size
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) blocks: u32,
    /// Largest accepted difference between the measured and the predicted miss ratio
    #[arg(long, value_name = "SHARE", default_value_t = 0.03)]
    pub(crate) within: f64,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

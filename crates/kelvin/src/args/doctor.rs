//! `kelvin doctor`'s flags.

use std::path::PathBuf;

use clap::Args;
use kelvin_run::spec::TargetName;

/// `kelvin doctor`.
#[derive(Debug, Args)]
#[command(
    after_help = "Takes 5 to 10 seconds on an idle machine, about 10 more with --disk. Next to each value is \
    its ratio to the last stored doctor report of this host. The ratio is marked if the two values differ \
    by more than 5 % (processor and memory: medians, in CPU time; on a busy machine memory can vary by more), 30 % \
    (median latencies and disk speed, which vary with other activity) or a factor of 2 (99th percentiles).\n\
    \n\
    Exits with 0 even if it finds problems."
)]
pub(crate) struct DoctorArgs {
    /// Also examine a database: its settings, its round-trip time, and fdatasync next to its files if they are on this
    /// host
    #[arg(long, short, value_name = "TARGET")]
    pub(crate) target: Option<TargetName>,
    /// Also measure the disk under a directory: random and sequential access that bypasses the page cache, in a
    /// temporary file of at most 1 GiB and 10 % of the free space
    #[arg(long, value_name = "DIR")]
    pub(crate) disk: Option<PathBuf>,
    /// Compare with the doctor report of this number [default: the last report of this host]
    #[arg(long, value_name = "N")]
    pub(crate) against: Option<i64>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

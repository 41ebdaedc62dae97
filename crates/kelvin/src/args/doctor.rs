//! `kelvin doctor`'s flags.

use std::path::PathBuf;

use clap::Args;
use kelvin_run::spec::TargetName;

/// `kelvin doctor`.
#[derive(Debug, Args)]
#[command(
    after_help = "Takes 5 to 10 seconds on an idle machine, some 10 more with --disk. What is beside a figure \
    is its ratio to the last doctor of this host in the store; it is marked where the two differ by more than 5 % \
    (processor and memory: medians by CPU time; on a busy machine memory moves by more than that), 30 % (medians of latencies and a \
    disk's speed, which move with what else wakes) or a factor of 2 (99th percentiles).\n\n\
    Ends with 0 whatever it finds: what it finds is for whoever reads it."
)]
pub(crate) struct DoctorArgs {
    /// Also look at a database: its settings, its round trip, and fdatasync beside its files where they are on this host
    #[arg(long, short, value_name = "TARGET")]
    pub(crate) target: Option<TargetName>,
    /// Also measure the disk under a directory: random and sequential access past the page cache, in a file of at most
    /// 1 GiB and a tenth of the free space, which is removed
    #[arg(long, value_name = "DIR")]
    pub(crate) disk: Option<PathBuf>,
    /// Compare with the doctor of this number [default: the last one of this host]
    #[arg(long, value_name = "N")]
    pub(crate) against: Option<i64>,
    /// As JSON, for programs
    #[arg(long)]
    pub(crate) json: bool,
}

//! The flags of `export` and `import`.

use std::path::PathBuf;

use clap::Args;

use super::FormatArgs;

/// `kelvin export`.
#[derive(Debug, Args)]
#[command(
    after_help = "The file is itself a store, verified by a digest on import: kelvin --store FILE runs lists \
    its content. It contains no passwords, but names of hosts, users and databases, settings and SQL \
    statements.\n\
    \n\
    Examples:\n\
    \x20 kelvin export last run.kelvin\n\
    \x20 kelvin export 12..17 base runs.kelvin\n\
    \x20 kelvin export group:3 ab.kelvin\n\
    \x20 kelvin export studies/buffers buffers.kelvin\n\
    \x20 kelvin export all everything.kelvin"
)]
pub(crate) struct ExportArgs {
    /// Runs by number, label, last, or last-N; a range such as 12..17; a group with its runs, such as group:3; a study's folder;
    /// or all
    #[arg(required = true, value_name = "RUN")]
    pub(crate) runs: Vec<String>,
    /// The file to write; an existing file is not overwritten
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

/// `kelvin import`.
#[derive(Debug, Args)]
#[command(
    after_help = "Runs get new numbers; groups, labels, branches and testbeds are kept. A run that already \
    exists is not added again. A file that is damaged or of another version is rejected, and the store is \
    not changed. Import only from people you trust: the file is checked for damage, not for forgery.\n\
    \n\
    Examples:\n\
    \x20 kelvin import ab.kelvin\n\
    \x20 kelvin import /mnt/laptop/kelvin.db"
)]
pub(crate) struct ImportArgs {
    /// A file written by kelvin export, or another store
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

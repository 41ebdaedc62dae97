//! The flags of `export` and `import`.

use std::path::PathBuf;

use clap::Args;

use super::FormatArgs;

/// `kelvin export`.
#[derive(Debug, Args)]
#[command(
    after_help = "The file is a store of its own, checked by a digest when it is imported: kelvin --store FILE runs lists what is in it. \
    Passwords are not in it; names of hosts, users and databases, settings and the texts of statements are.\n\n\
    Examples:\n  kelvin export last run.kelvin\n  kelvin export 12..17 base runs.kelvin\n  \
    kelvin export group:3 ab.kelvin\n  kelvin export studies/buffers buffers.kelvin\n  kelvin export all everything.kelvin"
)]
pub(crate) struct ExportArgs {
    /// Runs by number, label, last, or last-N; a range such as 12..17; a group with its runs, such as group:3; a study's folder;
    /// or all
    #[arg(required = true, value_name = "RUN")]
    pub(crate) runs: Vec<String>,
    /// The file to write; one that is there is not written over
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

/// `kelvin import`.
#[derive(Debug, Args)]
#[command(
    after_help = "Runs get new numbers; groups, labels, branches and testbeds are kept. A run that is there already is not added again. \
    A file that is damaged or of another version is refused, and the store stays as it was. Import exports and whole stores \
    of people you trust: the file is checked against damage, not against forgery.\n\n\
    Examples:\n  kelvin import ab.kelvin\n  kelvin import /mnt/laptop/kelvin.db"
)]
pub(crate) struct ImportArgs {
    /// What kelvin export wrote, or another store
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

//! `kelvin snapshot`.

use clap::{Args, Subcommand};
use kelvin_database::snapshot::SnapshotMethod;
use kelvin_run::spec::TargetName;

use super::choice_parser::one_of;

/// The database that the snapshots are of.
#[derive(Debug, Clone, Args)]
pub(crate) struct SnapshotTarget {
    /// The database: sqlite:FILE, postgres (a server of kelvin's own), or postgres://user@host:port/database
    #[arg(long, short, value_name = "TARGET")]
    pub(crate) target: TargetName,
}

/// `kelvin snapshot`.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum SnapshotCommand {
    /// Keep the database as it is now
    ///
    /// `kelvin run --reset` makes its own snapshots of the data as they were built; this one is of whatever the database
    /// holds. A run begins from it with --snapshot NAME.
    #[command(after_help = "Examples:\n  kelvin snapshot save aged --target postgres\n  \
        kelvin run tproc-c --target postgres --snapshot aged\n  \
        kelvin snapshot save before --target sqlite:shop.db")]
    Save {
        /// Its name: letters, digits, '-', '_' and '.'
        name: String,
        #[command(flatten)]
        target: SnapshotTarget,
        /// How it is kept [default: the fastest that is possible]
        #[arg(long, value_name = "HOW", value_parser = one_of::<SnapshotMethod>(&["template", "files", "dump"]))]
        how: Option<SnapshotMethod>,
    },
    /// Bring a snapshot's content back; what the database holds now is gone then
    #[command(after_help = "Example:\n  kelvin snapshot restore aged --target postgres")]
    Restore {
        /// Its name
        name: String,
        #[command(flatten)]
        target: SnapshotTarget,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// List the snapshots of a database: their names, sizes, ages and what they hold
    #[command(after_help = "Example:\n  kelvin snapshot list --target postgres")]
    List {
        #[command(flatten)]
        target: SnapshotTarget,
    },
    /// Remove a snapshot; the database stays as it is
    #[command(after_help = "Example:\n  kelvin snapshot drop aged --target postgres")]
    Drop {
        /// Its name
        name: String,
        #[command(flatten)]
        target: SnapshotTarget,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

//! `kelvin snapshot`.

use clap::{Args, Subcommand};
use kelvin_database::snapshot::SnapshotMethod;
use kelvin_run::spec::TargetName;

use super::choice_parser::one_of;

/// The database of the snapshots.
#[derive(Debug, Clone, Args)]
pub(crate) struct SnapshotTarget {
    /// The database: sqlite:FILE; postgres, mysql or mariadb (a server of kelvin's own); or a URL such as
    /// postgres://user@host:port/database
    #[arg(long, short, value_name = "TARGET")]
    pub(crate) target: TargetName,
}

/// `kelvin snapshot`.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum SnapshotCommand {
    /// Save the current state of the database
    ///
    /// `kelvin run --reset` makes its own snapshots of the initial data; this command saves the current content of the
    /// database. --snapshot NAME starts a run from it.
    #[command(after_help = "Examples:\n  kelvin snapshot save aged --target postgres\n  \
        kelvin run tproc-c --target postgres --snapshot aged\n  \
        kelvin snapshot save before --target sqlite:shop.db")]
    Save {
        /// Name of the snapshot: letters, digits, '-', '_' and '.'
        name: String,
        #[command(flatten)]
        target: SnapshotTarget,
        /// How to save it [default: the fastest method available]
        #[arg(long, value_name = "HOW", value_parser = one_of::<SnapshotMethod>(&["template", "files", "dump"]))]
        how: Option<SnapshotMethod>,
    },
    /// Restore a snapshot; the current content of the database is lost
    #[command(after_help = "Example:\n  kelvin snapshot restore aged --target postgres")]
    Restore {
        /// Name of the snapshot
        name: String,
        #[command(flatten)]
        target: SnapshotTarget,
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
    },
    /// List the snapshots of a database: names, sizes, ages and contents
    #[command(after_help = "Example:\n  kelvin snapshot list --target postgres")]
    List {
        #[command(flatten)]
        target: SnapshotTarget,
    },
    /// Remove a snapshot; the database is not changed
    #[command(after_help = "Example:\n  kelvin snapshot drop aged --target postgres")]
    Drop {
        /// Name of the snapshot
        name: String,
        #[command(flatten)]
        target: SnapshotTarget,
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
    },
}

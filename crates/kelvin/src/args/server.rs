//! The arguments of `kelvin server`.

use clap::{Args, Subcommand};
use kelvin_run::spec::TargetName;

const PROFILES: &str = "Profiles:
  default  moderate and durable, for a dedicated host
  durable  commits \
survive a crash; checkpoints and vacuum during the run, as in production
  steady   repeatable runs: no \
checkpoint, vacuum or furious flushing during the run, no waiting
           for the disk; sized for the run \
given by --for. A crash of the host loses the data
  FILE     lines of name = value with comments, as in \
postgresql.conf or my.cnf;
           other settings have the server's defaults";

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum ServerCommand {
    /// Start the server, creating it first if necessary
    #[command(after_help = format!("{PROFILES}\n\nExamples:
  kelvin server up
  kelvin server up --profile steady --for last
  kelvin server up --version 16 --profile my.conf
  kelvin server up --engine mariadb --profile steady"))]
    Up {
        /// Database engine of the server
        #[arg(long, value_name = "ENGINE", value_enum, default_value_t = ServerEngine::Postgres)]
        engine: ServerEngine,
        /// Major version of PostgreSQL [default: the newest installed]
        #[arg(long, value_name = "VERSION")]
        version: Option<u32>,
        #[command(flatten)]
        profile: ProfileArgs,
    },
    /// Stop the server; its data are kept
    Down {
        /// Database engine of the server [default: all servers]
        #[arg(long, value_name = "ENGINE", conflicts_with = "version")]
        engine: Option<ServerEngine>,
        /// Major version of PostgreSQL [default: all running versions]
        #[arg(long, value_name = "VERSION")]
        version: Option<u32>,
    },
    /// Show whether the server is running, and where
    Status,
    /// Show settings that differ from a profile
    ///
    /// Values are compared by meaning: 8GB, 8192MB and 1048576 pages of 8 kB are equal.
    #[command(after_help = format!("{PROFILES}\n\nExamples:
  kelvin server diff
  kelvin server diff --profile durable
  kelvin server diff --engine mariadb
  kelvin server diff --profile my.conf --target postgres://me@host/db"))]
    Diff {
        /// An external server [default: kelvin's own]
        #[arg(long, value_name = "TARGET", conflicts_with_all = ["version", "engine"])]
        target: Option<TargetName>,
        /// Database engine of kelvin's own server
        #[arg(long, value_name = "ENGINE", value_enum, default_value_t = ServerEngine::Postgres)]
        engine: ServerEngine,
        /// Major version of kelvin's own server [default: the newest]
        #[arg(long, value_name = "VERSION")]
        version: Option<u32>,
        #[command(flatten)]
        profile: ProfileArgs,
    },
    /// Apply a profile to an external server, until `kelvin server restore`
    ///
    /// The settings are changed with ALTER SYSTEM (PostgreSQL), SET PERSIST (MySQL) or SET GLOBAL (MariaDB, until its
    /// next restart), which requires a superuser. The previous values are first saved in a journal in the user's data
    /// directory. Settings that require a restart are reported; the server is not restarted. MariaDB reads such
    /// settings from its option file only; they are listed but not changed.
    #[command(after_help = format!("{PROFILES}\n\nExamples:
  kelvin server apply --target postgres://me@host/db --profile my.conf
  kelvin server apply --target postgres://me@host/db --profile my.conf --allow-settings"))]
    Apply {
        /// The server
        #[arg(long, value_name = "TARGET")]
        target: TargetName,
        #[command(flatten)]
        profile: ProfileArgs,
        /// Make the changes; without this flag they are only shown
        #[arg(long)]
        allow_settings: bool,
    },
    /// Revert the changes of `kelvin server apply`
    #[command(
        after_help = "Examples:\n  kelvin server restore\n  kelvin server restore --target postgres://me@host/db"
    )]
    Restore {
        /// The external server [default: all changed servers]
        #[arg(long, value_name = "TARGET")]
        target: Option<TargetName>,
    },
}

/// The servers that kelvin creates and starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ServerEngine {
    Postgres,
    Mariadb,
    Mysql,
}

/// Which profile, and for what run.
#[derive(Debug, Clone, Args)]
pub(crate) struct ProfileArgs {
    /// default, durable, steady, or a file [default: the current one, or default]
    #[arg(long, value_name = "PROFILE")]
    pub(crate) profile: Option<String>,
    /// The run for which the profile steady is sized: a stored run (number, label, or "last"), with its measured WAL or
    /// redo volume, or a specification, with an estimated volume [default: an estimated run of ten minutes]
    #[arg(long = "for", value_name = "RUN|SPEC", requires = "profile")]
    pub(crate) sized_for: Option<String>,
}

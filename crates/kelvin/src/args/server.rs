//! `kelvin server` as typed.

use clap::{Args, Subcommand};
use kelvin_run::spec::TargetName;

const PROFILES: &str = "\
Profiles:
  default  moderate and durable, for a host that the server has to itself
  durable  a commit survives whatever happens; checkpoints and vacuum in the run, as in production
  steady   runs that repeat: no checkpoint, vacuum or background write in the run, no waiting
           for the disk; sized for the run of --for. A crash of the host loses the data
  FILE     lines of name = value with comments, as in postgresql.conf; the rest is at
           PostgreSQL's defaults";

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum ServerCommand {
    /// Start the server, making it first if need be
    #[command(after_help = format!("{PROFILES}\n\nExamples:
  kelvin server up
  kelvin server up --profile steady --for last
  kelvin server up --version 16 --profile my.conf
  kelvin server up --engine mariadb --profile steady"))]
    Up {
        /// Which server
        #[arg(long, value_name = "ENGINE", default_value = "postgres")]
        engine: ServerEngine,
        /// Major version of PostgreSQL [default: the newest installed]
        #[arg(long, value_name = "VERSION")]
        version: Option<u32>,
        #[command(flatten)]
        profile: ProfileArgs,
    },
    /// Stop the server; its data stays
    Down {
        /// Which server [default: all of them]
        #[arg(long, value_name = "ENGINE", conflicts_with = "version")]
        engine: Option<ServerEngine>,
        /// Major version [default: all that run]
        #[arg(long, value_name = "VERSION")]
        version: Option<u32>,
    },
    /// Say whether it runs, and where
    Status,
    /// Show what differs from a profile
    ///
    /// Values are compared by what they mean: 8GB, 8192MB and 1048576 pages of 8 kB are one.
    #[command(after_help = format!("{PROFILES}\n\nExamples:
  kelvin server diff
  kelvin server diff --profile durable
  kelvin server diff --profile my.conf --target postgres://me@host/db"))]
    Diff {
        /// A server that is not kelvin's own [default: kelvin's own]
        #[arg(long, value_name = "TARGET", conflicts_with = "version")]
        target: Option<TargetName>,
        /// Major version of kelvin's own server [default: the newest]
        #[arg(long, value_name = "VERSION")]
        version: Option<u32>,
        #[command(flatten)]
        profile: ProfileArgs,
    },
    /// Give a server that is not kelvin's own a profile, until `kelvin server restore`
    ///
    /// The settings are changed with ALTER SYSTEM, which takes a superuser. What they were before is kept first, in a
    /// journal in the user's data directory. What only a restart brings is told, and not done.
    #[command(after_help = format!("{PROFILES}\n\nExamples:
  kelvin server apply --target postgres://me@host/db --profile my.conf
  kelvin server apply --target postgres://me@host/db --profile my.conf --allow-settings"))]
    Apply {
        /// The server
        #[arg(long, value_name = "TARGET")]
        target: TargetName,
        #[command(flatten)]
        profile: ProfileArgs,
        /// Do it; without this only what would change is shown
        #[arg(long)]
        allow_settings: bool,
    },
    /// Put back what `kelvin server apply` has changed
    #[command(
        after_help = "Examples:\n  kelvin server restore\n  kelvin server restore --target postgres://me@host/db"
    )]
    Restore {
        /// The server [default: all that were changed]
        #[arg(long, value_name = "TARGET")]
        target: Option<TargetName>,
    },
}

/// The servers that kelvin makes and starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ServerEngine {
    Postgres,
    Mariadb,
    Mysql,
}

/// Which profile, and for what run.
#[derive(Debug, Clone, Args)]
pub(crate) struct ProfileArgs {
    /// default, durable, steady, or a file [default: the one that it has, or default]
    #[arg(long, value_name = "PROFILE")]
    pub(crate) profile: Option<String>,
    /// The runs for which steady is sized: a stored run (number, label, or "last"), whose log was measured, or a
    /// specification, whose log is estimated [default: ten minutes, estimated]
    #[arg(long = "for", value_name = "RUN|SPEC", requires = "profile")]
    pub(crate) sized_for: Option<String>,
}

//! `kelvin fleet collect` and `kelvin fleet resume`.

use clap::Args;

use super::{NatsArgs, OutputArgs};

/// `kelvin fleet resume`.
#[derive(Debug, Clone, Args)]
pub(crate) struct FleetResumeArgs {
    /// The run: number, label, or last
    #[arg(default_value = "last")]
    pub(crate) run: String,
    #[command(flatten)]
    pub(crate) nats: NatsArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// `kelvin fleet collect`.
#[derive(Debug, Clone, Args)]
pub(crate) struct FleetCollectArgs {
    /// The run: number, label, or last
    pub(crate) run: Option<String>,
    /// Fetch the files of all hosts, not only of those that were lost
    #[arg(long, requires = "run")]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) nats: NatsArgs,
}

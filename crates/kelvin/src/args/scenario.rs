//! `kelvin scenario`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::fleet::NatsArgs;
use super::history::HistoryPlaceArgs;
use super::{FormatArgs, OutputArgs};

#[derive(Debug, Subcommand)]
#[command(
    after_help = "A scenario is a TOML file with tenants (each a specification), steps (start, stop, set, wait, wait-for, \
    run, mark) and expectations; docs/scenarios.md describes it. `kelvin run FILE` runs it as well.\n\
    \n\
    Examples:\n\
    \x20 kelvin scenario plan examples/colocation/io.toml\n\
    \x20 kelvin run examples/colocation/io.toml --param oltp-iops=200"
)]
pub(crate) enum ScenarioCommand {
    /// Run a scenario
    Run(Box<ScenarioRunArgs>),
    /// Check a scenario file without running it
    Check(ScenarioFileArgs),
    /// Print the timeline with the planned time of each step
    Plan(ScenarioFileArgs),
    /// Print the tenants, the parameters with their ranges, and the expectations
    Show(ScenarioFileArgs),
    /// The load of one tenant, as orders on standard input say; `kelvin run` starts it for a tenant with limits
    #[command(hide = true)]
    Tenant,
}

/// A scenario's file with its parameters.
#[derive(Debug, Args)]
pub(crate) struct ScenarioFile {
    /// The scenario, a TOML file
    #[arg(value_name = "FILE.toml")]
    pub(crate) file: PathBuf,
    /// Set a parameter of the file; may be given several times
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub(crate) parameters: Vec<(String, String)>,
}

/// `kelvin scenario check`, `plan` and `show`.
#[derive(Debug, Args)]
pub(crate) struct ScenarioFileArgs {
    #[command(flatten)]
    pub(crate) scenario: ScenarioFile,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

/// `kelvin scenario run`.
#[derive(Debug, Args)]
pub(crate) struct ScenarioRunArgs {
    #[command(flatten)]
    pub(crate) scenario: ScenarioFile,
    /// Allow the commands and shell scripts that the file names
    #[arg(long)]
    pub(crate) allow_shell: bool,
    /// Permit I/O jobs to write to this block device, whose contents are destroyed; may be given several times
    #[arg(long, value_name = "DEVICE")]
    pub(crate) i_know_it_destroys: Vec<PathBuf>,
    /// Also run the scenario without each tenant in turn, in random order and in rounds, until the effect of every
    /// other tenant is established or --rounds is reached
    #[arg(long)]
    pub(crate) prove: bool,
    /// With --prove: maximum number of rounds, 4 to 100; a round runs the scenario once with all tenants and once
    /// without each
    #[arg(long, value_name = "N", default_value_t = 8, requires = "prove", value_parser = clap::value_parser!(u32).range(4..=100))]
    pub(crate) rounds: u32,
    /// Show the run full-screen in the terminal, with a panel for each tenant
    #[arg(long)]
    pub(crate) tui: bool,
    #[command(flatten)]
    pub(crate) fleet: NatsArgs,
    #[command(flatten)]
    pub(crate) history: HistoryPlaceArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

fn name_and_value(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE, such as users=8")?;
    Ok((name.trim().to_owned(), value.to_owned()))
}

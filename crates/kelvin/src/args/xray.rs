//! `kelvin xray`.

use std::path::PathBuf;

use clap::Args;
use kelvin_xray::Assignment;

use super::OutputArgs;
use super::fleet::NatsArgs;
use super::hammerdb::factor;

/// `kelvin xray`.
#[derive(Debug, Args)]
#[command(
    after_help = "The scenario folder is read unchanged: variables, Jinja, VM groups, workloads with their fio files, steps, \
    results. Each workload becomes a tenant, with a copy for each machine of its group. The cluster has as few nodes as the \
    scenario allows, unless --nodes sets their number.\n\
    \n\
    A step that needs a hypervisor (nodes.PowerOff, vm_group.MigrateGroup, vm_group.CreatePeriodicSnapshots, \
    ...) is bound to a command or rejected by name before anything starts. {ARGUMENT} in the command is an \
    argument of the step, and {snapshot} the number of a snapshot.\n\
    \n\
    Devices of the machines become files in a directory, one for each group, copy and device. --map places them: DIR, \
    GROUP=DIR, DEVICE=TARGET or GROUP:DEVICE=TARGET; {group}, {copy} and {device} in it are replaced.\n\
    \n\
    Expected values and bands are printed with those calculated from the rates: X-Ray's band for a point \
    assumes one second of Poisson arrivals, regardless of the time the point covers.\n\
    \n\
    Examples:\n\
    \x20 kelvin xray database_colocation_standard --check\n\
    \x20 kelvin xray database_colocation_standard --scale-time 0.02 --scale-size 0.01\n\
    \x20 kelvin xray database_colocation_standard --print-scenario > colocation.toml\n\
    \x20 kelvin xray database_colocation_standard --map OLTP=/mnt/fast --map DSS=/mnt/slow\n\
    \x20 kelvin xray snapshot_impact_high --bind vm_group.CreatePeriodicSnapshots='lvcreate -s -n s{snapshot} -L 1G vg/data'"
)]
pub(crate) struct XrayArgs {
    /// The scenario: its folder, or its .yml file
    #[arg(value_name = "FOLDER")]
    pub(crate) path: PathBuf,
    /// Print what would run and the expected results, without running anything
    #[arg(long)]
    pub(crate) check: bool,
    /// Print the scenario in Kelvin's own format, without running it
    #[arg(long, conflicts_with = "check")]
    pub(crate) print_scenario: bool,
    /// Set a variable of the scenario
    #[arg(long, value_name = "NAME=VALUE", value_parser = parameter)]
    pub(crate) param: Vec<(String, String)>,
    /// Run this command for a step that needs a hypervisor
    #[arg(long, value_name = "STEP=COMMAND", value_parser = assignment)]
    pub(crate) bind: Vec<Assignment>,
    /// Place devices of the machines [default: files below ./SCENARIO.data]
    #[arg(long, value_name = "[DEVICE=]TARGET", value_parser = assignment)]
    pub(crate) map: Vec<Assignment>,
    /// Run the machines of a group on agents of a fleet, one agent for each
    #[arg(long, value_name = "GROUP=AGENT[,AGENT…]", value_parser = parameter)]
    pub(crate) place: Vec<(String, String)>,
    /// Number of nodes of the cluster [default: as few as the scenario allows]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) nodes: Option<u32>,
    /// Multiply all times of the scenario by this factor
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = factor)]
    pub(crate) scale_time: f64,
    /// Multiply all file sizes by this factor
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = factor)]
    pub(crate) scale_size: f64,
    /// Permit I/O jobs to write to this block device, whose contents are destroyed; may be given several times
    #[arg(long, value_name = "DEVICE")]
    pub(crate) i_know_it_destroys: Vec<PathBuf>,
    /// Show the run full-screen in the terminal, with a panel for each tenant
    #[arg(long)]
    pub(crate) tui: bool,
    #[command(flatten)]
    pub(crate) fleet: NatsArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

fn parameter(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("must be NAME=VALUE")?;
    Ok((name.trim().to_owned(), value.to_owned()))
}

#[allow(clippy::unnecessary_wraps, reason = "clap's parsers are fallible")]
fn assignment(text: &str) -> Result<Assignment, String> {
    Ok(Assignment::parse(text))
}

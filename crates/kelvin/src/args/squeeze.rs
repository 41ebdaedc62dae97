//! `kelvin squeeze`'s flags: those of a run, and how hard it squeezes.

use std::ffi::OsString;

use anyhow::{Result, bail};
use clap::Args;
use kelvin_lab::squeeze::{Means, Options};
use kelvin_run::Spec;
use kelvin_run::spec::{Span, WorkloadName};

use super::RunArgs;
use super::workload::TakesFile;

/// `kelvin squeeze`.
#[derive(Debug, Args)]
#[command(
    override_usage = "kelvin squeeze <WORKLOAD|FILE.toml> [OPTIONS]",
    disable_help_subcommand = true,
    subcommand_help_heading = "Workloads",
    subcommand_value_name = "WORKLOAD|FILE.toml",
    after_help = "A run during which one resource at a time has a share taken away, in slices of some seconds in random \
    order; how the throughput answers says what it waits for. An elasticity of 1 is a resource that all the work waits \
    for, 0 one that it does not wait for. The server's CPU can come out above 1 (docs/machine.md has \
    figures). The window is as long as the slices need: --duration has no say.\n\n\
    It needs a database on this host that kelvin may move into a control group (root, as a rule), and puts everything \
    back however it ends. Where there are no control groups, the server's CPU is cut by CPU affinity, where a whole number \
    of CPUs comes near the cut (1 of 4 is 25 %), or else by stopping its processes for parts of every 20 ms, which its user \
    may too. The run's own figures are those of a squeezed database.\n\n\
    Examples:\n  kelvin squeeze tproc-c --target postgres -w 4 --users 16\n  \
    kelvin squeeze run.toml --cut 10 --pairs 20"
)]
pub(crate) struct SqueezeArgs {
    #[command(flatten)]
    pub(crate) run: RunArgs,
    /// Per cent of each resource that is taken away, 5 to 50 [default: 20]
    #[arg(long, global = true, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(5..=50),
        help_heading = "Squeeze")]
    cut: Option<u8>,
    /// Pairs of slices, with and without the cut, for each resource, 2 to 200 [default: 10]
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=200),
        help_heading = "Squeeze")]
    pairs: Option<u32>,
    /// Length of a slice in whole seconds, the first of which does not count, 2s to 1m [default: 3s]
    #[arg(long, global = true, value_name = "TIME", help_heading = "Squeeze")]
    slice: Option<Span>,
    /// By what the server's CPU is cut: control-group, affinity or rate-cap [default: the first that there is]
    #[arg(long, global = true, value_name = "MEANS", help_heading = "Squeeze")]
    cpu_by: Option<CpuBy>,
}

/// What `--cpu-by` takes.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum CpuBy {
    /// A control group's bandwidth
    ControlGroup,
    /// Fewer CPUs for the server's processes, in whole ones
    Affinity,
    /// The server's processes are stopped once they have used what they may in 20 ms
    RateCap,
}

impl From<CpuBy> for Means {
    fn from(by: CpuBy) -> Self {
        match by {
            CpuBy::ControlGroup => Self::ControlGroup,
            CpuBy::Affinity => Self::Affinity,
            CpuBy::RateCap => Self::RateCap,
        }
    }
}

impl SqueezeArgs {
    /// How hard and how often.
    pub(crate) fn options(&self) -> Result<Options> {
        let mut options = Options::default();
        options.cut = self.cut.map_or(options.cut, |percent| f64::from(percent) / 100.0);
        options.means = self.cpu_by.map(Means::from);
        options.pairs = self.pairs.unwrap_or(options.pairs);
        if let Some(slice) = self.slice {
            let seconds = slice.nanos() / 1_000_000_000;
            if seconds * 1_000_000_000 != slice.nanos() || !(2..=60).contains(&seconds) {
                bail!("--slice {slice}: slices are whole seconds, from 2s to 1m");
            }
            options.slice = seconds;
        }
        Ok(options)
    }
}

impl TakesFile for SqueezeArgs {
    fn other(&self) -> Option<&[OsString]> {
        self.run.other()
    }

    fn set_file(&mut self, spec: Spec) {
        self.run.set_file(spec);
    }

    fn workloads(&self) -> &'static [WorkloadName] {
        self.run.workloads()
    }
}

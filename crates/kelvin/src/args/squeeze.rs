//! `kelvin squeeze`'s flags: those of a run, and the strength of the squeeze.

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
    after_help = "During the run, one resource at a time is reduced, in slices of a few seconds in random \
    order. The response of the throughput shows which resource limits it: an elasticity of 1 means that \
    throughput falls in proportion to the resource, 0 that it does not fall. The elasticity of the server's \
    CPU can exceed 1 (docs/machine.md has examples). The slices determine the length of the window; \
    --duration is ignored.\n\
    \n\
    It requires a database on this host, and permission to move its server into a control group (usually \
    root). The original limits are always restored when the run ends. Without control groups, the server's \
    CPU is limited by CPU affinity if a whole number of CPUs is close to the percentage (1 of 4 is 25 %), \
    or otherwise by stopping its processes for part of every 20 ms, which needs only the server's user. The \
    run's own results are those of a throttled database.\n\
    \n\
    Examples:\n\
    \x20 kelvin squeeze tproc-c --target postgres -w 4 --users 16\n\
    \x20 kelvin squeeze run.toml --cut 10 --pairs 20"
)]
pub(crate) struct SqueezeArgs {
    #[command(flatten)]
    pub(crate) run: RunArgs,
    /// Percentage by which each resource is reduced, 5 to 50 [default: 20]
    #[arg(long, global = true, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(5..=50),
        help_heading = "Squeeze")]
    cut: Option<u8>,
    /// Pairs of slices per resource, with and without the reduction, 2 to 200 [default: 10]
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=200),
        help_heading = "Squeeze")]
    pairs: Option<u32>,
    /// Length of a slice in whole seconds, 2s to 1m; the first second does not count [default: 3s]
    #[arg(long, global = true, value_name = "TIME", help_heading = "Squeeze")]
    slice: Option<Span>,
    /// How to limit the server's CPU: control-group, affinity or rate-cap [default: the first available]
    #[arg(long, global = true, value_name = "MEANS", help_heading = "Squeeze")]
    cpu_by: Option<CpuBy>,
}

/// The values of `--cpu-by`.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum CpuBy {
    /// Bandwidth of a control group
    ControlGroup,
    /// Fewer whole CPUs for the server's processes
    Affinity,
    /// Stop the server's processes once they have used their share of each 20 ms
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
                bail!("--slice {slice}: must be whole seconds, from 2s to 1m");
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

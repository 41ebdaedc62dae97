//! The flags of a run that is repeated.

use anyhow::{Result, anyhow, bail};
use clap::Args;
use kelvin_lab::repeat::{Plan, Until};
use kelvin_lab::{Spec, bench};

/// Figures by which runs can be judged.
pub(super) const FIGURES: [&str; 12] = [
    "nopm",
    "tps",
    "transactions",
    "mean",
    "p50",
    "p95",
    "p99",
    "client-cpu",
    "server-cpu",
    "cpu",
    "server-instructions",
    "wal",
];

/// How often a run is repeated.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RepeatArgs {
    /// Run it so many times, and say whether the result is statistically correct: 2 to 1000
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1000), help_heading = "Repetition")]
    repeat: Option<u32>,

    /// Repeat it until half the 95 % interval of the mean over runs is below so much of the mean, such as 'ci<1%';
    /// from 6 runs on, or from --repeat
    #[arg(long, value_name = "RULE", help_heading = "Repetition")]
    until: Option<Until>,

    /// With --until: runs that count, at most [default: 30]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1000), requires = "until",
        help_heading = "Repetition")]
    max_runs: Option<u32>,

    /// Void runs that are replaced before it ends [default: a third of the runs]
    #[arg(long, value_name = "N", help_heading = "Repetition")]
    replace: Option<u32>,

    /// The figure by which repeated runs are judged [default: the throughput; p99 with a rate]
    #[arg(long, value_name = "FIGURE", value_parser = FIGURES, hide_possible_values = true,
        help_heading = "Repetition")]
    figure: Option<String>,
}

impl RepeatArgs {
    /// The plan; none when the run is made once.
    pub(super) fn plan(&self, spec: &Spec) -> Result<Option<Plan>> {
        if self.repeat.is_none() && self.until.is_none() {
            if self.replace.is_some() || self.figure.is_some() {
                bail!("--replace and --figure belong to repeated runs: say --repeat N, or --until 'ci<1%'");
            }
            return Ok(None);
        }
        bench::suits(spec).map_err(|why| anyhow!(why))?;
        let mut plan = match (self.until, self.repeat) {
            (None, runs) => Plan::fixed(spec, runs.unwrap_or(Plan::FEWEST)),
            (Some(until), runs) => {
                let runs = runs.unwrap_or(Plan::FEWEST).max(Plan::FEWEST);
                let most = self.max_runs.unwrap_or(Plan::MOST.max(runs));
                if most < runs {
                    bail!(
                        "--max-runs {most}: there are at least {runs} runs, of which an interval can be told"
                    );
                }
                Plan::until(spec, runs, most, until.half_width())
            }
        };
        plan.replace = self.replace.unwrap_or(plan.replace);
        plan.figure = self.figure.clone().or(plan.figure);
        Ok(Some(plan))
    }
}

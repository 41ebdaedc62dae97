//! The flags of a repeated run.

use anyhow::{Result, anyhow, bail};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use kelvin_diagnose::{KEY_FIGURES, QUERY_FIGURES};
use kelvin_lab::bench::{self, key_figures};
use kelvin_lab::repeat::{RepeatPlan, Until};
use kelvin_run::Spec;

/// What runs can be judged by.
pub(super) fn measures() -> PossibleValuesParser {
    let queries = QUERY_FIGURES.into_iter().filter(|figure| !KEY_FIGURES.contains(figure));
    // The help shows the first of many queries only.
    let queries =
        queries.map(|figure| PossibleValue::new(figure).hide(!["geometric-mean", "q1"].contains(&figure)));
    let others = HEADLINES.into_iter().chain(KEY_FIGURES).chain(["bandwidth"]).map(PossibleValue::new);
    others.chain(queries).collect::<Vec<_>>().into()
}

/// Of all workloads.
const HEADLINES: [&str; 4] = ["nopm", "tps", "iops", "queries/min"];

/// Rejects the headline of another workload, which would otherwise be noticed only after the last run.
pub(super) fn refuse_other_headline(measure: Option<&str>, spec: &Spec) -> Result<()> {
    let headline = spec.workload().headline();
    match measure {
        Some(other) if HEADLINES.contains(&other) && other != headline => {
            bail!("--measure {other}: the headline of {} is {headline}", spec.workload().as_str())
        }
        Some(figure) if figure != headline && !key_figures(spec).contains(&figure) => {
            bail!("--measure {figure}: {} does not report it", spec.workload().as_str())
        }
        _ => Ok(()),
    }
}

/// How often a run is repeated.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RepeatArgs {
    /// Repeat the run N times, 2 to 1000, and judge the result statistically. Each run starts with the data that the
    /// previous one left, unless --reset is given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1000), help_heading = "Repetition")]
    repeat: Option<u32>,

    /// Repeat the run until the half-width of the mean's 95 % confidence interval is below this percentage of the mean,
    /// such as 'ci<1%'; at least 6 runs, or --repeat
    #[arg(long, value_name = "RULE", help_heading = "Repetition")]
    until: Option<Until>,

    /// With --until: the maximum number of counted runs [default: 30]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1000), requires = "until",
        help_heading = "Repetition")]
    max_runs: Option<u32>,

    /// Maximum number of void runs to replace [default: a third of the runs]
    #[arg(long, value_name = "N", help_heading = "Repetition")]
    replacements: Option<u32>,

    /// The metric by which repeated runs are judged, as in kelvin history [default: throughput; p99 with --rate]
    #[arg(long, value_name = "MEASURE", value_parser = measures(), hide_possible_values = true,
        help_heading = "Repetition")]
    measure: Option<String>,
}

impl RepeatArgs {
    /// Whether there is to be more than one run.
    pub(crate) fn is_given(&self) -> bool {
        self.repeat.is_some() || self.until.is_some()
    }

    /// The plan; none if it runs once.
    pub(super) fn plan(&self, spec: &Spec) -> Result<Option<RepeatPlan>> {
        if self.repeat.is_none() && self.until.is_none() {
            if self.replacements.is_some() || self.measure.is_some() {
                bail!(
                    "--replacements and --measure are for repeated runs: give --repeat N, or --until 'ci<1%'"
                );
            }
            return Ok(None);
        }
        bench::suits(spec).map_err(|why| anyhow!(why))?;
        let mut plan = match (self.until, self.repeat) {
            (None, runs) => RepeatPlan::fixed(spec, runs.unwrap_or(RepeatPlan::FEWEST)),
            (Some(until), runs) => {
                let runs = runs.unwrap_or(RepeatPlan::FEWEST).max(RepeatPlan::FEWEST);
                let most = self.max_runs.unwrap_or(RepeatPlan::MOST.max(runs));
                if most < runs {
                    bail!("--max-runs {most}: an interval needs at least {runs} runs");
                }
                RepeatPlan::until(spec, runs, most, until.half_width())
            }
        };
        refuse_other_headline(self.measure.as_deref(), spec)?;
        plan.replace = self.replacements.unwrap_or(plan.replace);
        plan.figure = self.measure.clone().or(plan.figure);
        Ok(Some(plan))
    }
}

//! The flags of commands on several runs (`compare`, `history`, `gate`), and those that enter a run into the
//! history.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use kelvin_lab::store_bench::HistoryKey;
use kelvin_report::gate::Limit;
use kelvin_store::history_name;

use super::FormatArgs;

/// The names of runs.
const NAMES: &str = "Runs are named by\n\
    \x20 12, last, last-1, base      a number, the last, the one before it, the newest with this label\n\
    \x20 12,13,15 or 12..17          several runs\n\
    \x20 label:base                  all runs with this label\n\
    \x20 group:4, group:4/B          a group of repeats, an A/B or a study; one of its treatments\n\
    \x20 branch:main                 the newest 6 of a branch (main~20: the newest 20; main@TESTBED: of one \
    testbed)\n\
    A name that selects several runs skips runs that do not count (void, partial, failed).";

/// `kelvin compare`.
#[derive(Debug, Args)]
#[command(after_help = format!("{NAMES}\n\
    \n\
    The first is the base; every other one is compared with it. Give six runs per side, made in alternating \
    order; with fewer than four there is no verdict. The verdict is on the headline (in open loops, on the \
    p99 of the response time); all other metrics are exploratory. Differences in specification and \
    environment are printed in red.\n\
    \n\
    Examples:\n\
    \x20 kelvin compare 12 15\n\
    \x20 kelvin compare group:4/A group:4/B\n\
    \x20 kelvin compare branch:main branch:feature --noise 2%\n\
    \x20 kelvin compare 1..6 7..12 --html compare.html"))]
pub(crate) struct CompareArgs {
    /// The runs or groups of runs to compare, the base first
    #[arg(required = true, num_args = 2.., value_name = "RUNS")]
    pub(crate) runs: Vec<String>,
    /// The smallest change that matters: a smaller change is "within noise"
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = percent)]
    pub(crate) noise: f64,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
    /// Also write a self-contained HTML page; for two sides only
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

/// `kelvin history`.
#[derive(Debug, Args)]
#[command(
    after_help = "Runs enter the history with `kelvin run … --branch NAME` (or KELVIN_BRANCH). One entry is \
    a run, or the median of the runs of a group. A level change is reported where a t-test between the \
    entries before and after gives p < 0.001; a change can be detected once about four entries follow it.\n\
    \n\
    Metrics: the headline (nopm, tps), transactions, mean, p50, p95, p99, client-cpu, server-cpu, cpu, \
    server-instructions, wal (of a scenario's tenants: throughput, mean, p50, p95, p99), or the name of any observed metric, such as postgres.wal.bytes. CPU per \
    transaction varies less from run to run than throughput.\n\
    \n\
    Examples:\n\
    \x20 kelvin history\n\
    \x20 kelvin history main --measure server-cpu\n\
    \x20 kelvin history main --html trend.html"
)]
pub(crate) struct HistoryArgs {
    /// The branch [default: that of the newest run]
    pub(crate) branch: Option<String>,
    /// The metric [default: the headline; in an open loop p99 of the response time]
    #[arg(long, short, value_name = "MEASURE")]
    pub(crate) measure: Option<String>,
    /// The testbed [default: that of the branch's newest run]
    #[arg(long, value_name = "NAME")]
    pub(crate) testbed: Option<String>,
    /// The workload [default: that of the newest run]
    #[arg(long, value_name = "WORKLOAD")]
    pub(crate) workload: Option<String>,
    /// The tenant of a scenario [default: each separately]
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    /// Use only the newest N runs
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = runs)]
    pub(crate) last: usize,
    /// Also write the trend as a self-contained HTML page
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

/// `kelvin gate`.
#[derive(Debug, Args)]
#[command(after_help = format!("{NAMES}\n\
    \n\
    Passes if no regression larger than allowed is shown; with --strict, only if such a regression is ruled \
    out. The interval of the ratio is a 95 % interval, or wider if several measures are judged: together \
    they fail a candidate within the limit by chance in at most 2.5 % of the checks.\n\
    \n\
    Exit codes: 0 passed · 1 regressed (with --strict: or not ruled out) · 2 bad input · 5 not testable: too \
    few runs (at least four per side, six advised) · 6 blind: the scatter is too large to detect a \
    regression of the allowed size\n\
    \n\
    Examples:\n\
    \x20 kelvin gate --against branch:main --max-regression 3%\n\
    \x20 kelvin gate group:7 --against branch:main~12 --max-regression 3% --measure nopm --measure p99:10%\n\
    \x20 kelvin gate --against label:release --max-regression 2% --strict --junit gate.xml --markdown -"))]
pub(crate) struct GateArgs {
    /// The runs to judge [default: the newest run, with its group]
    #[arg(value_name = "CANDIDATE")]
    pub(crate) candidate: Option<String>,
    /// The runs to judge against; runs of the candidate are excluded
    #[arg(long, value_name = "BASE")]
    pub(crate) against: String,
    /// The largest regression allowed
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub(crate) max_regression: f64,
    /// A metric, optionally with its own limit after a colon (p99:5%); may be given several times [default: the
    /// headline; p99 with a rate]
    #[arg(long, short, value_name = "MEASURE[:PERCENT]")]
    measure: Vec<String>,
    /// Also fail if a larger regression cannot be ruled out
    #[arg(long)]
    pub(crate) strict: bool,
    /// Also write the result as JUnit XML for a CI server
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Also write the result as Markdown for a pull request; "-" prints it instead of the text
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

impl GateArgs {
    /// The measures with their limits.
    pub(crate) fn limits(&self) -> Result<Vec<Limit>> {
        if self.measure.is_empty() {
            return Ok(vec![Limit { measure: None, most: self.max_regression }]);
        }
        let mut limits: Vec<Limit> = Vec::new();
        for text in &self.measure {
            let limit =
                limit(text, self.max_regression).map_err(|why| anyhow::anyhow!("--measure {text}: {why}"))?;
            if limits.iter().any(|known| known.measure == limit.measure) {
                bail!("--measure {text}: this measure is given twice; give it once, with its limit");
            }
            limits.push(limit);
        }
        Ok(limits)
    }
}

/// "p99" or "p99:5%".
fn limit(text: &str, most: f64) -> Result<Limit, String> {
    let (name, most) = match text.rsplit_once(':') {
        Some((name, own)) => (name, percent(own)?),
        None => (text, most),
    };
    if name.trim().is_empty() {
        return Err("needs a measure before the limit, such as p99:5%".into());
    }
    Ok(Limit { measure: Some(name.trim().to_lowercase()), most })
}

/// Where a run belongs in the history.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct HistoryPlaceArgs {
    /// Add the run to the history of this branch, for `kelvin history` and `kelvin gate` [env: KELVIN_BRANCH]
    #[arg(long, value_name = "NAME", value_parser = name)]
    branch: Option<String>,

    /// Name of this machine in the history [env: KELVIN_TESTBED] [default: from host name and CPU model]
    #[arg(long, value_name = "NAME", value_parser = name)]
    testbed: Option<String>,
}

impl HistoryPlaceArgs {
    /// Whether one of the flags is there.
    pub(crate) fn is_given(&self) -> bool {
        self.branch.is_some() || self.testbed.is_some()
    }

    /// The flags, then the environment; none without a branch.
    pub(crate) fn history_key(&self) -> Result<Option<HistoryKey>> {
        self.place_with(|variable| std::env::var(variable).ok())
    }

    fn place_with(&self, variable: impl Fn(&str) -> Option<String>) -> Result<Option<HistoryKey>> {
        let from = |flag: &Option<String>, variable_name: &str| -> Result<Option<String>> {
            let given = variable(variable_name).filter(|value| !value.is_empty());
            match (flag, given) {
                (Some(flag), _) => Ok(Some(flag.clone())),
                (None, Some(value)) => match name(&value) {
                    Ok(value) => Ok(Some(value)),
                    Err(why) => bail!("{variable_name}={value:?} {why}"),
                },
                (None, None) => Ok(None),
            }
        };
        let testbed = from(&self.testbed, "KELVIN_TESTBED")?;
        match from(&self.branch, "KELVIN_BRANCH")? {
            Some(branch) => Ok(Some(HistoryKey { branch, testbed })),
            None if self.testbed.is_some() => {
                bail!("--testbed applies to the history of a branch; give --branch NAME as well")
            }
            None => Ok(None),
        }
    }
}

fn name(text: &str) -> Result<String, String> {
    history_name(text).map(|()| text.to_owned())
}

/// "3%" as 0.03.
fn percent(text: &str) -> Result<f64, String> {
    let refused = || "not a percentage, such as 3% or 0.5%".to_owned();
    let number = text.trim().strip_suffix('%').ok_or_else(refused)?.trim_end();
    if number.starts_with('+') {
        return Err(refused());
    }
    let value: f64 = number.parse().map_err(|_| refused())?;
    if !value.is_finite() || value < 0.0 {
        return Err(refused());
    }
    if value >= 100.0 {
        return Err("100 % or more would allow every change; give a smaller percentage".into());
    }
    Ok(value / 100.0)
}

fn runs(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("0 runs would show nothing; give at least 1".into()),
        Ok(runs) => Ok(runs),
        Err(_) => Err("not a number of runs".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_read_and_others_refused() {
        for (text, value) in [("3%", 0.03), ("0.5 %", 0.005), ("0%", 0.0), ("99.9%", 0.999)] {
            assert!((percent(text).unwrap() - value).abs() < 1e-12, "{text}");
        }
        for refused in ["3", "", "%", "-1%", "+1%", "inf%", "NaN%", "three%", "100%", "3%%"] {
            assert!(percent(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn measures_have_a_limit_of_their_own() {
        let own = limit("P99:5%", 0.03).unwrap();
        assert_eq!((own.measure.as_deref(), own.most), (Some("p99"), 0.05));
        assert_eq!(limit("nopm", 0.03).unwrap().most, 0.03);
        for refused in [":5%", "", "p99:", "p99:5"] {
            assert!(limit(refused, 0.03).is_err(), "{refused}");
        }
    }

    #[test]
    fn flags_stand_before_the_environment_and_a_testbed_needs_a_branch() {
        let args = |branch: Option<&str>, testbed: Option<&str>| HistoryPlaceArgs {
            branch: branch.map(Into::into),
            testbed: testbed.map(Into::into),
        };
        let nothing = |_: &str| None;
        let set = |variable: &str| Some(format!("{variable} x")).filter(|_| variable.ends_with("BRANCH"));
        let place = args(Some("main"), Some("rack 7")).place_with(set).unwrap().unwrap();
        assert_eq!((place.branch.as_str(), place.testbed.as_deref()), ("main", Some("rack 7")));
        let place = args(None, Some("rack 7")).place_with(set).unwrap().unwrap();
        assert_eq!(place.branch, "KELVIN_BRANCH x");
        assert!(args(None, Some("rack 7")).place_with(nothing).is_err());
        assert_eq!(args(None, None).place_with(nothing).unwrap(), None);
        // A variable that is set for other commands is not an error.
        let testbed = |variable: &str| Some("t".to_owned()).filter(|_| variable.ends_with("TESTBED"));
        assert_eq!(args(None, None).place_with(testbed).unwrap(), None);
        assert!(args(None, None).place_with(|_| Some("a@b".into())).is_err());
        assert_eq!(args(None, None).place_with(|_| Some(String::new())).unwrap(), None);
    }
}

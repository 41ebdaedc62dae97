//! `kelvin io`: Kelvin's own flags, and job options in fio's language.
//!
//! clap cannot parse fio's options: `--rw=randread` belongs to the job that the last `--name` before it began.
//! [`arrange`] moves Kelvin's flags to the front, wherever they are on the command line, and puts the other arguments
//! after `--` in their order.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail};
use clap::builder::ValueHint;
use clap::{Args, Command, CommandFactory, Subcommand};
use kelvin_lab::repeat::RepeatPlan;
use kelvin_lab::store_bench::HistoryKey;
use kelvin_run::spec::{Setting, Work, WorkloadName};
use kelvin_run::{Spec, io};

use super::load::LoadArgs;
use super::{Cli, Flags};

/// `kelvin io`.
#[derive(Debug, Args)]
#[command(
    override_usage = "kelvin io [OPTIONS] JOB.fio…\n       \
        kelvin io [OPTIONS] --name=JOB --rw=randread --filename=FILE --size=1g [fio's options]…\n       \
        kelvin io explain | plot | sweep …",
    args_conflicts_with_subcommands = true,
    mut_arg("format", |arg| arg.hide(true)),
    disable_help_subcommand = true,
    after_help = "Job files and options are fio's, with fio's meaning; unsupported ones are rejected by \
    name. These options of fio also work: --output FILE, --output-format normal|terse|json|json+, --section, \
    --parse-only, --showcmd, --cmdhelp[=OPTION], --enghelp[=ENGINE], --readonly, --eta, --status-interval. \
    Write ./sweep for a job file named sweep; likewise for plot and explain.\n\
    \n\
    Examples:\n\
    \x20 kelvin io job.fio                                              like fio job.fio\n\
    \x20 kelvin io --name=a --rw=randread --bs=4k --iodepth=32 --ioengine=io_uring --direct=1 --filename=f \
    --size=1g --runtime=30 --time_based\n\
    \x20 kelvin io job.fio --output-format=json                         print only fio's JSON\n\
    \x20 kelvin io job.fio --repeat 6 --label new-disk                  repeat and judge the result\n\
    \x20 kelvin io sweep --bs 4k,64k --iodepth 1,8,32 job.fio           a table of all combinations\n\
    \n\
    Exit codes are fio's: 0 done · 1 bad input · otherwise the number of jobs that failed · 128 interrupted, \
    partial data kept. The run is stored; see kelvin runs, kelvin show and kelvin compare. docs/io.md is the \
    guide."
)]
pub(crate) struct IoArgs {
    #[command(subcommand)]
    pub(crate) command: Option<IoCommand>,
    #[command(flatten)]
    pub(crate) flags: IoFlags,
    /// Do not keep the run in kelvin's store
    #[arg(long, conflicts_with_all = ["repeat", "until", "label", "branch"])]
    pub(crate) no_store: bool,
    /// Print notes such as findings on standard error even if it is not a terminal
    #[arg(long)]
    pub(crate) notes: bool,
    /// Job files and fio's options
    #[arg(value_name = "JOB.fio|FIO-OPTION", value_hint = ValueHint::FilePath)]
    pub(crate) words: Vec<OsString>,
}

/// The other commands.
#[derive(Debug, Subcommand)]
pub(crate) enum IoCommand {
    /// Explain JSON results of Kelvin or fio in plain English; two or more are compared
    Explain(ExplainArgs),
    /// Draw charts of logs, results and stored runs, from Kelvin or fio
    Plot(super::io_plot::PlotArgs),
    /// Run every combination of block sizes, depths, mixes and numbers of jobs, or a curve of rates
    Sweep(Box<SweepArgs>),
}

/// `kelvin io explain`.
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// JSON results of `kelvin io` or fio
    #[arg(required = true, value_name = "OUTPUT.json", value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,
}

/// What is Kelvin's in a run of I/O jobs. The load is described by the jobs: flags that describe another are hidden, and
/// refused.
#[derive(Debug, Clone, Args)]
#[command(
    mut_arg("users", |arg| arg.hide(true)),
    mut_arg("ramp_up", |arg| arg.hide(true)),
    mut_arg("duration", |arg| arg.hide(true)),
    mut_arg("transactions", |arg| arg.hide(true)),
    mut_arg("think_time", |arg| arg.hide(true)),
    mut_arg("rate", |arg| arg.hide(true)),
    mut_arg("arrivals", |arg| arg.hide(true)),
    mut_arg("queue", |arg| arg.hide(true)),
    mut_arg("slo", |arg| arg.hide(true)),
    mut_arg("find_max", |arg| arg.hide(true)),
    mut_arg("resolution", |arg| arg.hide(true)),
    mut_arg("sweep", |arg| arg.hide(true)),
    mut_arg("users_on", |arg| arg.hide(true)),
    mut_arg("reset", |arg| arg.hide(true)),
    mut_arg("snapshot", |arg| arg.hide(true)),
    mut_arg("prewarm", |arg| arg.hide(true)),
    mut_arg("reset_vacuum", |arg| arg.hide(true)),
    mut_arg("reset_analyze", |arg| arg.hide(true)),
    mut_arg("reset_checkpoint", |arg| arg.hide(true)),
    mut_arg("idle_wait", |arg| arg.hide(true)),
    mut_arg("retries", |arg| arg.hide(true)),
    mut_arg("timeout", |arg| arg.hide(true)),
    mut_arg("no_build", |arg| arg.hide(true)),
    mut_arg("check", |arg| arg.hide(true)),
    mut_arg("sample_rate", |arg| arg.hide(true)),
    mut_arg("transaction_log", |arg| arg.hide(true)),
    mut_arg("no_observe", |arg| arg.help("Do not observe the host during the jobs")),
    mut_arg("observe_interval", |arg| arg.help("Interval between readings of the host's counters [default: 1s]")),
    mut_arg("seed", |arg| arg.help("Seed for random offsets; a job that sets randseed keeps its own").help_heading(None)),
    mut_arg("json", |arg| arg.visible_alias("json-events")),
    mut_arg("verbose", |arg| arg.hide(true)),
    mut_arg("repeat", |arg| arg.help("Repeat the run N times, 2 to 1000, and judge the result statistically")),
)]
pub(crate) struct IoFlags {
    /// Let jobs write to this block device even if it is mounted, in use or holds data; give its name as in the job.
    /// May be given several times
    #[arg(long, value_name = "DEVICE", help_heading = "Targets")]
    pub(crate) i_know_it_destroys: Vec<PathBuf>,
    /// Before the jobs start, create and fill files and areas that they read but that were never written
    #[arg(long, help_heading = "Targets")]
    prepare: bool,
    /// Split a job that names several files or devices into one job per file or device, each with the full iodepth
    #[arg(long, help_heading = "Targets")]
    per_target: bool,
    /// On a fleet, divide the workers of the jobs among the agents in order of worker number; otherwise every agent
    /// runs every job
    #[arg(long, help_heading = "Fleet")]
    split_workers: bool,
    #[command(flatten)]
    pub(crate) load: LoadArgs,
}

impl IoFlags {
    /// Applies the flags on top of a file or fio's options.
    pub(crate) fn apply(&self, spec: &mut Spec) -> Result<()> {
        if self.load.fleet.is_given() && !self.i_know_it_destroys.is_empty() {
            bail!(
                "on a fleet each agent determines what may be destroyed: start it with \
                --i-know-it-destroys"
            );
        }
        if self.split_workers && !self.load.fleet.is_given() {
            bail!("--split-workers divides workers among the agents of a fleet: give --fleet NAME as well");
        }
        self.load.apply(spec)?;
        if let Work::Io(io) = &mut spec.work {
            io.prepare |= self.prepare;
            io.per_target |= self.per_target;
            io.split_workers |= self.split_workers;
        }
        Ok(())
    }

    /// How often the run is repeated; none if it runs once.
    pub(crate) fn repeat(&self, spec: &Spec) -> Result<Option<RepeatPlan>> {
        self.load.repeat.plan(spec)
    }

    /// Where the run is kept in the history; none if it is not.
    pub(crate) fn history(&self) -> Result<Option<HistoryKey>> {
        self.load.history.history_key()
    }
}

/// `kelvin run io`.
#[derive(Debug, Clone, Args)]
#[command(
    override_usage = "kelvin run io --job JOB.fio [OPTIONS]",
    mut_arg("verbose", |arg| arg.short('v').hide(false)),
    mut_arg("users", |arg| arg.short('u').hide(false).help("Clones of each job (numjobs)")),
    mut_arg("duration", |arg| arg.short('d').hide(false).help("How long each job runs (runtime, time_based)")),
    mut_arg("ramp_up", |arg| arg.hide(false).help("How long each job runs before it is measured (ramp_time)")),
    after_help = "The same engine as `kelvin io`, with the output and the exit codes of `kelvin run`.\n\n\
    Examples:\n  kelvin run io --job job.fio\n  kelvin run io --job job.fio --set iodepth=8 --repeat 6\n  \
    kelvin run io --job job.fio --print-spec > io.toml && kelvin ab io.toml other.toml"
)]
pub(crate) struct RunArgs {
    /// The fio job file
    #[arg(long, value_name = "JOB.fio", value_hint = ValueHint::FilePath)]
    job: Option<PathBuf>,
    /// Override this fio option in every job; may be given several times
    #[arg(long, value_name = "OPTION=VALUE", value_parser = setting)]
    set: Vec<(String, String)>,
    /// Run this section only; may be given several times
    #[arg(long, value_name = "NAME")]
    section: Vec<String>,
    /// Reject jobs that would write
    #[arg(long)]
    readonly: bool,
    #[command(flatten)]
    pub(super) flags: IoFlags,
}

impl Flags for RunArgs {
    fn apply(&self, spec: &mut Spec) -> Result<()> {
        let Work::Io(options) = &mut spec.work else { return Ok(()) };
        if let Some(job) = &self.job {
            options.job = io::jobfile_text::resolved(job).map_err(|why| anyhow!(why))?;
            // Parsed again for the message: it has the line in the file, which the specification no longer has.
            kelvin_storage::jobfile::parse_file(job, &self.section)?;
        }
        if options.job.is_empty() {
            bail!("give the job file as --job JOB.fio");
        }
        for (name, value) in &self.set {
            options.set.insert(name.clone(), Setting::Text(value.clone()));
        }
        if !self.section.is_empty() {
            options.sections.clone_from(&self.section);
        }
        options.read_only |= self.readonly;
        let mut flags = self.flags.clone();
        for (option, value) in flags.load.take_shape()? {
            options.set.insert(option.to_owned(), Setting::Text(value));
        }
        flags.apply(spec)?;
        Ok(())
    }
}

/// `kelvin io sweep`.
#[derive(Debug, Args)]
#[command(
    mut_arg("repeat", |arg| arg.hide(true)),
    mut_arg("until", |arg| arg.hide(true)),
    mut_arg("max_runs", |arg| arg.hide(true)),
    mut_arg("replacements", |arg| arg.hide(true)),
    mut_arg("measure", |arg| arg.hide(true)),
    mut_arg("tui", |arg| arg.hide(true)),
    override_usage = "kelvin io sweep [--bs 4k,64k] [--iodepth 1,8,32] [--rwmixread 100,70] [--numjobs 1,2]\n                       \
        [OPTIONS] JOB.fio…\n       \
        kelvin io sweep --rate-curve 10..100% [OPTIONS] JOB.fio…",
    after_help = "Every combination is a separate run of one group; kelvin groups prints the table again. \
    Each value overrides that of every job. With time-based jobs (runtime, time_based), the remaining time \
    is shown.\n\
    \n\
    A rate curve first finds the highest throughput, then issues I/Os at fractions of it with random gaps \
    and reports latencies from the scheduled start.\n\
    \n\
    Examples:\n\
    \x20 kelvin io sweep --bs 4k,64k --iodepth 1,8,32 job.fio\n\
    \x20 kelvin io sweep --rate-curve 10..100% --name=a --rw=randread --filename=f --size=1g --runtime=10 \
    --time_based"
)]
pub(crate) struct SweepArgs {
    /// Block sizes
    #[arg(long, value_name = "SIZE,…", value_delimiter = ',', help_heading = "Sweep")]
    pub(crate) bs: Vec<String>,
    /// I/Os in flight
    #[arg(long, value_name = "N,…", value_delimiter = ',', help_heading = "Sweep")]
    pub(crate) iodepth: Vec<String>,
    /// Percentages of reads in a mix; jobs must be mixes (rw, randrw)
    #[arg(long, value_name = "PERCENT,…", value_delimiter = ',', help_heading = "Sweep")]
    pub(crate) rwmixread: Vec<String>,
    /// Clones of each job
    #[arg(long, value_name = "N,…", value_delimiter = ',', help_heading = "Sweep")]
    pub(crate) numjobs: Vec<String>,
    /// Rates as percentages of the highest throughput, which is measured first: 10..100% for ten steps, 10..100%:5 for
    /// five steps, or 10,50,90%
    #[arg(long, value_name = "PERCENT", value_parser = percents, conflicts_with_all = ["bs", "iodepth", "rwmixread", "numjobs"],
        help_heading = "Sweep")]
    pub(crate) rate_curve: Option<Percents>,
    #[command(flatten)]
    pub(crate) flags: IoFlags,
    /// Job files and fio's options
    #[arg(value_name = "JOB.fio|FIO-OPTION", value_hint = ValueHint::FilePath)]
    pub(crate) words: Vec<OsString>,
}

/// Percents of a rate curve, ascending.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Percents(pub(crate) Vec<f64>);

fn percents(text: &str) -> Result<Percents, String> {
    let form = || format!("\"{text}\" is not a rate curve; write 10..100%, 10..100%:5 or 10,50,90%");
    let number = |text: &str| -> Result<f64, String> {
        let value: f64 = text.trim().trim_end_matches('%').parse().map_err(|_| form())?;
        if (1.0..=200.0).contains(&value) {
            Ok(value)
        } else {
            Err(format!("{value} %: rates must be between 1 and 200 %"))
        }
    };
    let mut values = match text.split_once("..") {
        Some((from, rest)) => {
            let (to, steps) = match rest.split_once(':') {
                Some((to, steps)) => (to, steps.trim().parse::<u32>().map_err(|_| form())?),
                None => (rest, 10),
            };
            let (from, to) = (number(from)?, number(to)?);
            if from >= to || !(2..=100).contains(&steps) {
                return Err(form());
            }
            (0..steps).map(|step| from + (to - from) * f64::from(step) / f64::from(steps - 1)).collect()
        }
        None => text.split(',').map(number).collect::<Result<Vec<f64>, String>>()?,
    };
    values.sort_by(f64::total_cmp);
    values.dedup();
    Ok(Percents(values))
}

fn setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or_else(|| format!("\"{text}\": write OPTION=VALUE"))?;
    if name.trim().is_empty() || text.contains('\n') {
        return Err(format!("{text:?}: write OPTION=VALUE"));
    }
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// fio's arguments as text.
pub(crate) fn texts(words: &[OsString]) -> Result<Vec<String>> {
    let text = |word: &OsString| {
        word.to_str().map(ToOwned::to_owned).with_context(|| format!("{} is not UTF-8", word.display()))
    };
    words.iter().map(text).collect()
}

/// The workload's name.
pub(crate) const WORKLOAD: WorkloadName = WorkloadName::Io;

/// The position in the command line after which fio's arguments may follow: that of `io`, and of `sweep` if present.
fn io_position(words: &[OsString]) -> Option<(usize, bool)> {
    let mut at = 1;
    while let Some(word) = words.get(at) {
        match word.to_str() {
            Some("io") => {
                let is_sweep = words.get(at + 1).is_some_and(|word| word == "sweep");
                return Some((at + usize::from(is_sweep), is_sweep));
            }
            Some("--store") => at += 2,
            Some(word) if word.starts_with('-') => at += 1,
            _ => return None,
        }
    }
    None
}

/// Whether the command is `kelvin io`, whose exit codes are fio's; those of `kelvin io plot` and `kelvin io explain`
/// are Kelvin's, since fio has neither.
pub(crate) fn is_asked(words: &[OsString]) -> bool {
    let is_own = |word: &OsString| word == "plot" || word == "explain";
    io_position(words).is_some_and(|(at, _)| !words.get(at + 1).is_some_and(is_own))
}

/// The command line of `kelvin io` and `kelvin io sweep` with Kelvin's flags before `--` and fio's arguments after it;
/// any other command line unchanged.
pub(super) fn arrange(words: Vec<OsString>) -> Vec<OsString> {
    let Some((at, is_sweep)) = io_position(&words) else { return words };
    if !is_sweep && words.get(at + 1).is_some_and(|word| word == "explain" || word == "plot") {
        return words;
    }
    let mut cli = Cli::command();
    cli.build();
    let mut command = cli.find_subcommand("io");
    if is_sweep {
        command = command.and_then(|io| io.find_subcommand("sweep"));
    }
    let Some(command) = command else { return words };
    let mut own: Vec<OsString> = words[..=at].to_vec();
    let mut theirs: Vec<OsString> = Vec::new();
    let mut rest = words[at + 1..].iter();
    while let Some(word) = rest.next() {
        if word == "--" {
            theirs.extend(rest.cloned());
            break;
        }
        match own_flag(command, word) {
            None => theirs.push(word.clone()),
            Some(takes_next) => {
                own.push(word.clone());
                if takes_next {
                    own.extend(rest.next().cloned());
                }
            }
        }
    }
    if !theirs.is_empty() {
        own.push("--".into());
        own.extend(theirs);
    }
    own
}

/// Whether an argument is a flag of Kelvin, and if so whether the next one is its value. A hidden flag does not count:
/// fio may have one with the same name.
fn own_flag(command: &Command, word: &OsStr) -> Option<bool> {
    let word = word.to_str()?;
    let (name, has_value) = match word.split_once('=') {
        Some((name, _)) => (name, true),
        None => (word, false),
    };
    let is_it = |arg: &&clap::Arg| {
        let long = name.strip_prefix("--").is_some_and(|name| {
            arg.get_long() == Some(name) || arg.get_visible_aliases().unwrap_or_default().contains(&name)
        });
        let short = arg.get_short().is_some_and(|short| word == format!("-{short}"));
        !arg.is_hide_set() && (long || short)
    };
    let arg = command.get_arguments().find(is_it)?;
    Some(arg.get_action().takes_values() && !has_value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arranged(line: &str) -> String {
        let words = std::iter::once("kelvin").chain(line.split(' ')).map(OsString::from).collect();
        let words: Vec<String> =
            arrange(words).iter().map(|word| word.to_str().unwrap().to_owned()).collect();
        words[1..].join(" ")
    }

    #[test]
    fn kelvins_flags_are_taken_out_wherever_they_stand() {
        for (line, expected) in [
            ("io job.fio", "io -- job.fio"),
            (
                "--store s.db io --name=a --label x --rate=1m --rw read --prepare b.fio --repeat=3 --timeout=5",
                "--store s.db io --label x --prepare --repeat=3 -- --name=a --rate=1m --rw read b.fio --timeout=5",
            ),
            ("io --output-format json --store=s.db", "io --store=s.db -- --output-format json"),
            ("io -- --label x", "io -- --label x"),
            ("io sweep --bs 4k,8k j.fio --bs=1", "io sweep --bs 4k,8k --bs=1 -- j.fio"),
            ("io explain a.json", "io explain a.json"),
            ("io plot a_bw.log --png", "io plot a_bw.log --png"),
            ("io ./explain -q", "io -q -- ./explain"),
            ("io --help", "io --help"),
            ("run io --job x", "run io --job x"),
            (
                "io --i-know-it-destroys /dev/x --filename=/dev/x",
                "io --i-know-it-destroys /dev/x -- --filename=/dev/x",
            ),
        ] {
            assert_eq!(arranged(line), expected);
        }
        assert!(is_asked(&["kelvin", "-q", "io"].map(OsString::from)));
        assert!(!is_asked(&["kelvin", "run", "io"].map(OsString::from)));
    }

    #[test]
    fn a_curve_is_read_as_it_is_written() {
        assert_eq!(
            percents("10..100%").unwrap().0,
            (1..=10).map(|n| f64::from(n) * 10.0).collect::<Vec<_>>()
        );
        assert_eq!(percents("20..60%:3").unwrap().0, [20.0, 40.0, 60.0]);
        assert_eq!(percents("90,10%,50").unwrap().0, [10.0, 50.0, 90.0]);
        for wrong in ["", "x", "100..10%", "0..10%", "10..20%:1", "10..20%:x", "nan"] {
            assert!(percents(wrong).is_err(), "{wrong}");
        }
    }
}

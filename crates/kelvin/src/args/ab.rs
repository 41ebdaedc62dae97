//! `kelvin ab`'s flags.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use kelvin_lab::ab::AbPlan;
use kelvin_lab::bench;
use kelvin_lab::study::Share;
use kelvin_run::Spec;

use super::advise::AdviseArgs;
use super::repeat::{measures, refuse_other_headline};
use super::workload::refuse_shell;
use super::{Format, FormatArgs};

/// `kelvin ab`.
#[derive(Debug, Args)]
#[command(
    after_help = "Every block runs each side twice, in an order chosen by the seed and balanced so that \
    neither drift nor the after-effects of the previous run favour a side. The difference between the two \
    runs of one side is the control: it shows how much identical runs differ here (--no-control runs each \
    side once). The result is the ratio B/A with its 95 % interval and an exact p-value, and one of three \
    verdicts: no change shown, within noise, changed. Runs count even if other work was running on the \
    machine: it affects both sides alike, and the result reports how many more blocks it requires. The files \
    are run specifications, as --print-spec writes them.\n\
    \n\
    Examples:\n\
    \x20 kelvin run tproc-c --target postgres -w 10 --print-spec > a.toml\n\
    \x20 kelvin run a.toml --calls pipelined --print-spec > b.toml\n\
    \x20 kelvin ab a.toml b.toml                             6 blocks\n\
    \x20 kelvin ab a.toml b.toml --effect 3%                 as many blocks as it takes to detect 3 %\n\
    \x20 kelvin ab a.toml b.toml --blocks 20 --stop-early    20 blocks, or fewer if the result is clear\n\
    \x20 kelvin ab a.toml b.toml c.toml --measure p99        three sides, judged by p99\n\
    \x20 kelvin ab --apply scan-without-index 17             run 17 without and with the change"
)]
pub(crate) struct AbArgs {
    /// The specifications; each of the others is compared with the first. With --apply: the run
    #[arg(required_unless_present = "apply", num_args = 1.., value_name = "FILE.toml")]
    files: Vec<PathBuf>,

    /// Compare a stored run [default: last] without and with a change that `kelvin advise` lists for this finding; #N
    /// selects the N-th change. `kelvin advise --prove` does the same and has more options
    #[arg(long, value_name = "FINDING[#N]", conflicts_with_all = ["effect", "stop_early", "no_control", "noise",
        "measure", "replacements", "seed", "name", "allow_shell", "i_know_it_destroys"])]
    apply: Option<String>,

    /// With --apply: allow changes of settings of a server that kelvin does not manage; they are restored afterwards
    #[arg(long, requires = "apply")]
    allow_settings: bool,

    /// With --apply: do not ask for confirmation before changing this host, or changing an external server and
    /// replacing its data
    #[arg(long, requires = "apply")]
    yes: bool,

    /// Number of blocks, each of which runs every side: 2 to 1000 [default: 6; with --apply 12, or fewer if the result
    /// is clear earlier]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1000),
        conflicts_with = "effect")]
    blocks: Option<u32>,

    /// The smallest change to detect, such as 3%: a pilot determines how many blocks that takes
    #[arg(long, value_name = "PERCENT", value_parser = share)]
    effect: Option<Share>,

    /// With --effect: the probability of detecting it, 0.5 to 0.99 [default: 0.9]
    #[arg(long, value_name = "P", value_parser = probability, requires = "effect")]
    power: Option<f64>,

    /// With --effect: number of pilot blocks, which count in the result: 4 to 100 [default: 6]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(4..=100), requires = "effect")]
    pilot: Option<u32>,

    /// With --effect: the maximum number of blocks [default: 60]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(4..=1000), requires = "effect")]
    max_blocks: Option<u32>,

    /// Stop before the last block if an interim analysis is conclusive; the schedule and bounds of these analyses are
    /// printed first
    #[arg(long)]
    stop_early: bool,

    /// Run each side once per block instead of twice: the variation between identical runs is then unknown
    #[arg(long)]
    no_control: bool,

    /// The smallest relative change that matters [default: 1%]
    #[arg(long, value_name = "PERCENT", value_parser = share)]
    noise: Option<Share>,

    /// The metric that decides the verdict; all others are exploratory [default: throughput; p99 with a rate]
    #[arg(long, value_name = "MEASURE", value_parser = measures())]
    measure: Option<String>,

    /// Maximum number of void runs to replace [default: a third of the runs]
    #[arg(long, value_name = "N")]
    replacements: Option<u32>,

    /// Seed for the order of the runs [default: the seed of A]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// A name for the comparison
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// Let scripts in the files run shell commands
    #[arg(long)]
    allow_shell: bool,

    /// Let I/O jobs write to this block device even if it is mounted, in use or holds data; may be given several times
    #[arg(long, value_name = "DEVICE")]
    pub(crate) i_know_it_destroys: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

impl AbArgs {
    /// The advice that `--apply` tries; none without it.
    pub(crate) fn advice(&self) -> Result<Option<AdviseArgs>> {
        let Some(finding) = &self.apply else { return Ok(None) };
        let run = match self.files.as_slice() {
            [] => "last".to_owned(),
            [run] => run.display().to_string(),
            _ => bail!("--apply takes one run, not {} files", self.files.len()),
        };
        if self.format.format() != Format::Text {
            bail!("--apply prints text; kelvin groups prints the comparison in every format");
        }
        if self.blocks.is_some_and(|blocks| !(4..=200).contains(&blocks)) {
            bail!("--apply: --blocks is 4 to 200");
        }
        Ok(Some(AdviseArgs::trying(run, finding, self.blocks, (self.allow_settings, self.yes))))
    }

    /// The sides and the options of the comparison.
    pub(crate) fn plan(&self) -> Result<(AbPlan, Vec<Spec>)> {
        let specs = self.specs()?;
        for spec in &specs {
            refuse_other_headline(self.measure.as_deref(), spec)?;
        }
        let named: Vec<(String, Spec)> =
            self.files.iter().map(|file| file.display().to_string()).zip(specs.iter().cloned()).collect();
        let mut plan = AbPlan::new(&named);
        plan.control = !self.no_control;
        plan.effect = self.effect.map(Share::ratio);
        plan.blocks = self.blocks.or(self.pilot).unwrap_or(plan.blocks);
        plan.power = self.power.unwrap_or(plan.power);
        plan.most = self.max_blocks.unwrap_or(plan.most);
        if self.effect.is_some() && plan.most < plan.blocks {
            bail!("--max-blocks {}: the pilot alone has {}; see --pilot", plan.most, plan.blocks);
        }
        plan.stop_early = self.stop_early;
        plan.noise = self.noise.map_or(plan.noise, Share::ratio);
        if let Some(effect) = self.effect.filter(|effect| effect.ratio() <= plan.noise) {
            bail!(
                "--effect {effect}: a change of --noise or less is called noise, no matter how precisely it is \
                 measured; give a smaller --noise"
            );
        }
        plan.figure = self.measure.clone().or(plan.figure);
        plan.seed = self.seed.unwrap_or(plan.seed);
        let blocks = if self.effect.is_some() { plan.most } else { plan.blocks };
        plan.replace = self.replacements.unwrap_or_else(|| plan.replacements(blocks));
        Ok((plan, specs))
    }

    fn specs(&self) -> Result<Vec<Spec>> {
        if self.files.len() < 2 {
            bail!(
                "a comparison takes two specifications or more; --apply FINDING compares a run with one change"
            );
        }
        if self.files.len() > AbPlan::SIDES {
            bail!("more than {} sides are not supported; compare them in several steps", AbPlan::SIDES);
        }
        let read = |file: &PathBuf| -> Result<Spec> {
            let spec = Spec::read(file)?;
            let of = || format!("in {}", file.display());
            spec.validate().with_context(of)?;
            bench::suits(&spec).map_err(|why| anyhow!(why)).with_context(of)?;
            if !self.allow_shell {
                refuse_shell(&spec).with_context(of)?;
            }
            Ok(spec)
        };
        let mut specs = self.files.iter().map(read).collect::<Result<Vec<_>>>()?;
        let Some(first) = specs.first().cloned() else { bail!("there is nothing to compare") };
        let name = |index: usize| self.files.get(index).map_or(Path::new("?"), PathBuf::as_path).display();
        for (index, spec) in specs.iter_mut().enumerate() {
            if spec.workload() != first.workload() {
                let (a, b) = (first.workload().as_str(), spec.workload().as_str());
                bail!(
                    "{} is for {a} and {} is for {b}: their results are not comparable",
                    name(0),
                    name(index)
                );
            }
            if spec.is_open_loop() != first.is_open_loop() {
                bail!(
                    "one of {} and {} sets a rate and the other does not: one fixes the throughput, the \
                     other measures it",
                    name(0),
                    name(index)
                );
            }
            // Both sides accept the same noise. It makes blocks scatter, which the intervals show. A comparison on a machine
            // that is never quiet must still end.
            spec.accept_noise = true;
            // All runs of a block use the same random values, whatever the files say.
            spec.load.seed = first.load.seed;
        }
        let labels: BTreeSet<&Path> = self.files.iter().map(PathBuf::as_path).collect();
        if labels.len() < self.files.len() {
            bail!("a file is given twice; the control already compares A with itself");
        }
        Ok(specs)
    }
}

fn share(text: &str) -> Result<Share, String> {
    let share: Share =
        text.parse().map_err(|_| format!("\"{text}\" is not a percentage; write for example 3%"))?;
    let is_in_range = (0.001..=1.0).contains(&share.ratio());
    is_in_range.then_some(share).ok_or_else(|| format!("\"{text}\": must be between 0.1% and 100%"))
}

fn probability(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(p) if (0.5..=0.99).contains(&p) => Ok(p),
        _ => Err(format!("\"{text}\" is not a valid power; write a number from 0.5 to 0.99, such as 0.9")),
    }
}

#[cfg(test)]
mod tests {
    use kelvin_run::spec::WorkloadName;

    use super::*;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        ab: AbArgs,
    }

    #[test]
    fn trial_d5_a_comparison_goes_on_where_the_machine_is_noisy_and_its_runs_say_so() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, Spec::new(WorkloadName::TprocC).to_toml()).unwrap();
            path.display().to_string()
        };
        let line = ["ab".to_owned(), file("a.toml"), file("b.toml")];
        let (_, specs) = <Line as clap::Parser>::try_parse_from(line).unwrap().ab.plan().unwrap();
        assert!(specs.iter().all(|spec| spec.to_toml().contains("accept-noise = true")));
    }

    #[test]
    fn shares_are_read_as_they_are_written() {
        for (text, value) in [("3%", 0.03), (" 0.5 % ", 0.005), ("100%", 1.0)] {
            assert!((share(text).unwrap().ratio() - value).abs() < 1e-12, "{text}");
        }
        for text in ["3", "", "%", "-3%", "0%", "nan%", "inf%", "101%"] {
            assert!(share(text).is_err(), "{text}");
        }
        assert!(probability("0.8").is_ok() && probability("1").is_err() && probability("x").is_err());
    }
}

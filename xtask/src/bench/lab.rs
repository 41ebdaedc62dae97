//! `cargo xtask bench lab`: how often the lab's conclusions are wrong, on recorded noise and on this machine.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use kelvin_stats::rank::median;
use serde_json::Value;

use super::options::Options;
use super::server::{Bench, build};
use super::{interrupt, median as middle};

const NAMES: [&str; 14] = [
    "mm4",
    "false-alarms",
    "power",
    "carry-over",
    "dependence",
    "history",
    "usl",
    "within",
    "bounds",
    "real-false-alarms",
    "real-power",
    "real-power-cpu",
    "real-power-tenth",
    "record",
];

/// The recorded noise of real runs.
const RECORD: &str = "bench/lab/noise.csv";

/// Simulated open loops per row.
const RUNS: &str = "300";

/// Simulated studies per row.
const STUDIES: &str = "200";

/// Studies per row with synthetic noise, and a seed that no test uses.
const MANY: &str = "2000";
const SEED: &str = "20261122";
/// Simulated histories, sweeps and runs per line.
const SERIES: &str = "2000";
const SWEEPS: &str = "500";

/// The planted slowdown in percent, and the power with which it should be detected.
const PERCENT: f64 = 3.0;
const POWER: &str = "0.9";

/// A slowdown that can be detected even on a machine whose speed varies so much that the smaller one would take
/// hundreds of blocks.
const TENTH: f64 = 10.0;

/// Steps of the loop that uses CPU: about a millisecond.
const STEPS: f64 = 4000.0;

/// The time limit of one real study, in seconds.
const LONGEST: &str = "900";

/// Uses CPU in proportion to `:n`, in addition to the fixed cost of a transaction.
const BURN: &str =
    "with recursive c(x) as (select 1 union all select x + 1 from c where x < :n) select count(*) from c;\n";

/// Runs the selected rows; by default, all except the one that records noise.
pub(crate) fn lab(options: &Options) -> Result<()> {
    interrupt::watch()?;
    let chosen: Vec<&str> = options.chosen(&NAMES)?;
    let all = chosen.len() == NAMES.len();
    for row in chosen.into_iter().filter(|row| !all || *row != "record") {
        println!("## {row}\n");
        let since = Instant::now();
        match row {
            "mm4" => simulated("studies", &["mm4", RUNS])?,
            "false-alarms" => simulated("studies", &["false-alarms", RECORD, STUDIES])?,
            "power" => {
                let words = ["power", RECORD, STUDIES, &PERCENT.to_string(), POWER];
                simulated("studies", &words)?;
            }
            "carry-over" | "dependence" => simulated("studies", &[row, MANY, SEED])?,
            "history" => simulated("dependent", &["history", RECORD, SERIES])?,
            "usl" => simulated("dependent", &["usl", SWEEPS])?,
            "within" => simulated("dependent", &["within", SERIES])?,
            "bounds" => simulated("bounds", &[SERIES])?,
            "real-false-alarms" => real_false_alarms(options)?,
            "real-power" => real_power(options, PERCENT, &[])?,
            "real-power-cpu" => real_power(options, PERCENT, &["--measure", "cpu"])?,
            "real-power-tenth" => real_power(options, TENTH, &["--measure", "cpu"])?,
            _ => record(options)?,
        }
        if row != "record" {
            println!("\n({:.0} s)\n", since.elapsed().as_secs_f64());
        }
    }
    Ok(())
}

/// Crates that are optimised only for simulations; the release profile is unchanged.
const OPTIMISED: [&str; 4] = [
    "--config",
    "profile.release.package.kelvin-lab.opt-level=3",
    "--config",
    "profile.release.package.kelvin-analysis.opt-level=3",
];

/// Runs a simulation, which is an example program.
fn simulated(example: &str, words: &[&str]) -> Result<()> {
    let program = build(&[&["--workspace", "--example", example], &OPTIMISED[..]].concat())?
        .join("release/examples")
        .join(example);
    let program = program.canonicalize().with_context(|| format!("no example named {example}"))?;
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let ended = Command::new(program)
        .args(words)
        .current_dir(top)
        .status()
        .with_context(|| format!("cannot run {example}"))?;
    if !ended.success() {
        bail!("{example} ended with {ended}");
    }
    Ok(())
}

/// Files with one script in two sizes.
struct Sides {
    bench: Bench,
    a: PathBuf,
    b: PathBuf,
}

impl Sides {
    fn new(options: &Options) -> Result<Self> {
        let bench = Bench::new()?;
        let (a, b) = (bench.path("a.toml"), bench.path("b.toml"));
        std::fs::write(bench.path("burn.sql"), BURN)?;
        let sides = Self { bench, a, b };
        sides.write(&sides.a, STEPS, options)?;
        sides.write(&sides.b, STEPS, options)?;
        Ok(sides)
    }

    /// The arguments of a run with this number of steps.
    fn arguments(&self, steps: f64, options: &Options) -> Vec<String> {
        let target = format!("sqlite:{}", self.bench.path("burn.db").display());
        let (script, define) = (self.bench.path("burn.sql"), format!("n={}", steps.round()));
        let (script, duration) = (script.display().to_string(), format!("{}s", options.seconds));
        let words = ["run", "script", &script, "--target", &target, "-D", &define, "--users", "1"];
        let load = ["--ramp-up", "0s", "--duration", &duration];
        words.iter().chain(&load).map(|word| (*word).to_owned()).collect()
    }

    fn write(&self, file: &Path, steps: f64, options: &Options) -> Result<()> {
        let mut words = self.arguments(steps, options);
        words.push("--print-spec".into());
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        Ok(std::fs::write(file, self.bench.kelvin(&words)?.stdout)?)
    }

    /// Seconds per transaction with this number of steps, from one run.
    fn seconds(&self, steps: f64, options: &Options) -> Result<f64> {
        let mut words = self.arguments(steps, options);
        words.push("--quiet".into());
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.bench.kelvin(&words)?;
        let report = self.bench.report()?;
        let pace = report.pointer("/points/0/headline_per_second").and_then(Value::as_f64);
        Ok(1.0 / pace.context("the report has no throughput")?)
    }

    /// Makes a comparison and returns its summary; `None` if too many runs were void or it took too long.
    fn compare(&self, seed: usize, flags: &[&str]) -> Result<Option<Value>> {
        interrupt::check()?;
        let mut command = Command::new("timeout");
        command
            .args(["--foreground", "-k", "30", LONGEST])
            .arg(self.bench.program())
            .args(["ab", "--quiet", "--json"]);
        self.bench.environment(&mut command);
        command.args(["--seed", &seed.to_string()]).args(flags).args([&self.a, &self.b]);
        let output = command.output().context("cannot run the comparison")?;
        let last = String::from_utf8_lossy(&output.stdout);
        let last = last.lines().last().unwrap_or_default();
        match output.status.code() {
            Some(0 | 3) => Ok(Some(serde_json::from_str::<Value>(last)?["summary"].clone())),
            // `timeout` exits with 124 when it ends the study.
            Some(1 | 124) => Ok(None),
            _ => bail!("kelvin ab: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr)),
        }
    }
}

/// The results of real studies.
#[derive(Default)]
struct Counted {
    judged: usize,
    changed: usize,
    void: usize,
    /// Studies in which the means of the first three runs of A and of B differ by more than 1 %.
    three: usize,
    blocks: Vec<f64>,
}

impl Counted {
    fn take(&mut self, study: usize, summary: Option<&Value>, lower: Option<bool>) {
        let Some(summary) = summary else {
            self.void += 1;
            println!("study {study}: too many void runs, or longer than {LONGEST} s; not judged");
            return;
        };
        let found = &summary["comparisons"][0];
        let number = |name: &str| found[name].as_f64().unwrap_or(f64::NAN);
        let right = |ratio: f64| lower.is_none_or(|lower| (ratio < 1.0) == lower);
        let changed = found["verdict"] == "changed" && right(number("ratio"));
        self.judged += 1;
        self.changed += usize::from(changed);
        let column = |index: usize| -> Vec<f64> {
            let blocks = summary["blocks"].as_array().map(Vec::as_slice).unwrap_or_default();
            blocks.iter().filter_map(|block| block["values"][index].as_f64()).take(3).collect()
        };
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let three = mean(&column(2)) / mean(&column(0));
        self.three += usize::from((three - 1.0).abs() > 0.01 && right(three));
        self.blocks.push(summary["complete"].as_f64().unwrap_or(f64::NAN));
        println!(
            "study {study}: {} ({:.4}, {:.4} to {:.4}; floor {:.2} %; {} blocks); three runs of each: {three:.4}",
            found["verdict"].as_str().unwrap_or("?"),
            number("ratio"),
            number("low"),
            number("high"),
            100.0 * summary["control"]["floor"].as_f64().unwrap_or(f64::NAN),
            summary["complete"],
        );
    }
}

/// Real studies that compare A with A.
fn real_false_alarms(options: &Options) -> Result<()> {
    let sides = Sides::new(options)?;
    let mut counted = Counted::default();
    for study in 1..=options.rounds {
        counted.take(study, sides.compare(study, &[])?.as_ref(), None);
    }
    let Counted { judged, changed, void, three, .. } = counted;
    let allowed = 0.05 * judged as f64 + 2.0 * (0.05 * 0.95 * judged as f64).sqrt();
    println!(
        "\n{changed} of {judged} studies of A against A report \"changed\" (5 % and two standard errors: \
         {allowed:.1}); {void} were void; means of three differ by more than 1 % in {three}"
    );
    Ok(())
}

/// Real studies of a slowdown in percent, planned by the tool. `judged` names a metric other than the throughput.
fn real_power(options: &Options, percent: f64, judged: &[&str]) -> Result<()> {
    let sides = Sides::new(options)?;
    let steps = calibrate(&sides, percent, options)?;
    sides.write(&sides.b, steps, options)?;
    let mut counted = Counted::default();
    let effect = format!("{percent}%");
    let flags = [&["--effect", &effect, "--power", POWER], judged].concat();
    // More CPU per transaction corresponds to a lower throughput.
    let lower = judged.is_empty();
    // Half as many studies as of A against A, because each takes several times as long.
    for study in 1..=options.rounds.div_ceil(2) {
        counted.take(study, sides.compare(study, &flags)?.as_ref(), Some(lower));
    }
    let Counted { judged, changed, void, three, blocks } = counted;
    println!(
        "\n{changed} of {judged} studies find the {percent} % ({void} were void); blocks planned: median {:.0}; means of \
         three are more than 1 % slower in {three}",
        median(&blocks).unwrap_or(f64::NAN)
    );
    Ok(())
}

/// The number of steps that slow a transaction down by `percent`. A transaction has a fixed cost: t(n) minus the time
/// of the steps, which is t(2n) − t(n).
fn calibrate(sides: &Sides, percent: f64, options: &Options) -> Result<f64> {
    let (mut one, mut two) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        one.push(sides.seconds(STEPS, options)?);
        two.push(sides.seconds(2.0 * STEPS, options)?);
    }
    let ratios: Vec<f64> = one.iter().zip(&two).map(|(one, two)| two / one).collect();
    let share = middle(ratios) - 1.0;
    let steps = STEPS * (1.0 + percent / 100.0 / share);
    println!(
        "a transaction of {STEPS} steps takes {:.0} us, {:.1} % of them in its steps; {steps:.0} steps are {percent} % \
         slower",
        1e6 * middle(one),
        100.0 * share
    );
    if !(0.8..1.05).contains(&share) {
        bail!("a share of {share:.2} for a transaction's steps is impossible: the machine is not quiet");
    }
    Ok(steps)
}

/// Adds a series to the record: runs of TPROC-C on SQLite, one after another on the same file.
fn record(options: &Options) -> Result<()> {
    let bench = Bench::new()?;
    let target = format!("sqlite:{}", bench.path("record.db").display());
    bench.kelvin(&["build", "tproc-c", "--no-check", "--quiet", "--target", &target])?;
    let duration = format!("{}s", options.seconds);
    println!("# {} runs of {duration}: cargo xtask bench lab record", options.rounds);
    for _ in 0..options.rounds {
        bench.kelvin(&[
            "run",
            "tproc-c",
            "--quiet",
            "--target",
            &target,
            "--users",
            "2",
            "--ramp-up",
            "1s",
            "--duration",
            &duration,
        ])?;
        let report = bench.report()?;
        let pace = report.pointer("/points/0/headline_per_second").and_then(Value::as_f64);
        println!("sqlite,{:.0}", 60.0 * pace.context("the report has no throughput")?);
    }
    Ok(())
}

//! `cargo xtask bench io`: the CPU cost of an I/O, compared with Debian's fio, and whether both report the same
//! results for a device.

mod cost;
mod device_bound;
mod timing;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::options::Options;
use super::process::{Cost, timed};
use super::server::Bench;
use super::table::{self, Line};

/// The programs that are compared, in the order of the results.
const PROGRAMS: [&str; 2] = ["kelvin", "fio"];

/// The CPU to which all programs are pinned: not the first, which gets most interrupts.
const CPU: &str = "1";

const NAMES: [&str; 10] =
    ["batch", "defaults", "depth-1", "page-cache", "null", "logs", "start", "same", "rate", "poisson"];

/// Runs the requested rows.
pub(crate) fn io(options: &Options) -> Result<()> {
    let chosen = options.chosen(&NAMES)?;
    let place = IoBench::new()?;
    let mut lines = Vec::new();
    let mut all = || -> Result<()> {
        lines.extend(cost::rows(&place, options, &chosen)?);
        lines.extend(device_bound::rows(&place, options, &chosen)?);
        lines.extend(timing::rows(&place, options, &chosen)?);
        Ok(())
    };
    let result = all();
    table::print(&lines);
    result
}

/// The directory of the files, and the programs to compare.
struct IoBench {
    bench: Bench,
    kelvin: PathBuf,
    fio: PathBuf,
}

impl IoBench {
    fn new() -> Result<Self> {
        let bench = Bench::new()?;
        let kelvin = bench.program().to_path_buf();
        let paths = std::env::var_os("PATH").unwrap_or_default();
        let fio = std::env::split_paths(&paths).map(|path| path.join("fio")).find(|path| path.is_file());
        Ok(Self { bench, kelvin, fio: fio.context("no fio on PATH (apt-get install fio)")? })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.bench.path(name)
    }

    /// A sparse file of 8 GiB.
    fn hole(&self) -> Result<PathBuf> {
        let path = self.path("hole");
        fs::File::create(&path)?.set_len(8 << 30)?;
        Ok(path)
    }

    /// A file of random data of this size in MiB, flushed to its device.
    fn filled(&self, name: &str, mebibytes: u64) -> Result<PathBuf> {
        let path = self.path(name);
        if path.exists() {
            return Ok(path);
        }
        let mut from = fs::File::open("/dev/urandom")?;
        let mut to = fs::File::create(&path)?;
        std::io::copy(&mut std::io::Read::take(&mut from, mebibytes << 20), &mut to)?;
        to.sync_all()?;
        Ok(path)
    }

    /// Runs one of [`PROGRAMS`] on one CPU; returns its cost, and its first job's JSON.
    fn run(&self, program: usize, flags: &[String]) -> Result<(Cost, Value)> {
        super::interrupt::check()?;
        let mut args = vec!["-c".to_owned(), CPU.to_owned()];
        if program == 0 {
            args.extend([text(&self.kelvin)?, "io".to_owned()]);
        } else {
            args.push(text(&self.fio)?);
        }
        args.push("--output-format=json".into());
        args.extend(flags.iter().cloned());
        // Stored runs go to the benchmark's own store.
        let store = self.path("kelvin.db");
        let cost = timed(Path::new("taskset"), &args, &[("KELVIN_STORE", &store)])?;
        // fio prints messages before its JSON.
        let begin = cost.stdout.find('{').with_context(|| format!("no JSON from {}", PROGRAMS[program]))?;
        let json: Value = serde_json::from_str(&cost.stdout[begin..])
            .with_context(|| format!("the JSON of {}", PROGRAMS[program]))?;
        let job = json.pointer("/jobs/0").context("no job in the JSON")?.clone();
        if job.get("error").and_then(Value::as_i64) != Some(0) {
            bail!("{} ended with an error: {}", PROGRAMS[program], cost.stdout);
        }
        Ok((cost, job))
    }
}

fn text(path: &Path) -> Result<String> {
    Ok(path.to_str().with_context(|| format!("{} is not text", path.display()))?.to_owned())
}

/// Flags for both programs, in the form `--name=value`.
fn flags(name: &str, values: &[(&str, &str)]) -> Vec<String> {
    let mut all = vec![format!("--name={name}")];
    all.extend(values.iter().map(|(name, value)| format!("--{name}={value}")));
    all
}

/// A value of a job.
fn figure(job: &Value, pointer: &str) -> Result<f64> {
    job.pointer(pointer).and_then(Value::as_f64).with_context(|| format!("no {pointer} in the JSON"))
}

/// A table line that compares a result with a bound.
fn line(work: &str, figure: &str, kelvin: String, beside: String, target: String, met: bool) -> Line {
    Line {
        work: work.into(),
        figure: figure.into(),
        kelvin,
        beside,
        ratio: String::new(),
        target,
        met: Some(met),
    }
}

//! The programs that a row compares, and the cost of a run.

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::mariadb_rows;
use crate::bench::interrupt;
use crate::bench::server::Bench;

/// The cost of a run's transactions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measured {
    /// Client CPU per transaction, in microseconds.
    pub(crate) client: f64,
    /// Server CPU per transaction, in microseconds.
    pub(crate) server: f64,
    /// Transactions per second.
    pub(crate) pace: f64,
    /// Client CPU within the measured window per transaction of any type, in microseconds, as Kelvin reports it: without
    /// process start, preparation and report. `None` for other programs.
    pub(crate) in_window: Option<f64>,
}

/// A program with its arguments, except for the duration and the target.
#[derive(Debug, Clone)]
pub(crate) enum Competitor {
    /// The command under test: headline transactions count.
    Kelvin(Vec<String>),
    /// pgbench.
    Pgbench {
        /// Its arguments.
        arguments: Vec<String>,
        /// Whether only the first script's transactions count.
        first_script: bool,
    },
    /// sysbench's `oltp_point_select`, on MariaDB.
    Sysbench,
}

impl Competitor {
    /// Makes a run. An invalid run is printed and repeated.
    pub(crate) fn run(&self, bench: &Bench, url: &str, seconds: u32) -> Result<Measured> {
        self.once(bench, url, seconds).or_else(|error| {
            interrupt::check()?;
            println!("repeating because a run failed: {error:#}");
            self.once(bench, url, seconds)
        })
    }

    fn once(&self, bench: &Bench, url: &str, seconds: u32) -> Result<Measured> {
        let before = bench.server_cpu()?;
        let mut in_window = None;
        let (cpu, count, pace) = match self {
            Self::Kelvin(arguments) => {
                let (cpu, report) = kelvin(bench, arguments, url, seconds)?;
                in_window = figure(&report, "/points/0/client_cpu_us_per_transaction").ok();
                (
                    cpu,
                    figure(&report, "/points/0/headline_count")?,
                    figure(&report, "/points/0/headline_per_second")?,
                )
            }
            Self::Pgbench { arguments, first_script } => {
                pgbench(bench, arguments, *first_script, url, seconds)?
            }
            Self::Sysbench => mariadb_rows::sysbench_run(bench, seconds)?,
        };
        if count <= 0.0 {
            bail!("no transactions were counted");
        }
        let server = bench.server_cpu()? - before;
        Ok(Measured { client: cpu / count * 1e6, server: server / count * 1e6, pace, in_window })
    }
}

/// CPU seconds of the process, and its report.
fn kelvin(bench: &Bench, arguments: &[String], url: &str, seconds: u32) -> Result<(f64, Value)> {
    let duration = format!("{seconds}s");
    let mut all = vec!["run"];
    all.extend(arguments.iter().map(String::as_str));
    // Without a ramp-up, both the process's CPU time and the count include every transaction. The competitors observe
    // nothing either; `bench observe` measures the cost of observation. Client and server share two CPUs, which changes
    // the throughput, but not the CPU time per transaction.
    all.extend(["--no-observe", "--accept-noise"]);
    all.extend(["--quiet", "--ramp-up", "0s", "--duration", &duration, "--no-build", "--target", url]);
    let cost = bench.kelvin(&all)?;
    Ok((cost.cpu, bench.report()?))
}

/// A value of the report, by its JSON pointer.
pub(crate) fn figure(report: &Value, pointer: &str) -> Result<f64> {
    report.pointer(pointer).and_then(Value::as_f64).with_context(|| format!("no {pointer} in the report"))
}

fn pgbench(
    bench: &Bench,
    arguments: &[String],
    first_script: bool,
    url: &str,
    seconds: u32,
) -> Result<(f64, f64, f64)> {
    let mut all = arguments.to_vec();
    all.extend(["-n".into(), "-T".into(), seconds.to_string(), url.into()]);
    let cost = bench.pgbench(&all)?;
    let all = number(&cost.stdout, "number of transactions actually processed: ")?;
    let pace = number(&cost.stdout, "tps = ")?;
    if !first_script {
        return Ok((cost.cpu, all, pace));
    }
    // " - 12345 transactions (43.5% of total, tps = …)": the first such line is that of the first script.
    let line = cost.stdout.lines().find(|line| line.starts_with(" - ") && line.contains("transactions ("));
    let Some(first) = line.and_then(|line| line.split(' ').nth(2)?.parse::<f64>().ok()) else {
        bail!("pgbench printed no count for its first script:\n{}", cost.stdout);
    };
    Ok((cost.cpu, first, pace * first / all))
}

/// The number after `words`, which begin a line.
pub(super) fn number(text: &str, words: &str) -> Result<f64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(words));
    let rest = rest.and_then(|rest| rest.trim_start().split([' ', '/']).next()?.parse().ok());
    rest.with_context(|| format!("no \"{words}\" was printed:\n{text}"))
}

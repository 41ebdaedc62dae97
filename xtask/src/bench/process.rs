//! A process, its output, and the CPU time it took.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, bail};

/// Time limit of a process in seconds; one that hangs is ended.
const LONGEST: &str = "1200";

/// The cost of a finished process.
#[derive(Debug)]
pub(crate) struct Cost {
    /// Seconds of user and system time, of the process and the children it waited for.
    pub(crate) cpu: f64,
    /// Elapsed seconds.
    pub(crate) wall: f64,
    /// Its standard output.
    pub(crate) stdout: String,
}

/// Runs a program under the shell's `time`, which reads the kernel's accounting of the child (getrusage), and under
/// `timeout`, which adds a millisecond and ends a process that hangs.
pub(crate) fn timed(program: &Path, args: &[String], environment: &[(&str, &Path)]) -> Result<Cost> {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    let run = RUNS.fetch_add(1, Ordering::Relaxed);
    let errors = std::env::temp_dir().join(format!("kelvin-bench-{}-{run}.err", std::process::id()));
    let mut command = Command::new("bash");
    command
        // The program's error output goes to a separate file, which a failure can show. It runs in the foreground, so
        // that it gets an interrupt from the keyboard, too.
        .args([
            "-c",
            "TIMEFORMAT='%3U %3S'; time timeout --foreground -k 10 \"$0\" \"$@\" 2>\"$KELVIN_BENCH_ERRORS\"",
            LONGEST,
        ])
        .env("KELVIN_BENCH_ERRORS", &errors)
        .arg(program)
        .args(args)
        .stdin(Stdio::null());
    for (name, value) in environment {
        command.env(name, value);
    }
    let since = Instant::now();
    let output = command.output().context("cannot run bash")?;
    let wall = since.elapsed().as_secs_f64();
    let said = std::fs::read_to_string(&errors).unwrap_or_default();
    let _ = std::fs::remove_file(&errors);
    if !output.status.success() {
        bail!(
            "{} {} failed: {}\n{}{}",
            program.display(),
            args.join(" "),
            output.status,
            said.trim_end(),
            String::from_utf8_lossy(&output.stdout).trim_end()
        );
    }
    let times = String::from_utf8(output.stderr).context("the shell's time is not text")?;
    let cpu = times.split_whitespace().map(str::parse::<f64>).sum::<Result<f64, _>>();
    let cpu = cpu.with_context(|| format!("the shell's time is \"{times}\""))?;
    Ok(Cost { cpu, wall, stdout: String::from_utf8_lossy(&output.stdout).into_owned() })
}

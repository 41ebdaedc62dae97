//! A process, its output, and the CPU time it took.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

/// What a finished process cost.
#[derive(Debug)]
pub(crate) struct Cost {
    /// Seconds of user and system time, of the process and the children it waited for.
    pub(crate) cpu: f64,
    /// Seconds on the clock.
    pub(crate) wall: f64,
    /// What it printed on standard output.
    pub(crate) stdout: String,
}

/// Runs a program under the shell's `time`, which reads the kernel's own accounting of the child.
pub(crate) fn timed(program: &Path, args: &[String], environment: &[(&str, &Path)]) -> Result<Cost> {
    let mut command = Command::new("bash");
    command
        .args(["-c", "TIMEFORMAT='%3U %3S'; time \"$0\" \"$@\" 2>/dev/null"])
        .arg(program)
        .args(args)
        .stdin(Stdio::null());
    for (name, value) in environment {
        command.env(name, value);
    }
    let since = Instant::now();
    let output = command.output().context("cannot run bash")?;
    let wall = since.elapsed().as_secs_f64();
    if !output.status.success() {
        bail!("{} {} failed: {}", program.display(), args.join(" "), output.status);
    }
    let times = String::from_utf8(output.stderr).context("the shell's time is not text")?;
    let cpu = times.split_whitespace().map(str::parse::<f64>).sum::<Result<f64, _>>();
    let cpu = cpu.with_context(|| format!("the shell's time is \"{times}\""))?;
    Ok(Cost { cpu, wall, stdout: String::from_utf8_lossy(&output.stdout).into_owned() })
}

//! Shell commands of a study's file.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::MemfdFlags;
use rustix::process::{Pid, Signal};

/// Time limit of a command. A command has to put longer work into the background.
const LIMIT: Duration = Duration::from_mins(2);

/// Runs a shell command and waits for it, but not for its background processes. An error when it fails, with the last
/// lines of its output.
pub(crate) fn run(command: &str) -> Result<(), String> {
    run_within(command, LIMIT)
}

fn run_within(command: &str, limit: Duration) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{command:?} cannot be run: {error}");
    // A file instead of a pipe: a pipe would stay open while background processes run.
    let said: File =
        rustix::fs::memfd_create("said", MemfdFlags::CLOEXEC).map_err(|error| failed(error.into()))?.into();
    let mut child = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(said.try_clone().map_err(failed)?)
        .stderr(said.try_clone().map_err(failed)?)
        // Ctrl-C is meant for Kelvin; background processes are ended by the undo command.
        .process_group(0)
        .spawn()
        .map_err(failed)?;
    let until = Instant::now() + limit;
    let mut pause = Duration::from_millis(1);
    let status = loop {
        match child.try_wait().map_err(failed)? {
            Some(status) => break status,
            None if Instant::now() > until => {
                if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                    let _ = rustix::process::kill_process_group(group, Signal::KILL);
                }
                let _ = child.wait();
                return Err(format!(
                    "{command:?} did not finish within {} s; run longer commands in the background: … &",
                    limit.as_secs()
                ));
            }
            None => {
                std::thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(50));
            }
        }
    };
    if status.success() {
        return Ok(());
    }
    Err(format!("{command:?} failed ({status}){}", last_words(said)))
}

fn last_words(mut said: File) -> String {
    let mut text = Vec::new();
    let length = said.seek(SeekFrom::End(0)).unwrap_or(0);
    let _ = said.seek(SeekFrom::Start(length.saturating_sub(2000)));
    let _ = said.take(2000).read_to_end(&mut text);
    let text = kelvin_measure::redact(&String::from_utf8_lossy(&text));
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    if lines.is_empty() {
        String::new()
    } else {
        format!(": {}", lines[lines.len().saturating_sub(4)..].join(" | "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_and_timeout_are_errors_and_background_processes_are_not_waited_for() {
        let error = run("echo before; echo why >&2; exit 3").unwrap_err();
        assert!(error.contains("exit status: 3") && error.ends_with(": before | why"), "{error}");
        let began = Instant::now();
        run("sleep 20 >/dev/null 2>&1 & echo $! > /dev/null; true").unwrap();
        run("true").unwrap();
        assert!(began.elapsed() < Duration::from_secs(20));
        let error = run_within("sleep 20", Duration::from_millis(50)).unwrap_err();
        assert!(error.contains("did not finish within"), "{error}");
    }
}

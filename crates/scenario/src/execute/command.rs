//! Commands that a scenario's file names.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use kelvin_workload::Stop;

/// How often a command is checked for its end.
const TICK: Duration = Duration::from_millis(10);

/// So much of what a command says on standard error is kept: its end.
const MOST_KEPT: usize = 500;

/// Runs a command by the shell in `directory`, in a process group of its own, with no standard input and its output thrown
/// away but for the end of its errors. It is killed when it takes too long, or somebody asks to stop.
///
/// # Errors
/// Why it did not succeed, as text.
pub(super) fn run(command: &str, directory: &Path, timeout: Duration, stop: &Stop) -> Result<(), String> {
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    let started = Command::new("/bin/sh")
        .args(["-c", command])
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn();
    let mut child = started.map_err(|error| format!("cannot be started: {error}"))?;
    let errors = child.stderr.take().map(|mut pipe| {
        std::thread::spawn(move || {
            let mut kept = Vec::new();
            let mut part = [0; 4096];
            while let Ok(read @ 1..) = pipe.read(&mut part) {
                kept.extend_from_slice(&part[..read]);
                let excess = kept.len().saturating_sub(MOST_KEPT);
                kept.drain(..excess);
            }
            String::from_utf8_lossy(&kept).trim().to_owned()
        })
    });
    let ended = wait(&mut child, timeout, stop);
    if ended.is_err() {
        kill(&mut child);
    }
    // What it left running in the background may hold the pipe: its words are not waited for.
    let finished = errors.filter(|reader| {
        let until = Instant::now() + Duration::from_millis(200);
        while !reader.is_finished() && Instant::now() < until {
            std::thread::sleep(TICK);
        }
        reader.is_finished()
    });
    let said = finished.and_then(|reader| reader.join().ok()).unwrap_or_default();
    match ended? {
        status if status.success() => Ok(()),
        status if said.is_empty() => Err(format!("failed ({status})")),
        status => Err(format!("failed ({status}): {said}")),
    }
}

fn wait(child: &mut Child, timeout: Duration, stop: &Stop) -> Result<ExitStatus, String> {
    let until = Instant::now() + timeout;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) if stop.requested() => return Err("ended because the scenario was stopped".into()),
            Ok(None) if Instant::now() >= until => {
                return Err(format!("took longer than {:.0} s and was ended", timeout.as_secs_f64()));
            }
            Ok(None) => std::thread::sleep(TICK),
            Err(error) => return Err(error.to_string()),
        }
    }
}

fn kill(child: &mut Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw) {
        // It may have ended meanwhile.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_succeeds_fails_with_its_words_or_is_killed_with_all_it_started() {
        let here = tempfile::tempdir().unwrap();
        let long = Duration::from_secs(20);
        let stop = Stop::new();
        assert_eq!(run("echo x > made; exit 0", here.path(), long, &stop), Ok(()));
        assert!(here.path().join("made").exists());
        let why = run("echo no such snapshot >&2; exit 3", here.path(), long, &stop).unwrap_err();
        assert!(why.contains("no such snapshot") && why.contains('3'), "{why}");
        let began = Instant::now();
        let why = run("sleep 30 & wait", here.path(), Duration::from_millis(100), &stop).unwrap_err();
        assert!(why.contains("longer") && began.elapsed() < Duration::from_secs(10), "{why}");
        stop.request();
        assert!(run("sleep 30", here.path(), long, &stop).unwrap_err().contains("stopped"));
    }
}

//! Runs started from the page. Each is a process of this program with a specification in a file.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;

/// Maximum number of output lines of a run.
const LINES: usize = 30;
/// Maximum number of jobs; the oldest are removed first.
const KEPT: usize = 50;

/// A started run, as the page shows it.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Job {
    /// Its number, from 1.
    id: u64,
    /// The run's number in its store, once it has one.
    run: Option<i64>,
    /// The index of the store among those of the server.
    store: usize,
    /// Whether the process has ended.
    ended: bool,
    /// Its exit code; `None` while it runs, or when a signal ended it.
    code: Option<i32>,
    /// The last lines of its standard error.
    lines: VecDeque<String>,
}

struct Running {
    job: Arc<Mutex<Job>>,
    pid: u32,
}

/// The started runs.
pub(super) struct Jobs {
    /// This program.
    program: PathBuf,
    /// The private directory of the running jobs' specifications.
    directory: tempfile::TempDir,
    running: Mutex<(u64, VecDeque<Running>)>,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Jobs {
    pub(super) fn new(program: PathBuf) -> std::io::Result<Self> {
        let directory = tempfile::Builder::new().prefix("kelvin-serve-").tempdir()?;
        Ok(Self { program, directory, running: Mutex::default() })
    }

    /// Starts a run of a specification into a store. Only one runs at a time, since two would affect each
    /// other's results.
    pub(super) fn start(&self, store: usize, path: &Path, specification: &str) -> Result<Job, String> {
        let mut running = lock(&self.running);
        if let Some(busy) = running.1.iter().map(|one| lock(&one.job).clone()).find(|job| !job.ended) {
            return Err(format!("job {} is still running; two loads would disturb each other", busy.id));
        }
        let id = running.0 + 1;
        let file = self.directory.path().join(format!("specification-{id}.toml"));
        let failed = |error: std::io::Error| format!("the run cannot be started: {error}");
        std::fs::File::create_new(&file)
            .and_then(|mut file| file.write_all(specification.as_bytes()))
            .map_err(failed)?;
        // In its own process group, so that Ctrl-C in the server's terminal ends the server and not the run.
        let mut child = Command::new(&self.program)
            .arg("--store")
            .arg(path)
            .arg("run")
            .arg(&file)
            .arg("--json")
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let (events, words) = (child.stdout.take(), child.stderr.take());
        let job = Arc::new(Mutex::new(Job {
            id,
            run: None,
            store,
            ended: false,
            code: None,
            lines: VecDeque::new(),
        }));
        let pid = child.id();
        let (shown, reading) = (Arc::clone(&job), Arc::clone(&job));
        let spawned =
            std::thread::Builder::new().name("job-words".into()).spawn(move || read_output(words, &reading));
        let spawned = spawned.and_then(|words| {
            std::thread::Builder::new().name("job".into()).spawn(move || {
                read_events(events, &shown);
                let _panicked = words.join();
                let code = child.wait().ok().and_then(|status| status.code());
                let mut shown = lock(&shown);
                (shown.ended, shown.code) = (true, code);
                drop(std::fs::remove_file(file));
            })
        });
        spawned.map_err(failed)?;
        running.0 = id;
        let started = lock(&job).clone();
        running.1.push_back(Running { job, pid });
        if running.1.len() > KEPT {
            running.1.pop_front();
        }
        Ok(started)
    }

    /// Interrupts a run as Ctrl-C does; the second request ends it immediately.
    pub(super) fn stop(&self, id: u64) -> Result<(), String> {
        let running = lock(&self.running);
        let wanted = running.1.iter().find(|one| lock(&one.job).id == id);
        let wanted = wanted.ok_or_else(|| format!("there is no job {id}"))?;
        if lock(&wanted.job).ended {
            return Err(format!("job {id} has ended"));
        }
        let pid = i32::try_from(wanted.pid).ok().and_then(rustix::process::Pid::from_raw);
        let pid = pid.ok_or_else(|| format!("job {id} has no process"))?;
        rustix::process::kill_process(pid, rustix::process::Signal::INT)
            .map_err(|error| format!("job {id} cannot be stopped: {error}"))
    }

    /// All stored jobs, the newest first.
    pub(super) fn list(&self) -> Vec<Job> {
        lock(&self.running).1.iter().rev().map(|one| lock(&one.job).clone()).collect()
    }
}

/// Reads the run's number from its first event; later events are read from the store.
fn read_events(events: Option<impl Read>, job: &Mutex<Job>) {
    let Some(events) = events else { return };
    for line in BufReader::new(events).lines().map_while(Result::ok) {
        if lock(job).run.is_none()
            && let Ok(event) = serde_json::from_str::<serde_json::Value>(&line)
            && event["event"] == "begin"
        {
            lock(job).run = event["run"].as_i64();
        }
    }
}

fn read_output(words: Option<impl Read>, job: &Mutex<Job>) {
    let Some(words) = words else { return };
    for line in BufReader::new(words).lines().map_while(Result::ok) {
        let lines = &mut lock(job).lines;
        lines.push_back(kelvin_measure::redact(&line));
        if lines.len() > LINES {
            lines.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_run_is_not_in_the_process_group_of_the_server() {
        let place = tempfile::tempdir().unwrap();
        let program = place.path().join("kelvin");
        std::fs::write(&program, "#!/bin/sh\ncut -d ' ' -f 1,5 /proc/$$/stat >&2\n").unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
        let jobs = Jobs::new(program).unwrap();
        jobs.start(0, Path::new("store.db"), "").unwrap();
        let limit = Instant::now() + Duration::from_mins(1);
        while !jobs.list()[0].ended {
            assert!(Instant::now() < limit, "{:?}", jobs.list());
            std::thread::sleep(Duration::from_millis(5));
        }
        let shown = jobs.list()[0].lines[0].clone();
        let (process, group) = shown.split_once(' ').unwrap();
        assert_eq!(process, group);
    }
}

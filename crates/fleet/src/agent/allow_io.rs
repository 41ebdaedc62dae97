//! What a controller's I/O jobs may do on an agent's host: read and write below the allowed paths, and run
//! the allowed commands.

use std::path::{Component, Path, PathBuf};

use kelvin_lab::store_bench::io_run_of_host;
use kelvin_run::Spec;
use kelvin_run::io::IoRun;
use kelvin_run::spec::Work;
use kelvin_storage::job::{Job, Memory};

use crate::error::{FleetError, causes};

type Result<T> = std::result::Result<T, FleetError>;

/// The allowed paths, devices and commands of I/O jobs.
#[derive(Debug, Clone, Default)]
pub struct AllowedIo {
    /// With resolved links.
    paths: Vec<PathBuf>,
    destroys: Vec<PathBuf>,
    commands: Vec<String>,
}

impl AllowedIo {
    /// `paths` are files and devices that jobs may use, and directories below which they may use and create
    /// files. `destroys` are block devices among them that jobs may write to. `commands` are commands that
    /// jobs may run, as written in the job.
    ///
    /// # Errors
    /// When a path does not exist.
    pub fn parse(paths: &[PathBuf], destroys: &[PathBuf], commands: &[String]) -> Result<Self> {
        let resolve = |path: &PathBuf| std::fs::canonicalize(path).map_err(FleetError::file(path));
        Ok(Self {
            paths: paths.iter().map(resolve).collect::<Result<_>>()?,
            destroys: destroys.iter().map(resolve).collect::<Result<_>>()?,
            commands: commands.to_vec(),
        })
    }

    /// Opens the I/O jobs of a specification for this host, given as its number and the number of hosts. Jobs
    /// that do anything that is not allowed are refused. States of `verify` are written to `aux`.
    pub(super) fn open(&self, spec: &Spec, host: (u32, u32), aux: &Path) -> Result<IoRun> {
        let Work::Io(options) = &spec.work else {
            return Err(FleetError::Refused("these are not I/O jobs".into()));
        };
        let refused = |error: &dyn std::error::Error| FleetError::Refused(causes(error));
        let of_fleet = options.jobs(spec.load.seed).map_err(|error| refused(&error))?;
        for job in &of_fleet.jobs {
            self.check_options(job).map_err(|why| FleetError::Refused(format!("job {}: {why}", job.name)))?;
        }
        let run = io_run_of_host(spec, host, &self.destroys, Some(aux.to_owned()));
        let run = run.map_err(|error| refused(&error))?.of_fleet(of_fleet);
        for path in run.paths() {
            self.check_path(&path).map_err(FleetError::Refused)?;
        }
        for device in run.written_devices() {
            if !self.destroys.contains(&resolved(&device).map_err(FleetError::Refused)?) {
                return Err(FleetError::Refused(format!(
                    "jobs would write to the device {0}; start the agent with --i-know-it-destroys {0}",
                    device.display()
                )));
            }
        }
        Ok(run)
    }

    /// Refuses options that affect the host beyond the job's own files.
    fn check_options(&self, job: &Job) -> std::result::Result<(), String> {
        for command in [&job.process.before, &job.process.after].into_iter().flatten() {
            if !self.commands.contains(command) {
                return Err(format!(
                    "{command:?} is not an allowed command; start the agent with --allow-command"
                ));
            }
        }
        let logs = [&job.logs.bandwidth, &job.logs.iops, &job.logs.latency, &job.logs.histogram];
        if logs.into_iter().any(Option::is_some) || job.logs.iolog.is_some() {
            return Err("an agent writes no log files; its own store has every second".into());
        }
        if job.process.scheduler.is_some() {
            return Err("an agent does not change the scheduler of a device".into());
        }
        if job.process.user.is_some() || job.process.group.is_some() {
            return Err("an agent does not change its user or group".into());
        }
        let buffers = match &job.buffers.memory {
            Memory::MmapFile(path) | Memory::MmapShared(path) | Memory::MmapHuge(Some(path)) => Some(path),
            Memory::Malloc | Memory::Shm | Memory::ShmHuge | Memory::Mmap | Memory::MmapHuge(None) => None,
        };
        let traces = job.replay.iter().flat_map(|replay| replay.files.iter().chain(&replay.redirect));
        let targets = &job.targets;
        let named = if targets.directories.is_empty() { &targets.filenames } else { &targets.directories };
        // Checked before any access: the controller must not learn which files exist.
        buffers.into_iter().chain(traces).chain(named).try_for_each(|path| self.check_path(path))?;
        let traces = job.replay.iter().flat_map(|replay| &replay.files);
        let mut others = traces.filter(|path| !std::fs::metadata(path).is_ok_and(|about| about.is_file()));
        others.next().map_or(Ok(()), |path| Err(format!("{} is not a regular file", path.display())))
    }

    fn check_path(&self, path: &Path) -> std::result::Result<(), String> {
        let whole = resolved(path)?;
        if self.paths.iter().any(|allowed| whole.starts_with(allowed)) {
            return Ok(());
        }
        Err(format!(
            "{0} is not an allowed path; start the agent with --allow-path {0}, or with a parent directory",
            path.display()
        ))
    }
}

/// The path with resolved links; a missing part is appended as it is.
fn resolved(path: &Path) -> std::result::Result<PathBuf, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    let whole = std::path::absolute(path).map_err(failed)?;
    if whole.components().any(|part| part == Component::ParentDir) {
        return Err(format!("{}: a path of a job on a fleet must not contain ..", path.display()));
    }
    let mut missing = Vec::new();
    let mut there = whole.as_path();
    loop {
        // A dangling link would be followed when the file is created, so it counts as existing.
        if there.symlink_metadata().is_ok() {
            break;
        }
        let (Some(above), Some(name)) = (there.parent(), there.file_name()) else { break };
        missing.push(name);
        there = above;
    }
    let found = std::fs::canonicalize(there).map_err(failed)?;
    Ok(missing.into_iter().rev().fold(found, |path, name| path.join(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(job: &str) -> Spec {
        let text = format!("workload = \"io\"\n[io]\njob = '''\n{job}\n'''\n");
        Spec::parse(&text, "test").unwrap()
    }

    fn refusal(allowed: &AllowedIo, aux: &Path, job: &str) -> String {
        allowed.open(&spec(job), (0, 1), aux).err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn jobs_stay_below_the_allowed_paths() {
        let directory = tempfile::tempdir().unwrap();
        let aux = directory.path();
        let (mine, theirs) = (aux.join("mine"), aux.join("theirs"));
        std::fs::create_dir(&mine).unwrap();
        std::fs::create_dir(&theirs).unwrap();
        std::os::unix::fs::symlink(&theirs, mine.join("link")).unwrap();
        std::os::unix::fs::symlink(theirs.join("none"), mine.join("dangling")).unwrap();
        let allowed = AllowedIo::parse(std::slice::from_ref(&mine), &[], &[]).unwrap();
        let job = |path: &Path, more: &str| {
            format!("[a]\nrw=randwrite\nsize=64k\nfilename={}\n{more}", path.display())
        };
        assert_eq!(refusal(&allowed, aux, &job(&mine.join("file"), "")), "");
        for path in [theirs.join("file"), mine.join("link/file"), aux.join("minefield")] {
            let why = refusal(&allowed, aux, &job(&path, ""));
            assert!(why.contains("--allow-path"), "{path:?}: {why}");
        }
        for path in [mine.join("dangling"), mine.join("../theirs/file")] {
            assert_ne!(refusal(&allowed, aux, &job(&path, "")), "", "{path:?}");
        }
        assert!(!theirs.join("file").exists());
        for (option, word) in [
            ("exec_prerun=touch /tmp/x", "--allow-command"),
            ("exec_postrun=touch /tmp/x", "--allow-command"),
            ("write_bw_log=/tmp/x", "no log files"),
            ("write_iolog=/tmp/x", "no log files"),
            ("ioscheduler=none", "scheduler"),
            ("uid=0", "user"),
            ("iomem=mmap:/etc/passwd", "--allow-path"),
            ("read_iolog=/etc/passwd", "--allow-path"),
        ] {
            let why = refusal(&allowed, aux, &job(&mine.join("file"), option));
            assert!(why.contains(word), "{option}: {why}");
        }
        let commands = ["true".to_owned()];
        let allowed = AllowedIo::parse(std::slice::from_ref(&mine), &[], &commands).unwrap();
        assert_eq!(refusal(&allowed, aux, &job(&mine.join("file"), "exec_prerun=true")), "");
        let why = refusal(&allowed, aux, &job(&mine.join("file"), "exec_prerun=true && reboot"));
        assert!(why.contains("--allow-command"), "{why}");
        assert!(AllowedIo::parse(&[aux.join("none")], &[], &[]).is_err());
    }

    #[test]
    fn a_received_job_reads_nothing_while_it_is_parsed() {
        let text = |io: &str| format!("workload = \"io\"\n[io]\n{io}\n");
        let job = |line: &str| {
            text(&format!("job = \"\"\"\n[a]\nrw=write\nsize=64k\nfilename=/tmp/x\n{line}\n\"\"\""))
        };
        assert!(Spec::parse_received(&job("bs=8k\nverify_pattern=0xff"), "test").is_ok());
        for outside in [
            text("file = \"/etc/passwd\""),
            job("include /etc/passwd"),
            job("opendir=/root"),
            job("description=${HOME}"),
            job("buffer_pattern='/etc/passwd'"),
            text(
                "job = \"[a]\\nrw=read\\nsize=1m\\nfilename=/tmp/x\"\nset = { bs = \"4k\\ninclude /etc/passwd\" }",
            ),
        ] {
            let why = Spec::parse_received(&outside, "test").unwrap_err().to_string();
            assert!(why.contains("jobs from another host"), "{outside}: {why}");
        }
    }
}

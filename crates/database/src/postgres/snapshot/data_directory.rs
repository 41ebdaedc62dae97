//! A managed server: copies of its data directory, made while it is stopped.
//!
//! The files are copied by `cp` as the server's own user. It is root who may have asked, and the directory is that
//! user's: root following a link there could be led to overwrite anything. `cp` clones where the file system can.

use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::{program, sessions};
use crate::managed::Manager;
use crate::managed::account::Account;
use crate::managed::program::size as directory_size;
use crate::postgres::PostgresEngine;
use crate::postgres::managed::running;
use crate::snapshot::files::list;
use crate::snapshot::{
    Contents, RestoreResult, Seal, SnapshotInfo, SnapshotJob, SnapshotMethod, SnapshotStore, check_name,
    exists_already, files, must_fit, stopped,
};
use crate::{Engine, Error, ErrorClass, Result};

/// What a snapshot does not hold: files of a running server, and settings, which are not data. A study that
/// changes a setting would find it changed back by the reset between its runs.
const NOT_DATA: [&str; 8] = [
    "postmaster.pid",
    "postmaster.opts",
    "postgresql.conf",
    "postgresql.auto.conf",
    "pg_hba.conf",
    "pg_ident.conf",
    "pg_wal",
    "PG_VERSION",
];

/// Of those, what the restored directory takes over from the present one.
const KEPT: [&str; 4] = ["postgresql.conf", "postgresql.auto.conf", "pg_hba.conf", "pg_ident.conf"];

/// The snapshots of one managed server: of all its databases together.
#[derive(Debug, Clone)]
pub struct DataDirectories {
    manager: Manager,
    major: u32,
}

impl DataDirectories {
    /// Of the server of this major version.
    pub fn new(manager: Manager, major: u32) -> Self {
        Self { manager, major }
    }

    fn base(&self) -> PathBuf {
        let base = self.manager.base_dir();
        std::path::absolute(base).unwrap_or_else(|_| base.to_owned())
    }

    fn data(&self) -> PathBuf {
        self.base().join(format!("postgres-{}", self.major)).join("data")
    }

    fn prefix(&self) -> String {
        format!("postgres-{}-snapshot-", self.major)
    }

    fn copy_of(&self, name: &str) -> PathBuf {
        self.base().join(format!("{}{name}", self.prefix()))
    }

    fn description(&self, name: &str) -> PathBuf {
        self.base().join(format!("{}{name}.toml", self.prefix()))
    }

    fn target(&self) -> String {
        format!("postgres:{} in {}", self.major, self.base().display())
    }

    /// Stops the server, does `work` on the directory that is now at rest, and starts the server again, whatever came
    /// of the work, on the CPUs on which it ran: those of this process may be others.
    fn at_rest<T>(
        &self,
        job: &mut SnapshotJob<'_>,
        work: impl FnOnce(&Self, &mut SnapshotJob<'_>) -> Result<T>,
    ) -> Result<T> {
        let cpus = running(&self.data())
            .and_then(|server| Pid::from_raw(i32::try_from(server.pid).ok()?))
            .and_then(|pid| sched_getaffinity(Some(pid)).ok());
        if running(&self.data()).is_some() {
            let instance = self.manager.up(Some(self.major), &mut |_| ())?;
            let mut session = PostgresEngine::new(instance.config()).connect()?;
            sessions::must_be_alone(session.as_mut(), None)?;
        }
        self.manager.down(Some(self.major))?;
        let outcome = {
            let _lock = self.manager.lock(self.major, &mut |_| ())?;
            if running(&self.data()).is_some() {
                Err(Error::new(
                    ErrorClass::LockNotAvailable,
                    "another kelvin process started the server before it could be copied; nothing was \
                    changed",
                ))
            } else {
                self.must_be_clean().and_then(|()| work(self, job))
            }
        };
        let started = on_cpus(cpus.as_ref(), || self.manager.up(Some(self.major), &mut |_| ()));
        let outcome = outcome?;
        started.map_err(|error| error.context("the files were restored, but the server does not start"))?;
        Ok(outcome)
    }

    /// Only after a clean shutdown is nothing of the log needed but its last segment.
    fn must_be_clean(&self) -> Result<()> {
        let state = self.control(&self.data(), "Database cluster state")?;
        if state == "shut down" {
            return Ok(());
        }
        Err(Error::new(
            ErrorClass::Server,
            format!("the stopped server's state is {state:?}, not \"shut down\""),
        )
        .with_help("start it once for recovery: kelvin server up"))
    }

    /// A line of what `pg_controldata` says about a data directory.
    fn control(&self, data: &Path, name: &str) -> Result<String> {
        const PROGRAM: &str = "pg_controldata";
        let directory = program::directory(self.major, self.major, &[PROGRAM]).ok_or_else(|| {
            Error::usage(format!(
                "copying the files needs {PROGRAM} of PostgreSQL {}, which is not installed here",
                self.major
            ))
            .with_help("choose another method: --reset template")
        })?;
        let account = Account::for_data(&self.data())?;
        let mut command = account.command(&directory.join(PROGRAM), Path::new("/"));
        let said = command
            .arg("-D")
            .arg(data)
            .output()
            .map_err(|error| Error::new(ErrorClass::Server, format!("pg_controldata: {error}")))?;
        let text = String::from_utf8_lossy(&said.stdout);
        let mut values = text.lines().filter_map(|line| line.split_once(':'));
        values
            .find(|(key, _)| *key == name)
            .map(|(_, value)| value.trim().to_owned())
            .ok_or_else(|| Error::new(ErrorClass::Server, format!("pg_controldata does not report {name:?}")))
    }

    /// Bytes that a copy takes: the log but for one segment stays.
    fn bytes(data: &Path) -> u64 {
        directory_size(data).saturating_sub(directory_size(&data.join("pg_wal"))) + (16 << 20)
    }

    fn must_fit(&self, bytes: u64) -> Result<()> {
        if files::clones(&self.base()) {
            return Ok(());
        }
        let base = self.base();
        must_fit(bytes, files::free_bytes(&base), &format!("in {}", base.display()))
    }

    /// Copies the data directory `from` to the directory `to`, which is made, but for what is no data.
    fn copy(&self, from: &Path, to: &Path, what: &str, job: &mut SnapshotJob<'_>) -> Result<()> {
        let account = Account::for_data(&self.data())?;
        no_links(from)?;
        remove(to)?;
        account.make_private_directory(to)?;
        let entries = std::fs::read_dir(from).map_err(|error| files::io_error("read", from, &error))?;
        let names: Vec<PathBuf> = entries
            .flatten()
            .filter(|entry| !NOT_DATA.iter().any(|name| entry.file_name() == *name))
            .map(|entry| entry.path())
            .collect();
        let total = Self::bytes(from);
        let mut copy = copy_command(&account, to);
        copy.args(&names);
        let mut each = |job: &mut SnapshotJob<'_>| {
            (job.progress)(what, directory_size(to).min(total) / 1_000_000, total / 1_000_000);
        };
        program::run(copy, "cp", job, &mut each)?;

        let wal = to.join("pg_wal");
        account.make_private_directory(&wal)?;
        let segment = self.control(from, "Latest checkpoint's REDO WAL file")?;
        let segment = from.join("pg_wal").join(&segment);
        let mut copy = copy_command(&account, &wal);
        copy.arg(&segment);
        program::run(copy, "cp", job, &mut each)?;
        // Last: a directory without it is no data directory.
        let mut copy = copy_command(&account, to);
        copy.arg(from.join("PG_VERSION"));
        program::run(copy, "cp", job, &mut each)?;
        // What is still to be written back would be written while the next run is measured.
        files::sync_tree(to)
    }

    fn words(&self) -> &'static str {
        if files::clones(&self.base()) {
            "clone of the stopped server's files (reflink)"
        } else {
            "copy of the stopped server's files"
        }
    }

    fn seal(&self, name: &str) -> Result<Seal> {
        files::seal(&self.copy_of(name))
    }

    /// Puts the directory `new` in the place of the data directory, with the present settings.
    fn swap(&self, new: &Path, job: &mut SnapshotJob<'_>) -> Result<()> {
        let data = self.data();
        let account = Account::for_data(&data)?;
        let mut copy = copy_command(&account, new);
        copy.args(KEPT.iter().map(|name| data.join(name)).filter(|path| path.exists()));
        program::run(copy, "cp", job, &mut |_| ())?;
        for name in KEPT.iter().map(|name| new.join(name)).filter(|path| path.exists()) {
            files::sync_file(&name)?;
        }
        files::sync_directory(new)?;
        // One step: there is never a moment without a data directory, in whose place a start would make an empty one.
        rustix::fs::renameat_with(
            rustix::fs::CWD,
            new,
            rustix::fs::CWD,
            &data,
            rustix::fs::RenameFlags::EXCHANGE,
        )
        .map_err(|error| files::io_error("exchange", &data, &error.into()))?;
        if let Some(directory) = data.parent() {
            files::sync_directory(directory)?;
        }
        // Under this name is now what was there before.
        remove(new)
    }
}

impl SnapshotStore for DataDirectories {
    fn way(&self) -> SnapshotMethod {
        SnapshotMethod::Files
    }

    fn list(&self) -> Result<Vec<SnapshotInfo>> {
        list(&self.base(), &self.prefix(), ".toml")
    }

    fn save(&self, name: &str, contents: &Contents, job: &mut SnapshotJob<'_>) -> Result<SnapshotInfo> {
        check_name(name)?;
        if self.description(name).exists() {
            return Err(exists_already(name));
        }
        job.go_on("nothing was saved")?;
        self.must_fit(Self::bytes(&self.data()))?;
        let to = self.copy_of(name);
        let copied = self.at_rest(job, |this, job| {
            let copied = this.copy(&this.data(), &to, "MB saved", job);
            if copied.is_err() {
                remove(&to)?;
            }
            copied
        });
        copied.map_err(interrupted_as("nothing was saved", job))?;
        let seal = self.seal(name)?;
        let mut about = SnapshotInfo::new(name, SnapshotMethod::Files, self.target(), seal.bytes, contents);
        about.seal = Some(seal);
        files::write_whole(&self.description(name), &about.to_text()?)?;
        Ok(about)
    }

    fn restore(&self, about: &SnapshotInfo, job: &mut SnapshotJob<'_>) -> Result<RestoreResult> {
        check_name(&about.name)?;
        about.must_be_sealed(self.seal(&about.name)?)?;
        self.must_fit(about.bytes)?;
        job.go_on("the server's data are unchanged")?;
        let new = self.data().with_file_name("data.restoring");
        let restored = self.at_rest(job, |this, job| {
            let copied = this.copy(&this.copy_of(&about.name), &new, "MB restored", job);
            copied.and_then(|()| this.swap(&new, job)).inspect_err(|_| {
                // The error being returned is the one that matters.
                let _ = remove(&new);
            })
        });
        restored.map_err(interrupted_as("the server's data are unchanged", job))?;
        Ok(RestoreResult { how: self.words().into(), bytes: about.bytes })
    }

    fn remove(&self, about: &SnapshotInfo) -> Result<()> {
        check_name(&about.name)?;
        let description = self.description(&about.name);
        std::fs::remove_file(&description)
            .map_err(|error| files::io_error("remove", &description, &error))?;
        remove(&self.copy_of(&about.name))
    }
}

fn interrupted_as<'a>(state: &'a str, job: &SnapshotJob<'_>) -> impl Fn(Error) -> Error + 'a {
    let asked = (job.stop)();
    move |error| if asked { stopped(state) } else { error }
}

/// What is started meanwhile runs on these CPUs.
fn on_cpus<T>(cpus: Option<&CpuSet>, work: impl FnOnce() -> T) -> T {
    let own = sched_getaffinity(None).ok();
    // Where it is not allowed, the server runs where this process does, as one that is started by hand.
    let moved = cpus.is_some_and(|cpus| sched_setaffinity(None, cpus).is_ok());
    let outcome = work();
    if let (true, Some(own)) = (moved, &own) {
        let _ = sched_setaffinity(None, own);
    }
    outcome
}

/// `cp` into the directory, as the server's user. Links are copied as links, never followed.
fn copy_command(account: &Account, to: &Path) -> Command {
    let mut command = account.command(Path::new("cp"), Path::new("/"));
    command.args(["--archive", "--reflink=auto", "--target-directory"]).arg(to).arg("--");
    command
}

/// Tablespaces lie outside of the directory, and so may a log that was moved: neither would be in the copy.
fn no_links(data: &Path) -> Result<()> {
    for directory in [data.to_owned(), data.join("pg_tblspc")] {
        for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
                return Err(Error::usage(format!(
                    "{} points outside the data directory, and a copy of the files would not include its \
                    target",
                    entry.path().display()
                ))
                .with_help("choose another method: --reset template, --reset dump"));
            }
        }
    }
    Ok(())
}

fn remove(directory: &Path) -> Result<()> {
    match std::fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(files::io_error("remove", directory, &error))
        }
        _ => Ok(()),
    }
}

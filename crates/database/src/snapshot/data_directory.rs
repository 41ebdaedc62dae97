//! A managed server: copies of its data directory, made while it is stopped.
//!
//! `cp` copies the files as the server's own user. Kelvin may run as root while the directory belongs to that user: if
//! root followed a link there, it could be made to overwrite any file. `cp` clones where the file system can.

use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::files::{self, list};
use super::{
    Contents, RestoreResult, Seal, SnapshotInfo, SnapshotJob, SnapshotMethod, SnapshotStore, check_name,
    exists_already, must_fit, program, stopped,
};
use crate::managed::account::Account;
use crate::managed::program::size as directory_size;
use crate::{Error, ErrorClass, Result};

/// Copies files into a directory, by `cp` with further options.
pub(crate) type CopyInto<'a> = dyn FnMut(&[PathBuf], &Path, &[&str]) -> Result<()> + 'a;

/// A managed server, as far as copies of its files are concerned.
pub(crate) trait FileServer {
    /// Files that the restored directory takes over from the present one: settings are not data. Otherwise the reset
    /// between runs would revert a setting that a study changes.
    const KEPT: &'static [&'static str];

    /// The directory of all managed servers, from the root.
    fn base(&self) -> PathBuf;

    /// The directory name below it, such as "postgres-15".
    fn name(&self) -> String;

    /// As whom it runs.
    fn account(&self) -> Result<Account>;

    /// Its process, when it runs.
    fn process(&self) -> Option<u32>;

    /// Stops it, unless other clients are connected, so that only its files are needed to start it again.
    fn stop(&self) -> Result<()>;

    /// Starts it.
    fn start(&self) -> Result<()>;

    /// Keeps other kelvins from starting it.
    fn lock(&self) -> Result<std::fs::File>;

    /// Refuses files that a start would have to recover.
    fn must_be_clean(&self) -> Result<()>;

    /// Whether a file or directory of the data directory is no data, or is copied by [`FileServer::copy_rest`].
    fn is_left_out(&self, name: &str) -> bool;

    /// Bytes that a copy of this data directory takes.
    fn bytes(&self, data: &Path) -> u64;

    /// Copies what a plain copy leaves out. `copy` does so for files, as the server's user. The last file copied is the
    /// one that makes the directory a data directory.
    fn copy_rest(&self, from: &Path, to: &Path, copy: &mut CopyInto<'_>) -> Result<()>;

    /// Completes a restored data directory that has taken its final place.
    fn complete(&self, _data: &Path) -> Result<()> {
        Ok(())
    }

    /// Refuses a data directory parts of which lie elsewhere.
    fn no_links(&self, data: &Path) -> Result<()>;

    /// The target under which the snapshots are listed.
    fn target(&self) -> String;
}

/// The snapshots of one managed server: of all its databases together.
#[derive(Debug, Clone)]
pub(crate) struct DataDirectories<S> {
    server: S,
}

impl<S: FileServer> DataDirectories<S> {
    pub(crate) fn new(server: S) -> Self {
        Self { server }
    }

    fn base(&self) -> PathBuf {
        self.server.base()
    }

    fn data(&self) -> PathBuf {
        self.base().join(self.server.name()).join("data")
    }

    fn prefix(&self) -> String {
        format!("{}-snapshot-", self.server.name())
    }

    fn copy_of(&self, name: &str) -> PathBuf {
        self.base().join(format!("{}{name}", self.prefix()))
    }

    fn description(&self, name: &str) -> PathBuf {
        self.base().join(format!("{}{name}.toml", self.prefix()))
    }

    /// Stops the server, does `work` on its directory, and starts the server again, whether or not the work succeeded,
    /// on the CPUs on which it ran: those of this process may be others.
    fn at_rest<T>(
        &self,
        job: &mut SnapshotJob<'_>,
        work: impl FnOnce(&Self, &mut SnapshotJob<'_>) -> Result<T>,
    ) -> Result<T> {
        let cpus = self
            .server
            .process()
            .and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?))
            .and_then(|pid| sched_getaffinity(Some(pid)).ok());
        self.server.stop()?;
        let outcome = {
            let _lock = self.server.lock()?;
            if self.server.process().is_some() {
                Err(Error::new(
                    ErrorClass::LockNotAvailable,
                    "another kelvin process started the server before it could be copied; nothing was \
                    changed",
                ))
            } else {
                self.server.must_be_clean().and_then(|()| work(self, job))
            }
        };
        let started = on_cpus(cpus.as_ref(), || self.server.start());
        let outcome = outcome?;
        started.map_err(|error| error.context("the files were restored, but the server does not start"))?;
        Ok(outcome)
    }

    fn must_fit(&self, bytes: u64) -> Result<()> {
        if files::clones(&self.base()) {
            return Ok(());
        }
        let base = self.base();
        must_fit(bytes, files::free_bytes(&base), &format!("in {}", base.display()))
    }

    /// Copies the data directory `from` to the directory `to`, which is created, except for files that are not data.
    fn copy(&self, from: &Path, to: &Path, what: &str, job: &mut SnapshotJob<'_>) -> Result<()> {
        let account = self.server.account()?;
        self.server.no_links(from)?;
        remove(to)?;
        account.make_private_directory(to)?;
        let entries = std::fs::read_dir(from).map_err(|error| files::io_error("read", from, &error))?;
        let names: Vec<PathBuf> = entries
            .flatten()
            .filter(|entry| !self.server.is_left_out(&entry.file_name().to_string_lossy()))
            .map(|entry| entry.path())
            .collect();
        let total = self.server.bytes(from);
        let mut copy = |names: &[PathBuf], into: &Path, options: &[&str]| {
            let mut copy = copy_command(&account, into, options);
            copy.args(names);
            program::run(copy, "cp", job, &mut |job| {
                (job.progress)(what, directory_size(to).min(total) / 1_000_000, total / 1_000_000);
            })
        };
        copy(&names, to, &[])?;
        self.server.copy_rest(from, to, &mut copy)?;
        // Dirty pages would otherwise be written back while the next run is measured.
        files::sync_tree(to)
    }

    fn copy_method(&self) -> &'static str {
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
        let kept: Vec<PathBuf> =
            S::KEPT.iter().map(|name| data.join(name)).filter(|path| path.exists()).collect();
        if !kept.is_empty() {
            let mut copy = copy_command(&self.server.account()?, new, &[]);
            copy.args(kept);
            program::run(copy, "cp", job, &mut |_| ())?;
        }
        for name in S::KEPT.iter().map(|name| new.join(name)).filter(|path| path.exists()) {
            files::sync_file(&name)?;
        }
        files::sync_directory(new)?;
        // One step: a data directory exists at every moment. If it were missing, a start would create an empty one.
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
        // This name now holds the previous directory.
        remove(new)?;
        self.server.complete(&data)
    }
}

impl<S: FileServer> SnapshotStore for DataDirectories<S> {
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
        self.must_fit(self.server.bytes(&self.data()))?;
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
        let bytes = self.server.bytes(&to);
        let mut about = SnapshotInfo::new(name, SnapshotMethod::Files, self.server.target(), bytes, contents);
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
        Ok(RestoreResult { how: self.copy_method().into(), bytes: about.bytes })
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

/// Processes started by `work` run on these CPUs.
fn on_cpus<T>(cpus: Option<&CpuSet>, work: impl FnOnce() -> T) -> T {
    let own = sched_getaffinity(None).ok();
    // Where this is not allowed, the server runs on the CPUs of this process, like a server started by hand.
    let moved = cpus.is_some_and(|cpus| sched_setaffinity(None, cpus).is_ok());
    let outcome = work();
    if let (true, Some(own)) = (moved, &own) {
        let _ = sched_setaffinity(None, own);
    }
    outcome
}

/// `cp` into the directory, as the server's user. Links are copied as links, never followed.
fn copy_command(account: &Account, to: &Path, options: &[&str]) -> Command {
    let mut command = account.command(Path::new("cp"), Path::new("/"));
    command.args(["--archive", "--reflink=auto"]).args(options).arg("--target-directory").arg(to).arg("--");
    command
}

/// Refuses symbolic links directly below one of these directories: the files they point to would not be in the copy.
pub(crate) fn no_links(directories: &[PathBuf], other: &str) -> Result<()> {
    for directory in directories {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
                return Err(Error::usage(format!(
                    "{} points outside the data directory, and a copy of the files would not include its \
                     target",
                    entry.path().display()
                ))
                .with_help(format!("choose another method: {other}")));
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

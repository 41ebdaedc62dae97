//! Managed servers: PostgreSQL instances that Kelvin makes, starts and stops itself from the binaries
//! installed on this host.
//!
//! An instance has its own data directory and unix socket and listens on no network. Its socket's directory
//! can only be entered by the user it runs as (and by root), so its `trust` authentication trusts nobody else.

pub(crate) mod account;
mod binaries;
mod instance;
mod postmaster;
mod settings;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;

pub use binaries::{Installation, installed};
pub(crate) use instance::size as directory_size;
pub use instance::{Instance, Status};
pub(crate) use postmaster::running;

use crate::{Error, Result};

/// How long another kelvin may take to start or stop an instance.
const LOCK_LIMIT: Duration = Duration::from_mins(3);

/// Makes, starts and stops the instances below one directory, one a major version.
#[derive(Debug, Clone)]
pub struct Manager {
    base: PathBuf,
}

impl Manager {
    /// A manager of the instances below `base_dir`, which is made when needed. Root's has to be in a place that
    /// an unprivileged user can reach, such as `/var/lib/kelvin`.
    pub fn new(base_dir: impl Into<PathBuf>) -> Self {
        Self { base: base_dir.into() }
    }

    /// Directory of the instances.
    pub fn base_dir(&self) -> &Path {
        &self.base
    }

    /// Starts the instance of major version `version`, or the newest there is or can be made; makes it when
    /// there is none, and leaves it alone when it runs. `progress` hears of every step that takes long.
    pub fn up(&self, version: Option<u32>, progress: &mut dyn FnMut(&str)) -> Result<Instance> {
        self.up_with_settings(version, &[], progress)
    }

    /// [`Manager::up`] with settings of the server that override Kelvin's. Refused when the instance already
    /// runs with others.
    pub fn up_with_settings(
        &self,
        version: Option<u32>,
        settings: &[(&str, &str)],
        progress: &mut dyn FnMut(&str),
    ) -> Result<Instance> {
        let known = self.majors();
        let found = binaries::installed();
        let preferred =
            || known.iter().rev().copied().find(|major| found.iter().any(|one| one.major == *major));
        let installation = binaries::choose(version.or_else(preferred))?;
        self.make_base()?;
        let _lock = self.lock(installation.major, progress)?;
        instance::up(&self.base, &installation, settings, progress)
    }

    /// Stops the instance of `version`, or all of them; running transactions are rolled back. Returns the major
    /// versions that were running. One that cannot be stopped keeps no other from it; its error is returned.
    pub fn down(&self, version: Option<u32>) -> Result<Vec<u32>> {
        let mut stopped = Vec::new();
        let mut failed = None;
        for major in self.majors() {
            if version.is_none_or(|asked| asked == major) {
                let outcome =
                    self.lock(major, &mut |_| ()).and_then(|_lock| instance::down(&self.base, major));
                match outcome {
                    Ok(true) => stopped.push(major),
                    Ok(false) => {}
                    Err(error) => failed = failed.or(Some(error.context(&format!("PostgreSQL {major}")))),
                }
            }
        }
        failed.map_or(Ok(stopped), Err)
    }

    /// What instances there are, oldest version first, running or not.
    pub fn status(&self) -> Result<Vec<Status>> {
        Ok(self.majors().into_iter().map(|major| instance::status(&self.base, major)).collect())
    }

    /// Major versions of the instances that were made, ascending.
    fn majors(&self) -> Vec<u32> {
        let mut majors: Vec<u32> = std::fs::read_dir(&self.base)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.strip_prefix("postgres-")?.parse().ok())
            .filter(|major| instance::exists(&self.base, *major))
            .collect();
        majors.sort_unstable();
        majors
    }

    fn make_base(&self) -> Result<()> {
        let failed = |error: std::io::Error| {
            Error::usage(format!(
                "the directory for managed servers, {}, cannot be made: {error}",
                self.base.display()
            ))
        };
        if self.base.is_dir() {
            return Ok(());
        }
        std::fs::create_dir_all(&self.base).map_err(failed)?;
        if rustix::process::geteuid().is_root() {
            // Root's file mask may keep the server's user out.
            std::fs::set_permissions(&self.base, std::fs::Permissions::from_mode(0o755)).map_err(failed)?;
        }
        Ok(())
    }

    /// Keeps other kelvins from starting or stopping the same instance; released when dropped.
    pub(crate) fn lock(&self, major: u32, progress: &mut dyn FnMut(&str)) -> Result<std::fs::File> {
        let path = self.base.join(format!("postgres-{major}.lock"));
        let failed =
            |error: std::io::Error| Error::usage(format!("{} cannot be locked: {error}", path.display()));
        let file = std::fs::OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(failed)?;
        let until = Instant::now() + LOCK_LIMIT;
        let mut told = false;
        loop {
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(file),
                Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < until => {
                    if !told {
                        progress("another kelvin is starting or stopping the server; waiting");
                        told = true;
                    }
                    std::thread::sleep(Duration::from_millis(50));
                }
                Err(error) => return Err(failed(error.into())),
            }
        }
    }
}

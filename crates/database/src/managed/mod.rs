//! Managed servers: PostgreSQL instances (and [`mysql`]'s) that Kelvin makes, starts and stops itself from the binaries
//! installed on this host.
//!
//! An instance has its own data directory and unix socket and listens on no network. Its socket's directory
//! can only be entered by the user it runs as (and by root), so its `trust` authentication trusts nobody else.

pub(crate) mod account;
mod binaries;
mod host;
mod instance;
pub mod mysql;
mod postmaster;
mod profile;
mod reconfigure;
mod settings;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;

pub use binaries::{Installation, installed};
pub use host::Host;
pub(crate) use instance::size as directory_size;
pub use instance::{Instance, Status};
pub(crate) use postmaster::running;
pub use profile::{Load, Profile};

use account::Account;
use instance::{Places, Wanted};

use crate::postgres::settings::Before;
use crate::{Error, ErrorClass, Result};

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
        self.start(version, Wanted { profile: None, extra: settings }, progress)
    }

    /// [`Manager::up`] with this profile, which the instance keeps until it is given another. A running one reads it, and
    /// is restarted where a setting needs that; refused while others work on it. When it does not start with the profile
    /// it gets back what it had, and the error has the end of its log.
    pub fn up_with_profile(
        &self,
        version: Option<u32>,
        profile: &Profile,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Instance> {
        self.start(version, Wanted { profile: Some(profile), extra: &[] }, progress)
    }

    fn start(
        &self,
        version: Option<u32>,
        wanted: Wanted<'_>,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Instance> {
        let installation = binaries::choose(self.preferred(version))?;
        self.make_base()?;
        let _lock = self.lock(installation.major, progress)?;
        instance::up(&self.base, &installation, wanted, progress)
    }

    /// The asked version, or the newest instance whose binaries are installed.
    fn preferred(&self, version: Option<u32>) -> Option<u32> {
        version.or_else(|| {
            let found = binaries::installed();
            self.majors().into_iter().rev().find(|major| found.iter().any(|one| one.major == *major))
        })
    }

    /// Stops the instance and starts it again, its files as they are; starts it when it is stopped.
    pub fn restart(&self, version: u32, progress: &mut dyn FnMut(&str)) -> Result<Instance> {
        self.must_exist(version)?;
        let _lock = self.lock(version, progress)?;
        instance::down(&self.base, version)?;
        let places = Places::new(&self.base, version);
        let account = Account::for_data(&places.data)?;
        instance::start_as_it_is(&places, &account, version, progress)
    }

    /// [`Manager::restart`] after settings were changed with `ALTER SYSTEM`. When the instance does not start with them
    /// (more `shared_buffers` than memory), its `postgresql.auto.conf` is put back as it was `before`, it is started with
    /// that, and the error has the end of its log.
    pub fn restart_or_put_back(
        &self,
        version: u32,
        before: &Before,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Instance> {
        let error = match self.restart(version, progress) {
            Ok(instance) => return Ok(instance),
            Err(error) => error,
        };
        progress("the server does not start with these settings; putting back what they were");
        self.put_back_stopped(version, before)?;
        let doing = format!("PostgreSQL {version} does not start with the new settings, which were put back");
        match self.restart(version, progress) {
            Ok(_) => Err(error.context(&doing)),
            Err(second) => Err(second.context(&format!(
                "PostgreSQL {version} starts neither with the new settings nor with the old"
            ))),
        }
    }

    /// Puts `postgresql.auto.conf` of a stopped instance back as it was `before`; of a running one
    /// [`crate::postgres::settings::put_back`] does that.
    pub fn put_back_stopped(&self, version: u32, before: &Before) -> Result<()> {
        self.must_exist(version)?;
        let _lock = self.lock(version, &mut |_| ())?;
        let places = Places::new(&self.base, version);
        reconfigure::put_back_stopped(&places, &Account::for_data(&places.data)?, before)
    }

    /// The instance, when it runs and answers; it is left alone.
    pub fn running(&self, version: u32) -> Result<Instance> {
        let places = Places::new(&self.base, version);
        let account = Account::for_data(&places.data)?;
        places.ready(&account, version, true).ok_or_else(|| {
            Error::usage(format!("the managed PostgreSQL {version} does not run"))
                .with_help(format!("start it: kelvin server up --version {version}"))
        })
    }

    /// The version that [`Manager::up`] means by `version`.
    pub fn version(&self, version: Option<u32>) -> Result<u32> {
        Ok(binaries::choose(self.preferred(version))?.major)
    }

    /// What the host offers the instance of `version`: what profiles are computed from.
    pub fn host(&self, version: u32) -> Host {
        let places = Places::new(&self.base, version);
        Host::look(&places.data)
    }

    /// The profile that the instance was given last; none when there is no instance, or one of a version of Kelvin without
    /// profiles.
    pub fn profile(&self, version: u32) -> Option<Profile> {
        settings::profile(&Places::new(&self.base, version).configuration().ok()?)
    }

    fn must_exist(&self, version: u32) -> Result<()> {
        if instance::exists(&self.base, version) {
            return Ok(());
        }
        Err(Error::usage(format!("there is no managed PostgreSQL {version}"))
            .with_help(format!("make it: kelvin server up --version {version}")))
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

    pub(super) fn make_base(&self) -> Result<()> {
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

    /// The file of a lock, not locked yet, and what its error says.
    fn lock_file(&self, name: &str) -> Result<(std::fs::File, impl Fn(std::io::Error) -> Error + use<>)> {
        let path = self.base.join(name);
        let opened = std::fs::OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let failed = move |error: std::io::Error| {
            Error::usage(format!("{} cannot be locked: {error}", path.display()))
        };
        Ok((opened.map_err(&failed)?, failed))
    }

    /// Keeps other kelvins from changing settings of servers or of the machine until the file is closed. Two that did so at
    /// a time would each put back what the other had set.
    pub fn lock_changes(&self) -> Result<std::fs::File> {
        self.make_base()?;
        let (file, failed) = self.lock_file("changes.lock")?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(file),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(Error::new(
                ErrorClass::LockNotAvailable,
                "another kelvin has changed settings for a study of its own, which it will put back",
            )
            .with_help("wait until that study has ended")),
            Err(error) => Err(failed(error.into())),
        }
    }

    /// Keeps other kelvins from starting or stopping the same instance; released when dropped.
    pub(crate) fn lock(&self, major: u32, progress: &mut dyn FnMut(&str)) -> Result<std::fs::File> {
        self.lock_instance(&format!("postgres-{major}"), progress)
    }

    /// [`Manager::lock`] of the instance with this directory.
    fn lock_instance(&self, name: &str, progress: &mut dyn FnMut(&str)) -> Result<std::fs::File> {
        let (file, failed) = self.lock_file(&format!("{name}.lock"))?;
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

//! Managed servers: instances that Kelvin creates, starts and stops itself from the binaries installed on this host.
//! This module has the parts common to every engine; [`crate::postgres::managed`] and [`crate::mysql::managed`] have
//! the rest.
//!
//! An instance has its own data directory and unix socket and listens on no network. Its socket's directory can only be entered
//! by the user it runs as and by root, so nobody else has to be kept out by passwords.

pub(crate) mod account;
pub(crate) mod program;
mod server;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;

pub use server::{ManagedServer, Started};

pub use crate::host_resources::HostResources;
pub use crate::profile::{Line, Profile, ProfileLoad, Profiles};
use crate::{Error, ErrorClass, Result};

/// How long another kelvin may take to start or stop an instance.
const LOCK_LIMIT: Duration = Duration::from_mins(3);

/// Creates, starts and stops the instances below one directory.
#[derive(Debug, Clone)]
pub struct Manager {
    pub(crate) base: PathBuf,
}

impl Manager {
    /// A manager of the instances below `base_dir`, which is created when needed. For root it has to be a location that
    /// an unprivileged user can reach, such as `/var/lib/kelvin`.
    pub fn new(base_dir: impl Into<PathBuf>) -> Self {
        Self { base: base_dir.into() }
    }

    /// Directory of the instances.
    pub fn base_dir(&self) -> &Path {
        &self.base
    }

    /// Whether a managed server may have a socket there. Asking every one of them takes time.
    pub(crate) fn may_have_socket(&self, socket: &Path) -> bool {
        socket.starts_with(&self.base) || socket.starts_with("/tmp")
    }

    pub(crate) fn make_base(&self) -> Result<()> {
        let failed = |error: std::io::Error| {
            Error::usage(format!(
                "the directory for managed servers, {}, cannot be created: {error}",
                self.base.display()
            ))
        };
        if self.base.is_dir() {
            return Ok(());
        }
        std::fs::create_dir_all(&self.base).map_err(failed)?;
        if rustix::process::geteuid().is_root() {
            // Root's umask may exclude the server's user.
            std::fs::set_permissions(&self.base, std::fs::Permissions::from_mode(0o755)).map_err(failed)?;
        }
        Ok(())
    }

    /// The file of a lock, not locked yet, and its error message.
    pub(crate) fn lock_file(
        &self,
        name: &str,
    ) -> Result<(std::fs::File, impl Fn(std::io::Error) -> Error + use<>)> {
        let path = self.base.join(name);
        let opened = std::fs::OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let failed = move |error: std::io::Error| {
            Error::usage(format!("{} cannot be locked: {error}", path.display()))
        };
        Ok((opened.map_err(&failed)?, failed))
    }

    /// Keeps other kelvin processes from changing settings of servers or of the machine until the file is closed. Two
    /// concurrent processes would each restore the other's changes.
    pub fn lock_changes(&self) -> Result<std::fs::File> {
        self.make_base()?;
        let (file, failed) = self.lock_file("changes.lock")?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(file),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(Error::new(
                ErrorClass::LockNotAvailable,
                "another kelvin process has changed settings for a study and will restore them",
            )
            .with_help("wait until that study has ended")),
            Err(error) => Err(failed(error.into())),
        }
    }

    /// Keeps other kelvins from starting or stopping the instance with this directory; released when dropped.
    pub(crate) fn lock_instance(&self, name: &str, progress: &mut dyn FnMut(&str)) -> Result<std::fs::File> {
        let (file, failed) = self.lock_file(&format!("{name}.lock"))?;
        let until = Instant::now() + LOCK_LIMIT;
        let mut reported = false;
        loop {
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(file),
                Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < until => {
                    if !reported {
                        progress("another kelvin process is starting or stopping the server; waiting");
                        reported = true;
                    }
                    std::thread::sleep(Duration::from_millis(50));
                }
                Err(error) => return Err(failed(error.into())),
            }
        }
    }
}

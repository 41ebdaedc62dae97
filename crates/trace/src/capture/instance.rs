//! A tracing instance of our own: a directory of tracefs with its own buffers, so that nobody else's tracing is
//! disturbed. It is removed when it is dropped; what a killed process left is removed by the next one.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use kelvin_host::SystemTree;

use crate::{Error, Result};

const PREFIX: &str = "kelvin-";

/// Where tracefs is mounted.
///
/// # Errors
/// When it is not, or cannot be read.
pub fn tracefs(tree: &SystemTree) -> Result<PathBuf> {
    let mounted = tree.mounts().into_iter().find(|mount| mount.kind == "tracefs").map(|mount| mount.point);
    let place = mounted.ok_or_else(|| {
        Error::Unavailable(
            "tracefs, which recording needs, is not mounted: mount -t tracefs tracefs /sys/kernel/tracing"
                .into(),
        )
    })?;
    match fs::read_dir(place.join("instances")) {
        Ok(_) => Ok(place),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            Err(Error::Unavailable(format!("only root can access {}: record as root", place.display())))
        }
        Err(error) => Err(Error::system(format!("reading {}", place.join("instances").display()))(error)),
    }
}

/// The instance of this process.
#[derive(Debug)]
pub struct Instance {
    path: PathBuf,
}

impl Instance {
    /// Removes what processes left that do not exist any more, or had the number of this one, and creates an instance
    /// that records nothing yet.
    ///
    /// # Errors
    /// When the kernel refuses it.
    pub fn create(tracefs: &Path) -> Result<Self> {
        let instances = tracefs.join("instances");
        remove_left_over(&instances);
        let path = instances.join(format!("{PREFIX}{}", std::process::id()));
        fs::create_dir(&path).map_err(Error::system(format!("creating {}", path.display())))?;
        let instance = Self { path };
        instance.write("tracing_on", "0")?;
        Ok(instance)
    }

    /// A file of the instance.
    pub fn file(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path.join(name)
    }

    /// Writes a setting.
    ///
    /// # Errors
    /// When the kernel refuses it.
    pub fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.file(name);
        let write = || OpenOptions::new().write(true).open(&path)?.write_all(text.as_bytes());
        write().map_err(Error::system(format!("writing {text:?} to {}", path.display())))
    }

    /// Reads a file.
    ///
    /// # Errors
    /// When the kernel refuses it.
    pub fn text(&self, name: impl AsRef<Path>) -> Result<String> {
        let path = self.file(name);
        fs::read_to_string(&path).map_err(Error::system(format!("reading {}", path.display())))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = self.write("tracing_on", "0");
        let _ = self.write("events/enable", "0");
        // Busy as long as a file of it is open: its readers are dropped before it.
        let _ = fs::remove_dir(&self.path);
    }
}

fn remove_left_over(instances: &Path) {
    let Ok(entries) = fs::read_dir(instances) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let pid =
            name.to_str().and_then(|name| name.strip_prefix(PREFIX)).and_then(|pid| pid.parse::<u32>().ok());
        // Numbers of processes recur, in a container soon.
        let is_left =
            |pid: u32| pid == std::process::id() || !Path::new("/proc").join(pid.to_string()).exists();
        if pid.is_some_and(is_left) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

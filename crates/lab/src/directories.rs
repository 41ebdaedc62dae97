//! Directories of the user's data, from environment variables.

use std::path::PathBuf;

use crate::store_bench::StoreBenchError;
use crate::store_bench::error::Doing;

/// The user's data directory for Kelvin: `$XDG_DATA_HOME/kelvin`, or `~/.local/share/kelvin`. An error where neither variable
/// has an absolute path.
pub fn data() -> Result<PathBuf, StoreBenchError> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")));
    let refused = || {
        StoreBenchError::Refused(
            "neither XDG_DATA_HOME nor HOME is set; give the store with --store FILE".into(),
        )
    };
    Ok(base.ok_or_else(refused)?.join("kelvin"))
}

/// Where managed servers live. The server's unprivileged user must be able to reach it, which it cannot under
/// root's home.
pub fn servers() -> Result<PathBuf, StoreBenchError> {
    if let Some(path) = std::env::var_os("KELVIN_SERVERS") {
        return Ok(path.into());
    }
    if rustix::process::geteuid().is_root() { Ok("/var/lib/kelvin".into()) } else { data() }
}

/// Where dumps of databases are kept that have no room for snapshots beside them.
pub fn dumps() -> Result<PathBuf, StoreBenchError> {
    Ok(data()?.join("snapshots"))
}

/// A directory for a database that lives as long as one run. `/var/tmp` before `/tmp`, which is memory on many
/// systems: a benchmark on it would measure no disk.
pub fn scratch() -> Result<tempfile::TempDir, StoreBenchError> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("kelvin-");
    let asked = std::env::var_os("TMPDIR").map(PathBuf::from);
    let made = match asked {
        Some(directory) => builder.tempdir_in(directory),
        None => builder.tempdir_in("/var/tmp").or_else(|_| builder.tempdir()),
    };
    made.doing("cannot create a directory for a temporary database")
}

//! Where things are kept.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use kelvin_store::RunId;

use crate::out;

/// The user's data directory for Kelvin: `$XDG_DATA_HOME/kelvin`, or `~/.local/share/kelvin`.
pub(crate) fn data_directory() -> Result<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")));
    Ok(base.context("neither XDG_DATA_HOME nor HOME is set; say where with --store FILE")?.join("kelvin"))
}

/// The results file: what was asked for, or `kelvin.db` in the data directory, which is made if need be.
pub(crate) fn store(asked: Option<&Path>) -> Result<PathBuf> {
    if let Some(path) = asked {
        return Ok(path.to_owned());
    }
    let directory = data_directory()?;
    out::directory(&directory)?;
    Ok(directory.join("kelvin.db"))
}

/// How to call Kelvin for what is in this results file: with `--store` where it is not found without.
pub(crate) fn kelvin_command(store: &Path) -> String {
    let found = |path: PathBuf| path == store;
    let by_default = || data_directory().is_ok_and(|directory| found(directory.join("kelvin.db")));
    let known = std::env::var_os("KELVIN_STORE").map_or_else(by_default, |path| found(path.into()));
    if known { "kelvin".into() } else { format!("kelvin --store {}", store.display()) }
}

/// The file of a run's HTML report, in the directory `reports/NAME OF THE RESULTS FILE` beside that file, which is made if need
/// be: runs of two results files have the same numbers.
pub(crate) fn report(store: &Path, run: RunId) -> Result<PathBuf> {
    let parent = store.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let directory = parent.join("reports").join(store.file_name().unwrap_or(store.as_os_str()));
    out::directory(&directory)?;
    Ok(directory.join(format!("run-{run}.html")))
}

/// Where managed servers live. The server's unprivileged user must be able to reach it, which it cannot under
/// root's home.
pub(crate) fn servers() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("KELVIN_SERVERS") {
        return Ok(path.into());
    }
    if rustix::process::geteuid().is_root() { Ok("/var/lib/kelvin".into()) } else { data_directory() }
}

/// Where dumps of databases are kept that have no room for snapshots beside them.
pub(crate) fn dumps() -> Result<PathBuf> {
    Ok(data_directory()?.join("snapshots"))
}

/// A directory for a database that lives as long as one run. `/var/tmp` before `/tmp`, which is memory on many
/// systems: a benchmark on it would measure no disk.
pub(crate) fn scratch() -> Result<tempfile::TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("kelvin-");
    let asked = std::env::var_os("TMPDIR").map(PathBuf::from);
    let made = match asked {
        Some(directory) => builder.tempdir_in(directory),
        None => builder.tempdir_in("/var/tmp").or_else(|_| builder.tempdir()),
    };
    made.context("cannot make a directory for a temporary database")
}

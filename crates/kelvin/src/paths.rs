//! Paths of the results file and of reports.

use std::path::{Path, PathBuf};

use anyhow::Result;
use kelvin_lab::directories;
use kelvin_store::RunId;

use crate::out;

/// The results file: `asked`, or `kelvin.db` in the data directory, which is created if necessary.
pub(crate) fn store(asked: Option<&Path>) -> Result<PathBuf> {
    if let Some(path) = asked {
        return Ok(path.to_owned());
    }
    let directory = directories::data()?;
    out::directory(&directory)?;
    Ok(directory.join("kelvin.db"))
}

/// The command `kelvin` for this results file: with `--store` if it is not the default file.
pub(crate) fn kelvin_command(store: &Path) -> String {
    let found = |path: PathBuf| path == store;
    let by_default = || directories::data().is_ok_and(|directory| found(directory.join("kelvin.db")));
    let known = std::env::var_os("KELVIN_STORE").map_or_else(by_default, |path| found(path.into()));
    if known { "kelvin".into() } else { format!("kelvin --store {}", store.display()) }
}

/// Path of a run's HTML report: in the directory `reports/NAME OF THE RESULTS FILE` beside that file. The directory is
/// created if necessary. Each results file has its own, because runs of two files have the same numbers.
pub(crate) fn report(store: &Path, run: RunId) -> Result<PathBuf> {
    let parent = store.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let directory = parent.join("reports").join(store.file_name().unwrap_or(store.as_os_str()));
    out::directory(&directory)?;
    Ok(directory.join(format!("run-{run}.html")))
}

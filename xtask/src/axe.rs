//! `cargo xtask axe`: fetches axe-core (licence MPL-2.0), which the page tests use to find accessibility violations.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::download::{self, Package};

const VERSION: &str = "4.14.1";
const SHA256: &str = "e6b0ce02b84d892e2e33e403485e7f3d6c29e2be6df65daf44d89ba564139745";

/// Fetches axe-core; if that fails, creates a file that makes the page tests skip it.
pub(crate) fn fetch_for_tests(top: &Path) -> Result<()> {
    download::or_mark_unavailable(&directory(top), || fetch(top).map(drop))
}

/// The directory in which the tests look for it: crates/kelvin/tests/support/axe.rs.
fn directory(top: &Path) -> PathBuf {
    download::target(top, "axe-core")
}

/// Fetches and unpacks axe-core, and returns the path of the script.
pub(crate) fn fetch(top: &Path) -> Result<PathBuf> {
    let directory = directory(top);
    let script = directory.join(format!("axe-{VERSION}.min.js"));
    if script.is_file() {
        return Ok(script);
    }
    let package = Package::npm("", "axe-core", VERSION, SHA256);
    package.fetch(&directory)?;
    download::run(&directory, &["tar", "-xzf", &package.file, "package/axe.min.js"])?;
    // Renamed in one step, because a half-written file would count as complete.
    std::fs::rename(directory.join("package/axe.min.js"), &script).context("cannot move axe.min.js")?;
    Ok(script)
}

//! `cargo xtask axe`: fetches axe-core, with which the tests of the pages look for faults of accessibility. It is a tool of the
//! tests (licence MPL-2.0), kept in the target directory and in no release.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

const VERSION: &str = "4.14.1";

/// The SHA-256 of the package as the registry has it.
const SHA256: &str = "e6b0ce02b84d892e2e33e403485e7f3d6c29e2be6df65daf44d89ba564139745";

/// Fetches it; where that fails, leaves a mark by which the tests of the pages know that they go without.
pub(crate) fn fetch_for_tests(top: &Path) -> Result<()> {
    let mark = directory(top).join("unavailable");
    let fetched = fetch(top);
    match &fetched {
        // There is no mark to be removed, but after a failure.
        Ok(_) => drop(std::fs::remove_file(mark)),
        Err(error) => {
            std::fs::write(mark, format!("{error:#}\n"))
                .context("cannot record that axe-core is unavailable")?;
        }
    }
    fetched.map(drop)
}

/// The tests look for it here: crates/kelvin/tests/support/axe.rs.
fn directory(top: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| top.join("target"), PathBuf::from).join("axe-core")
}

/// Fetches it with npm, or with curl where there is no npm; what is there already is kept. Says where it is.
pub(crate) fn fetch(top: &Path) -> Result<PathBuf> {
    let directory = directory(top);
    let script = directory.join(format!("axe-{VERSION}.min.js"));
    if script.is_file() {
        return Ok(script);
    }
    std::fs::create_dir_all(&directory).with_context(|| format!("cannot create {}", directory.display()))?;
    let package = format!("axe-core-{VERSION}.tgz");
    let address = format!("https://registry.npmjs.org/axe-core/-/{package}");
    let by_npm = || run(&directory, "npm", &["pack", "--silent", &format!("axe-core@{VERSION}")]);
    let by_curl = || run(&directory, "curl", &["-fsSL", "--retry", "3", "-o", &package, &address]);
    by_npm().or_else(|_| by_curl()).with_context(|| {
        format!(
            "cannot fetch axe-core; put {address} into {} by hand and run cargo xtask axe again",
            directory.display()
        )
    })?;
    let sum = Command::new("sha256sum")
        .arg(&package)
        .current_dir(&directory)
        .output()
        .context("cannot run sha256sum")?;
    if !String::from_utf8_lossy(&sum.stdout).starts_with(SHA256) {
        std::fs::remove_file(directory.join(&package)).context("cannot remove the package")?;
        bail!("{address} has changed: its SHA-256 differs from {SHA256}; the download was removed");
    }
    run(&directory, "tar", &["-xzf", &package, "package/axe.min.js"])?;
    // In one step: a half-written file would be taken for the whole.
    std::fs::rename(directory.join("package/axe.min.js"), &script).context("cannot move axe.min.js")?;
    Ok(script)
}

fn run(directory: &Path, program: &str, arguments: &[&str]) -> Result<()> {
    // What was put there by hand is as good.
    if program != "tar" && directory.join(format!("axe-core-{VERSION}.tgz")).is_file() {
        return Ok(());
    }
    let mut command = Command::new(program);
    command.args(arguments).current_dir(directory).stdin(Stdio::null()).stdout(Stdio::null());
    let status = command.status().with_context(|| format!("cannot run {program}"))?;
    if !status.success() {
        bail!("{program} {} ended with {status}", arguments.join(" "));
    }
    Ok(())
}

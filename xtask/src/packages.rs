//! What the tests need from outside, and how it gets here.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Something that the tests run, and the Debian package that has it.
struct Need {
    what: &'static str,
    package: &'static str,
    there: fn() -> bool,
}

const NEEDS: [Need; 2] = [
    Need { what: "PostgreSQL's server and pgbench (13 or newer)", package: "postgresql", there: postgres },
    Need { what: "openssl, to make the tests' certificates", package: "openssl", there: || on_path("openssl") },
];

/// Installs what is missing on Debian and its relatives; elsewhere says what to install.
pub(crate) fn ensure() -> Result<()> {
    let missing: Vec<&Need> = NEEDS.iter().filter(|need| !(need.there)()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let list: Vec<&str> = missing.iter().map(|need| need.what).collect();
    let Some(apt) = apt() else {
        bail!("the tests need {}; install that and try again", list.join(", and "));
    };
    let packages: Vec<&str> = missing.iter().map(|need| need.package).collect();
    println!("installing {}", packages.join(" "));
    run(apt(&["update", "-qq"]))?;
    run(apt(&[&["install", "-y", "-qq", "--no-install-recommends"], packages.as_slice()].concat()))?;
    match missing.iter().find(|need| !(need.there)()) {
        Some(need) => bail!("{} was installed, but {} is still not there", need.package, need.what),
        None => Ok(()),
    }
}

/// How to call apt-get: directly as root, else by a sudo that asks for nothing.
fn apt() -> Option<fn(&[&str]) -> Command> {
    if !on_path("apt-get") {
        return None;
    }
    let is_root = Command::new("id").arg("-u").output().is_ok_and(|out| out.stdout.trim_ascii() == b"0");
    if is_root {
        return Some(|args| {
            let mut command = Command::new("apt-get");
            command.args(args).env("DEBIAN_FRONTEND", "noninteractive");
            command
        });
    }
    let may_sudo = Command::new("sudo").args(["-n", "true"]).stderr(Stdio::null()).status();
    may_sudo.is_ok_and(|status| status.success()).then_some(|args: &[&str]| {
        let mut command = Command::new("sudo");
        command.args(["-n", "env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]).args(args);
        command
    })
}

fn run(mut command: Command) -> Result<()> {
    let status = command.stdout(Stdio::null()).status().with_context(|| format!("cannot run {command:?}"))?;
    if !status.success() {
        bail!("{command:?} ended with {status}");
    }
    Ok(())
}

fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

/// Debian keeps the server's programs off the PATH, in a directory for each version.
fn postgres() -> bool {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut directories: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
    directories.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    let has = |directory: &Path| ["initdb", "postgres", "pgbench"].iter().all(|name| directory.join(name).is_file());
    directories.iter().any(|directory| has(directory))
}

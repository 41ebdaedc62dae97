//! `cargo xtask test`: the whole gate.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::packages;

/// Each step by its name and cargo's arguments.
const STEPS: [(&str, &[&str]); 3] = [
    ("formatting", &["fmt", "--all", "--", "--check"]),
    ("lints", &["clippy", "--workspace", "--all-targets", "-j2", "--quiet", "--", "-D", "warnings"]),
    ("tests", &["test", "--workspace", "-j2"]),
];

/// Installs what is needed and runs every step; the first that fails ends it.
pub(crate) fn test() -> Result<()> {
    let since = Instant::now();
    packages::ensure()?;
    for (name, args) in STEPS {
        step(name, args)?;
    }
    if Command::new("cargo").args(["deny", "--version"]).output().is_ok_and(|out| out.status.success()) {
        step("licences and advisories", &["deny", "check"])?;
    } else {
        println!("== licences and advisories: not checked, cargo-deny is not installed");
    }
    println!("== everything passed in {:.0} s", since.elapsed().as_secs_f64());
    Ok(())
}

fn step(name: &str, args: &[&str]) -> Result<()> {
    println!("== {name}: cargo {}", args.join(" "));
    let since = Instant::now();
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let status = Command::new("cargo").args(args).current_dir(top).status().context("cannot run cargo")?;
    if !status.success() {
        bail!("{name} failed: cargo {} ended with {status}", args.join(" "));
    }
    println!("== {name}: {:.0} s", since.elapsed().as_secs_f64());
    Ok(())
}

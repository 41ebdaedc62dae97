//! The command under test, with a results file and a PostgreSQL server of its own.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::process::{Cost, timed};

/// A place for one benchmark; the server in it stops when it is dropped.
pub(crate) struct Bench {
    kelvin: PathBuf,
    directory: PathBuf,
    /// The URL of the server's database, when one was started.
    pub(crate) url: Option<String>,
}

impl Bench {
    /// Builds the release binary and makes an empty place.
    pub(crate) fn new() -> Result<Self> {
        let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let built = Command::new("cargo").args(["build", "--release", "-j2"]).current_dir(&top).status()?;
        if !built.success() {
            bail!("the release build failed");
        }
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| top.join("target"), PathBuf::from);
        let kelvin = target.join("release/kelvin").canonicalize().context("no release binary")?;
        let directory = PathBuf::from(format!("/var/tmp/kelvin-bench-{}", std::process::id()));
        std::fs::create_dir(&directory)?;
        // The server's unprivileged user must get through.
        std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o755))?;
        Ok(Self { kelvin, directory, url: None })
    }

    /// Starts a PostgreSQL server and sets what is given, with a restart.
    pub(crate) fn start_server(&mut self, settings: &[(&str, &str)]) -> Result<()> {
        self.url = Some(self.kelvin(&["server", "up"])?.stdout.trim().to_owned());
        for (name, value) in settings {
            self.psql(&format!("alter system set {name} = '{value}'"))?;
        }
        self.kelvin(&["server", "down"])?;
        self.url = Some(self.kelvin(&["server", "up"])?.stdout.trim().to_owned());
        Ok(())
    }

    /// Runs the command under test; its results go to the benchmark's own file.
    pub(crate) fn kelvin(&self, args: &[&str]) -> Result<Cost> {
        let store = self.directory.join("kelvin.db");
        let args: Vec<String> = args.iter().map(|&arg| arg.to_owned()).collect();
        timed(&self.kelvin, &args, &[("KELVIN_STORE", &store), ("KELVIN_SERVERS", &self.directory)])
    }

    /// Runs one statement.
    pub(crate) fn psql(&self, statement: &str) -> Result<String> {
        let url = self.url.as_deref().context("no server was started")?;
        let output =
            Command::new("psql").args(["-XAtqc", statement, url]).output().context("cannot run psql")?;
        if !output.status.success() {
            bail!("psql: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Where a file of the benchmark lies.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        if self.url.is_some()
            && let Err(error) = self.kelvin(&["server", "down"])
        {
            eprintln!("{error:#}; its data stays in {}", self.directory.display());
            return;
        }
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

//! The command under test, with a separate results file and separate servers.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::process::{Cost, timed};
use super::{interrupt, server_cpu};

/// A directory for one benchmark; the servers in it stop when it is dropped.
pub(crate) struct Bench {
    kelvin: PathBuf,
    directory: PathBuf,
    /// The URL of the server's database, if one was started.
    pub(crate) url: Option<String>,
    /// The URL of the MariaDB server, if one was started.
    mariadb: Option<String>,
    /// The process of the MariaDB server.
    mariadb_process: Option<u32>,
    /// The data directory of the PostgreSQL server.
    data: PathBuf,
    /// The directory of PostgreSQL's programs.
    programs: PathBuf,
}

impl Bench {
    /// Builds the release binary and creates an empty directory.
    pub(crate) fn new() -> Result<Self> {
        interrupt::watch()?;
        let target = build(&[])?;
        let kelvin = target.join("release/kelvin").canonicalize().context("no release binary")?;
        let directory = PathBuf::from(format!("/var/tmp/kelvin-bench-{}", std::process::id()));
        std::fs::create_dir(&directory)?;
        let bench = Self {
            kelvin,
            directory,
            url: None,
            mariadb: None,
            mariadb_process: None,
            data: PathBuf::default(),
            programs: PathBuf::default(),
        };
        // The server's unprivileged user must be able to enter the directory.
        std::fs::set_permissions(&bench.directory, std::fs::Permissions::from_mode(0o755))?;
        Ok(bench)
    }

    /// Starts a PostgreSQL server, and restarts it with these settings.
    pub(crate) fn start_server(&mut self, settings: &[(&str, &str)]) -> Result<()> {
        self.url = Some(self.kelvin(&["server", "up"])?.stdout.trim().to_owned());
        self.data = self.psql("show data_directory")?.into();
        self.programs = self.psql("select setting from pg_config() where name = 'BINDIR'")?.into();
        for (name, value) in settings {
            self.psql(&format!("alter system set {name} = '{value}'"))?;
        }
        self.kelvin(&["server", "down"])?;
        self.url = Some(self.kelvin(&["server", "up"])?.stdout.trim().to_owned());
        Ok(())
    }

    /// Starts a MariaDB server whose commits do not wait for a disk.
    pub(crate) fn start_mariadb(&mut self) -> Result<()> {
        let up = self.kelvin(&["server", "up", "--engine", "mariadb", "--profile", "steady"])?;
        self.mariadb = Some(up.stdout.trim().to_owned());
        let status = self.kelvin(&["server", "status"])?.stdout;
        self.mariadb_process = status
            .lines()
            .find(|line| line.starts_with("mariadb"))
            .and_then(|line| line.split_once("process ")?.1.split(',').next()?.parse().ok());
        self.mariadb_process.map(drop).context("the status of MariaDB names no process")
    }

    /// The URL of the MariaDB server.
    pub(crate) fn mariadb(&self) -> Result<&str> {
        self.mariadb.as_deref().context("no MariaDB server was started")
    }

    /// The URL of a database of the server, created on first use.
    pub(crate) fn database(&self, name: &str) -> Result<String> {
        let url = self.url.as_deref().context("no server was started")?;
        if self.psql(&format!("select 1 from pg_database where datname = '{name}'"))?.is_empty() {
            self.psql(&format!("create database {name}"))?;
        }
        let (user, rest) = url.split_once("@/").context("the server's URL names no database")?;
        let (_, socket) = rest.split_once('?').context("the server's URL names no socket")?;
        Ok(format!("{user}@/{name}?{socket}"))
    }

    /// Runs the command under test with the benchmark's results file.
    pub(crate) fn kelvin(&self, args: &[&str]) -> Result<Cost> {
        interrupt::check()?;
        self.run_kelvin(args)
    }

    /// The command under test, for callers that run it themselves.
    pub(crate) fn program(&self) -> &Path {
        &self.kelvin
    }

    /// Sets a command's environment to the benchmark's results file and servers.
    pub(crate) fn environment(&self, command: &mut Command) {
        command.env("KELVIN_STORE", self.directory.join("kelvin.db")).env("KELVIN_SERVERS", &self.directory);
    }

    fn run_kelvin(&self, args: &[&str]) -> Result<Cost> {
        let store = self.directory.join("kelvin.db");
        let args: Vec<String> = args.iter().map(|&arg| arg.to_owned()).collect();
        timed(&self.kelvin, &args, &[("KELVIN_STORE", &store), ("KELVIN_SERVERS", &self.directory)])
    }

    /// The report of the last run.
    pub(crate) fn report(&self) -> Result<Value> {
        let text = self.kelvin(&["report", "last", "--json"])?.stdout;
        serde_json::from_str(&text).context("the report is not JSON")
    }

    /// Runs the server's own pgbench.
    pub(crate) fn pgbench(&self, args: &[String]) -> Result<Cost> {
        interrupt::check()?;
        timed(&self.programs.join("pgbench"), args, &[])
    }

    /// CPU seconds of the servers since they started.
    pub(crate) fn server_cpu(&self) -> Result<f64> {
        let postgres = self.url.as_ref().map(|_| server_cpu::postmaster(&self.data)).transpose()?;
        let servers = postgres.into_iter().chain(self.mariadb_process);
        servers.map(server_cpu::seconds).sum()
    }

    /// Runs one statement in the server's first database.
    pub(crate) fn psql(&self, statement: &str) -> Result<String> {
        psql(self.url.as_deref().context("no server was started")?, statement)
    }

    /// The path of a file of the benchmark.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        if self.mariadb.is_some()
            && let Err(error) = self.run_kelvin(&["server", "down", "--engine", "mariadb"])
        {
            eprintln!("{error:#}; its data stays in {}", self.directory.display());
            return;
        }
        if self.url.is_some()
            && let Err(error) = self.run_kelvin(&["server", "down"])
            && let Err(second) = self.end_server()
        {
            eprintln!("{error:#}\n{second:#}; its data stays in {}", self.directory.display());
            return;
        }
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

impl Bench {
    /// Stops the server and waits until it has ended.
    fn end_server(&self) -> Result<()> {
        let Ok(server) = server_cpu::postmaster(&self.data) else { return Ok(()) };
        let pid = rustix::process::Pid::from_raw(i32::try_from(server)?).context("not a process")?;
        // A fast shutdown of PostgreSQL.
        rustix::process::kill_process(pid, rustix::process::Signal::INT)?;
        for _ in 0..300 {
            if server_cpu::postmaster(&self.data).is_err() {
                return Ok(());
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        bail!("the server (process {server}) does not stop")
    }
}

/// Builds the targets named by the arguments in release mode, and returns cargo's target directory.
pub(crate) fn build(what: &[&str]) -> Result<PathBuf> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut command = Command::new("cargo");
    command.args(["build", "--release", "-j2"]).args(what).current_dir(&top);
    // Removes the variables that `cargo run` sets for this program, because they would cause ring to be
    // rebuilt.
    for (name, _) in std::env::vars_os() {
        if name
            .to_str()
            .is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"))
        {
            command.env_remove(name);
        }
    }
    let built = command.status().context("cannot run cargo")?;
    if !built.success() {
        bail!("the release build failed");
    }
    Ok(std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| top.join("target"), PathBuf::from))
}

/// Runs one statement.
pub(crate) fn psql(url: &str, statement: &str) -> Result<String> {
    interrupt::check()?;
    let output = Command::new("psql").args(["-XAtqc", statement, url]).output().context("cannot run psql")?;
    if !output.status.success() {
        bail!("psql: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

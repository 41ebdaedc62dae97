//! One instance: its directory, its life.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::binaries::{self, Installation};
use super::postmaster::{self, Postmaster};
use super::{reconfigure, settings};
use crate::managed::account::Account;
use crate::managed::program::{
    any_process, can_work_in, io_error, is_ours, last_lines, log_tail, run, size, socket_directory, write_as,
};
use crate::managed::{HostResources, Profile};
use crate::{Error, ErrorClass, Result, postgres};

/// Role and database that every instance has.
const NAME: &str = "kelvin";

/// A part of the socket's name only: an instance's socket is alone in its directory.
const PORT: u16 = 5432;

/// Seconds a start or stop may take: after a crash the server first replays its log.
const PATIENCE: &str = "120";

/// A running managed server.
#[derive(Debug, Clone)]
pub struct Instance {
    config: postgres::Config,
    major: u32,
    data: PathBuf,
    log: PathBuf,
    pid: u32,
    /// Whether it ran already.
    reused: bool,
}

impl Instance {
    /// How to connect: as the role `kelvin` to the database `kelvin`, through the unix socket.
    pub fn config(&self) -> postgres::Config {
        self.config.clone()
    }

    /// Major version.
    pub fn major(&self) -> u32 {
        self.major
    }

    /// The server's data directory.
    pub fn data_directory(&self) -> &Path {
        &self.data
    }

    /// The server's log.
    pub fn log_file(&self) -> &Path {
        &self.log
    }

    /// Process number of the server's first process.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether it was already running.
    pub fn was_running(&self) -> bool {
        self.reused
    }
}

/// State of an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// Major version.
    pub major: u32,
    /// The version that its binaries report; empty when they are no longer installed.
    pub version: String,
    /// Process number, when it runs.
    pub pid: Option<u32>,
    /// Time since its start, when it runs.
    pub uptime: Option<Duration>,
    /// Whether it answers at its socket.
    pub answers: bool,
    /// Directory of its unix socket.
    pub socket_directory: PathBuf,
    /// Number in its socket's name.
    pub port: u16,
    /// Its data directory.
    pub data_directory: PathBuf,
    /// Bytes in its data directory.
    pub size: u64,
    /// The name of its profile; none when a version of Kelvin without profiles made it.
    pub profile: Option<String>,
}

/// The state stored beside an instance's data.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    socket_directory: PathBuf,
    port: u16,
    binaries: PathBuf,
}

/// The paths of one instance.
pub(super) struct Places {
    directory: PathBuf,
    pub(super) data: PathBuf,
    pub(super) log: PathBuf,
    state: PathBuf,
}

impl Places {
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(super) fn new(base: &Path, major: u32) -> Self {
        let base = std::path::absolute(base).unwrap_or_else(|_| base.to_owned());
        let directory = base.join(format!("postgres-{major}"));
        Self {
            data: directory.join("data"),
            log: directory.join("log"),
            state: base.join(format!("postgres-{major}.toml")),
            directory,
        }
    }

    /// Beside the data, or in /tmp under a name that only this instance has when that path would be too long.
    fn socket_directory(&self, account: &Account) -> PathBuf {
        socket_directory(&self.directory, account)
    }

    /// The stored state of the instance; `None` when it is lost or damaged. The next [`up`] writes it again; until then
    /// defaults are used.
    fn read_state(&self) -> Option<State> {
        toml::from_str(&std::fs::read_to_string(&self.state).ok()?).ok()
    }

    /// Completely or not at all.
    fn write_state(&self, state: &State) -> Result<()> {
        let text = toml::to_string(state).map_err(|error| Error::usage(error.to_string()))?;
        let unfinished = self.state.with_extension("toml.new");
        std::fs::write(&unfinished, text).map_err(|error| io_error(&unfinished, &error))?;
        std::fs::rename(&unfinished, &self.state).map_err(|error| io_error(&self.state, &error))
    }

    /// The socket of a running server: the one that the server itself reports, then the stored one, since the path
    /// computed now may differ from the one at its start.
    fn socket_of(&self, server: Option<&Postmaster>, account: Option<&Account>) -> (PathBuf, u16) {
        server
            .and_then(|server| server.socket.clone())
            .or_else(|| self.read_state().map(|state| (state.socket_directory, state.port)))
            .unwrap_or_else(|| {
                let near = || self.directory.join("run");
                (account.map_or_else(near, |account| self.socket_directory(account)), PORT)
            })
    }

    /// The server's main file of settings.
    fn configuration_file(&self) -> PathBuf {
        self.data.join("postgresql.conf")
    }

    /// The text of the server's main file of settings.
    pub(super) fn configuration(&self) -> Result<String> {
        let file = self.configuration_file();
        std::fs::read_to_string(&file).map_err(|error| io_error(&file, &error))
    }

    /// Replaces the server's main file of settings.
    pub(super) fn write_configuration(&self, account: &Account, text: &str) -> Result<()> {
        write_as(account, &self.configuration_file(), text, &self.directory)
    }

    /// The running server, if it answers.
    pub(super) fn ready(&self, account: &Account, major: u32, reused: bool) -> Option<Instance> {
        let server = postmaster::running(&self.data)?;
        let (directory, port) = self.socket_of(Some(&server), Some(account));
        postmaster::answers(&socket_path(&directory, port)).then(|| Instance {
            config: postgres::Config::unix(&directory, port, NAME, NAME),
            major,
            data: self.data.clone(),
            log: self.log.clone(),
            pid: server.pid,
            reused,
        })
    }

    /// Waits until the server that has been started answers.
    fn wait(&self, account: &Account, major: u32) -> Result<Instance> {
        for _ in 0..300 {
            if let Some(instance) = self.ready(account, major, false) {
                return Ok(instance);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Err(Error::new(ErrorClass::Timeout, "the managed server does not answer on its socket")
            .with_help(log_tail(&self.log)))
    }

    /// Directory of the instance's binaries: those it was started with, or installed ones of the same version.
    pub(super) fn binaries(&self, major: u32) -> Result<PathBuf> {
        let kept = self.read_state().map(|state| state.binaries);
        match kept.filter(|directory| directory.join("pg_ctl").exists()) {
            Some(directory) => Ok(directory),
            None => Ok(binaries::choose(Some(major))?.directory),
        }
    }
}

pub(super) fn exists(base: &Path, major: u32) -> bool {
    Places::new(base, major).data.join("PG_VERSION").exists()
}

/// Requirements for the start of an instance.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    /// The profile to apply; `None` for its present one, or `default`.
    pub(super) profile: Option<&'a Profile>,
    /// Settings that override the profile's.
    pub(super) extra: &'a [(&'a str, &'a str)],
    /// No load is running: settings of a load that it has were left by a process that was killed.
    pub(super) may_end_load: bool,
}

pub(super) fn up(
    base: &Path,
    installation: &Installation,
    wanted: Wanted<'_>,
    progress: &mut dyn FnMut(&str),
) -> Result<Instance> {
    let places = Places::new(base, installation.major);
    let account = Account::for_data(&places.data)?;
    account.make_private_directory(&places.directory)?;
    can_work_in(&account, &installation.directory.join("postgres"), "PostgreSQL", &places.directory)?;
    if !places.data.join("PG_VERSION").exists() {
        progress(&format!(
            "creating a PostgreSQL {} instance in {}",
            installation.major,
            places.directory.display()
        ));
        create(&account, installation, &places)?;
    }
    let state =
        |socket_directory, port| State { socket_directory, port, binaries: installation.directory.clone() };
    let configuration = places.configuration()?;
    let extra = wanted.extra;
    if let Some(instance) = places.ready(&account, installation.major, true) {
        let (directory, port) = places.socket_of(postmaster::running(&places.data).as_ref(), Some(&account));
        if places.read_state().is_none() {
            places.write_state(&state(directory.clone(), port))?;
        }
        if let Some(profile) = wanted.profile {
            let host = HostResources::read(&places.data).with_binaries(&installation.directory);
            let section = settings::section(installation.major, host, &directory, port, profile, extra)?;
            let wanted = settings::with_section(&configuration, &section);
            return reconfigure::running(&places, &account, instance, &configuration, &wanted, progress);
        }
        if extra.iter().any(|(name, value)| !configuration.contains(&format!("\n{name} = '{value}'\n"))) {
            return Err(Error::usage("the managed server already runs with other settings")
                .with_help("stop it first: kelvin server down"));
        }
        if wanted.may_end_load && settings::is_loading(&configuration) {
            // The process that loaded was killed.
            let own = settings::without_loading(&configuration);
            return reconfigure::running(&places, &account, instance, &configuration, &own, progress);
        }
        return Ok(instance);
    }
    if postmaster::running(&places.data).is_some() {
        progress("the server is running but does not answer yet; waiting");
        return places.wait(&account, installation.major);
    }
    let socket_directory = places.socket_directory(&account);
    account.make_private_directory(&socket_directory)?;
    let host = HostResources::read(&places.data).with_binaries(&installation.directory);
    // The default's sizes follow the host; others were computed for a run, or are the user's.
    let kept = settings::profile(&configuration).filter(|kept| kept.name != "default");
    let profile = wanted.profile.cloned().or(kept).unwrap_or_else(|| Profile::standard(host));
    let section = settings::section(installation.major, host, &socket_directory, PORT, &profile, extra)?;
    clear_crash(&places, &socket_path(&socket_directory, PORT))?;
    let text = settings::with_section(&configuration, &section);
    if text != configuration {
        places.write_configuration(&account, &text)?;
    }
    places.write_state(&state(socket_directory, PORT))?;
    progress(&format!("starting PostgreSQL {}", installation.major));
    if let Err(error) = start(&account, &installation.directory, &places) {
        // A profile that the server does not start with does not stay.
        if wanted.profile.is_some() && text != configuration {
            places.write_configuration(&account, &configuration)?;
        }
        return Err(error);
    }
    places.wait(&account, installation.major)
}

/// Starts an instance that is stopped, its files as they are.
pub(super) fn start_as_it_is(
    places: &Places,
    account: &Account,
    major: u32,
    progress: &mut dyn FnMut(&str),
) -> Result<Instance> {
    let (directory, port) = places.socket_of(None, Some(account));
    account.make_private_directory(&directory)?;
    clear_crash(places, &socket_path(&directory, port))?;
    progress(&format!("starting PostgreSQL {major}"));
    start(account, &places.binaries(major)?, places)?;
    places.wait(account, major)
}

/// Removes the lock files that a crash left: the server would refuse to start if another process has its PID by now.
/// They also protect the data from two servers, so this first waits for the last process of the crashed one to end.
fn clear_crash(places: &Places, socket: &Path) -> Result<()> {
    let pid_file = places.data.join("postmaster.pid");
    let mut socket_lock = socket.as_os_str().to_owned();
    socket_lock.push(".lock");
    for file in [&pid_file, Path::new(&socket_lock)] {
        if !file.exists() {
            continue;
        }
        let mut rest = 100;
        while let Some(pid) = any_process(&places.data) {
            if rest == 0 {
                return Err(Error::usage(format!(
                    "process {pid} is still working in {}, although its server crashed",
                    places.data.display()
                ))
                .with_help("end that process and try again"));
            }
            rest -= 1;
            std::thread::sleep(Duration::from_millis(100));
        }
        std::fs::remove_file(file).map_err(|error| io_error(file, &error))?;
    }
    Ok(())
}

fn socket_path(directory: &Path, port: u16) -> PathBuf {
    directory.join(format!(".s.PGSQL.{port}"))
}

/// Creates the data directory under another name first, so that it exists completely or not at all.
fn create(account: &Account, installation: &Installation, places: &Places) -> Result<()> {
    let unfinished = places.directory.join("data.new");
    if unfinished.exists() {
        std::fs::remove_dir_all(&unfinished).map_err(|error| io_error(&unfinished, &error))?;
    }
    let mut initdb = account.command(&installation.directory.join("initdb"), &places.directory);
    initdb.arg("--pgdata").arg(&unfinished).args(["--username", NAME, "--auth=trust"]);
    // Sorting and comparing by bytes: the same on every host, and no locale has to be installed.
    initdb.args(["--encoding=UTF8", "--locale=C"]);
    run(initdb, None, "initdb")?;
    // A single-user server creates the database: neither a client nor a port is needed.
    let mut single = account.command(&installation.directory.join("postgres"), &places.directory);
    single.args(["--single", "-D"]).arg(&unfinished).arg("postgres");
    let doing = "creating the database";
    let said = run(single, Some(&format!("CREATE DATABASE {NAME}\n")), doing)?;
    // A single-user server ends well even when its statement failed.
    if said.contains("ERROR:") || said.contains("FATAL:") {
        return Err(Error::new(ErrorClass::Server, format!("{doing} failed")).with_help(last_lines(&said)));
    }
    std::fs::rename(&unfinished, &places.data).map_err(|error| io_error(&places.data, &error))
}

fn start(account: &Account, binaries: &Path, places: &Places) -> Result<()> {
    let mut command = account.command(&binaries.join("pg_ctl"), &places.directory);
    command.arg("start").arg("--pgdata").arg(&places.data).arg("--log").arg(&places.log);
    command.args(["--wait", "--timeout", PATIENCE, "--silent"]);
    run(command, None, "starting PostgreSQL")
        .map(drop)
        .map_err(|error| error.with_help(log_tail(&places.log)))
}

pub(super) fn down(base: &Path, major: u32) -> Result<bool> {
    let places = Places::new(base, major);
    if postmaster::running(&places.data).is_none() {
        return Ok(false);
    }
    stop(&places, &Account::for_data(&places.data)?, major)
}

/// Stops the server; returns whether one was running.
pub(super) fn stop(places: &Places, account: &Account, major: u32) -> Result<bool> {
    let Some(server) = postmaster::running(&places.data) else { return Ok(false) };
    let pg_ctl = places.binaries(major)?.join("pg_ctl");
    let mut command = account.command(&pg_ctl, &places.directory);
    command.arg("stop").arg("--pgdata").arg(&places.data);
    command.args(["--mode", "fast", "--wait", "--timeout", PATIENCE, "--silent"]);
    run(command, None, "stopping PostgreSQL")?;
    // pg_ctl waits for the file to go, and the process lives a moment longer.
    for _ in 0..100 {
        if !is_ours(server.pid, &places.data) {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(true)
}

/// Never fails: lost or damaged parts get defaults or are left out, so that they hide no other instance.
pub(super) fn status(base: &Path, major: u32) -> Status {
    let places = Places::new(base, major);
    let running = postmaster::running(&places.data);
    let account = Account::for_data(&places.data).ok();
    let (socket_directory, port) = places.socket_of(running.as_ref(), account.as_ref());
    let version = places
        .binaries(major)
        .ok()
        .and_then(|directory| Command::new(directory.join("postgres")).arg("--version").output().ok())
        .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
        .unwrap_or_default();
    Status {
        major,
        version,
        pid: running.as_ref().map(|found| found.pid),
        uptime: running.map(|found| SystemTime::now().duration_since(found.since).unwrap_or_default()),
        answers: postmaster::answers(&socket_path(&socket_directory, port)),
        socket_directory,
        port,
        size: size(&places.data),
        profile: places
            .configuration()
            .ok()
            .and_then(|text| settings::profile(&text))
            .map(|found| found.name),
        data_directory: places.data,
    }
}

//! Managed MySQL and MariaDB servers: one per installed product and series.
//!
//! As with PostgreSQL, an instance has its own data directory and unix socket and listens on no network. Only root and
//! the user it runs as can enter the socket's directory, so its users need no password.

mod binaries;
mod server;

use std::fmt::Write as _;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant, SystemTime};

use rustix::process::{Pid, Signal};

pub use binaries::Installation;
pub use server::MysqlServer;

use super::settings::{changes, parse, with_changes, written};
use super::{Config, MysqlEngine, Product};
use crate::managed::account::Account;
use crate::managed::program::{
    can_work_in, io_error, is_ours, log_tail, run, size, socket_directory, write_as,
};
use crate::managed::{HostResources, Manager, Profile};
use crate::{Engine, Error, ErrorClass, Result};

/// User and database that every instance has.
const NAME: &str = "kelvin";
/// After a crash the server first replays its log.
const PATIENCE: Duration = Duration::from_mins(2);
/// The marks before the name of an instance's profile and above its settings.
const PROFILE: &str = "# Profile: ";
const OF_PROFILE: &str = "# --- settings of the profile ---\n";

/// A running managed server.
#[derive(Debug, Clone)]
pub struct Instance {
    /// How to connect: as the user `kelvin` to the database `kelvin`, through the unix socket.
    pub config: Config,
    /// Process number of the server.
    pub pid: u32,
    /// Whether it was already running.
    pub was_running: bool,
}

/// State of an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// Product and series, such as "mariadb-10.11".
    pub name: String,
    /// Process number, when it runs.
    pub pid: Option<u32>,
    /// Time since its start, when it runs.
    pub uptime: Option<Duration>,
    /// Its unix socket.
    pub socket: PathBuf,
    /// Its data directory.
    pub data_directory: PathBuf,
    /// Bytes in its data directory.
    pub size: u64,
    /// The name of its profile.
    pub profile: String,
}

struct Places {
    name: String,
    directory: PathBuf,
    data: PathBuf,
    log: PathBuf,
    settings: PathBuf,
    pid_file: PathBuf,
}

impl Places {
    fn new(base: &Path, name: &str) -> Self {
        let base = std::path::absolute(base).unwrap_or_else(|_| base.to_owned());
        let directory = base.join(name);
        Self {
            name: name.to_owned(),
            data: directory.join("data"),
            // Without an extension the server would append its own.
            log: directory.join("log.err"),
            settings: directory.join("my.cnf"),
            pid_file: directory.join("pid"),
            directory,
        }
    }

    fn account(&self) -> Result<Account> {
        Account::for_server("the server", "mysql", &self.data)
    }

    fn socket(&self, account: &Account) -> PathBuf {
        socket_directory(&self.directory, account).join("s")
    }

    /// The server's process; an outdated PID file is ignored.
    fn running(&self) -> Option<u32> {
        let pid = std::fs::read_to_string(&self.pid_file).ok()?.trim().parse().ok().filter(|pid| *pid > 1)?;
        is_ours(pid, &self.data).then_some(pid)
    }

    fn kept_settings(&self) -> Option<String> {
        std::fs::read_to_string(&self.settings).ok()
    }

    fn profile_name(&self) -> String {
        let kept = self.kept_settings().unwrap_or_default();
        kept.lines().find_map(|line| line.strip_prefix(PROFILE)).unwrap_or("default").to_owned()
    }

    /// The profile that was written last; none where there is none yet.
    fn profile(&self) -> Option<Profile> {
        let kept = with_changes(&self.kept_settings()?, &[]).ok()?;
        let lines = parse(kept.split_once(OF_PROFILE)?.1).ok()?;
        Some(Profile { name: self.profile_name(), lines, cautions: Vec::new() })
    }
}

/// The installed server that [`up`] would start, and the resources of its host.
pub fn installation(manager: &Manager, product: Product) -> Result<(Installation, HostResources)> {
    let installation = binaries::choose(product)?;
    let host = HostResources::read(&Places::new(manager.base_dir(), &installation.name()).data);
    Ok((installation, host))
}

/// Starts the instance of the newest installed server of this product. It is created when there is none; a running one
/// is not changed. With a profile it is restarted with those settings and keeps them until another profile is applied.
/// `progress` is called for every step that takes long.
pub fn up(
    manager: &Manager,
    product: Product,
    asked: Option<&Profile>,
    progress: &mut dyn FnMut(&str),
) -> Result<Instance> {
    let (installation, host) = installation(manager, product)?;
    manager.make_base()?;
    let name = installation.name();
    let _lock = manager.lock_instance(&name, progress)?;
    let places = Places::new(manager.base_dir(), &name);
    let account = places.account()?;
    account.make_private_directory(&places.directory)?;
    can_work_in(&account, &installation.program, &product.to_string(), &places.directory)?;
    if !places.data.join("mysql").is_dir() {
        progress(&format!(
            "creating a {product} {}.{} instance in {}",
            installation.series.0,
            installation.series.1,
            places.directory.display()
        ));
        create(&account, &installation, &places)?;
    }
    let socket = places.socket(&account);
    let kept = places.kept_settings();
    let profile = match (asked, places.profile()) {
        (Some(profile), _) => profile.clone(),
        // The default's sizes follow the host; others were computed for a run, or are the user's.
        (None, Some(kept)) if kept.name != "default" => kept,
        (None, _) => installation.profiles().standard(host),
    };
    // Changes made by a study stay until they are restored.
    let changed = kept.as_deref().map(changes).unwrap_or_default();
    let wanted = with_changes(&settings(&installation, &places, &socket, &profile)?, &changed)?;
    if let Some(pid) = places.running() {
        if asked.is_none() || kept.as_deref() == Some(wanted.as_str()) {
            return ready(&places, product, &socket, pid, None, true);
        }
        others_at_work(&config(product, &socket))?;
        progress(&format!("restarting {name} to apply its profile"));
        stop(&places)?;
    }
    if kept.as_deref() != Some(wanted.as_str()) {
        write_as(&account, &places.settings, &wanted, &places.directory)?;
    }
    progress(&format!("starting {product} {}.{}", installation.series.0, installation.series.1));
    let started = start(&account, &installation, &places, product, &socket);
    if let (Err(_), Some(_), Some(kept)) = (&started, asked, &kept) {
        // A profile that the server does not start with does not stay.
        write_as(&account, &places.settings, kept, &places.directory)?;
    }
    started
}

/// Stops the instances of this product, or all; running transactions are rolled back. Returns the names of those that were
/// running.
pub fn down(manager: &Manager, product: Option<Product>) -> Result<Vec<String>> {
    let mut stopped = Vec::new();
    for name in names(manager) {
        if product.is_none_or(|product| name.starts_with(&format!("{}-", product.word()))) {
            let _lock = manager.lock_instance(&name, &mut |_| ())?;
            if stop(&Places::new(manager.base_dir(), &name))? {
                stopped.push(name);
            }
        }
    }
    Ok(stopped)
}

/// All instances, running or not.
pub fn status(manager: &Manager) -> Vec<Status> {
    let one = |name: String| {
        let places = Places::new(manager.base_dir(), &name);
        let pid = places.running();
        let since = pid.and_then(|_| std::fs::metadata(&places.pid_file).ok()?.modified().ok());
        let socket = places
            .account()
            .map_or_else(|_| places.directory.join("run/s"), |account| places.socket(&account));
        Status {
            profile: places.profile_name(),
            pid,
            uptime: since.map(|since| SystemTime::now().duration_since(since).unwrap_or_default()),
            socket,
            size: size(&places.data),
            data_directory: places.data,
            name,
        }
    };
    names(manager).into_iter().map(one).collect()
}

/// The instances that were made.
fn names(manager: &Manager) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(manager.base_dir())
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.path().join("data/mysql").is_dir())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.starts_with("mariadb-") || name.starts_with("mysql-"))
        .collect();
    names.sort_unstable();
    names
}

fn config(product: Product, socket: &Path) -> Config {
    let mut config = Config::unix(socket, NAME, NAME);
    config.product = product;
    config
}

/// The complete configuration file: the settings common to all instances, then the profile.
fn settings(
    installation: &Installation,
    places: &Places,
    socket: &Path,
    profile: &Profile,
) -> Result<String> {
    let mut text = format!(
        "# Written by kelvin when it starts this server with a profile; changes here are lost.\n{PROFILE}{}\n[mysqld]\n",
        profile.name.replace(char::is_control, "?")
    );
    let mut line = |name: &str, value: &str, reason: &str| {
        let _ = writeln!(text, "# {}\n{name} = {value}", reason.replace(char::is_control, " "));
    };
    let path = |path: &Path| {
        format!("\"{}\"", path.display().to_string().replace('\\', "\\\\").replace('"', "\\\""))
    };
    line("datadir", &path(&places.data), "next to this file");
    if let Some(base) = installation.base() {
        line("basedir", &path(base), "location of the server's message files");
    }
    line("socket", &path(socket), "unix socket only; only its user and root can open it");
    line("skip_networking", "ON", "no TCP port is open");
    line("pid_file", &path(&places.pid_file), "how kelvin finds the server");
    line(
        "tmpdir",
        &path(&places.directory),
        "private: when another server starts, it removes temporary files from /tmp",
    );
    line("log_error", &path(&places.log), "the error log");
    line("max_connections", "2200", "one connection per virtual user, plus a reserve");
    line("table_open_cache", "4000", "tables are not reopened when many users have them open");
    line("character_set_server", "utf8mb4", "all of Unicode");
    line("collation_server", "utf8mb4_bin", "text is compared byte by byte, as in kelvin's PostgreSQL");
    line("local_infile", "ON", "data is loaded with LOAD DATA LOCAL; kelvin sends the rows");
    line("performance_schema", "ON", "makes wait events available; MariaDB's default is off");
    if installation.product == Product::Mysql {
        line("mysqlx", "OFF", "no second port");
    }
    text.push_str(OF_PROFILE);
    for one in &profile.lines {
        let reason = one.reason.replace(char::is_control, " ");
        // A prefix, where the line could be mistaken for one of this file's marks.
        let mark = ["---", "Profile: "].iter().any(|mark| reason.starts_with(mark));
        if !reason.is_empty() {
            let _ = writeln!(text, "# {}{reason}", if mark { "note: " } else { "" });
        }
        let _ = writeln!(text, "{} = {}", one.name, written(&one.value)?);
    }
    Ok(text)
}

/// Creates the data directory under another name first, so that it exists completely or not at all.
fn create(account: &Account, installation: &Installation, places: &Places) -> Result<()> {
    let unfinished = places.directory.join("data.new");
    if unfinished.exists() {
        std::fs::remove_dir_all(&unfinished).map_err(|error| io_error(&unfinished, &error))?;
    }
    account.make_private_directory(&unfinished)?;
    let data = format!("--datadir={}", unfinished.display());
    let base = installation.base().map(|base| format!("--basedir={}", base.display()));
    let mut command = if installation.product == Product::Mariadb {
        let script = installation.install_script().ok_or_else(|| {
            Error::usage(format!(
                "mariadb-install-db is not installed next to {}",
                installation.program.display()
            ))
        })?;
        let mut command = account.command(&script, &places.directory);
        command.arg("--no-defaults").args(&base).arg(data);
        command.args(["--auth-root-authentication-method=normal", "--skip-test-db"]);
        command
    } else {
        let mut command = account.command(&installation.program, &places.directory);
        command.arg("--no-defaults").args(&base).arg(data).arg("--initialize-insecure");
        command
    };
    // A starting server removes files that look like leftovers, also those of other servers, from the directory for
    // temporary files.
    command.env("HOME", &places.directory).env("TMPDIR", &places.directory);
    run(command, None, &format!("creating the data directory of {}", installation.product))?;
    std::fs::rename(&unfinished, &places.data).map_err(|error| io_error(&places.data, &error))
}

fn start(
    account: &Account,
    installation: &Installation,
    places: &Places,
    product: Product,
    socket: &Path,
) -> Result<Instance> {
    if let Some(directory) = socket.parent() {
        account.make_private_directory(directory)?;
    }
    let lock = socket.with_extension("lock");
    // Remains of a crash. The server itself locks its data.
    for left in [socket, &lock, &places.pid_file] {
        if left.exists() {
            std::fs::remove_file(left).map_err(|error| io_error(left, &error))?;
        }
    }
    // Its first messages go into its log, opened as its user.
    let mut command = account.command(Path::new("sh"), &places.directory);
    command
        .args(["-c", r#"log=$1; shift; exec "$@" >> "$log" 2>&1"#, "sh"])
        .arg(&places.log)
        .arg(&installation.program);
    command.arg(format!("--defaults-file={}", places.settings.display()));
    command.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    let child = command
        .spawn()
        .map_err(|error| Error::new(ErrorClass::Server, format!("starting {product}: {error}")))?;
    let pid = child.id();
    ready(places, product, socket, pid, Some(child), false)
}

/// Waits until the server answers, and sees to the user and the database that every instance has.
fn ready(
    places: &Places,
    product: Product,
    socket: &Path,
    pid: u32,
    mut child: Option<Child>,
    was_running: bool,
) -> Result<Instance> {
    let until = Instant::now() + PATIENCE;
    let mut root = loop {
        match MysqlEngine::new(Config::unix(socket, "root", "")).connect() {
            Ok(session) => break session,
            Err(error) => {
                let ended = child.as_mut().is_some_and(|child| child.try_wait().ok().flatten().is_some());
                if ended || Instant::now() > until {
                    return Err(Error::new(
                        ErrorClass::Server,
                        format!("the managed {product} does not start: {error}"),
                    )
                    .with_help(log_tail(&places.log)));
                }
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    };
    root.run(&format!(
        "CREATE DATABASE IF NOT EXISTS {NAME}; CREATE USER IF NOT EXISTS {NAME}@localhost; \
         GRANT ALL ON *.* TO {NAME}@localhost WITH GRANT OPTION"
    ))?;
    Ok(Instance { config: config(product, socket), pid, was_running })
}

/// A restart would end their work.
fn others_at_work(config: &Config) -> Result<()> {
    let mut session = MysqlEngine::new(config.clone()).connect()?;
    let ask = "SELECT count(*) FROM information_schema.processlist \
               WHERE id <> connection_id() AND command <> 'Daemon' AND user NOT IN ('system user', 'event_scheduler')";
    // Sessions that have just ended are there for a moment.
    for _ in 0..20 {
        if session.query(ask)?.int(0, 0)? == 0 {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Err(Error::usage("the profile needs a server restart, and other sessions are active")
        .with_help("end their sessions first, or stop the server: kelvin server down"))
}

/// Stops the server; returns whether one was running.
fn stop(places: &Places) -> Result<bool> {
    let Some(pid) = places.running() else { return Ok(false) };
    let process = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let failed =
        |why: String| Error::new(ErrorClass::Server, format!("{} (process {pid}) {why}", places.name));
    let process = process.ok_or_else(|| failed("has no valid process ID".into()))?;
    rustix::process::kill_process(process, Signal::TERM)
        .map_err(|error| failed(format!("cannot be stopped: {error}")))?;
    let until = Instant::now() + PATIENCE;
    while is_ours(pid, &places.data) {
        if Instant::now() > until {
            return Err(failed("does not stop".into()).with_help(log_tail(&places.log)));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(true)
}

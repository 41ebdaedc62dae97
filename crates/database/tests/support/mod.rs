//! A PostgreSQL server for one test file: with separate data, socket and port, removed afterwards.
#![allow(dead_code, unreachable_pub, missing_docs, clippy::unwrap_used, clippy::format_push_string)]

mod port;

use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use kelvin_database::postgres::{Config, Host, PostgresEngine};
use kelvin_database::{Engine, Session};

/// A running server with the superuser `kelvin` and the database `postgres`.
pub struct Server {
    directory: tempfile::TempDir,
    child: Child,
    binaries: PathBuf,
    pub port: u16,
}

/// The newest installed binaries. Missing ones fail the test: a skipped test proves nothing.
pub fn binaries() -> PathBuf {
    let mut found: Vec<(u32, PathBuf)> = fs::read_dir("/usr/lib/postgresql")
        .expect("PostgreSQL is not installed: apt-get install postgresql")
        .flatten()
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin"))))
        .filter(|(_, path)| path.join("initdb").exists())
        .collect();
    found.sort();
    found.pop().expect("no /usr/lib/postgresql/*/bin/initdb: apt-get install postgresql").1
}

/// A command as the unprivileged user that the server insists on.
pub fn unprivileged(program: &Path) -> Command {
    if rustix::process::geteuid().is_root() {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]).arg(program);
        command
    } else {
        Command::new(program)
    }
}

fn give_away(path: &Path) {
    if rustix::process::geteuid().is_root() {
        let id = |which: &str| -> u32 {
            let output = Command::new("id").args([which, "postgres"]).output().unwrap();
            String::from_utf8(output.stdout).unwrap().trim().parse().expect("user postgres")
        };
        chown(path, Some(id("-u")), Some(id("-g"))).unwrap();
    }
}

impl Server {
    /// A server whose local and loopback connections are trusted.
    pub fn start() -> Self {
        Self::start_with("", "local all all trust\nhost all all 127.0.0.1/32 trust\n", |_| {})
    }

    /// A server with further settings and this `pg_hba.conf`; `prepare` may put files into the data directory.
    pub fn start_with(settings: &str, hba: &str, prepare: impl FnOnce(&Path)) -> Self {
        let directory = tempfile::Builder::new().prefix("kelvin-pg").tempdir().unwrap();
        give_away(directory.path());
        let binaries = binaries();
        let data = directory.path().join("data");
        let made = unprivileged(&binaries.join("initdb"))
            .args(["-U", "kelvin", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "-D"])
            .arg(&data)
            .output()
            .unwrap();
        assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        let port = port::spare();
        let mut conf = fs::read_to_string(data.join("postgresql.conf")).unwrap();
        conf.push_str(&format!(
            "\nport={port}\nlisten_addresses='127.0.0.1'\nunix_socket_directories='{}'\nfsync=off\nshared_buffers=64MB\n{settings}\n",
            directory.path().display()
        ));
        fs::write(data.join("postgresql.conf"), conf).unwrap();
        fs::write(data.join("pg_hba.conf"), hba).unwrap();
        prepare(&data);
        for entry in fs::read_dir(&data).unwrap().flatten() {
            give_away(&entry.path());
        }
        let child = Self::spawn(&binaries, directory.path());
        let server = Self { directory, child, binaries, port };
        server.wait();
        server
    }

    fn spawn(binaries: &Path, directory: &Path) -> Child {
        unprivileged(&binaries.join("postgres"))
            .arg("-D")
            .arg(directory.join("data"))
            .stdout(Stdio::null())
            .stderr(fs::File::create(directory.join("log")).unwrap())
            .spawn()
            .unwrap()
    }

    fn wait(&self) {
        let began = Instant::now();
        let ready = self.data().join("postmaster.pid");
        loop {
            let status = fs::read_to_string(&ready).unwrap_or_default();
            if status.lines().nth(7).is_some_and(|line| line.trim() == "ready") {
                return;
            }
            assert!(began.elapsed() < Duration::from_mins(1), "the server does not start: {}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ends the server immediately, as `pg_ctl stop -m immediate` does.
    pub fn kill(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::QUIT).unwrap();
        self.child.wait().unwrap();
    }

    /// Starts it again after [`Server::kill`].
    pub fn restart(&mut self) {
        let _ = fs::remove_file(self.data().join("postmaster.pid"));
        self.child = Self::spawn(&self.binaries, self.directory.path());
        self.wait();
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }

    pub fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    pub fn socket_directory(&self) -> &Path {
        self.directory.path()
    }

    pub fn binary(&self, name: &str) -> PathBuf {
        self.binaries.join(name)
    }

    /// Over the unix socket, as superuser.
    pub fn unix(&self) -> Config {
        Config::unix(self.directory.path(), self.port, "kelvin", "postgres")
    }

    /// Over TCP, as superuser.
    pub fn tcp(&self) -> Config {
        Config::new(Host::Tcp("127.0.0.1".into()), self.port, "kelvin", "postgres")
    }

    pub fn session(&self) -> Box<dyn Session> {
        PostgresEngine::new(self.unix()).connect().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let pid = rustix::process::Pid::from_child(&self.child);
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::QUIT);
            let _ = self.child.wait();
        }
    }
}

/// Waits until a session of the watcher's server runs this statement.
pub fn await_statement(watcher: &mut dyn Session, sql: &str) {
    let ask = format!("SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query = '{sql}'");
    let began = Instant::now();
    while watcher.query(&ask).unwrap().int(0, 0).unwrap() == 0 {
        assert!(began.elapsed() < Duration::from_mins(1), "nobody runs {sql}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

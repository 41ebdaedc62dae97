//! A PostgreSQL server for the tests.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "each test uses a part, and one is inside the crate"
)]

#[path = "../../../database/tests/support/port.rs"]
mod port;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use kelvin_database::postgres::{Config, PostgresEngine};
use kelvin_database::{Engine, Session};

/// A server in a temporary directory; stopped when dropped.
pub struct Server {
    child: Child,
    port: u16,
    directory: tempfile::TempDir,
}

impl Server {
    /// Starts PostgreSQL without crash safety, which no test needs.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// The same with further settings, each `name=value`.
    pub fn start_with(further: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path().join("data");
        if rustix::process::geteuid().is_root() {
            let status = Command::new("chown").arg("postgres").arg(directory.path()).status().unwrap();
            assert!(status.success());
        }
        let initdb = as_postgres("initdb")
            .args(["--no-sync", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale", "C.UTF-8", "-D"])
            .arg(&data)
            .stdout(Stdio::null())
            .status()
            .unwrap();
        assert!(initdb.success());
        let port = port::spare();
        let settings =
            ["fsync=off", "shared_buffers=256MB", "max_wal_size=4GB", "listen_addresses=127.0.0.1"];
        let mut command = as_postgres("postgres");
        command.arg("-D").arg(&data).args(["-p", &port.to_string(), "-k"]).arg(directory.path());
        for setting in settings.iter().chain(further) {
            command.args(["-c", setting]);
        }
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let server = Self { child, port, directory };
        let deadline = Instant::now() + Duration::from_secs(30);
        while server.engine("postgres").connect().is_err() {
            assert!(Instant::now() < deadline, "PostgreSQL did not start");
            std::thread::sleep(Duration::from_millis(50));
        }
        server
    }

    /// The URL of one of its databases.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// Its port on the loopback interface.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The directory of its Unix socket.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The administrative database, through the Unix socket.
    pub fn unix(&self) -> PostgresEngine {
        PostgresEngine::new(Config::unix(self.directory(), self.port, "postgres", "postgres"))
    }

    /// One of its databases, through the loopback interface.
    pub fn engine(&self, database: &str) -> PostgresEngine {
        PostgresEngine::new(Config::parse(&self.url(database)).unwrap())
    }

    /// A session in the administrative database.
    pub fn admin(&self) -> Box<dyn Session> {
        self.engine("postgres").connect().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Immediate shutdown: the child processes end with their parent, and the data are not needed again.
        if let Some(pid) = rustix::process::Pid::from_raw(self.child.id() as i32) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::QUIT);
        }
        let _ = self.child.wait();
    }
}

/// A PostgreSQL command; as the user `postgres` if this process is root, which the server refuses.
fn as_postgres(program: &str) -> Command {
    let path = binaries(13, "postgres").join(program);
    if !rustix::process::geteuid().is_root() {
        return Command::new(path);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]).arg(path).current_dir("/");
    command
}

/// Program directory of the newest installed PostgreSQL, at least version `oldest`, that has `program`.
pub fn binaries(oldest: u32, program: &str) -> PathBuf {
    let versions = (oldest..=18).rev().map(|version| format!("/usr/lib/postgresql/{version}/bin"));
    let found = versions.map(PathBuf::from).find(|path| path.join(program).exists());
    found.unwrap_or_else(|| {
        panic!("PostgreSQL {oldest} to 18 with {program} is needed: apt-get install postgresql")
    })
}

//! PgBouncer in transaction mode in front of a test's server.

#[path = "../../../database/tests/support/port.rs"]
mod port;

use std::fmt::Write as _;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use kelvin_database::postgres::{Config, Host};

use super::server::{Server, unprivileged};

pub struct Pooler {
    child: Child,
    port: u16,
    directory: tempfile::TempDir,
}

/// Debian's directory of the program may be missing in PATH. Without the program the test fails.
fn binary() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain([PathBuf::from("/usr/sbin")])
        .map(|directory| directory.join("pgbouncer"))
        .find(|path| path.is_file())
        .expect("this test needs PgBouncer: cargo xtask test")
}

impl Pooler {
    /// Starts a pool of `size` connections to `server`, over its unix socket.
    pub fn start(server: &Server, size: u32) -> Self {
        let directory = tempfile::Builder::new().prefix("kelvin-pooler").tempdir().unwrap();
        std::fs::set_permissions(directory.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .unwrap();
        let port = port::spare();
        let users = directory.path().join("users");
        std::fs::write(&users, "\"kelvin\" \"\"\n").unwrap();
        let mut settings = String::from("[databases]\n");
        let socket = server.socket_directory().display();
        writeln!(settings, "postgres = host={socket} port={} dbname=postgres", server.port).unwrap();
        writeln!(settings, "[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =")
            .unwrap();
        writeln!(settings, "auth_type = trust\nauth_file = {}", users.display()).unwrap();
        writeln!(settings, "pool_mode = transaction\ndefault_pool_size = {size}\nmax_client_conn = 1100")
            .unwrap();
        let file = directory.path().join("pgbouncer.ini");
        std::fs::write(&file, settings).unwrap();
        let child = unprivileged(&binary())
            .arg("-q")
            .arg(&file)
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(directory.path().join("log")).unwrap())
            .spawn()
            .unwrap();
        let pooler = Self { child, port, directory };
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(began.elapsed() < Duration::from_secs(20), "PgBouncer does not start: {}", pooler.log());
            std::thread::sleep(Duration::from_millis(20));
        }
        pooler
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(Path::join(self.directory.path(), "log")).unwrap_or_default()
    }

    /// The connection settings through the pooler, with prepared statements or without.
    pub fn config(&self, prepared_statements: bool) -> Config {
        let config = Config::new(Host::Tcp("127.0.0.1".into()), self.port, "kelvin", "postgres");
        Config { prepared_statements, ..config }
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        let _ = self.child.wait();
    }
}

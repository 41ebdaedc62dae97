//! The faults.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use kelvin_database::Engine;
use kelvin_database::postgres::{Config, PostgresEngine};

use super::disturbance::Throttle;
use super::support::{Server, wait_until};

/// A session of another program: with Kelvin's name it would count as a second Kelvin.
fn client(config: Config) -> PostgresEngine {
    PostgresEngine::new(Config { application_name: "report".into(), ..config })
}

/// A session that changes a row and leaves its transaction open until others have waited for `held`.
pub(crate) fn forgotten_transaction(server: &Server, sql: &'static str, held: Duration) -> JoinHandle<()> {
    let config = server.instance.config();
    let (begun, wait_for_begin) = std::sync::mpsc::channel();
    let holder = std::thread::spawn(move || {
        let engine = client(config);
        let mut session = engine.connect().unwrap();
        session.run("begin").unwrap();
        session.run(sql).unwrap();
        begun.send(()).unwrap();
        let mut observer = engine.connect().unwrap();
        wait_until("somebody waits for the row", || {
            let waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock'";
            observer.query(waiting).unwrap().int(0, 0).unwrap() > 0
        });
        std::thread::sleep(held);
        session.run("rollback").unwrap();
    });
    wait_for_begin.recv().unwrap();
    holder
}

/// When a snapshot is taken, counted from the start of the load, and how long it is held.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Held {
    pub(crate) after: Duration,
    pub(crate) length: Duration,
}

/// A session that reads and holds its snapshot while others work.
pub(crate) fn hold_while_loaded(server: &Server, held: Held) -> JoinHandle<()> {
    let config = server.instance.config();
    std::thread::spawn(move || {
        let engine = client(config);
        let mut session = engine.connect().unwrap();
        wait_until("the load has begun", || {
            let loading = "select count(*) from pg_stat_activity where query like 'update few%'";
            session.query(loading).unwrap().int(0, 0).unwrap() > 0
        });
        std::thread::sleep(held.after);
        session.run("begin isolation level repeatable read").unwrap();
        session.query("select count(*) from pg_class").unwrap();
        std::thread::sleep(held.length);
        session.run("rollback").unwrap();
    })
}

/// Clients that repeatedly open a session, run a statement and close it, until dropped.
pub(crate) struct Storm {
    ended: Arc<AtomicBool>,
    clients: Vec<JoinHandle<()>>,
}

impl Storm {
    pub(crate) fn start(server: &Server, per_second: u32) -> Self {
        const CLIENTS: u32 = 4;
        let ended = Arc::new(AtomicBool::new(false));
        let client = |_| {
            let (engine, end) = (client(server.instance.config()), Arc::clone(&ended));
            let between = Duration::from_secs(1) * CLIENTS / per_second;
            std::thread::spawn(move || {
                let mut next = std::time::Instant::now();
                while !end.load(Ordering::Acquire) {
                    // The server may be shutting down.
                    if let Ok(mut session) = engine.connect() {
                        let _ = session.query("select 1");
                    }
                    next += between;
                    std::thread::sleep(next.saturating_duration_since(std::time::Instant::now()));
                }
            })
        };
        let clients = (0..CLIENTS).map(client).collect();
        Self { ended, clients }
    }
}

impl Drop for Storm {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        for client in self.clients.drain(..) {
            let _ = client.join();
        }
    }
}

/// Limits the server's writes to its data disk, in bytes per second.
pub(crate) fn limit_writes(server: &Server, per_second: u64) -> Throttle {
    use std::os::unix::fs::MetadataExt;
    let number = std::fs::metadata(server.instance.data_directory()).unwrap().dev();
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    let part = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
    // Only whole disks have limits.
    let disk = if part.join("partition").exists() { part.join("../dev") } else { part.join("dev") };
    let disk = std::fs::read_to_string(disk).expect("the data lies on a block device");
    let disk = disk.trim();
    let old = ("blkio.throttle.write_bps_device", format!("{disk} {per_second}"));
    let throttle = Throttle::create("blkio", old, "io", ("io.max", format!("{disk} wbps={per_second}")));
    throttle.take(server.instance.pid());
    throttle
}

/// Delays every flush of the server's files, with a library between the server and the kernel's calls.
pub(crate) struct SlowFlush {
    _library: tempfile::TempDir,
}

impl SlowFlush {
    /// Restarts the server with the library preloaded.
    pub(crate) fn start(server: &Server, length: Duration) -> Self {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::Builder::new().prefix("kelvin-slow-").tempdir_in("/var/tmp").unwrap();
        std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let library = directory.path().join("slow.so");
        super::slow_flush::build(&library, length);
        restart(server, Some(&library));
        Self { _library: directory }
    }
}

/// Restarts the server as its user, with a library preloaded or without one.
pub(crate) fn restart(server: &Server, library: Option<&Path>) {
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::process::CommandExt;
    let data = server.instance.data_directory();
    // The first process may have been replaced.
    let file = std::fs::read_to_string(data.join("postmaster.pid")).unwrap();
    let main = file.lines().next().unwrap().trim();
    let binaries = std::fs::read_link(format!("/proc/{main}/exe")).unwrap();
    let owner = std::fs::metadata(data).unwrap();
    let mut again = Command::new(binaries.parent().unwrap().join("pg_ctl"));
    again.uid(owner.uid()).gid(owner.gid());
    again.args(["restart", "--wait", "--silent", "-m", "fast", "-D"]).arg(data);
    again.arg("-l").arg(server.instance.log_file()).current_dir(data);
    again.envs(library.map(|library| ("LD_PRELOAD", library)));
    assert!(again.stdin(Stdio::null()).stdout(Stdio::null()).status().unwrap().success());
}

/// The URL of a server with another port.
pub(crate) fn url_by_port(server: &Server, port: u16) -> String {
    let url = server.url();
    let user: String =
        url.split("://").nth(1).unwrap().chars().take_while(char::is_ascii_alphanumeric).collect();
    let database = url.split('?').next().unwrap().rsplit('/').next().unwrap();
    format!("postgres://{user}@127.0.0.1:{port}/{database}")
}

/// The server's socket, from the directory and port in its process file.
pub(crate) fn socket_of(data: &Path) -> PathBuf {
    let file = data.join("postmaster.pid");
    wait_until("the server has its process file", || file.exists());
    let text = std::fs::read_to_string(file).unwrap();
    let line = |number: usize| text.lines().nth(number).unwrap().trim().to_owned();
    PathBuf::from(line(4)).join(format!(".s.PGSQL.{}", line(3)))
}

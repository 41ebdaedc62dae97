//! The faults.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use kelvin_database::Engine;
use kelvin_database::postgres::{Config, PostgresEngine};

use super::support::{Server, wait_until};

/// Processes that do nothing but compute.
pub(crate) struct CpuHog(Vec<Child>);

impl CpuHog {
    /// They begin after a time.
    pub(crate) fn start(processes: usize, after: Duration) -> Self {
        let script = format!("sleep {}; while :; do :; done", after.as_secs());
        let one = || Command::new("sh").args(["-c", &script]).stdin(Stdio::null()).spawn().unwrap();
        Self((0..processes).map(|_| one()).collect())
    }
}

impl Drop for CpuHog {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Sessions of another program: those of a Kelvin would be taken for one that measures here, too.
fn client(config: Config) -> PostgresEngine {
    PostgresEngine::new(Config { application_name: "report".into(), ..config })
}

/// A session that changes a row and does not end its transaction, from now until others have waited for it for a time.
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
        wait_until("somebody waits for the row", Duration::from_mins(1), || {
            let waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock'";
            observer.query(waiting).unwrap().int(0, 0).unwrap() > 0
        });
        std::thread::sleep(held);
        session.run("rollback").unwrap();
    });
    wait_for_begin.recv().unwrap();
    holder
}

/// When a snapshot is taken, counted from the load's beginning, and for how long it is kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Held {
    pub(crate) after: Duration,
    pub(crate) length: Duration,
}

/// A session that reads something and keeps its snapshot, while others work.
pub(crate) fn hold_while_loaded(server: &Server, held: Held) -> JoinHandle<()> {
    let config = server.instance.config();
    std::thread::spawn(move || {
        let engine = client(config);
        let mut session = engine.connect().unwrap();
        wait_until("the load has begun", Duration::from_mins(1), || {
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

/// Clients that open a session, ask something and close it, again and again, until it is dropped.
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
                    // The server may be about to stop.
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

/// A control group with a limit on its CPU time.
pub(crate) struct Throttle(PathBuf);

impl Throttle {
    /// So many CPUs and no more.
    pub(crate) fn cpu(cpus: f64) -> Self {
        let name = format!("kelvin-test-{}", std::process::id());
        let quota = (cpus * 100_000.0) as u64;
        let old = Path::new("/sys/fs/cgroup/cpu");
        let (directory, file, limit) = if old.is_dir() {
            (old.join(name), "cpu.cfs_quota_us", quota.to_string())
        } else {
            let top = Path::new("/sys/fs/cgroup");
            let _ = std::fs::write(top.join("cgroup.subtree_control"), "+cpu");
            (top.join(name), "cpu.max", format!("{quota} 100000"))
        };
        std::fs::create_dir(&directory).expect("this test makes a control group, and must be root for it");
        std::fs::write(directory.join(file), limit).unwrap();
        Self(directory)
    }

    /// Moves a server into the group, with all of its processes; those that it starts later are born there.
    pub(crate) fn take(&self, server: &Server) {
        let main = server.instance.pid();
        let children = std::fs::read_to_string(format!("/proc/{main}/task/{main}/children")).unwrap();
        let children = children.split_whitespace().map(str::to_owned);
        for process in std::iter::once(main.to_string()).chain(children) {
            // One of its processes may have ended meanwhile.
            let _ = std::fs::write(self.0.join("cgroup.procs"), process);
        }
    }

    /// The command within the group.
    pub(crate) fn around(&self, command: &Command) -> Command {
        let mut within = Command::new("sh");
        within.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]).arg(self.0.join("cgroup.procs"));
        within.arg(command.get_program()).args(command.get_args()).stdin(Stdio::null());
        within.current_dir(command.get_current_dir().unwrap());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => within.env(name, value),
                None => within.env_remove(name),
            };
        }
        within
    }
}

impl Drop for Throttle {
    fn drop(&mut self) {
        // Whoever is in it goes back to where this process is not limited; new ones may come meanwhile.
        for _ in 0..20 {
            let within = std::fs::read_to_string(self.0.join("cgroup.procs")).unwrap_or_default();
            for process in within.lines() {
                let _ = std::fs::write(self.0.with_file_name("cgroup.procs"), process);
            }
            if std::fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Lets every flush of the server's files take longer: a library between it and the kernel's calls.
pub(crate) struct SlowFlush {
    _library: tempfile::TempDir,
}

impl SlowFlush {
    /// Starts the server again with the library in front.
    pub(crate) fn of(server: &Server, length: Duration) -> Self {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::Builder::new().prefix("kelvin-slow-").tempdir_in("/var/tmp").unwrap();
        std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let library = directory.path().join("slow.so");
        super::slow_flush::build(&library, length);
        restart(server, Some(&library));
        Self { _library: directory }
    }
}

/// Starts the server again as its user, with a library in front of the kernel's calls or without one.
pub(crate) fn restart(server: &Server, library: Option<&Path>) {
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::process::CommandExt;
    let data = server.instance.data_directory();
    // The first process may be another one by now.
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

/// A proxy in front of the server that takes its time, each way.
pub(crate) struct Delay {
    port: u16,
    user: String,
    database: String,
    ended: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
}

impl Delay {
    pub(crate) fn before(server: &Server, length: Duration) -> Self {
        let url = server.url();
        let socket = socket_of(server.instance.data_directory());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        listener.set_nonblocking(true).unwrap();
        let ended = Arc::new(AtomicBool::new(false));
        let end = Arc::clone(&ended);
        let acceptor = std::thread::spawn(move || {
            while !end.load(Ordering::Acquire) {
                let Ok((client, _)) = listener.accept() else {
                    std::thread::sleep(Duration::from_millis(5));
                    continue;
                };
                client.set_nonblocking(false).unwrap();
                client.set_nodelay(true).unwrap();
                let Ok(server) = UnixStream::connect(&socket) else { continue };
                let (from_client, from_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                std::thread::spawn(move || pump(from_client, server, length));
                std::thread::spawn(move || pump(from_server, client, length));
            }
        });
        let name = |after: &str| {
            let rest = url.split(after).nth(1).unwrap();
            rest.chars().take_while(char::is_ascii_alphanumeric).collect::<String>()
        };
        let database = url.split('?').next().unwrap().rsplit('/').next().unwrap().to_owned();
        Self { port, user: name("://"), database, ended, acceptor: Some(acceptor) }
    }

    pub(crate) fn url(&self) -> String {
        format!("postgres://{}@127.0.0.1:{}/{}", self.user, self.port, self.database)
    }
}

impl Drop for Delay {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

fn pump(mut from: impl Read, mut to: impl Write + Shut, length: Duration) {
    let mut space = vec![0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut space) {
        std::thread::sleep(length);
        if to.write_all(&space[..count]).is_err() {
            break;
        }
    }
    to.shut();
}

trait Shut {
    fn shut(&self);
}

impl Shut for TcpStream {
    fn shut(&self) {
        let _ = self.shutdown(std::net::Shutdown::Both);
    }
}

impl Shut for UnixStream {
    fn shut(&self) {
        let _ = self.shutdown(std::net::Shutdown::Both);
    }
}

/// The server's socket: directory and number are in its process file.
fn socket_of(data: &Path) -> PathBuf {
    let file = data.join("postmaster.pid");
    wait_until("the server has its process file", Duration::from_secs(10), || file.exists());
    let text = std::fs::read_to_string(file).unwrap();
    let line = |number: usize| text.lines().nth(number).unwrap().trim().to_owned();
    PathBuf::from(line(4)).join(format!(".s.PGSQL.{}", line(3)))
}

//! Disturbances for servers of any kind: processes that use CPU, limits of a control group, a slow network.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Processes that use CPU.
pub(crate) struct CpuHog(pub(crate) Vec<Child>);

impl CpuHog {
    /// Starts the processes, which begin their work after a delay.
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

/// A control group with a limit.
pub(crate) struct Throttle(PathBuf);

impl Throttle {
    /// Limits the CPU time to a number of CPUs.
    pub(crate) fn cpu(cpus: f64) -> Self {
        let quota = (cpus * 100_000.0) as u64;
        let old = ("cpu.cfs_quota_us", quota.to_string());
        Self::create("cpu", old, "cpu", ("cpu.max", format!("{quota} 100000")))
    }

    /// A group with a limit: file and content for cgroup version 1, and for version 2.
    pub(crate) fn create(
        old: &str,
        limit_1: (&str, String),
        controller: &str,
        limit_2: (&str, String),
    ) -> Self {
        let name = format!("kelvin-test-{}", std::process::id());
        let old = Path::new("/sys/fs/cgroup").join(old);
        let (directory, (file, limit)) = if old.is_dir() {
            (old.join(name), limit_1)
        } else {
            let top = Path::new("/sys/fs/cgroup");
            let _ = std::fs::write(top.join("cgroup.subtree_control"), format!("+{controller}"));
            (top.join(name), limit_2)
        };
        std::fs::create_dir(&directory).expect("this test makes a control group, and must be root for it");
        let group = Self(directory);
        std::fs::write(group.0.join(file), limit).unwrap();
        group
    }

    /// Moves a server with all its processes into the group; its later processes start there.
    pub(crate) fn take(&self, main: u32) {
        let children = std::fs::read_to_string(format!("/proc/{main}/task/{main}/children")).unwrap();
        let children = children.split_whitespace().map(str::to_owned);
        for process in std::iter::once(main.to_string()).chain(children) {
            // The process may have ended.
            let _ = std::fs::write(self.0.join("cgroup.procs"), process);
        }
    }

    /// Wraps a command so that it runs in the group.
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
        // Processes move to the parent group. New ones may start meanwhile, so this is repeated.
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

/// A proxy that delays each direction of a server's connections.
pub(crate) struct Delay {
    port: u16,
    ended: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
}

impl Delay {
    /// Starts the proxy for the server with this socket.
    pub(crate) fn before(socket: PathBuf, length: Duration) -> Self {
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
        Self { port, ended, acceptor: Some(acceptor) }
    }

    /// The proxy's port on the loopback address.
    pub(crate) fn port(&self) -> u16 {
        self.port
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

//! A server in a separate process that only answers the protocol.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// The file name of a PostgreSQL socket, which includes the port.
const SOCKET: &str = ".s.PGSQL.5432";

/// A running server, which ends when dropped.
pub(super) struct BlankServer {
    directory: PathBuf,
    child: Child,
}

impl BlankServer {
    /// Starts the server in a new directory, and waits until it listens.
    pub(super) fn start(program: &Path, directory: &Path) -> Result<Self> {
        // A run that was killed may have left a socket, which would prevent another server from listening.
        let _ = std::fs::remove_dir_all(directory);
        std::fs::create_dir(directory)?;
        let socket = directory.join(SOCKET);
        let mut command = Command::new(program);
        command.arg("server").arg(&socket).stdin(Stdio::null());
        let child = command.spawn().context("cannot start the blank server")?;
        let mut server = Self { directory: directory.to_owned(), child };
        for _ in 0..200 {
            if let Some(status) = server.child.try_wait()? {
                bail!("the blank server ended: {status}");
            }
            if socket.exists() {
                return Ok(server);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        bail!("the blank server is not listening")
    }

    /// The path of its socket.
    pub(super) fn socket(&self) -> PathBuf {
        self.directory.join(SOCKET)
    }
}

impl Drop for BlankServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

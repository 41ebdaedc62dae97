//! A MariaDB server with default settings, for comparisons.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// Runs the server, and ends it when standard input closes, so that it ends with this process in any case.
const KEEPER: &str = r#"trap '' INT; "$@" </dev/null & server=$!; read word; kill $server; wait $server"#;

/// A running server without a password, with the database `kelvin`.
pub(crate) struct Mariadb {
    keeper: Child,
    directory: PathBuf,
}

impl Mariadb {
    /// Creates and starts the server in a directory below `place`.
    pub(crate) fn start(place: &Path) -> Result<Self> {
        let directory = place.join("mariadb");
        let shown = directory.display();
        let run = |command: &mut Command, doing: &str| -> Result<()> {
            let output = command.output().with_context(|| format!("cannot run {doing}"))?;
            if !output.status.success() {
                bail!("{doing}: {}", String::from_utf8_lossy(&output.stderr));
            }
            Ok(())
        };
        std::fs::create_dir(&directory)?;
        let user = rustix::process::geteuid().is_root().then_some("--user=mysql");
        if user.is_some() {
            run(Command::new("chown").arg("mysql").arg(&directory), "chown")?;
        }
        let data = format!("--datadir={shown}/data");
        let mut make = Command::new("mariadb-install-db");
        make.args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db", &data]);
        run(make.args(user), "mariadb-install-db (apt-get install mariadb-server)")?;
        let socket = directory.join("s");
        let mut keeper = Command::new("sh");
        keeper.args(["-c", KEEPER, "sh", "/usr/sbin/mariadbd", "--no-defaults", "--skip-networking", &data]);
        keeper.args(user).arg(format!("--socket={}", socket.display())).arg(format!("--tmpdir={shown}"));
        let keeper = keeper.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let server = Self { keeper, directory };
        let since = Instant::now();
        while let Err(error) = server.client("create database if not exists kelvin") {
            if since.elapsed() > Duration::from_mins(1) {
                return Err(error.context("MariaDB does not start"));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(server)
    }

    /// The URL of its database.
    pub(crate) fn url(&self) -> String {
        format!("mariadb://root@/kelvin?socket={}/s", self.directory.display())
    }

    fn client(&self, statement: &str) -> Result<()> {
        let mut command = Command::new("mariadb");
        command.args(["--no-defaults", "--user=root", "-e", statement]);
        let output = command.arg(format!("--socket={}/s", self.directory.display())).output()?;
        if !output.status.success() {
            bail!("{}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(())
    }
}

impl Drop for Mariadb {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

//! A MariaDB server for one test file: with separate data, socket and port, removed afterwards. With
//! `KELVIN_MYSQL_BASE=DIRECTORY` the MySQL or MariaDB that is unpacked there.
#![allow(dead_code, unreachable_pub, missing_docs, clippy::unwrap_used)]

#[path = "../support/port.rs"]
mod port;

use std::fs;
use std::io::Write;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use kelvin_database::mysql::{Config, Host, MysqlEngine, Password};
use kelvin_database::{Engine, Session};

/// A running server with the user `kelvin`, whose password is `secret` and who has all privileges, and the database
/// `kelvin`.
pub struct Server {
    directory: PathBuf,
    /// A shell that ends the server when its standard input closes, however this process ends: statics are never dropped.
    keeper: Child,
    arguments: Vec<String>,
    pub port: u16,
}

/// Starts the command after the directory, and ends it at the end of input; the directory is removed with it unless
/// "keep" is sent. A library of that name in the directory is preloaded between the server and the system.
const KEEPER: &str = r#"trap '' INT; directory=$1; shift
[ -e "$directory/preload.so" ] && export LD_PRELOAD="$directory/preload.so"
"$@" </dev/null & server=$!
word=; read word; kill -9 $server; wait $server 2>/dev/null; [ "$word" = keep ] || rm -rf "$directory""#;

/// The server's programs.
struct Binaries {
    server: PathBuf,
    /// MariaDB's script; MySQL's server makes its data itself.
    install: Option<PathBuf>,
    base: Option<PathBuf>,
}

/// Missing ones fail the test: a skipped test proves nothing.
fn binaries() -> Binaries {
    if let Some(base) = std::env::var_os("KELVIN_MYSQL_BASE").map(PathBuf::from) {
        let install = base.join("scripts/mariadb-install-db");
        let server = ["mariadbd", "mysqld"].map(|name| base.join("bin").join(name));
        return Binaries {
            server: server
                .into_iter()
                .find(|path| path.is_file())
                .expect("no server below KELVIN_MYSQL_BASE/bin"),
            install: install.is_file().then_some(install),
            base: Some(base),
        };
    }
    let server = Path::new("/usr/sbin/mariadbd");
    assert!(server.is_file(), "MariaDB is not installed: apt-get install mariadb-server");
    Binaries { server: server.into(), install: Some("/usr/bin/mariadb-install-db".into()), base: None }
}

/// Whether the tests run against the server that is installed, with all that comes with it.
pub fn is_installed() -> bool {
    binaries().base.is_none()
}

/// Whether the tests run against MariaDB.
pub fn is_mariadb() -> bool {
    binaries().install.is_some()
}

/// A command as an unprivileged user: neither server runs as root.
fn unprivileged(program: &Path) -> Command {
    if rustix::process::geteuid().is_root() {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=mysql", "--regid=mysql", "--clear-groups"]).arg(program);
        command
    } else {
        Command::new(program)
    }
}

pub fn give_away(path: &Path) {
    if rustix::process::geteuid().is_root() {
        let id = |which: &str| -> u32 {
            let output = Command::new("id").args([which, "mysql"]).output().unwrap();
            String::from_utf8(output.stdout).unwrap().trim().parse().expect("user mysql")
        };
        chown(path, Some(id("-u")), Some(id("-g"))).unwrap();
    }
}

impl Server {
    pub fn start() -> Self {
        Self::start_with(&[], |_| {})
    }

    /// A server with further arguments; `prepare` may put files into its directory.
    pub fn start_with(arguments: &[&str], prepare: impl FnOnce(&Path)) -> Self {
        let directory = tempfile::Builder::new().prefix("kelvin-my").tempdir().unwrap().keep();
        give_away(&directory);
        fs::create_dir(directory.join("data")).unwrap();
        give_away(&directory.join("data"));
        prepare(&directory);
        for entry in fs::read_dir(&directory).unwrap().flatten() {
            give_away(&entry.path());
        }
        let binaries = binaries();
        let data = format!("--datadir={}", directory.join("data").display());
        let base = binaries.base.as_ref().map(|base| format!("--basedir={}", base.display()));
        let mut make = unprivileged(binaries.install.as_ref().unwrap_or(&binaries.server));
        make.arg("--no-defaults").args(&base).arg(&data).current_dir(&directory);
        // A starting server removes files that look like leftovers, also those of other servers, from /tmp.
        make.env("TMPDIR", &directory);
        if binaries.install.is_some() {
            make.args(["--auth-root-authentication-method=normal", "--skip-test-db"]);
        } else {
            make.args(["--initialize-insecure", "--mysqlx=OFF"]);
        }
        let made = make.output().unwrap();
        assert!(made.status.success(), "making the data: {}", String::from_utf8_lossy(&made.stderr));
        let port = port::spare();
        let place = directory.display();
        let mut all: Vec<String> = vec!["--no-defaults".into(), data];
        all.extend(base);
        all.extend([
            format!("--socket={place}/s"),
            format!("--pid-file={place}/pid"),
            format!("--tmpdir={place}"),
            format!("--port={port}"),
            "--bind-address=127.0.0.1".into(),
            "--innodb-flush-log-at-trx-commit=0".into(),
            "--innodb-buffer-pool-size=64M".into(),
        ]);
        if binaries.install.is_none() {
            all.push("--mysqlx=OFF".into());
        }
        all.extend(arguments.iter().map(|&argument| argument.replace("{}", &place.to_string())));
        let keeper = Self::spawn(&directory, &all);
        let mut server = Self { directory, keeper, arguments: all, port };
        let mut root = server.wait();
        let plugin = if is_mariadb() { "" } else { "WITH mysql_native_password " };
        root.run(&format!(
            "CREATE DATABASE kelvin; CREATE USER kelvin@'%' IDENTIFIED {plugin}BY 'secret'; \
             GRANT ALL ON *.* TO kelvin@'%' WITH GRANT OPTION"
        ))
        .unwrap();
        server
    }

    fn spawn(directory: &Path, arguments: &[String]) -> Child {
        let server = unprivileged(&binaries().server);
        Command::new("sh")
            .args(["-c", KEEPER, "sh"])
            .arg(directory)
            .arg(server.get_program())
            .args(server.get_args())
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(fs::File::create(directory.join("log")).unwrap())
            .spawn()
            .unwrap()
    }

    /// Waits until root can log in.
    fn wait(&mut self) -> Box<dyn Session> {
        let began = Instant::now();
        loop {
            match MysqlEngine::new(Config::unix(&self.socket(), "root", "mysql")).connect() {
                Ok(session) => return session,
                Err(error) => assert!(
                    !self.log().contains("[ERROR] Aborting") && began.elapsed() < Duration::from_mins(2),
                    "the server does not start: {error}\n{}",
                    self.log()
                ),
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Ends the server without a farewell.
    pub fn kill(&mut self) {
        self.keeper.stdin.take().unwrap().write_all(b"keep\n").unwrap();
        self.keeper.wait().unwrap();
    }

    /// Starts it again after [`Server::kill`].
    pub fn restart(&mut self) {
        self.keeper = Self::spawn(&self.directory, &self.arguments);
        self.wait();
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.directory.join("log")).unwrap_or_default()
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    pub fn socket(&self) -> PathBuf {
        self.directory.join("s")
    }

    /// Over the unix socket, as the user who may do all.
    pub fn unix(&self) -> Config {
        let mut config = Config::unix(&self.socket(), "kelvin", "kelvin");
        config.password = Some(Password::new("secret"));
        config
    }

    /// Over TCP, as the user who may do all.
    pub fn tcp(&self) -> Config {
        let mut config = Config::new(Host::Tcp("127.0.0.1".into()), self.port, "kelvin", "kelvin");
        config.password = Some(Password::new("secret"));
        config
    }

    pub fn session(&self) -> Box<dyn Session> {
        MysqlEngine::new(self.unix()).connect().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
        // If it was killed and not started again.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

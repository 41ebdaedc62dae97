//! Runs the real command in a separate place.

#![allow(dead_code, reason = "each test file uses a part")]

pub(crate) mod scenarios;

use std::fmt::Write as _;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use kelvin_database::managed::Manager;
use kelvin_database::postgres::managed::Instance;
use kelvin_measure::invariant::{GENERATOR_RAN, LOAD_GENERATOR};

/// A directory with a results file, and the command run in it.
pub(crate) struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    /// A directory with TPROC-C's data of one warehouse in an SQLite file, and its URL. An executable builds the data
    /// once and keeps them in an unnamed file, which is removed at its end.
    pub(crate) fn with_warehouse() -> (Self, String) {
        static BUILT: OnceLock<File> = OnceLock::new();
        let built = BUILT.get_or_init(|| {
            let place = Self::new();
            place.expect(0, &["build", "tproc-c", "--target", "sqlite:tpcc.db"]);
            File::open(place.path("tpcc.db")).unwrap()
        });
        let place = Self::new();
        let file = place.path("tpcc.db");
        std::fs::copy(format!("/proc/self/fd/{}", built.as_raw_fd()), &file).unwrap();
        (place, format!("sqlite:{}", file.display()))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.path("kelvin.db")
    }

    /// The command in this directory, without environment variables of the caller that could affect the result.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.program(env!("CARGO_BIN_EXE_kelvin"));
        command.args(args);
        command
    }

    /// Another program in the same environment.
    pub(crate) fn program(&self, name: &str) -> Command {
        let mut command = Command::new(name);
        command.current_dir(self.directory.path()).stdin(Stdio::null());
        for (name, _) in std::env::vars() {
            if name.starts_with("PG") || name.starts_with("KELVIN") {
                command.env_remove(name);
            }
        }
        if let Some(server) = nats_server() {
            let path = std::env::var_os("PATH").unwrap_or_default();
            let others = std::env::split_paths(&path);
            let all = std::env::join_paths(server.parent().map(Path::to_owned).into_iter().chain(others));
            command.env("PATH", all.unwrap());
        }
        command
            .env("KELVIN_STORE", self.store())
            .env("HOME", self.directory.path())
            .env("TMPDIR", "/var/tmp");
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Runs and returns standard output; an unexpected exit code fails the test. A run that is void only because of
    /// other activity on the machine is accepted: tests do not judge noise.
    #[track_caller]
    pub(crate) fn expect(&self, code: i32, args: &[&str]) -> String {
        let output = self.run(args);
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        let found = output.status.code();
        let noise = found == Some(1) && matches!(code, 0 | 3) && args[0] == "run" && self.is_noise();
        assert!(found == Some(code) || noise, "kelvin {}: {found:?}\n{stdout}\n{stderr}", args.join(" "));
        stdout
    }

    /// The output of each command line on a terminal of 100 columns.
    #[track_caller]
    pub(crate) fn help(&self, lines: &[&str]) -> String {
        let mut seen = String::new();
        for line in lines {
            let args: Vec<&str> = line.split(' ').collect();
            let output = self.command(&args).env("COLUMNS", "100").output().unwrap();
            assert_eq!(output.status.code(), Some(0), "{line}");
            let shown = text(&output.stdout);
            assert!(shown.lines().all(|line| line.chars().count() <= 100), "{line}\n{shown}");
            writeln!(seen, "## kelvin {line}\n{shown}").unwrap();
        }
        seen
    }

    /// Whether the last run completed and is void only because of findings about timing.
    pub(crate) fn is_noise(&self) -> bool {
        let run = self.report("last");
        let broken = ["check failed:", "self-audit failed", "condition", "nothing was measured"];
        let of_time = |reason: &serde_json::Value| {
            let reason = reason.as_str().unwrap();
            let generator = [LOAD_GENERATOR, GENERATOR_RAN].iter().any(|check| reason.contains(check));
            generator || broken.iter().all(|broken| !reason.contains(broken))
        };
        run["state"] == "void" && run["reasons"].as_array().unwrap().iter().all(of_time)
    }

    /// The run's report as JSON.
    #[track_caller]
    pub(crate) fn report(&self, run: &str) -> serde_json::Value {
        serde_json::from_str(&self.expect(0, &["report", run, "--json"])).unwrap()
    }

    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }
}

/// The NATS server to start if not that of PATH: an executable called nats-server.
pub(crate) fn nats_server() -> Option<PathBuf> {
    let server = PathBuf::from(std::env::var_os("KELVIN_TEST_NATS_SERVER")?);
    assert!(
        server.is_file() && server.ends_with("nats-server"),
        "KELVIN_TEST_NATS_SERVER: {}",
        server.display()
    );
    Some(server)
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Timeout for events that must happen: a stalling machine delays them, and only a fault prevents them.
const PATIENCE: Duration = Duration::from_mins(2);

/// Waits until a condition is true.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < PATIENCE, "waited {PATIENCE:?} in vain until {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Waits until the store has a measured second.
pub(crate) fn wait_for_a_second(place: &Place) {
    wait_until("a second is stored", || {
        let read = || -> rusqlite::Result<i64> {
            let store = rusqlite::Connection::open_with_flags(
                place.store(),
                rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY,
            )?;
            store.query_row("SELECT count(*) FROM second", [], |row| row.get(0))
        };
        read().is_ok_and(|seconds| seconds > 0)
    });
}

/// The first of some runs that, by its own report, was not delayed, not even below the limit of noise. On a machine that
/// stalls, seconds differ from what is expected.
#[track_caller]
pub(crate) fn undisturbed<T>(
    run: impl FnMut() -> T,
    report: impl Fn(&T) -> serde_json::Value,
) -> (T, serde_json::Value) {
    let ran = |report: &serde_json::Value| {
        let points = report["points"].as_array().unwrap().iter();
        let mut invariants = points.flat_map(|point| point["invariants"].as_array().unwrap());
        invariants.all(|one| one["holds"] == true || !one["name"].as_str().unwrap().ends_with(GENERATOR_RAN))
            && !report.to_string().contains("did not run for")
    };
    let mut runs = std::iter::repeat_with(run).take(8).map(|run| {
        let report = report(&run);
        (run, report)
    });
    runs.find(|(_, report)| ran(report)).expect("the machine held each of eight runs up")
}

/// A PostgreSQL server that ends with the test.
pub(crate) struct Server {
    manager: Manager,
    pub(crate) instance: Instance,
    _base: tempfile::TempDir,
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// A server whose settings override kelvin's.
    pub(crate) fn start_with(settings: &[(&str, &str)]) -> Self {
        use std::os::unix::fs::PermissionsExt;
        let base = tempfile::Builder::new().prefix("kelvin-test-").tempdir_in("/var/tmp").unwrap();
        // The server's user must be able to enter the directory.
        std::fs::set_permissions(base.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let manager = Manager::new(base.path().to_owned());
        let instance = manager
            .up_with_settings(None, settings, &mut |_| {})
            .expect("these tests need PostgreSQL's server: cargo xtask test");
        Self { manager, instance, _base: base }
    }

    /// The directory of its manager.
    pub(crate) fn base(&self) -> &Path {
        self.manager.base_dir()
    }

    /// The URL of its database.
    pub(crate) fn url(&self) -> String {
        self.instance.config().to_string()
    }

    /// Stops it as a crash would: no checkpoint, every connection cut.
    pub(crate) fn stop_immediately(&self) {
        let pid = self.instance.pid().to_string();
        assert!(Command::new("kill").args(["-QUIT", &pid]).status().unwrap().success());
        let process = PathBuf::from(format!("/proc/{pid}"));
        wait_until("the server is gone", || !process.exists());
    }

    /// Starts it again after [`Server::stop_immediately`].
    pub(crate) fn start_again(&mut self) {
        self.instance = self.manager.up(None, &mut |_| {}).unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.manager.down(None);
    }
}

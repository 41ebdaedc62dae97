//! `cargo xtask dist check`: the `.deb` in a new root, as a user would meet it.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::{PACKAGE, Release, quiet, text};

/// How long a newcomer's script may take, without making the root.
const LIMIT: Duration = Duration::from_mins(2);

/// A minimal installation of this host's release of Debian or Ubuntu, removed when dropped.
struct Root {
    directory: PathBuf,
}

impl Root {
    /// Makes it from the package source that this host uses itself.
    fn new(release: &Release) -> Result<Self> {
        let suite = std::fs::read_to_string("/etc/os-release")?;
        let suite = suite.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
        let suite =
            suite.context("/etc/os-release has no VERSION_CODENAME: debootstrap knows Debian and Ubuntu")?;
        let sources = text(Command::new("apt-get").args([
            "indextargets",
            "--format",
            "$(SITE) $(RELEASE) $(REPO_URI)",
            "Created-By: Packages",
        ]))?;
        let source = sources.lines().find_map(|line| {
            let words: Vec<_> = line.split(' ').collect();
            (words.get(1) == Some(&suite)).then(|| words.get(2).copied().unwrap_or_default().to_owned())
        });
        let source = source.with_context(|| format!("apt-get knows no source of {suite}"))?;
        let root = Self { directory: release.directory.with_file_name("clean-root") };
        root.remove();
        quiet(
            Command::new("debootstrap")
                .args(["--variant=minbase", suite])
                .arg(&root.directory)
                .arg(source)
                .stdout(Stdio::null()),
        )?;
        quiet(Command::new("mount").args(["-t", "proc", "proc"]).arg(root.directory.join("proc")))?;
        Ok(root)
    }

    /// A command within it.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new("chroot");
        command.arg(&self.directory).arg(program).env_clear().envs([
            ("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"),
            ("HOME", "/root"),
            ("LANG", "C.UTF-8"),
        ]);
        command
    }

    /// Runs the installed command; fails unless it ended with `code`.
    fn kelvin(&self, arguments: &[&str], code: i32) -> Result<Output> {
        let output = self.command("kelvin").args(arguments).stdin(Stdio::null()).output()?;
        ensure!(
            output.status.code() == Some(code),
            "kelvin {} ended with {} for {code}:\n{}{}",
            arguments.join(" "),
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(output)
    }

    fn remove(&self) {
        // Neither is there the first time.
        let mounted = self.directory.join("proc");
        let _ = Command::new("umount").arg("--quiet").arg(&mounted).stderr(Stdio::null()).status();
        if !mounted.join("self").exists() {
            let _ = std::fs::remove_dir_all(&self.directory);
        }
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Installs the package and does what a newcomer does.
pub(super) fn run(release: &Release) -> Result<()> {
    ensure!(
        rustix::process::geteuid().is_root(),
        "cargo xtask dist check makes a root with debootstrap and needs to be root"
    );
    let package = release.file(".deb");
    ensure!(package.is_file(), "{} is not there: run cargo xtask dist first", package.display());
    let root = Root::new(release)?;
    std::fs::copy(&package, root.directory.join("kelvin.deb"))?;
    let began = Instant::now();
    quiet(root.command("dpkg").args(["--install", "/kelvin.deb"]))?;
    let version = root.kelvin(&["--version"], 0)?;
    let version = String::from_utf8_lossy(&version.stdout).trim().to_owned();
    ensure!(version.contains(&release.commit), "{version:?} does not name the commit {}", release.commit);
    ensure!(root.directory.join("usr/share/man/man1/kelvin.1.gz").is_file(), "there is no man page");
    for _ in 0..2 {
        first_run(&root)?;
    }
    let compared = root.kelvin(&["compare", "1", "2"], 0)?;
    ensure!(
        String::from_utf8_lossy(&compared.stdout).contains("NOPM"),
        "kelvin compare says nothing of NOPM"
    );
    let took = began.elapsed();
    names(&root)?;
    quiet(root.command("dpkg").args(["--purge", PACKAGE]))?;
    ensure!(!root.directory.join("usr/bin/kelvin").exists(), "the purged package left its command behind");
    println!("{version}: installed, two runs and their comparison in {:.0} s", took.as_secs_f64());
    ensure!(took < LIMIT, "that is over {} s", LIMIT.as_secs());
    Ok(())
}

/// The README's first command. A machine that was busy meanwhile may void it (1), which is no fault of the package.
fn first_run(root: &Root) -> Result<()> {
    let arguments = ["run", "tproc-c", "--accept-noise"];
    let output = root.kelvin(&arguments, 0)?;
    let warnings = String::from_utf8_lossy(&output.stderr);
    if let Some(line) = warnings.lines().find(|line| line.starts_with("warning") || line.starts_with("error"))
    {
        bail!("the first run warned: {line}");
    }
    Ok(())
}

/// Name resolution, which a static executable does by itself: from /etc/hosts, and of a name that does not exist.
fn names(root: &Root) -> Result<()> {
    let hosts = root.directory.join("etc/hosts");
    std::fs::write(&hosts, "127.0.0.1 localhost\n127.0.0.1 database.internal\n")?;
    // A listener that accepts and says nothing: only the name is of interest.
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    let target = |host: &str| format!("postgres://tester@{host}:{port}/test?connect_timeout=2");
    let found = root.kelvin(&["check", "tproc-c", "--target", &target("database.internal")], 2);
    ensure!(
        listener.set_nonblocking(true).is_ok() && listener.accept().is_ok(),
        "no connection came: {found:?}"
    );
    let missing = root.kelvin(&["check", "tproc-c", "--target", &target("missing.invalid")], 2)?;
    let error = String::from_utf8_lossy(&missing.stderr);
    ensure!(error.contains("missing.invalid"), "the error does not name the host: {error}");
    Ok(())
}

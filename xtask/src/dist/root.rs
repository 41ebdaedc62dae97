//! A directory in which a command runs as if it were the root of the system.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, ensure};

use super::{quiet, text};

/// A root directory, removed when dropped.
pub(super) struct Root {
    directory: PathBuf,
}

impl Root {
    /// A minimal installation of this host's release of Debian or Ubuntu, from the host's own package source.
    pub(super) fn debian(directory: PathBuf) -> Result<Self> {
        let suite = fs::read_to_string("/etc/os-release")?;
        let suite = suite.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
        let suite = suite
            .context("/etc/os-release has no VERSION_CODENAME: debootstrap supports Debian and Ubuntu")?;
        let sources = text(Command::new("apt-get").args([
            "indextargets",
            "--format",
            "$(CODENAME) $(REPO_URI)",
            "Created-By: Packages",
        ]))?;
        let source = sources.lines().find_map(|line| line.strip_prefix(suite)?.strip_prefix(' '));
        let source = source.with_context(|| format!("apt-get has no source for {suite}"))?;
        let root = Self::new(directory);
        quiet(
            Command::new("debootstrap")
                .args(["--variant=minbase", suite])
                .arg(&root.directory)
                .arg(source)
                .stdout(Stdio::null()),
        )?;
        root.mount()
    }

    /// A root with directories, a host name, and the libraries of an executable, if it is not linked statically.
    pub(super) fn bare(directory: PathBuf, executable: &Path) -> Result<Self> {
        let root = Self::new(directory);
        for name in ["proc", "root", "tmp", "var/tmp", "etc", "var/lib/dpkg/info", "var/lib/dpkg/updates"] {
            fs::create_dir_all(root.path(name))?;
        }
        for name in ["status", "available"] {
            fs::write(root.path("var/lib/dpkg").join(name), "")?;
        }
        fs::write(root.path("etc/hosts"), "127.0.0.1 localhost\n")?;
        let libraries = Command::new("ldd").arg(executable).output().context("failed to run ldd")?;
        for word in String::from_utf8_lossy(&libraries.stdout).split_whitespace() {
            if let Some(library) = word.strip_prefix('/') {
                let copy = root.path(library);
                fs::create_dir_all(copy.parent().context("a library has no directory")?)?;
                fs::copy(word, copy)?;
            }
        }
        root.mount()
    }

    /// An empty root, to be filled later.
    pub(super) fn empty(directory: PathBuf) -> Result<Self> {
        let root = Self::new(directory);
        fs::create_dir_all(root.path("proc"))?;
        root.mount()
    }

    fn new(directory: PathBuf) -> Self {
        let root = Self { directory };
        // Remains of a killed run.
        root.remove();
        root
    }

    fn mount(self) -> Result<Self> {
        quiet(Command::new("mount").args(["-t", "proc", "proc"]).arg(self.path("proc")))?;
        Ok(self)
    }

    /// The path of a file in the root.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// A command that runs in the root.
    pub(super) fn command(&self, program: &str) -> Command {
        let mut command = Command::new("chroot");
        command.arg(&self.directory).arg(program).env_clear().stdin(Stdio::null()).envs([
            ("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"),
            ("HOME", "/root"),
            ("LANG", "C.UTF-8"),
        ]);
        command
    }

    /// Runs the installed command; an error unless it exits with one of `codes`.
    pub(super) fn kelvin(&self, arguments: &[&str], codes: &[i32]) -> Result<Output> {
        let output = self.command("/usr/bin/kelvin").args(arguments).output()?;
        ensure!(
            output.status.code().is_some_and(|code| codes.contains(&code)),
            "kelvin {} ended with {} for {codes:?}:\n{}{}",
            arguments.join(" "),
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(output)
    }

    /// Installs a `.deb`: with the root's own dpkg, or from outside if it has none.
    pub(super) fn install(&self, package: &Path) -> Result<()> {
        if !self.path("usr/bin/dpkg").exists() {
            return quiet(self.outer_dpkg().arg("--install").arg(package).stdout(Stdio::null()));
        }
        fs::copy(package, self.path("kelvin.deb"))?;
        quiet(self.command("dpkg").args(["--install", "/kelvin.deb"]).stdout(Stdio::null()))
    }

    /// Removes the package.
    pub(super) fn purge(&self, package: &str) -> Result<()> {
        if self.path("usr/bin/dpkg").exists() {
            return quiet(self.command("dpkg").args(["--purge", package]).stdout(Stdio::null()));
        }
        quiet(self.outer_dpkg().args(["--purge", package]).stdout(Stdio::null()))
    }

    fn outer_dpkg(&self) -> Command {
        let mut command = Command::new("dpkg");
        command.arg(format!("--root={}", self.directory.display())).arg("--log=/dev/null");
        command
    }

    fn remove(&self) {
        // The first time, neither the mount nor the directory exists.
        let mounted = self.path("proc");
        let _ = Command::new("umount").arg("--quiet").arg(&mounted).stderr(Stdio::null()).status();
        if !mounted.join("self").exists() {
            let _ = fs::remove_dir_all(&self.directory);
        }
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        self.remove();
    }
}

//! `cargo xtask dist`: makes all parts of a release in `target/dist`.
//!
//! The executable is linked statically with musl, which resolves names with files and DNS and without the host's
//! libraries. If rustup cannot install that target, it is linked with glibc (`crt-static`).

mod check;
mod image;
mod network;
mod newcomer;
mod package;
mod root;
mod sbom;
mod stage;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};

/// The name of the packages; the command is `kelvin`.
const PACKAGE: &str = "kelvin-bench";
const MUSL: &str = "x86_64-unknown-linux-musl";
const GLIBC: &str = "x86_64-unknown-linux-gnu";

/// A release that is being made.
struct Release {
    /// The directory of the workspace.
    top: PathBuf,
    /// The directory of the results.
    directory: PathBuf,
    version: String,
    commit: String,
    /// The time of the commit in seconds since 1970. All files have it, so that a second build gives the same bytes.
    epoch: String,
    /// The same time in the format of mail, which Debian's changelogs use.
    date: String,
    /// The author of the commit, who is the packages' maintainer: name and address.
    maintainer: String,
}

impl Release {
    fn new(profile: &str) -> Result<Self> {
        if !(cfg!(target_os = "linux") && cfg!(target_arch = "x86_64")) {
            bail!("cargo xtask dist builds only for, and on, x86-64 Linux");
        }
        let top = crate::test::top()?;
        let git = |arguments: &[&str]| text(Command::new("git").current_dir(&top).args(arguments));
        Ok(Self {
            directory: top.join("target").join("dist").join(profile),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: git(&["rev-parse", "--short=12", "HEAD"])?,
            epoch: git(&["show", "-s", "--format=%ct", "HEAD"])?,
            date: git(&["show", "-s", "--format=%cD", "HEAD"])?,
            maintainer: git(&["show", "-s", "--format=%cn <%ce>", "HEAD"])?,
            top,
        })
    }

    /// `kelvin-bench-0.1.0-x86_64` with a suffix.
    fn file(&self, ending: &str) -> PathBuf {
        self.directory.join(format!("{PACKAGE}-{}-x86_64{ending}", self.version))
    }
}

/// `cargo xtask dist [check] [--profile release]`.
pub(crate) fn run(arguments: &[&str]) -> Result<ExitCode> {
    let (check, profile) = match arguments {
        [] => (false, "dist"),
        ["check"] => (true, "dist"),
        ["--profile", profile] => (false, *profile),
        ["check", "--profile", profile] => (true, *profile),
        _ => bail!("usage: cargo xtask dist [check] [--profile dist|release]"),
    };
    let release = Release::new(profile)?;
    if check {
        crate::packages::ensure_for_dist()?;
        check::run(&release)?;
    } else {
        make(&release, profile)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether the compiler has the musl target's libraries; tries to install them if not.
fn has_musl() -> bool {
    let is_there = || {
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let libraries = text(Command::new(rustc).args(["--print", "target-libdir", "--target", MUSL]));
        libraries.is_ok_and(|directory| Path::new(&directory).is_dir())
    };
    is_there() || (quiet(Command::new("rustup").args(["target", "add", MUSL])).is_ok() && is_there())
}

fn make(release: &Release, profile: &str) -> Result<()> {
    crate::packages::ensure_for_dist()?;
    let target = if has_musl() { MUSL } else { GLIBC };
    let executable = build(release, profile, target)?;
    if release.directory.exists() {
        std::fs::remove_dir_all(&release.directory).context("the last release could not be removed")?;
    }
    std::fs::create_dir_all(&release.directory)?;
    // The profile's symbol options do not remove musl's symbols.
    quiet(Command::new("strip").arg("-o").arg(release.directory.join("kelvin")).arg(&executable))?;
    let root = stage::fill(release)?;
    archive(release, &root)?;
    package::debian(release, &root, "xz")?;
    package::rpm(release, &root)?;
    image::make(release)?;
    sbom::write(release, target)?;
    sums(release)?;
    std::fs::remove_dir_all(&root)?;
    println!("{} holds:", release.directory.display());
    quiet(Command::new("cat").arg("SHA256SUMS").current_dir(&release.directory).stdout(Stdio::inherit()))
}

/// Builds the static executable.
fn build(release: &Release, profile: &str, target: &str) -> Result<PathBuf> {
    let directory = release.top.join("target").join("static");
    quiet(
        Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
            .current_dir(&release.top)
            .args([
                "build",
                "-j2",
                "--locked",
                "--package",
                PACKAGE,
                "--profile",
                profile,
                "--target",
                target,
            ])
            .arg("--target-dir")
            .arg(&directory)
            .env("RUSTFLAGS", "-C target-feature=+crt-static")
            .env("KELVIN_COMMIT", &release.commit),
    )?;
    let executable = directory.join(target).join(profile).join("kelvin");
    let headers = text(Command::new("readelf").arg("--program-headers").arg(&executable))?;
    if headers.contains("INTERP") {
        bail!("{} is not statically linked", executable.display());
    }
    Ok(executable)
}

/// The tree as a `.tar.gz`, for hosts without a package manager.
fn archive(release: &Release, root: &Path) -> Result<()> {
    quiet(
        tar(release, root)
            .arg("--use-compress-program=gzip --no-name")
            .arg("--file")
            .arg(release.file(".tar.gz"))
            .arg("."),
    )
}

/// `tar --create` of the files below `root`, with reproducible output.
fn tar(release: &Release, root: &Path) -> Command {
    let mut command = Command::new("tar");
    command
        .args(["--create", "--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--format=ustar"])
        .arg(format!("--mtime=@{}", release.epoch))
        .arg("--directory")
        .arg(root);
    command
}

fn sums(release: &Release) -> Result<()> {
    let mut names: Vec<_> = std::fs::read_dir(&release.directory)?
        .filter_map(|entry| entry.ok().filter(|entry| entry.path().is_file()).map(|entry| entry.file_name()))
        .collect();
    names.sort();
    let sums = text(Command::new("sha256sum").args(&names).current_dir(&release.directory))?;
    std::fs::write(release.directory.join("SHA256SUMS"), sums + "\n")?;
    Ok(())
}

/// Runs a command; its error names the command.
fn quiet(command: &mut Command) -> Result<()> {
    let shown = command_line(command);
    let status = command.stdin(Stdio::null()).status().with_context(|| format!("failed to run {shown}"))?;
    if !status.success() {
        bail!("{shown} ended with {status}");
    }
    Ok(())
}

/// Runs a command and returns its output without the last newline.
fn text(command: &mut Command) -> Result<String> {
    let shown = command_line(command);
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("failed to run {shown}"))?;
    if !output.status.success() {
        bail!("{shown} ended with {}", output.status);
    }
    Ok(String::from_utf8(output.stdout)
        .with_context(|| format!("{shown} printed no text"))?
        .trim_end()
        .to_owned())
}

fn command_line(command: &Command) -> String {
    let words: Vec<_> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(OsStr::to_string_lossy)
        .collect();
    words.join(" ")
}

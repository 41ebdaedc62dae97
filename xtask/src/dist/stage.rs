//! The tree of files that every package installs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::{PACKAGE, Release, quiet, text};

/// The files in which shells look for completions.
const COMPLETIONS: &[(&str, &str)] = &[
    ("bash", "usr/share/bash-completion/completions/kelvin"),
    ("zsh", "usr/share/zsh/vendor-completions/_kelvin"),
    ("fish", "usr/share/fish/vendor_completions.d/kelvin.fish"),
];

/// Creates a directory with the files to install, and returns it.
pub(super) fn fill(release: &Release) -> Result<PathBuf> {
    let root = release.directory.join("root");
    let executable = release.directory.join("kelvin");
    install(&executable, &root.join("usr/bin/kelvin"), 0o755)?;
    let man = root.join("usr/share/man/man1");
    fs::create_dir_all(&man)?;
    quiet(Command::new(&executable).arg("man").arg(&man))?;
    for page in files(&man)? {
        quiet(Command::new("gzip").args(["--no-name", "--best"]).arg(page))?;
    }
    for (shell, path) in COMPLETIONS {
        let script = text(Command::new(&executable).args(["completions", shell]))?;
        write(&root.join(path), &(script + "\n"))?;
    }
    for unit in files(&release.top.join("contrib/systemd"))? {
        let name = unit.file_name().context("a unit has no name")?;
        install(&unit, &root.join("usr/lib/systemd/user").join(name), 0o644)?;
    }
    let documents = root.join("usr/share/doc").join(PACKAGE);
    for name in ["README.md", "CHANGELOG.md"] {
        install(&release.top.join(name), &documents.join(name), 0o644)?;
    }
    for page in
        files(&release.top.join("docs"))?.iter().filter(|path| path.extension().is_some_and(|e| e == "md"))
    {
        install(page, &documents.join("docs").join(page.file_name().context("a page has no name")?), 0o644)?;
    }
    install(&release.top.join("LICENSE"), &documents.join("LICENSE"), 0o644)?;
    Ok(root)
}

/// The files of a directory, sorted; empty if it does not exist.
fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    if !directory.is_dir() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(directory)?.collect::<std::io::Result<Vec<_>>>()?;
    let mut files: Vec<_> =
        entries.into_iter().map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    files.sort();
    Ok(files)
}

fn install(from: &Path, to: &Path, mode: u32) -> Result<()> {
    fs::create_dir_all(to.parent().context("a file has no directory")?)?;
    fs::copy(from, to).with_context(|| format!("{} could not be copied", from.display()))?;
    fs::set_permissions(to, fs::Permissions::from_mode(mode))?;
    Ok(())
}

pub(super) fn write(to: &Path, text: &str) -> Result<()> {
    fs::create_dir_all(to.parent().context("a file has no directory")?)?;
    fs::write(to, text).with_context(|| format!("{} could not be written", to.display()))
}

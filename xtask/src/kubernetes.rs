//! `cargo xtask kubernetes`: fetches PyPI's kubernetes-validate (licence Apache-2.0) with its dependencies for the test of
//! `contrib`. It compares a manifest with the schemas that Kubernetes publishes.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::download::{self, Package};

/// Also the version of Kubernetes; schemas of older versions are not unpacked.
const VERSION: &str = "1.37.0";
const SHA256: &str = "85136d018a27b50ec7fc049d902bfa5193f5976807e6c0f408e3ab6fe078cad9";

/// Its dependencies, with the SHA-256 of each wheel.
const NEEDS: &str = include_str!("../kubernetes-requirements.txt");

/// The directory in which the test looks for it: crates/kelvin/src/args/manifests.rs.
fn directory(top: &Path) -> PathBuf {
    download::target(top, "kubernetes-validate")
}

/// Fetches it; if that fails, creates a file that makes the test skip it.
pub(crate) fn fetch_for_tests(top: &Path) -> Result<()> {
    download::or_mark_unavailable(&directory(top), || fetch(top).map(drop))
}

/// Fetches and unpacks it, and returns its directory.
pub(crate) fn fetch(top: &Path) -> Result<PathBuf> {
    let directory = directory(top);
    let place = directory.join(VERSION);
    if place.is_dir() {
        return Ok(place);
    }
    let package = Package::pypi("kubernetes-validate", VERSION, "py3-none-any", SHA256).fetch(&directory)?;
    let half = place.with_extension("half");
    drop(std::fs::remove_dir_all(&half));
    std::fs::create_dir_all(&half).with_context(|| format!("cannot make {}", half.display()))?;
    let schemas = format!("kubernetes_validate/kubernetes-json-schema/v{VERSION}-local-strict/*");
    let file = package.display().to_string();
    download::run(&half, &["unzip", "-q", &file, "kubernetes_validate/*.py", &schemas])?;
    // Some wheels are for one version of Python: the version that runs them.
    let install = ["python3", "-m", "pip", "install", "-q", "--disable-pip-version-check"];
    // Compiling takes longer than it saves.
    let into = ["--root-user-action=ignore", "--no-compile", "--only-binary=:all:", "--target", "."];
    let file = "requirements.txt";
    std::fs::write(half.join(file), NEEDS).with_context(|| format!("cannot write {file}"))?;
    let pinned = ["--require-hashes", "--no-deps", "-r", file];
    download::run(&half, &[&install[..], &into, &pinned].concat())?;
    std::fs::rename(&half, &place).with_context(|| format!("cannot make {}", place.display()))?;
    Ok(place)
}

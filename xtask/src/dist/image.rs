//! The container image, in the format of `docker load`, `podman load` and `skopeo`, made without a daemon.
//!
//! It contains only the executable. For TLS to a server with a certificate of a public authority, the host's
//! certificates must be mounted at /etc/ssl/certs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::json;

use super::{PACKAGE, Release, quiet, tar, text};

/// Writes the image's archive.
pub(super) fn make(release: &Release) -> Result<()> {
    let work = release.directory.join("image");
    let root = work.join("root");
    for (directory, mode) in [("usr/bin", 0o755), ("tmp", 0o1777), ("var/lib/kelvin", 0o700), ("root", 0o700)]
    {
        fs::create_dir_all(root.join(directory))?;
        fs::set_permissions(root.join(directory), fs::Permissions::from_mode(mode))?;
    }
    fs::copy(release.directory.join("kelvin"), root.join("usr/bin/kelvin"))?;
    let archive = work.join("archive");
    fs::create_dir_all(&archive)?;
    let layer = archive.join("layer.tar");
    quiet(tar(release, &root).arg("--file").arg(&layer).arg("."))?;
    let digest = text(Command::new("sha256sum").arg(&layer))?;
    let digest = digest.split(' ').next().context("sha256sum printed nothing")?;
    let created = text(
        Command::new("date")
            .args(["--utc", "+%Y-%m-%dT%H:%M:%SZ", "--date"])
            .arg(format!("@{}", release.epoch)),
    )?;
    let config = json!({
        "architecture": "amd64", "os": "linux", "created": created,
        "config": {
            "Entrypoint": ["/usr/bin/kelvin"], "Env": ["PATH=/usr/bin", "HOME=/root"], "WorkingDir": "/root",
            "Labels": {"org.opencontainers.image.version": release.version, "org.opencontainers.image.revision": release.commit},
        },
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{digest}")]},
        "history": [{"created": created, "created_by": "cargo xtask dist"}],
    });
    fs::write(archive.join("config.json"), config.to_string())?;
    let manifest = json!([{
        "Config": "config.json", "RepoTags": [format!("{PACKAGE}:{}", release.version)], "Layers": ["layer.tar"],
    }]);
    fs::write(archive.join("manifest.json"), manifest.to_string())?;
    quiet(tar(release, &archive).arg("--file").arg(release.file("-image.tar")).args([
        "config.json",
        "layer.tar",
        "manifest.json",
    ]))?;
    fs::remove_dir_all(work)?;
    Ok(())
}

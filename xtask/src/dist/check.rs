//! `cargo xtask dist check`: tests the release as users install it.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::root::Root;
use super::{PACKAGE, Release, network, newcomer, quiet, text};

/// Tests the packages, the image, and the functions of the static executable that replace the host's C
/// library.
pub(super) fn run(release: &Release) -> Result<()> {
    ensure!(
        rustix::process::geteuid().is_root(),
        "cargo xtask dist check uses debootstrap and chroot and must run as root"
    );
    let package = release.file(".deb");
    ensure!(package.is_file(), "{} does not exist: run cargo xtask dist first", package.display());
    quiet(
        Command::new("sha256sum").args(["--check", "--quiet", "SHA256SUMS"]).current_dir(&release.directory),
    )?;
    let directory = |name: &str| release.directory.with_file_name(name);
    let clean = Root::debian(directory("clean-root"))?;
    println!(".deb   {}", newcomer::try_out(&clean, release, &package, &[])?);
    drop(clean);
    println!(".rpm   {}", red_hat(release, &directory("rpm-root"))?);
    println!("image  {}", image(release, &directory("image-root"))?);
    let executable = release.directory.join("kelvin");
    let bare = Root::bare(directory("bare-root"), &executable)?;
    fs::create_dir_all(bare.path("usr/bin"))?;
    fs::copy(&executable, bare.path("usr/bin/kelvin"))?;
    println!("static {}", network::try_out(&bare)?);
    Ok(())
}

/// Checks the digests, and the files in a separate root.
fn red_hat(release: &Release, root: &Path) -> Result<String> {
    let package = release.file(".rpm");
    let _ = fs::remove_dir_all(root);
    fs::create_dir_all(root)?;
    let digests = text(Command::new("rpm").arg("-K").arg(&package))?;
    ensure!(digests.ends_with("OK"), "rpm -K reports {digests}");
    let rpm = || {
        let mut command = Command::new("rpm");
        command.arg(format!("--root={}", root.display())).stdout(Stdio::null());
        command
    };
    quiet(rpm().arg("--install").arg(&package))?;
    quiet(rpm().args(["--verify", PACKAGE]))?;
    let version = text(Command::new(root.join("usr/bin/kelvin")).arg("--version"))?;
    ensure!(version.contains(&release.commit), "{version:?} does not name the commit {}", release.commit);
    fs::remove_dir_all(root)?;
    Ok(format!("{digests}, installed and verified").replace(&format!("{}: ", package.display()), ""))
}

/// Checks that the parts of the archive match, and that the command runs with only the image's layer.
fn image(release: &Release, root: &Path) -> Result<String> {
    let parts = release.directory.with_file_name("image-parts");
    let _ = fs::remove_dir_all(&parts);
    fs::create_dir_all(&parts)?;
    let unpack = |archive: &Path, to: &Path| {
        quiet(Command::new("tar").arg("--extract").arg("--file").arg(archive).arg("--directory").arg(to))
    };
    unpack(&release.file("-image.tar"), &parts)?;
    let json = |name: &str| -> Result<Value> {
        serde_json::from_str(&fs::read_to_string(parts.join(name))?)
            .with_context(|| format!("{name} is not JSON"))
    };
    let manifest = json("manifest.json")?;
    let name = |value: &Value| value.as_str().map(str::to_owned).context("the manifest does not name a file");
    let (config, layer) =
        (json(&name(&manifest[0]["Config"])?)?, parts.join(name(&manifest[0]["Layers"][0])?));
    let digest = text(Command::new("sha256sum").arg(&layer))?;
    let digest = format!("sha256:{}", digest.split(' ').next().unwrap_or_default());
    ensure!(config["rootfs"]["diff_ids"][0] == digest.as_str(), "the layer digest is {digest}: {config}");
    let entry = config["config"]["Entrypoint"][0].as_str().context("the image has no entry point")?;
    let within = Root::empty(root.to_owned())?;
    unpack(&layer, &within.path(""))?;
    let output = within.command(entry).args(["run", "tproc-c", "--duration", "2s"]).output()?;
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(
        matches!(output.status.code(), Some(0 | 1)) && shown.contains(" NOPM"),
        "{}: {shown}{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    fs::remove_dir_all(&parts)?;
    Ok(format!("{}: its single layer runs TPROC-C", name(&manifest[0]["RepoTags"][0])?))
}

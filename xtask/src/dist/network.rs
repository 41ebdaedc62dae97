//! Name resolution and TLS, which a static executable does without the host's C library. Names are resolved from
//! /etc/hosts and by DNS, and a nonexistent name fails; servers have a valid and an invalid certificate.

use std::fs;
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::quiet;
use super::root::Root;

/// A name in the root's /etc/hosts and in the certificate.
const LISTED: &str = "listed.test";
/// A name that DNS resolves, in the certificate.
const SERVED: &str = "served.test";
/// A name that DNS resolves, but not in the certificate.
const STRANGER: &str = "stranger.test";

/// Runs a script over TLS with each name; returns the results as text.
pub(super) fn try_out(root: &Root) -> Result<String> {
    let server = Server::start()?;
    fs::copy(server.directory.join("server.crt"), root.path("root/server.crt"))?;
    fs::write(root.path("etc/hosts"), format!("127.0.0.1 localhost {LISTED}\n"))?;
    fs::write(root.path("etc/resolv.conf"), "nameserver 127.0.0.1\noptions attempts:2 timeout:2\n")?;
    fs::write(root.path("root/one.sql"), "select 1;\n")?;
    let names = UdpSocket::bind("127.0.0.1:53").context("port 53 of this host is in use")?;
    names.set_read_timeout(Some(Duration::from_millis(200)))?;
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                answer(&names);
            }
        });
        let seen = connect(root, server.port);
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        seen
    })
}

fn connect(root: &Root, port: u16) -> Result<String> {
    let run = |host: &str, code: &[i32]| {
        let target = format!(
            "postgres://tester@{host}:{port}/postgres?sslmode=verify-full&sslrootcert=/root/server.crt&connect_timeout=5"
        );
        let words =
            ["run", "script", "/root/one.sql", "--target", &target, "--users", "1", "--transactions", "20"];
        root.kelvin(&words, code)
    };
    for host in [LISTED, SERVED] {
        run(host, &[0, 1])?;
    }
    for (host, why) in [(STRANGER, "certificate"), ("missing.test", "missing.test")] {
        let refused = run(host, &[2])?;
        let error = String::from_utf8_lossy(&refused.stderr);
        ensure!(error.contains(why), "the error for {host} does not mention {why}: {error}");
    }
    Ok("names from /etc/hosts and DNS, verified TLS; a wrong certificate and an unknown name are rejected"
        .into())
}

/// Answers one DNS query: the two names have an IPv4 address, other names do not exist.
fn answer(socket: &UdpSocket) {
    let mut query = [0; 512];
    let Ok((length, from)) = socket.recv_from(&mut query) else { return };
    let query = &query[..length];
    // A header of 12 bytes, labels with their lengths up to an empty one, type and class.
    let Some(end) = query.get(12..).and_then(|rest| rest.iter().position(|byte| *byte == 0)) else { return };
    let Some(question) = query.get(12..12 + end + 5) else { return };
    let mut name = String::new();
    let mut rest = &question[..end];
    while let Some((&count, after)) = rest.split_first() {
        let Some((label, after)) = after.split_at_checked(usize::from(count)) else { return };
        name = format!("{name}{}{}", if name.is_empty() { "" } else { "." }, String::from_utf8_lossy(label));
        rest = after;
    }
    let is_known = [SERVED, STRANGER].contains(&name.as_str());
    let is_v4 = question[end + 1..end + 3] == [0, 1];
    let (code, count) = (if is_known { 0 } else { 3 }, u8::from(is_known && is_v4));
    let mut reply = [&query[..2], &[0x81, 0x80 | code, 0, 1, 0, count, 0, 0, 0, 0], question].concat();
    if count == 1 {
        reply.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1]);
    }
    // The client repeats a lost query.
    let _ = socket.send_to(&reply, from);
}

/// A temporary PostgreSQL server with TLS on loopback.
struct Server {
    directory: PathBuf,
    programs: PathBuf,
    port: u16,
}

impl Server {
    fn start() -> Result<Self> {
        let versions = fs::read_dir("/usr/lib/postgresql").context("PostgreSQL is not installed")?;
        let programs = versions.flatten().map(|entry| entry.path().join("bin")).max();
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let server = Self {
            directory: PathBuf::from(format!("/var/tmp/kelvin-dist-{}", std::process::id())),
            programs: programs.context("PostgreSQL is not installed")?,
            port,
        };
        fs::create_dir(&server.directory)?;
        fs::set_permissions(&server.directory, fs::Permissions::from_mode(0o700))?;
        quiet(
            Command::new("openssl")
                .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=kelvin"])
                .args(["-addext", &format!("subjectAltName=DNS:{LISTED},DNS:{SERVED}")])
                .args(["-keyout", "server.key", "-out", "server.crt"])
                .current_dir(&server.directory)
                .stderr(Stdio::null()),
        )?;
        quiet(Command::new("chown").args(["-R", "postgres"]).arg(&server.directory))?;
        let data = server.directory.join("data");
        quiet(
            server
                .program("initdb")
                .args(["--no-sync", "--auth=trust", "--username=tester", "--pgdata"])
                .arg(&data)
                .stdout(Stdio::null()),
        )?;
        let within = |name: &str| server.directory.join(name).display().to_string();
        let options = format!(
            "-c ssl=on -c ssl_cert_file={} -c ssl_key_file={} -c listen_addresses=127.0.0.1 -c port={port} \
             -c unix_socket_directories='' -c fsync=off",
            within("server.crt"),
            within("server.key"),
        );
        let log = server.directory.join("log");
        quiet(
            server.control(&data).args(["start", "-o", &options, "--log"]).arg(&log).stdout(Stdio::null()),
        )?;
        Ok(server)
    }

    /// A program of the server, run as the server's user.
    fn program(&self, name: &str) -> Command {
        let mut command = Command::new("runuser");
        command.args(["--user", "postgres", "--"]).arg(self.programs.join(name)).current_dir(&self.directory);
        command
    }

    fn control(&self, data: &Path) -> Command {
        let mut command = self.program("pg_ctl");
        command.args(["--wait", "--pgdata"]).arg(data);
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let data = self.directory.join("data");
        let _ = quiet(self.control(&data).args(["stop", "--mode=immediate"]).stdout(Stdio::null()));
        let _ = fs::remove_dir_all(&self.directory);
    }
}

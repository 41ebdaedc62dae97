//! Ways into a PostgreSQL server: passwords, TLS, and what is no PostgreSQL at all.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use kelvin_database::postgres::{Config, Host, Password, PostgresEngine, SslMode, password};
use kelvin_database::{Engine, Error, ErrorClass, Session};
use support::{Server, await_statement};

fn connect(config: Config) -> Result<Box<dyn Session>, Error> {
    PostgresEngine::new(config).connect()
}

fn refused(config: Config) -> Error {
    connect(config).map(drop).expect_err("the login should fail")
}

fn as_user(config: Config, user: &str, password: Option<&str>) -> Config {
    Config { user: user.into(), password: password.map(Password::new), ..config }
}

#[test]
fn passwords_open_the_door_and_wrong_ones_do_not() {
    let hba = "local all kelvin trust\nlocal all clear password\nhost all clear 127.0.0.1/32 password\n\
               host all digest 127.0.0.1/32 md5\nhost all scram 127.0.0.1/32 scram-sha-256\n";
    let server = Server::start_with("", hba, |_| {});
    let mut s = server.session();
    s.run(
        "SET password_encryption = md5; CREATE ROLE digest LOGIN PASSWORD 'pä ss';
         SET password_encryption = 'scram-sha-256'; CREATE ROLE scram LOGIN PASSWORD 'pä ss';
         CREATE ROLE clear LOGIN PASSWORD 'pä ss'",
    )
    .unwrap();
    for user in ["digest", "scram"] {
        connect(as_user(server.tcp(), user, Some("pä ss"))).unwrap().run("SELECT 1").unwrap();
        let error = refused(as_user(server.tcp(), user, Some("hunter2")));
        assert_eq!(
            (error.class(), error.code().0.as_str()),
            (ErrorClass::Authentication, "28P01"),
            "{error}"
        );
        assert!(
            !error.to_string().contains("hunter2") && error.to_string().contains("PGPASSWORD"),
            "{error}"
        );
        assert!(!password::is_missing(&error));
        let error = refused(as_user(server.tcp(), user, None));
        assert_eq!(error.class(), ErrorClass::Authentication);
        assert!(password::is_missing(&error), "{error}");
    }
    connect(as_user(server.unix(), "clear", Some("pä ss"))).unwrap();
    let error = refused(as_user(server.tcp(), "clear", Some("pä ss")));
    assert!(error.message().contains("cleartext"), "{error}");

    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pass");
    fs::write(&file, format!("127.0.0.1:{}:*:scram:pä ss\n", server.port)).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let mut config = as_user(server.tcp(), "scram", None);
    let env = |name: &str| (name == "PGPASSFILE").then(|| file.to_string_lossy().into_owned());
    config.password = password::find(&config, &env).unwrap();
    connect(config).unwrap();
}

fn openssl(directory: &Path, arguments: &str) {
    let done =
        Command::new("openssl").args(arguments.split_whitespace()).current_dir(directory).output().unwrap();
    assert!(done.status.success(), "openssl {arguments}: {}", String::from_utf8_lossy(&done.stderr));
}

/// A root, a server certificate for "localhost" signed by it, and a self-signed one as the manual makes it.
fn certificates(directory: &Path, digest: &str) {
    openssl(
        directory,
        "req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=test-ca",
    );
    openssl(directory, "req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj /CN=x");
    fs::write(directory.join("san"), "subjectAltName=DNS:localhost\n").unwrap();
    openssl(
        directory,
        &format!(
            "x509 -req {digest} -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile san -out server.crt"
        ),
    );
    openssl(
        directory,
        "req -x509 -newkey rsa:2048 -nodes -keyout own.key -out own.pem -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost",
    );
}

fn tls_server(files: &Path, certificate: &str, key: &str) -> Server {
    let hba = "local all all trust\nhostssl all scram 127.0.0.1/32 scram-sha-256\nhostssl all clear 127.0.0.1/32 password\nhostnossl all plain 127.0.0.1/32 trust\n";
    let server = Server::start_with("ssl=on", hba, |data| {
        fs::copy(files.join(certificate), data.join("server.crt")).unwrap();
        fs::copy(files.join(key), data.join("server.key")).unwrap();
        fs::set_permissions(data.join("server.key"), fs::Permissions::from_mode(0o600)).unwrap();
    });
    server
        .session()
        .run("CREATE ROLE scram LOGIN PASSWORD 'p'; CREATE ROLE clear LOGIN PASSWORD 'p'; CREATE ROLE plain LOGIN")
        .unwrap();
    server
}

#[test]
fn tls_is_as_strict_as_asked() {
    let files = tempfile::tempdir().unwrap();
    certificates(files.path(), "-sha384");
    let server = tls_server(files.path(), "server.crt", "server.key");
    let config = |host: &str, mode: SslMode, root: Option<&str>| Config {
        host: Host::Tcp(host.into()),
        ssl_mode: mode,
        ssl_root_certificate: root.map(|name| files.path().join(name)),
        ..as_user(server.tcp(), "scram", Some("p"))
    };
    let encrypted = |config: Config| {
        let mut s = connect(config).unwrap();
        let rows = s.query("SELECT ssl::int FROM pg_stat_ssl WHERE pid = pg_backend_pid()").unwrap();
        rows.int(0, 0).unwrap() == 1
    };
    // SCRAM here is SCRAM-SHA-256-PLUS: the server refuses a wrong binding.
    assert!(encrypted(config("127.0.0.1", SslMode::Require, None)));
    assert!(encrypted(config("127.0.0.1", SslMode::Prefer, None)));
    assert!(encrypted(config("127.0.0.1", SslMode::VerifyCa, Some("ca.pem"))));
    assert!(encrypted(config("localhost", SslMode::VerifyFull, Some("ca.pem"))));
    let error = refused(config("127.0.0.1", SslMode::VerifyFull, Some("ca.pem")));
    assert!(error.help().unwrap().contains("alternative name"), "{error}");
    for mode in [SslMode::Require, SslMode::VerifyCa, SslMode::VerifyFull] {
        let error = refused(config("localhost", mode, Some("own.pem")));
        assert!(error.to_string().contains("sslrootcert"), "{mode:?}: {error}");
    }
    let error = refused(config("localhost", SslMode::VerifyCa, Some("nosuch.pem")));
    assert_eq!(error.class(), ErrorClass::Usage, "{error}");
    assert_eq!(
        refused(config("localhost", SslMode::VerifyCa, Some("server.key"))).class(),
        ErrorClass::Usage
    );
    // pg_hba.conf lets this user in without TLS only: prefer finds the way.
    let plain = Config { user: "plain".into(), ..config("127.0.0.1", SslMode::Prefer, None) };
    assert!(!encrypted(plain.clone()));
    assert_eq!(refused(Config { ssl_mode: SslMode::Require, ..plain }).code().0, "28000");
    assert_eq!(refused(config("127.0.0.1", SslMode::Disable, None)).code().0, "28000");
    // The password may go in clear under TLS.
    connect(Config { user: "clear".into(), ..config("127.0.0.1", SslMode::Require, None) }).unwrap();

    // All of the protocol under TLS: a batch larger than every buffer, and a cancel request.
    let mut s = connect(config("127.0.0.1", SslMode::Require, None)).unwrap();
    s.set_timeout(Some(Duration::from_mins(1))).unwrap();
    let echo = s.prepare("SELECT $1::text").unwrap();
    let text = "z".repeat(20_000);
    for _ in 0..500 {
        s.queue(echo, &[kelvin_database::Value::Text(&text)]).unwrap();
    }
    let mut results = Vec::new();
    s.flush(&mut results).unwrap();
    assert!(results.len() == 500 && results.iter().all(|r| r.text(0, 0).unwrap() == text));
    s.run("CREATE TEMP TABLE c (i int8)").unwrap();
    let table =
        kelvin_database::BulkTable { name: "c", columns: &[("i", kelvin_database::ColumnType::Int8)] };
    let mut load = s.bulk_load(&table).unwrap();
    for i in 0..100_000 {
        load.row(&[kelvin_database::Value::Int(i)]).unwrap();
    }
    assert_eq!(load.finish().unwrap(), 100_000);
    let cancel = s.cancel();
    let mut watcher = server.session();
    let thread = std::thread::spawn(move || {
        await_statement(watcher.as_mut(), "SELECT pg_sleep(30)");
        cancel.cancel().unwrap();
    });
    assert_eq!(s.run("SELECT pg_sleep(30)").unwrap_err().code().0, "57014");
    thread.join().unwrap();
}

#[test]
fn a_self_signed_certificate_can_be_its_own_root() {
    let files = tempfile::tempdir().unwrap();
    certificates(files.path(), "-sha256");
    let server = tls_server(files.path(), "own.pem", "own.key");
    let config = |mode, root: &str| Config {
        host: Host::Tcp("localhost".into()),
        ssl_mode: mode,
        ssl_root_certificate: Some(files.path().join(root)),
        ..as_user(server.tcp(), "scram", Some("p"))
    };
    connect(config(SslMode::VerifyCa, "own.pem")).unwrap();
    connect(config(SslMode::VerifyFull, "own.pem")).unwrap();
    let other = Config { host: Host::Tcp("127.0.0.1".into()), ..config(SslMode::VerifyFull, "own.pem") };
    refused(other);
    refused(config(SslMode::VerifyCa, "ca.pem"));
}

#[test]
fn tls_that_the_server_lacks_is_reported() {
    let server = Server::start();
    let error = refused(Config { ssl_mode: SslMode::Require, ..server.tcp() });
    assert!(error.message().contains("sslmode=require"), "{error}");
    connect(Config { ssl_mode: SslMode::Prefer, ..server.tcp() }).unwrap();
}

/// A server that says `greeting` when `first` is true, or else after it heard something; then hangs up or waits.
fn other_server(greeting: &'static [u8], first: bool, wait: bool) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().take(4) {
            let mut stream = stream.unwrap();
            if !first {
                let _ = stream.read(&mut [0; 1024]);
            }
            let _ = stream.write_all(greeting);
            if wait {
                std::thread::sleep(Duration::from_secs(20));
            }
        }
    });
    port
}

#[test]
fn what_is_not_postgresql_is_found_out_in_time() {
    for (greeting, first, wait, expected) in [
        (&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], false, false, ErrorClass::Protocol),
        (b"SSH-2.0-OpenSSH_9.2p1\r\n", true, true, ErrorClass::Protocol),
        (b"220 mail.example ESMTP\r\n", true, true, ErrorClass::Protocol),
        (b"SX", false, true, ErrorClass::Protocol),
        (b"", false, true, ErrorClass::Timeout),
        (b"", false, false, ErrorClass::ConnectionLost),
        // A message that announces 60 kB and never comes.
        (b"R\0\0\xea\x60", false, true, ErrorClass::Timeout),
    ] {
        for mode in [SslMode::Disable, SslMode::Prefer, SslMode::Require] {
            let port = other_server(greeting, first, wait);
            let mut config = Config::new(Host::Tcp("127.0.0.1".into()), port, "u", "d");
            config.ssl_mode = mode;
            // Asked for TLS, "R" is an answer that PostgreSQL does not give.
            let expected = if greeting.starts_with(b"R") && mode != SslMode::Disable {
                ErrorClass::Protocol
            } else {
                expected
            };
            // Only one that waits in vain is to be short: a machine that stalls takes its time for the others.
            let limit = if expected == ErrorClass::Timeout { 1 } else { 15 };
            config.connect_timeout = Duration::from_secs(limit);
            let began = Instant::now();
            let error = refused(config);
            assert!(began.elapsed() < Duration::from_mins(1), "{greeting:?} {mode:?}");
            assert_eq!(error.class(), expected, "{:?} {mode:?}: {error}", String::from_utf8_lossy(greeting));
            if greeting.len() > 10 {
                assert!(error.message().contains("not a PostgreSQL server"), "{error}");
            }
        }
    }
}

#[test]
fn a_server_that_is_killed_and_restarted_is_reached_again() {
    let mut server = Server::start();
    let mut s = server.session();
    s.run("SELECT 1").unwrap();
    server.kill();
    let error = s.run("SELECT 1").unwrap_err();
    assert_eq!(error.class(), ErrorClass::ConnectionLost, "{error}");
    assert!(s.is_broken());
    let error = connect(server.unix()).map(drop).unwrap_err();
    assert_eq!(error.class(), ErrorClass::ConnectionLost, "{error}");
    server.restart();
    server.session().run("SELECT 1").unwrap();
}

//! A complete run over TLS with scram-sha-256 and channel binding. A server that cannot prove its identity is
//! refused before any load.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../database/tests/support/mod.rs"]
mod server;
mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use kelvin_database::Engine;
use kelvin_database::postgres::{Config, PostgresEngine};
use server::Server;
use support::{Place, text, wait_until};

const PASSWORD: &str = "pä ss 1";

fn openssl(directory: &Path, arguments: &str) {
    let done =
        Command::new("openssl").args(arguments.split_whitespace()).current_dir(directory).output().unwrap();
    assert!(done.status.success(), "openssl {arguments}: {}", text(&done.stderr));
}

/// Two certificate authorities, and a certificate for "localhost" by the first.
fn certificates(directory: &Path) {
    for authority in ["ca", "other"] {
        openssl(
            directory,
            &format!(
                "req -x509 -newkey rsa:2048 -nodes -keyout {authority}.key -out {authority}.pem -days 2 -subj /CN={authority}"
            ),
        );
    }
    openssl(directory, "req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj /CN=x");
    fs::write(directory.join("san"), "subjectAltName=DNS:localhost\n").unwrap();
    openssl(
        directory,
        "x509 -req -sha256 -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile san -out server.crt",
    );
}

#[test]
fn a_run_over_tls_with_channel_binding_and_refusals_without_trust() {
    let files = tempfile::tempdir().unwrap();
    certificates(files.path());
    let hba = "local all all trust\nhostssl all scram all scram-sha-256\nhostssl all digest all md5\n\
               hostssl all trusted all trust\nhostnossl all scram all scram-sha-256\n";
    let server = Server::start_with("ssl=on", hba, |data| {
        for file in ["server.crt", "server.key"] {
            fs::copy(files.path().join(file), data.join(file)).unwrap();
            fs::set_permissions(data.join(file), fs::Permissions::from_mode(0o600)).unwrap();
        }
    });
    let mut admin = server.session();
    admin.run(&format!("CREATE ROLE scram LOGIN PASSWORD '{PASSWORD}'; CREATE ROLE trusted LOGIN")).unwrap();
    admin.run("SET password_encryption = md5").unwrap();
    admin.run(&format!("CREATE ROLE digest LOGIN PASSWORD '{PASSWORD}'")).unwrap();
    admin.run("CREATE DATABASE load OWNER scram").unwrap();

    let place = Place::new();
    let url = |user: &str, host: &str, rest: &str| {
        format!(
            "postgres://{user}@{host}:{}/load?{}",
            server.port,
            rest.replace("DIR", files.path().to_str().unwrap())
        )
    };
    let strict = "sslmode=verify-full&sslrootcert=DIR/ca.pem&channel_binding=require";
    let command = |url: &str| {
        let words = [
            "run",
            "tproc-c",
            "--target",
            url,
            "--warehouses",
            "1",
            "--users",
            "3",
            "--ramp-up",
            "0s",
            "--users-on",
            "loops",
        ];
        let mut command = place.command(&[&words[..], &["--duration", "2s", "--check"]].concat());
        command.env("PGPASSWORD", PASSWORD).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };

    // Without the required proof of identity, nothing is built and nothing is measured.
    let ca = "sslmode=verify-full&sslrootcert=DIR/ca.pem";
    for (user, host, rest, said) in [
        ("scram", "localhost", "sslmode=verify-full&sslrootcert=DIR/other.pem", "sslrootcert"),
        ("scram", "127.0.0.1", ca, "alternative name"),
        ("scram", "localhost", "sslmode=disable&channel_binding=require", "the connection has no TLS"),
        ("trusted", "localhost", strict, "did not ask for SCRAM authentication"),
        ("digest", "localhost", strict, "did not ask for SCRAM authentication"),
    ] {
        let output = command(&url(user, host, rest)).output().unwrap();
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{user} {host} {rest}: {stderr}");
        assert!(stderr.contains(said) && !stderr.contains(PASSWORD), "{user} {host} {rest}: {stderr}");
        assert!(rest.contains("require") == stderr.contains("channel_binding=require"), "{stderr}");
    }
    let inside = Config { database: "load".into(), ..server.unix() };
    let tables = "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace";
    let built = PostgresEngine::new(inside).connect().unwrap().query(tables).unwrap().int(0, 0).unwrap();
    assert_eq!(built, 0, "something was built");

    let child = command(&url("scram", "localhost", strict)).spawn().unwrap();
    let mut encrypted = || {
        let sessions = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
                        WHERE usename = 'scram' AND ssl AND version = 'TLSv1.3' AND query LIKE '%kelvin_new_order%'";
        admin.query(sessions).unwrap().int(0, 0).unwrap() > 0
    };
    wait_until("a user's session under TLS calls for an order", &mut encrypted);
    let output = child.wait_with_output().unwrap();
    let printed = format!("{}\n{}", text(&output.stdout), text(&output.stderr));
    // A run that is void because of other activity on the machine passes: tests do not judge noise.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{printed}");
    assert!(!printed.contains(PASSWORD), "{printed}");
    let run = place.report("last");
    let point = &run["points"][0];
    assert!(point["headline_count"].as_u64().unwrap() > 0, "{printed}");
    assert_eq!(point["errors"].as_array().unwrap().len(), 0, "{printed}");
}

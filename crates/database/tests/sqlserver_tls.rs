//! Encryption, trust and authentication, with a scripted server.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

#[path = "support/port.rs"]
mod port;
mod sqlserver_support;

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use kelvin_database::sqlserver::{Config, Encrypt, Password, SqlServerEngine};
use kelvin_database::{Engine, Error, ErrorClass};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sqlserver_support::*;

fn openssl(directory: &Path, arguments: &str) {
    let done =
        Command::new("openssl").args(arguments.split_whitespace()).current_dir(directory).output().unwrap();
    assert!(done.status.success(), "openssl {arguments}: {}", String::from_utf8_lossy(&done.stderr));
}

/// A root, and a server with a certificate for "localhost" signed by it.
fn server_config(directory: &Path) -> Arc<ServerConfig> {
    openssl(
        directory,
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=test-ca",
    );
    openssl(
        directory,
        "req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout server.key -out server.csr -subj /CN=x",
    );
    std::fs::write(directory.join("san"), "subjectAltName=DNS:localhost\n").unwrap();
    openssl(
        directory,
        "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile san -out server.crt",
    );
    let certificates =
        CertificateDer::pem_file_iter(directory.join("server.crt")).unwrap().map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_file(directory.join("server.key")).unwrap();
    let mut config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .unwrap();
    config.alpn_protocols.push(b"tds/8.0".to_vec());
    Arc::new(config)
}

/// How the server encrypts.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    First,
    Within,
    LoginOnly,
    Never,
}

fn attempt(
    tls: &Arc<ServerConfig>,
    way: Way,
    change: impl FnOnce(&mut Config),
) -> (Result<(), Error>, Vec<u8>) {
    let tls = Arc::clone(tls);
    let mut server = Scripted::new(move |peer| {
        if way == Way::First {
            peer.encrypt_first(&tls)?;
        }
        peer.hear()?;
        peer.say_as(
            4,
            &prelogin(match way {
                Way::Within => 3,
                Way::LoginOnly => 0,
                Way::First | Way::Never => 2,
            }),
        );
        if matches!(way, Way::Within | Way::LoginOnly) {
            peer.encrypt_within(&tls)?;
        }
        peer.hear()?;
        if way == Way::LoginOnly {
            peer.set_tls(None);
        }
        peer.take_in(if way == Way::First { 0x0800_0000 } else { 0x7400_0004 })?;
        peer.hear()?;
        // Longer than a TLS record.
        peer.say(&[ints("a", &vec![7; 10_000]), done(DONE, COUNT, 10_000)]);
        None
    });
    change(&mut server.config);
    let outcome = server.connect().and_then(|mut session| {
        let rows = session.query(&format!("SELECT {}", "7".repeat(20_000)))?;
        assert_eq!((rows.len(), rows.int(9_999, 0)?), (10_000, 7));
        Ok(())
    });
    (outcome, server.heard().into_iter().map(|(kind, _)| kind).collect())
}

#[test]
fn encryption_is_as_strict_as_asked() {
    let files = tempfile::tempdir().unwrap();
    let tls = server_config(files.path());
    let root = Some(files.path().join("ca.pem"));
    let logged_in = |kinds: &[u8]| kinds.contains(&16);
    for (way, encrypt) in
        [(Way::First, Encrypt::Strict), (Way::Within, Encrypt::Mandatory), (Way::Within, Encrypt::Optional)]
    {
        let with = |change: &dyn Fn(&mut Config)| {
            attempt(&tls, way, |config| {
                config.encrypt = encrypt;
                change(config);
            })
        };
        with(&|config| config.root_certificate.clone_from(&root)).0.unwrap();
        with(&|config| config.trust_server_certificate = true).0.unwrap();
        with(&|config| {
            config.root_certificate.clone_from(&root);
            config.host = "127.0.0.1".into();
            config.host_name_in_certificate = Some("localhost".into());
        })
        .0
        .unwrap();
        // Verified by default: by the system's roots, and by the name.
        for change in [&(|_: &mut Config| ()) as &dyn Fn(&mut Config), &|config| {
            config.root_certificate.clone_from(&root);
            config.host = "127.0.0.1".into();
        }] {
            let (outcome, kinds) = with(change);
            let error = outcome.unwrap_err();
            let known = error.message().contains("TLS failed") && error.help().unwrap().contains("trustServerCertificate")
                // A host without any certificates has no roots for verification.
                || error.message().contains("no root certificate");
            assert!(known && !logged_in(&kinds), "{error}");
        }
    }
    let (outcome, kinds) = attempt(&tls, Way::LoginOnly, |config| config.encrypt = Encrypt::Optional);
    outcome.unwrap();
    assert!(logged_in(&kinds));
    attempt(&tls, Way::Never, |config| config.encrypt = Encrypt::Optional).0.unwrap();
    for way in [Way::Never, Way::LoginOnly] {
        let (outcome, kinds) = attempt(&tls, way, |config| config.encrypt = Encrypt::Mandatory);
        let error = outcome.unwrap_err();
        assert!(
            error.class() == ErrorClass::Usage && error.message().contains("does not encrypt"),
            "{error}"
        );
        assert!(!logged_in(&kinds));
    }
}

#[test]
fn an_access_token_logs_in_without_a_password_and_never_in_the_clear() {
    use std::os::unix::fs::PermissionsExt;
    let files = tempfile::tempdir().unwrap();
    let tls = server_config(files.path());
    let path = files.path().join("token");
    std::fs::write(&path, "ey.J0\n").unwrap();
    let by_file = |config: &mut Config| {
        config.user.clear();
        config.password = None;
        config.token_file = Some(path.clone());
        config.trust_server_certificate = true;
        config.encrypt = Encrypt::Mandatory;
    };
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let error = Scripted::new(|_| None).config;
    let refused = |change: &dyn Fn(&mut Config)| {
        let mut config = error.clone();
        change(&mut config);
        kelvin_database::Engine::connect(&kelvin_database::sqlserver::SqlServerEngine::new(config))
            .map(drop)
            .unwrap_err()
    };
    assert!(refused(&by_file).message().contains("can be read by others"));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let in_the_clear = refused(&|config| {
        by_file(config);
        config.encrypt = Encrypt::Optional;
    });
    assert!(in_the_clear.message().contains("encrypted connection"), "{in_the_clear}");
    let mut server = Scripted::new(move |peer| {
        peer.hear()?;
        peer.say_as(4, &prelogin(1));
        peer.encrypt_within(&tls)?;
        peer.welcome(0x7400_0004)
    });
    by_file(&mut server.config);
    server.config.token = Some(Password::new("unused: the file counts"));
    server.connect().unwrap();
    let heard = server.heard();
    assert!(heard[0].1.contains(&6), "asked for in the prelogin");
    let login = &heard.iter().find(|(kind, _)| *kind == 16).unwrap().1;
    assert_eq!(u16::from_le_bytes([login[42], login[43]]), 0, "no user");
    let token = wide("ey.J0");
    let at = login.windows(token.len()).position(|part| part == token).unwrap();
    assert_eq!(login[at - 10..at], [2, 15, 0, 0, 0, 2, 10, 0, 0, 0]);
}

/// A third party's view of login and encryption: `mssql-mock-tds`, where `KELVIN_TEST_TDS_MOCK` names its executable.
#[test]
fn another_server_of_the_protocol_is_logged_in_to() {
    let Ok(program) = std::env::var("KELVIN_TEST_TDS_MOCK") else {
        eprintln!("skipped: KELVIN_TEST_TDS_MOCK names no mssql-mock-tds");
        return;
    };
    let files = tempfile::tempdir().unwrap();
    server_config(files.path());
    for (mode, encrypt) in
        [("none", Encrypt::Optional), ("optional", Encrypt::Mandatory), ("strict", Encrypt::Strict)]
    {
        let port = port::spare();
        let mut server = Command::new(&program)
            .args([
                "--port",
                &port.to_string(),
                "--tls-mode",
                mode,
                "--cert",
                "server.crt",
                "--key",
                "server.key",
            ])
            .current_dir(files.path())
            .spawn()
            .unwrap();
        let mut config = Config::parse(&format!("sqlserver://someone@localhost:{port}/master")).unwrap();
        config.password = Some(Password::new("Pass-word1"));
        config.encrypt = encrypt;
        config.root_certificate = Some(files.path().join("ca.pem"));
        let connect = |config: &Config| {
            for _ in 0..100 {
                match SqlServerEngine::new(config.clone()).connect() {
                    Err(error)
                        if error.class() == ErrorClass::ConnectionLost
                            && !error.message().contains("TLS") =>
                    {
                        std::thread::sleep(std::time::Duration::from_millis(50));
                    }
                    outcome => return outcome,
                }
            }
            panic!("{program} does not listen");
        };
        let outcome = connect(&config).map(drop).unwrap_err();
        config.root_certificate = None;
        let unverified = connect(&config).map(drop).unwrap_err();
        server.kill().unwrap();
        server.wait().unwrap();
        // Logged in: it has no rows for the first question that Kelvin asks.
        let logged_in = |error: &Error| error.message().contains("a result of 0 rows");
        assert!(logged_in(&outcome), "{mode}: {outcome}");
        assert_eq!(logged_in(&unverified), mode == "none", "{mode}: {unverified}");
    }
}

//! Logins to a MariaDB (or, with `KELVIN_MYSQL_BASE`, MySQL) server: passwords, TLS, and peers that are no such server.
#![allow(clippy::unwrap_used)]

mod mysql_support;
mod support;

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use kelvin_database::mysql::{Config, Host, MysqlEngine, Password, SslMode, password};
use kelvin_database::{Engine, Error, ErrorClass, Session};
use mysql_support::{Server, give_away, is_installed, is_mariadb};

fn connect(config: Config) -> Result<Box<dyn Session>, Error> {
    MysqlEngine::new(config).connect()
}

fn refused(config: Config) -> Error {
    connect(config).map(drop).expect_err("the login should fail")
}

fn as_user(config: Config, user: &str, password: Option<&str>) -> Config {
    Config { user: user.into(), password: password.map(Password::new), ..config }
}

fn encrypted(session: &mut dyn Session) -> bool {
    !session.query("SHOW SESSION STATUS LIKE 'Ssl_cipher'").unwrap().text(0, 1).unwrap().is_empty()
}

#[test]
fn passwords_open_the_door_and_wrong_ones_do_not() {
    let server = Server::start();
    let mut all = server.session();
    let by = if is_mariadb() {
        "VIA mysql_native_password USING PASSWORD('pä ss')"
    } else {
        "WITH mysql_native_password BY 'pä ss'"
    };
    all.run(&format!("CREATE USER native@'%' IDENTIFIED {by}; CREATE USER open@'%'; GRANT ALL ON *.* TO native@'%', open@'%'")).unwrap();
    for config in [server.tcp(), server.unix()] {
        connect(as_user(config.clone(), "native", Some("pä ss"))).unwrap().run("DO 1").unwrap();
        connect(as_user(config.clone(), "open", None)).unwrap().run("DO 1").unwrap();
        let error = refused(as_user(config.clone(), "native", Some("hunter2")));
        assert_eq!((error.class(), error.code().0.as_str()), (ErrorClass::Authentication, "1045/28000"));
        assert!(!error.to_string().contains("hunter2") && error.to_string().contains("MYSQL_PWD"), "{error}");
        assert!(!password::is_missing(&error));
        let error = refused(as_user(config, "native", None));
        assert!(password::is_missing(&error), "{error}");
    }
    let mut config = server.tcp();
    config.database = "nowhere".into();
    assert_eq!(refused(config).class(), ErrorClass::Usage);
    if is_mariadb() {
        match all.run("INSTALL SONAME 'auth_ed25519'") {
            Ok(()) => {
                for (user, password) in
                    [("curve", "p"), ("longer", "pä ss, longer than the thirty-two of a seed")]
                {
                    let how = format!("IDENTIFIED VIA ed25519 USING PASSWORD('{password}')");
                    all.run(&format!("CREATE USER {user}@'%' {how}; GRANT ALL ON *.* TO {user}@'%'"))
                        .unwrap();
                    for config in [server.tcp(), server.unix()] {
                        connect(as_user(config.clone(), user, Some(password))).unwrap().run("DO 1").unwrap();
                        let error = refused(as_user(config.clone(), user, Some("hunter2")));
                        assert_eq!(error.code().0, "1045/28000", "{error}");
                        assert!(password::is_missing(&refused(as_user(config, user, None))));
                    }
                }
            }
            // A server of KELVIN_MYSQL_BASE may come without its plugins.
            Err(error) => assert!(error.code().0 == "1126/HY000" && !is_installed(), "{error}"),
        }
        // The system user of that name, regardless of who runs this.
        let me = Command::new("id").arg("-un").output().unwrap();
        let me = String::from_utf8(me.stdout).unwrap().trim().to_owned();
        all.run(&format!(
            "CREATE USER IF NOT EXISTS '{me}'@localhost; ALTER USER '{me}'@localhost IDENTIFIED VIA unix_socket; \
             GRANT ALL ON *.* TO '{me}'@localhost"
        ))
        .unwrap();
        connect(as_user(server.unix(), &me, None)).unwrap();
        assert_eq!(refused(as_user(server.tcp(), &me, Some("x"))).class(), ErrorClass::Authentication);
    }
}

fn openssl(directory: &Path, arguments: &str) {
    let done =
        Command::new("openssl").args(arguments.split_whitespace()).current_dir(directory).output().unwrap();
    assert!(done.status.success(), "openssl {arguments}: {}", String::from_utf8_lossy(&done.stderr));
}

/// A root, and a certificate for "localhost" signed by it.
fn certificates(directory: &Path) {
    openssl(
        directory,
        "req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=test-ca",
    );
    openssl(directory, "req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj /CN=x");
    fs::write(directory.join("san"), "subjectAltName=DNS:localhost\n").unwrap();
    openssl(
        directory,
        "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile san -out server.crt",
    );
}

#[test]
fn tls_is_as_strict_as_asked() {
    let files = tempfile::tempdir().unwrap();
    certificates(files.path());
    let server = Server::start_with(&["--ssl-cert={}/server.crt", "--ssl-key={}/server.key"], |directory| {
        for name in ["server.crt", "server.key"] {
            fs::copy(files.path().join(name), directory.join(name)).unwrap();
            give_away(&directory.join(name));
        }
    });
    let root = files.path().join("ca.pem");
    let with = |host: &str, mode: SslMode, trusted: bool| Config {
        host: Host::Tcp(host.into()),
        ssl_mode: mode,
        ssl_root_certificate: trusted.then(|| root.clone()),
        ..server.tcp()
    };
    for (config, expected) in [
        (with("127.0.0.1", SslMode::Disable, false), Some(false)),
        (with("127.0.0.1", SslMode::Prefer, false), Some(true)),
        (with("127.0.0.1", SslMode::Require, false), Some(true)),
        (with("127.0.0.1", SslMode::VerifyCa, true), Some(true)),
        (with("localhost", SslMode::VerifyFull, true), Some(true)),
        (with("127.0.0.1", SslMode::VerifyFull, true), None),
        (with("localhost", SslMode::VerifyFull, false), None),
    ] {
        let shown = config.to_string();
        match connect(config) {
            Ok(mut session) => {
                assert_eq!(Some(encrypted(&mut *session)), expected, "{shown}");
                let long = "y".repeat(100_000);
                let rows = session.query(&format!("SELECT '{long}'")).unwrap();
                assert_eq!(rows.text(0, 0).unwrap(), long);
            }
            Err(error) => assert!(expected.is_none() && error.message().contains("TLS"), "{shown}: {error}"),
        }
    }
    // Another authority's root.
    openssl(
        files.path(),
        "req -x509 -newkey rsa:2048 -nodes -keyout x.key -out ca.pem -days 2 -subj /CN=other",
    );
    assert!(refused(with("localhost", SslMode::VerifyCa, true)).message().contains("TLS"));
    // A statement is cancelled over TLS too.
    let mut session = connect(with("127.0.0.1", SslMode::Require, false)).unwrap();
    let cancel = session.cancel();
    let thread = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        cancel.cancel().unwrap();
    });
    let _ = session.query("SELECT SLEEP(60)");
    thread.join().unwrap();
    assert!(!session.is_broken());
}

#[test]
fn a_password_goes_over_the_wire_only_under_tls_or_for_the_servers_key() {
    if is_mariadb() {
        // MariaDB has no caching_sha2_password before 12.1, and a separate certificate making since 11.4.
        let server = Server::start_with(&["--skip-ssl"], |_| {});
        let error = refused(Config { ssl_mode: SslMode::Require, ..server.tcp() });
        assert!(error.message().contains("has no TLS"), "{error}");
        return;
    }
    let server = Server::start();
    let mut all = server.session();
    all.run("CREATE USER sha@'%' IDENTIFIED WITH caching_sha2_password BY 'pä ss'").unwrap();
    let mut with = |mode: SslMode, change: &dyn Fn(&mut Config)| {
        // The server clears its cache of authenticated users: the next login needs the whole password.
        all.run("FLUSH PRIVILEGES").unwrap();
        let mut config =
            Config {
                ssl_mode: mode, database: String::new(), ..as_user(server.tcp(), "sha", Some("pä ss"))
            };
        change(&mut config);
        config
    };
    let error = refused(with(SslMode::Disable, &|_| ()));
    assert!(error.message().contains("without TLS") && error.help().unwrap().contains("sslmode"), "{error}");
    connect(with(SslMode::Require, &|_| ())).unwrap();
    connect(Config {
        ssl_mode: SslMode::Disable,
        ..as_user(Config { database: String::new(), ..server.tcp() }, "sha", Some("pä ss"))
    })
    .expect("the fast way");
    connect(with(SslMode::Disable, &|config| config.get_server_public_key = true)).unwrap();
    let key = server.directory().join("data/public_key.pem");
    connect(with(SslMode::Disable, &|config| config.server_public_key = Some(key.clone()))).unwrap();
    let error = refused(with(SslMode::Disable, &|config| {
        config.get_server_public_key = true;
        config.password = Some(Password::new("wrong"));
    }));
    assert_eq!(error.code().0, "1045/28000", "{error}");
    let mut unix = as_user(server.unix(), "sha", Some("pä ss"));
    unix.database = String::new();
    connect(unix).unwrap();
}

/// A listener that sends this to every client, and then is silent.
fn listener(greeting: &'static [u8]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            let _ = socket.write_all(greeting);
            std::mem::forget(socket);
        }
    });
    port
}

#[test]
fn what_is_not_mysql_is_found_out_in_time() {
    let at = |port: u16| {
        let mut config = Config::new(Host::Tcp("127.0.0.1".into()), port, "u", "d");
        config.connect_timeout = Duration::from_secs(2);
        config
    };
    let began = Instant::now();
    for (greeting, words) in [
        (&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], "HTTP/1.1 400"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "SSH-2.0"),
        (b"\x05\0\0\0\x09abcd", "not a MySQL or MariaDB server"),
        (b"", "no response"),
        (b"\x17\0\0\0\xff\x10\x04Too many connections", "Too many connections"),
    ] {
        let error = refused(at(listener(greeting)));
        assert!(error.message().contains(words), "{words}: {error}");
    }
    let postgres = support::Server::start();
    let error = refused(at(postgres.port));
    assert!(error.message().contains("this is a PostgreSQL server"), "{error}");
    assert!(began.elapsed() < Duration::from_mins(1));
    // And the other way round.
    let mysql = Server::start();
    let config = kelvin_database::postgres::Config::new(
        kelvin_database::postgres::Host::Tcp("127.0.0.1".into()),
        mysql.port,
        "u",
        "d",
    );
    let error = kelvin_database::postgres::PostgresEngine::new(config).connect().map(drop).unwrap_err();
    assert!(error.message().contains("not a PostgreSQL server"), "{error}");
}

/// Forwards bytes, and changes one that the server sends.
fn garbling(port: u16, at: usize) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let mut server = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (mut from_client, mut to_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut from_client, &mut to_server);
            let _ = to_server.shutdown(std::net::Shutdown::Both);
        });
        let (mut seen, mut buffer) = (0, [0; 4096]);
        while let Ok(count @ 1..) = server.read(&mut buffer) {
            if let Some(byte) = at.checked_sub(seen).and_then(|at| buffer[..count].get_mut(at)) {
                *byte ^= 0x5a;
            }
            seen += count;
            if client.write_all(&buffer[..count]).is_err() {
                return;
            }
        }
        let _ = client.shutdown(std::net::Shutdown::Both);
    });
    own
}

#[test]
fn garbled_packets_end_in_an_error_or_a_value_and_never_hang() {
    let server = Server::start();
    let (mut errors, mut values) = (0, 0);
    for at in 0..400 {
        let began = Instant::now();
        let mut config = server.tcp();
        config.host = Host::Tcp("127.0.0.1".into());
        config.port = garbling(server.port, at);
        config.connect_timeout = Duration::from_secs(1);
        let outcome = connect(config).and_then(|mut session| {
            session.set_timeout(Some(Duration::from_millis(300)))?;
            let statement = session.prepare("SELECT $1, 'text', 1.25")?;
            let mut rows = kelvin_database::Rows::new();
            session.execute(statement, &[7.into()], &mut rows)?;
            rows.text(0, 1).map(drop)
        });
        if outcome.is_ok() {
            values += 1;
        } else {
            errors += 1;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "byte {at}");
    }
    assert!(errors > 50 && values > 50, "{errors} errors, {values} values");
}

#[test]
fn a_server_that_is_killed_and_restarted_is_reached_again() {
    let mut server = Server::start();
    let mut session = server.session();
    let thread = std::thread::spawn(move || {
        let error = session.query("SELECT SLEEP(60)").unwrap_err();
        (error.class(), session.is_broken())
    });
    let mut watcher = server.session();
    while watcher
        .query("SELECT count(*) FROM information_schema.processlist WHERE info LIKE 'SELECT SLEEP%'")
        .unwrap()
        .int(0, 0)
        .unwrap()
        == 0
    {
        std::thread::sleep(Duration::from_millis(20));
    }
    server.kill();
    assert_eq!(thread.join().unwrap(), (ErrorClass::ConnectionLost, true));
    assert_eq!(watcher.query("SELECT 1").unwrap_err().class(), ErrorClass::ConnectionLost);
    assert_eq!(refused(server.unix()).class(), ErrorClass::ConnectionLost);
    server.restart();
    server.session().run("DO 1").unwrap();
    // One connection more than the server takes.
    let mut all = server.session();
    all.run("SET GLOBAL max_connections = 10").unwrap();
    let mut open = Vec::new();
    let error = loop {
        assert!(open.len() < 20);
        match connect(as_user(server.tcp(), "kelvin", Some("secret"))) {
            Ok(session) => open.push(session),
            Err(error) => break error,
        }
    };
    assert!(
        error.code().0.starts_with("1040") && error.help().unwrap().contains("max_connections"),
        "{error}"
    );
    // A connection that was killed reports it.
    let id = open[0].query("SELECT connection_id()").unwrap().int(0, 0).unwrap();
    all.run(&format!("KILL {id}")).unwrap();
    assert_eq!(open[0].query("SELECT 1").unwrap_err().class(), ErrorClass::ConnectionLost);
    assert!(open[0].is_broken());
}

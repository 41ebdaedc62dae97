//! Connecting: socket, greeting, TLS, login, and what every session sets.

use std::time::Instant;

use super::inbox::Inbox;
use super::packet::{Greeting, capability};
use super::session::MysqlSession;
use super::wire;
use super::{Config, Host, SslMode, authentication, error};
use crate::client::attempts;
use crate::process_sessions::{PROGRAM, session_name};
use crate::stream::{Socket, Stream, connect, tls};
use crate::{Error, ErrorClass, Result, Session};

/// utf8mb4 with a collation that both products have.
const UTF8MB4_GENERAL_CI: u8 = 45;

/// What every session sets: times are in UTC, a value that does not fit is an error, and a statement outside of a
/// transaction commits by itself.
const SETTINGS: &str = "SET autocommit=1, time_zone='+00:00', \
                        sql_mode=CONCAT(@@SESSION.sql_mode, ',STRICT_ALL_TABLES')";

/// A session that is ready for statements.
pub(crate) fn connect(config: &Config) -> Result<MysqlSession> {
    let deadline = Instant::now() + config.connect_timeout;
    let session = attempts(config.ssl_mode, may_be_tls, |mode| attempt(config, mode, deadline));
    session.map_err(|e| e.context(&format!("cannot connect to {} at {}", config.product, config.address())))
}

fn may_be_tls(error: &Error) -> bool {
    error.code().0.is_empty() && error.class() == ErrorClass::Protocol
}

/// One try. An error says whether TLS had been begun and had not succeeded yet.
fn attempt(
    config: &Config,
    mode: SslMode,
    deadline: Instant,
) -> std::result::Result<MysqlSession, (Error, bool)> {
    let socket = open(config, deadline).map_err(|e| (e, false))?;
    let mut negotiating = false;
    start(socket, config, mode, deadline, &mut negotiating).map_err(|e| (e, negotiating))
}

/// Opens the socket.
pub(crate) fn open(config: &Config, deadline: Instant) -> Result<Socket> {
    match &config.host {
        Host::Unix(path) => connect::open_unix(path, deadline),
        Host::Tcp(name) => connect::open_tcp(name, config.port, deadline),
    }
}

/// Makes a session of a socket. `negotiating` is true while TLS is negotiated.
pub(crate) fn start(
    socket: Socket,
    config: &Config,
    mode: SslMode,
    deadline: Instant,
    negotiating: &mut bool,
) -> Result<MysqlSession> {
    let mut stream = Stream::new(socket, deadline);
    let mut inbox = Inbox::new();
    let greeting = greet(&mut stream, &mut inbox)?;
    let wanted = wanted(&greeting, config);
    let encrypts = mode != SslMode::Disable && !stream.is_unix();
    if encrypts && greeting.capabilities & capability::SSL != 0 {
        encrypt(&mut stream, &mut inbox, config, wanted, negotiating)?;
    } else if encrypts && mode != SslMode::Prefer {
        return Err(Error::usage(format!("the server has no TLS, which sslmode={} requires", mode.name()))
            .with_help("configure a certificate on the server (ssl_cert, ssl_key), or use sslmode=prefer"));
    }
    let encrypted = if stream.tls().is_some() { capability::SSL } else { 0 };
    respond(&mut stream, &mut inbox, config, &greeting, wanted | encrypted)?;
    authentication::log_in(&mut stream, &mut inbox, config, &greeting)?;
    inbox.trust();
    let mut session = MysqlSession::new(stream, inbox, &greeting, wanted, config);
    session.simple(SETTINGS, None)?;
    session.stream.connected()?;
    session.set_timeout(None)?;
    Ok(session)
}

/// Waits for the server's greeting. What comes from another kind of server, or does not come, is explained.
fn greet(stream: &mut Stream, inbox: &mut Inbox) -> Result<Greeting> {
    let packet = match inbox.next(stream) {
        Ok(packet) => packet,
        Err(error) if error.class() == ErrorClass::Timeout => return Err(silent(stream, inbox, error)),
        Err(error) if error.class() == ErrorClass::Protocol => {
            return Err(not_mysql(inbox.buffer.unread()));
        }
        Err(error) => return Err(error),
    };
    match inbox.body(packet.clone()) {
        body @ [0xff, ..] => Err(error::from_packet(body).0),
        body => {
            let greeting = Greeting::parse(body).ok_or_else(|| not_mysql(body))?;
            if greeting.capabilities & capability::PROTOCOL_41 == 0
                || greeting.capabilities & capability::SECURE_CONNECTION == 0
            {
                return Err(Error::protocol(format!("server version {} is too old", greeting.version)));
            }
            // Further bytes before we have said anything were not sent by a server.
            if !inbox.buffer.unread().is_empty() {
                return Err(not_mysql(inbox.buffer.unread()));
            }
            Ok(greeting)
        }
    }
}

/// A server that waits for the client to begin: PostgreSQL does, and says so when asked for TLS in its way.
fn silent(stream: &mut Stream, inbox: &mut Inbox, error: Error) -> Error {
    const POSTGRES_ASKS_FOR_TLS: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];
    const PATIENCE: std::time::Duration = std::time::Duration::from_secs(1);
    stream.extend(PATIENCE);
    let asked =
        stream.send(&POSTGRES_ASKS_FOR_TLS, &mut inbox.buffer).and_then(|()| stream.fill(&mut inbox.buffer));
    match (asked, inbox.buffer.unread()) {
        (Ok(()), [b'S' | b'N']) => Error::protocol("this is a PostgreSQL server, not MySQL or MariaDB")
            .with_help("check host and port, or begin the URL with postgres://"),
        _ => error.with_help("a MySQL or MariaDB server sends a greeting first; check host and port"),
    }
}

/// The peer sent something that MySQL would not.
fn not_mysql(bytes: &[u8]) -> Error {
    let shown: Vec<u8> = bytes.iter().copied().take(40).collect();
    Error::protocol(format!(
        "this is not a MySQL or MariaDB server: it sent {:?}",
        String::from_utf8_lossy(&shown)
    ))
    .with_help("check host and port")
}

/// What client and server will both use.
fn wanted(greeting: &Greeting, config: &Config) -> u64 {
    use capability as c;
    let mut all = c::FOUND_ROWS
        | c::LONG_FLAG
        | c::LOCAL_FILES
        | c::PROTOCOL_41
        | c::TRANSACTIONS
        | c::SECURE_CONNECTION
        | c::MULTI_STATEMENTS
        | c::MULTI_RESULTS
        | c::PS_MULTI_RESULTS
        | c::PLUGIN_AUTH
        | c::CONNECT_ATTRS
        | c::PLUGIN_AUTH_LENENC
        | c::DEPRECATE_EOF;
    if !config.database.is_empty() {
        all |= c::CONNECT_WITH_DB;
    }
    if greeting.capabilities & c::MYSQL == 0 && greeting.capabilities & c::DEPRECATE_EOF != 0 {
        all |= c::CACHE_METADATA | c::BULK;
    } else {
        all |= c::MYSQL;
    }
    // A database is named whether or not the server says that it can be.
    all & (greeting.capabilities | c::MYSQL | c::CONNECT_WITH_DB)
}

/// The head of the client's first packet.
fn head(capabilities: u64) -> [u8; 32] {
    let mut head = [0; 32];
    head[..4].copy_from_slice(&(capabilities as u32).to_le_bytes());
    head[4..8].copy_from_slice(&(1_u32 << 30).to_le_bytes());
    head[8] = UTF8MB4_GENERAL_CI;
    // MariaDB's own, which MySQL leaves zero.
    head[28..].copy_from_slice(&((capabilities >> 32) as u32).to_le_bytes());
    head
}

fn encrypt(
    stream: &mut Stream,
    inbox: &mut Inbox,
    config: &Config,
    wanted: u64,
    negotiating: &mut bool,
) -> Result<()> {
    let Host::Tcp(host) = &config.host else {
        return Err(Error::protocol("TLS was requested on a unix socket"));
    };
    let connection = tls::connection(host, config.ssl_mode, config.ssl_root_certificate.as_deref())?;
    *negotiating = true;
    let sequence = inbox.next_sequence();
    let mut out = Vec::new();
    let start = wire::open(&mut out);
    out.extend_from_slice(&head(wanted | capability::SSL));
    wire::close(&mut out, start, sequence);
    stream.send(&out, &mut inbox.buffer)?;
    stream.start_tls(connection)?;
    *negotiating = false;
    inbox.expect_after(sequence);
    Ok(())
}

fn respond(
    stream: &mut Stream,
    inbox: &mut Inbox,
    config: &Config,
    greeting: &Greeting,
    capabilities: u64,
) -> Result<()> {
    let sequence = inbox.next_sequence();
    let mut out = Vec::new();
    let start = wire::open(&mut out);
    out.extend_from_slice(&head(capabilities));
    for text in [&config.user, &config.database] {
        if text.contains('\0') {
            return Err(Error::usage("user and database cannot contain a zero byte"));
        }
    }
    out.extend_from_slice(config.user.as_bytes());
    out.push(0);
    let answer = authentication::first_answer(&greeting.plugin, config, &greeting.nonce);
    wire::put_bytes(&mut out, &answer);
    if capabilities & capability::CONNECT_WITH_DB != 0 {
        out.extend_from_slice(config.database.as_bytes());
        out.push(0);
    }
    if capabilities & capability::PLUGIN_AUTH != 0 {
        out.extend_from_slice(greeting.plugin.as_bytes());
        out.push(0);
    }
    if capabilities & capability::CONNECT_ATTRS != 0 {
        let mut attributes = Vec::new();
        for (name, value) in [("_client_name", PROGRAM), ("program_name", session_name())] {
            wire::put_bytes(&mut attributes, name.as_bytes());
            wire::put_bytes(&mut attributes, value.as_bytes());
        }
        wire::put_bytes(&mut out, &attributes);
    }
    wire::close(&mut out, start, sequence);
    inbox.expect_after(sequence);
    stream.send(&out, &mut inbox.buffer)
}

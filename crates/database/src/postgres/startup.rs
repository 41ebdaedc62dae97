//! Connecting: socket, TLS, startup message, login, and the statements every session has.

use std::time::Instant;

use bytes::BytesMut;
use postgres_protocol::message::frontend;

use super::authentication::{self, not_postgres};
use super::backend;
use super::cancel::Key;
use super::execute::CONTROLS;
use super::inbox::Inbox;
use super::session::PostgresSession;
use super::{Config, Host, SslMode, error};
use crate::client::attempts;
use crate::stream::{Socket, Stream, connect, tls};
use crate::{Error, ErrorClass, Result, Session};

/// A session that is ready for statements.
pub(crate) fn connect(config: &Config) -> Result<PostgresSession> {
    let deadline = Instant::now() + config.connect_timeout;
    let session = attempts(config.ssl_mode, may_be_tls, |mode| attempt(config, mode, deadline));
    session.map_err(|e| e.context(&format!("cannot connect to PostgreSQL at {}", config.address())))
}

fn may_be_tls(error: &Error) -> bool {
    error.code().0 == "28000" || error.code().0.is_empty() && error.class() == ErrorClass::Protocol
}

/// One try. An error says whether TLS had been begun.
fn attempt(
    config: &Config,
    mode: SslMode,
    deadline: Instant,
) -> std::result::Result<PostgresSession, (Error, bool)> {
    let mut stream = Stream::new(open(config, deadline).map_err(|e| (e, false))?, deadline);
    let mut inbox = Inbox::new();
    let mut begun = false;
    let encrypted = encrypt(&mut stream, &mut inbox, config, mode, &mut begun);
    let session = encrypted.and_then(|()| start(stream, inbox, config));
    session.map_err(|e| (e, begun))
}

/// Opens the socket.
pub(crate) fn open(config: &Config, deadline: Instant) -> Result<Socket> {
    match &config.host {
        Host::Unix(_) => connect::open_unix(&config.socket_path(), deadline),
        Host::Tcp(name) => connect::open_tcp(name, config.port, deadline),
    }
}

/// Asks for TLS where `mode` wants it. `begun` becomes true with the handshake.
pub(crate) fn encrypt(
    stream: &mut Stream,
    inbox: &mut Inbox,
    config: &Config,
    mode: SslMode,
    begun: &mut bool,
) -> Result<()> {
    if mode == SslMode::Disable || stream.is_unix() {
        return Ok(());
    }
    let mut request = BytesMut::new();
    frontend::ssl_request(&mut request);
    stream.send(&request, &mut inbox.buffer)?;
    let count = stream.receive(inbox.buffer.space()?)?;
    inbox.buffer.filled(count);
    match inbox.buffer.unread() {
        [] => {
            return Err(Error::connection_lost(
                "the server closed the connection in response to the TLS request",
            ));
        }
        [b'S'] => {}
        [b'N'] if mode == SslMode::Prefer => {
            inbox.buffer.clear();
            return Ok(());
        }
        [b'N'] => {
            return Err(Error::usage(format!(
                "the server has no TLS, which sslmode={} requires",
                mode.name()
            ))
            .with_help("enable ssl in postgresql.conf, or use sslmode=prefer"));
        }
        // Anything after the one byte was not encrypted and could have been slipped in (CVE-2021-23222).
        [b'S' | b'N', ..] => {
            let unread = inbox.buffer.unread();
            return Err(not_postgres(unread));
        }
        [b'E', ..] => {
            let (tag, body) = inbox.next(stream)?;
            let body = inbox.body(body);
            return Err(if tag == b'E' { error::from_response(body).0 } else { not_postgres(body) });
        }
        other => return Err(not_postgres(other)),
    }
    inbox.buffer.clear();
    *begun = true;
    let Host::Tcp(host) = &config.host else {
        return Err(Error::protocol("TLS was requested on a unix socket"));
    };
    stream.start_tls(tls::connection(host, config.ssl_mode, config.ssl_root_certificate.as_deref())?)
}

fn start(mut stream: Stream, mut inbox: Inbox, config: &Config) -> Result<PostgresSession> {
    let mut out = BytesMut::new();
    let mut parameters = vec![
        ("user", config.user.as_str()),
        ("database", &config.database),
        ("application_name", config.session_name()),
        ("client_encoding", "UTF8"),
        ("DateStyle", "ISO"),
    ];
    if let Some(options) = &config.options {
        parameters.push(("options", options));
    }
    frontend::startup_message(parameters, &mut out).map_err(|_| {
        Error::usage("user, database, application name and options cannot contain a zero byte")
    })?;
    stream.send(&out, &mut inbox.buffer)?;
    authentication::log_in(&mut stream, &mut inbox, config).map_err(|e| explain(e, &inbox))?;
    inbox.trust();
    let key = await_ready(&mut stream, &mut inbox)?;
    let mut session = PostgresSession::new(stream, inbox, key, config);
    session.prepare_all(&CONTROLS)?;
    session.stream.connected()?;
    session.set_timeout(None)?;
    Ok(session)
}

/// What begins with no message of a login comes from another kind of server, and identifies it better than the
/// impossible length or the silence that it led to.
fn explain(error: Error, inbox: &Inbox) -> Error {
    match inbox.buffer.unread() {
        // What we refuse ourselves in a login, we have understood.
        _ if error.class() == ErrorClass::Authentication => error,
        seen @ [tag, ..] if error.code().0.is_empty() && !b"RENv".contains(tag) => not_postgres(seen),
        _ => error,
    }
}

/// After AuthenticationOk: settings and the key for cancel requests, until the server is ready.
fn await_ready(stream: &mut Stream, inbox: &mut Inbox) -> Result<Option<Key>> {
    let mut key = None;
    loop {
        let (tag, body) = inbox.next(stream)?;
        let body = inbox.body(body);
        match tag {
            b'K' => key = Some(Key::parse(body)?),
            b'S' | b'N' | b'A' | b'v' => {}
            b'E' => return Err(error::from_response(body).0),
            b'Z' => return backend::ready(body).map(|_| key),
            other => {
                return Err(Error::protocol(format!(
                    "a message of type {:?} arrived after the login",
                    other as char
                )));
            }
        }
    }
}

//! Connecting: socket, TLS, startup message, login, and the statements every session has.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use kelvin_fiber::Source;
use postgres_protocol::message::frontend;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect as connect_socket, socket_with,
};

use super::authentication::{self, not_postgres};
use super::backend;
use super::cancel::Key;
use super::execute::CONTROLS;
use super::inbox::Inbox;
use super::session::PostgresSession;
use super::stream::{Socket, Stream};
use super::{Config, Host, SslMode, error, tls};
use crate::{Error, ErrorClass, Result, Session};

/// A session that is ready for statements.
pub(crate) fn connect(config: &Config) -> Result<PostgresSession> {
    let deadline = Instant::now() + config.connect_timeout;
    let first = match attempt(config, config.ssl_mode, deadline) {
        Err((error, true)) if config.ssl_mode == SslMode::Prefer && may_be_tls(&error) => {
            // As libpq: what fails under TLS may work without, when TLS was only preferred.
            attempt(config, SslMode::Disable, deadline).map_err(|_| error)
        }
        other => other.map_err(|(error, _)| error),
    };
    first.map_err(|e| e.context(&format!("cannot connect to PostgreSQL at {}", config.place())))
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

const STARTED: &str = "is the server running, and does it listen there?";

/// Opens the socket.
pub(crate) fn open(config: &Config, deadline: Instant) -> Result<Socket> {
    match &config.host {
        Host::Unix(_) => open_unix(&config.socket_path(), deadline).map(Socket::Unix),
        Host::Tcp(name) => {
            let addresses = addresses(name, config.port)
                .map_err(|e| Error::connection_lost(format!("the host name is not known: {e}")))?;
            open_tcp(&addresses, deadline)
        }
    }
}

/// Looks a host up. The system's look-up blocks for seconds where a name server is away: a fiber has it done in a
/// thread of its own.
fn addresses(name: &str, port: u16) -> std::io::Result<Vec<SocketAddr>> {
    let address = (name.to_owned(), port);
    let look_up = move || address.to_socket_addrs().map(Iterator::collect);
    if !kelvin_fiber::inside() || name.parse::<std::net::IpAddr>().is_ok() {
        return look_up();
    }
    let thread = std::thread::Builder::new().name("look-up".into()).spawn(look_up)?;
    while !thread.is_finished() {
        kelvin_fiber::sleep(Duration::from_millis(1));
    }
    thread.join().unwrap_or_else(|_| Err(std::io::Error::other("the look-up failed")))
}

/// Connects to the first address that answers; each has its share of the time that is left.
pub(crate) fn open_tcp(addresses: &[SocketAddr], deadline: Instant) -> Result<Socket> {
    let mut last = Error::connection_lost("the host name has no address");
    for (index, address) in addresses.iter().enumerate() {
        let rest = u32::try_from(addresses.len() - index).unwrap_or(u32::MAX);
        let left = deadline.saturating_duration_since(Instant::now()) / rest;
        match connect_tcp(address, left.max(Duration::from_millis(1))) {
            Ok(socket) => return tune(socket).map(Socket::Tcp),
            Err(e) => last = error::from_io(&e, &address.to_string()).with_help(STARTED),
        }
    }
    Err(last)
}

/// As `TcpStream::connect_timeout`, for a fiber as well.
fn connect_tcp(address: &SocketAddr, limit: Duration) -> std::io::Result<TcpStream> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    match connect_socket(&socket, address) {
        Ok(()) => {}
        Err(Errno::INPROGRESS | Errno::INTR) => {
            if Source::new().wait_any(&socket, Some(limit))? == (false, false) {
                return Err(std::io::ErrorKind::TimedOut.into());
            }
            rustix::net::sockopt::socket_error(&socket)??;
        }
        Err(e) => return Err(e.into()),
    }
    let socket = TcpStream::from(socket);
    socket.set_nonblocking(false)?;
    Ok(socket)
}

/// The system knows no time-out for this: with the server's queue full a plain `connect` blocks for ever.
fn open_unix(path: &Path, deadline: Instant) -> Result<UnixStream> {
    let failed = |e: std::io::Error| Error::connection_lost(e.to_string()).with_help(STARTED);
    let address = SocketAddrUnix::new(path).map_err(|e| failed(e.into()))?;
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket =
        socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).map_err(|e| failed(e.into()))?;
    loop {
        match connect_socket(&socket, &address) {
            Ok(()) => break,
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) if Instant::now() < deadline => {
                kelvin_fiber::sleep(Duration::from_millis(5));
            }
            Err(Errno::AGAIN) => return Err(error::timeout("waiting for the server to take the connection")),
            Err(e) => return Err(failed(e.into())),
        }
    }
    let socket = UnixStream::from(socket);
    socket.set_nonblocking(false).map_err(failed)?;
    Ok(socket)
}

fn tune(socket: TcpStream) -> Result<TcpStream> {
    let failed = |e: std::io::Error| error::from_io(&e, "setting up the socket");
    socket.set_nodelay(true).map_err(failed)?;
    rustix::net::sockopt::set_socket_keepalive(&socket, true).map_err(|e| failed(e.into()))?;
    Ok(socket)
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
    stream.send(&request, inbox)?;
    let count = stream.receive(inbox.space()?)?;
    inbox.filled(count);
    match inbox.unread() {
        [] => return Err(Error::connection_lost("the server closed the connection when asked for TLS")),
        [b'S'] => {}
        [b'N'] if mode == SslMode::Prefer => {
            inbox.clear();
            return Ok(());
        }
        [b'N'] => {
            return Err(Error::usage(format!(
                "the server has no TLS, which sslmode={} demands",
                mode.name()
            ))
            .with_help("switch ssl on in postgresql.conf, or use sslmode=prefer"));
        }
        // Anything after the one byte was not encrypted and could have been slipped in (CVE-2021-23222).
        [b'S' | b'N', ..] => {
            let unread = inbox.unread();
            return Err(not_postgres(unread));
        }
        [b'E', ..] => {
            let (tag, body) = inbox.next(stream)?;
            let body = inbox.body(body);
            return Err(if tag == b'E' { error::from_response(body).0 } else { not_postgres(body) });
        }
        other => return Err(not_postgres(other)),
    }
    inbox.clear();
    *begun = true;
    stream.start_tls(tls::connection(config)?)
}

fn start(mut stream: Stream, mut inbox: Inbox, config: &Config) -> Result<PostgresSession> {
    let mut out = BytesMut::new();
    let mut parameters = vec![
        ("user", config.user.as_str()),
        ("database", &config.database),
        ("application_name", &config.application_name),
        ("client_encoding", "UTF8"),
        ("DateStyle", "ISO"),
    ];
    if let Some(options) = &config.options {
        parameters.push(("options", options));
    }
    frontend::startup_message(parameters, &mut out)
        .map_err(|_| Error::usage("user, database, application name and options cannot hold a zero byte"))?;
    stream.send(&out, &mut inbox)?;
    authentication::log_in(&mut stream, &mut inbox, config).map_err(|e| explain(e, &inbox))?;
    inbox.trust();
    let key = await_ready(&mut stream, &mut inbox)?;
    let mut session = PostgresSession::new(stream, inbox, key, config);
    session.prepare_all(&CONTROLS)?;
    session.stream.connected()?;
    session.set_timeout(None)?;
    Ok(session)
}

/// What begins with no message of a login comes from another kind of server, and tells which better than the
/// impossible length or the silence that it led to.
fn explain(error: Error, inbox: &Inbox) -> Error {
    match inbox.unread() {
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
                    "a message of type {:?} came after the login",
                    other as char
                )));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_of_a_unix_socket_is_not_waited_for_for_ever() {
        let directory = tempfile::tempdir().unwrap();
        let config = Config::unix(directory.path(), 1, "u", "d");
        let listener =
            socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
        rustix::net::bind(&listener, &SocketAddrUnix::new(config.socket_path()).unwrap()).unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let soon = || Instant::now() + Duration::from_millis(100);
        let mut open_ones = Vec::new();
        let error = loop {
            match open(&config, soon()) {
                Ok(socket) => open_ones.push(socket),
                Err(error) => break error,
            }
            assert!(open_ones.len() < 10);
        };
        assert_eq!(error.class(), ErrorClass::Timeout, "{error}");
        // A place becomes free while it is waited for.
        let thread = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            rustix::net::accept(&listener).unwrap();
            std::thread::sleep(Duration::from_millis(50));
            listener
        });
        open(&config, Instant::now() + Duration::from_mins(1)).unwrap();
        drop(thread.join().unwrap());
        assert_eq!(open(&config, soon()).map(drop).unwrap_err().class(), ErrorClass::ConnectionLost);
    }
}

//! Opening sockets, within a time limit and without blocking other fibers.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use kelvin_fiber::SocketWatch;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect as connect_socket, socket_with,
};

use super::Socket;
use crate::{Error, Result};

const STARTED: &str = "is the server running and listening there?";

/// Looks a host up. The system's look-up blocks for seconds where a name server is unavailable, so a fiber uses a
/// separate thread for it.
fn addresses(name: &str, port: u16) -> std::io::Result<Vec<SocketAddr>> {
    let address = (name.to_owned(), port);
    let look_up = move || address.to_socket_addrs().map(Iterator::collect);
    if !kelvin_fiber::runs_in_fiber() || name.parse::<std::net::IpAddr>().is_ok() {
        return look_up();
    }
    let thread = std::thread::Builder::new().name("look-up".into()).spawn(look_up)?;
    while !thread.is_finished() {
        kelvin_fiber::sleep(Duration::from_millis(1));
    }
    thread.join().unwrap_or_else(|_| Err(std::io::Error::other("the lookup failed")))
}

/// Opens a connection to this host and port.
pub(crate) fn open_tcp(name: &str, port: u16, deadline: Instant) -> Result<Socket> {
    let addresses =
        addresses(name, port).map_err(|e| Error::connection_lost(format!("unknown host name: {e}")))?;
    open_address(&addresses, deadline)
}

/// Connects to the first address that answers; each has its share of the time that is left.
pub(crate) fn open_address(addresses: &[SocketAddr], deadline: Instant) -> Result<Socket> {
    let mut last = Error::connection_lost("the host name has no address");
    for (index, address) in addresses.iter().enumerate() {
        let rest = u32::try_from(addresses.len() - index).unwrap_or(u32::MAX);
        let left = deadline.saturating_duration_since(Instant::now()) / rest;
        match connect_tcp(address, left.max(Duration::from_millis(1))) {
            Ok(socket) => return tune(socket).map(Socket::Tcp),
            Err(e) => last = super::from_io(&e, &address.to_string()).with_help(STARTED),
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
            if SocketWatch::new().wait_any(&socket, Some(limit))? == (false, false) {
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

/// The system has no time-out for this: with the server's queue full a plain `connect` blocks forever.
pub(crate) fn open_unix(path: &Path, deadline: Instant) -> Result<Socket> {
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
            Err(Errno::AGAIN) => return Err(super::timeout("connecting to the server")),
            Err(e) => return Err(failed(e.into())),
        }
    }
    let socket = UnixStream::from(socket);
    socket.set_nonblocking(false).map_err(failed)?;
    Ok(Socket::Unix(socket))
}

fn tune(socket: TcpStream) -> Result<TcpStream> {
    let failed = |e: std::io::Error| super::from_io(&e, "setting up the socket");
    socket.set_nodelay(true).map_err(failed)?;
    rustix::net::sockopt::set_socket_keepalive(&socket, true).map_err(|e| failed(e.into()))?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorClass;

    #[test]
    fn a_full_queue_of_a_unix_socket_is_not_waited_for_for_ever() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        let listener =
            socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
        rustix::net::bind(&listener, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let soon = || Instant::now() + Duration::from_millis(100);
        let mut open_ones = Vec::new();
        let error = loop {
            match open_unix(&path, soon()) {
                Ok(socket) => open_ones.push(socket),
                Err(error) => break error,
            }
            assert!(open_ones.len() < 10);
        };
        assert_eq!(error.class(), ErrorClass::Timeout, "{error}");
        // A slot in the queue becomes free during the wait.
        let thread = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            rustix::net::accept(&listener).unwrap();
            std::thread::sleep(Duration::from_millis(50));
            listener
        });
        open_unix(&path, Instant::now() + Duration::from_mins(1)).unwrap();
        drop(thread.join().unwrap());
        assert_eq!(open_unix(&path, soon()).map(drop).unwrap_err().class(), ErrorClass::ConnectionLost);
    }
}

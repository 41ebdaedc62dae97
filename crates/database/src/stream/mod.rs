//! The socket that every client shares, plain or under TLS.
//!
//! In a thread it blocks; a fiber switches to the next one. `connect` opens it, `tls` encrypts it, and a `Buffer` holds
//! the received bytes until the client's protocol has split them into messages.
//!
//! Sending never blocks while the server waits for this client to read: when a socket does not take all bytes
//! immediately, incoming data are read while sending. Without that, a large batch and its large results would wait for
//! each other.

mod buffer;
pub(crate) mod connect;
mod error;
mod fields;
pub(crate) mod tls;

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use kelvin_fiber::{SocketWatch, WaitResult};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustls::ClientConnection;

pub(crate) use buffer::Buffer;
pub(crate) use error::{from_io, printable, timeout};
pub(crate) use fields::{Fields, too_short};

use crate::{Error, Result};

const SENDING: &str = "sending to the server";
const RECEIVING: &str = "waiting for the server";

pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl AsFd for Socket {
    #[inline]
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(socket) => socket.as_fd(),
            Self::Unix(socket) => socket.as_fd(),
        }
    }
}

impl Socket {
    fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Tcp(socket) => socket.set_read_timeout(timeout),
            Self::Unix(socket) => socket.set_read_timeout(timeout),
        }
    }
}

pub(crate) struct Stream {
    socket: Socket,
    source: SocketWatch,
    /// Whether the last read took all that was there. Only of use to a fiber, which must not wait for bytes that
    /// have come already.
    drained: bool,
    tls: Option<Box<ClientConnection>>,
    timeout: Option<Duration>,
    /// While connecting, all waiting together ends here.
    deadline: Option<Instant>,
    /// The deadline of the current call, set after the first message that does not belong to its answer.
    call_deadline: Option<Instant>,
    /// Waiting for bytes ends after this at the latest, as a time-out, so that the caller can act and continue waiting;
    /// sending does not.
    longest_wait: Option<Duration>,
}

impl Stream {
    pub(crate) fn new(socket: Socket, deadline: Instant) -> Self {
        Self {
            socket,
            source: SocketWatch::new(),
            drained: false,
            tls: None,
            timeout: None,
            deadline: Some(deadline),
            call_deadline: None,
            longest_wait: None,
        }
    }

    pub(crate) fn is_unix(&self) -> bool {
        matches!(self.socket, Socket::Unix(_))
    }

    /// The address that was connected to; `None` for a unix socket.
    pub(crate) fn peer(&self) -> Option<SocketAddr> {
        match &self.socket {
            Socket::Tcp(socket) => socket.peer_addr().ok(),
            Socket::Unix(_) => None,
        }
    }

    /// A message arrived that belongs to no answer: it must not prolong the call without limit. The clock is read here
    /// rather than at every call, since such messages are rare.
    #[cold]
    pub(crate) fn heard_aside(&mut self) -> Result<()> {
        let Some(limit) = self.timeout else { return Ok(()) };
        let now = Instant::now();
        match self.call_deadline {
            None => self.call_deadline = now.checked_add(limit),
            Some(deadline) if now >= deadline => return Err(timeout(RECEIVING)),
            Some(_) => {}
        }
        Ok(())
    }

    /// While connecting: from now on all waiting ends after `limit`.
    pub(crate) fn extend(&mut self, limit: Duration) {
        self.deadline = Some(Instant::now() + limit);
        self.drained = true;
    }

    /// Closes the connection immediately and in both directions.
    pub(crate) fn shut_down(&self) {
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both);
    }

    /// A new request begins: the deadline of the last is over.
    #[cold]
    fn forget_call(&mut self) -> Result<()> {
        self.call_deadline = None;
        self.set_timeout(self.timeout)
    }

    pub(crate) fn tls(&self) -> Option<&ClientConnection> {
        self.tls.as_deref()
    }

    /// Ends the phase with a deadline; from here each wait has the session's time-out.
    pub(crate) fn connected(&mut self) -> Result<()> {
        self.deadline = None;
        self.set_timeout(self.timeout)
    }

    pub(crate) fn set_timeout(&mut self, timeout: Option<Duration>) -> Result<()> {
        // The system refuses zero; the shortest wait is as good.
        self.timeout = timeout.map(|t| t.max(Duration::from_millis(1)));
        let wait = self.shorter(self.timeout);
        self.socket.set_read_timeout(wait).map_err(|e| from_io(&e, "setting the timeout"))
    }

    /// From now on no wait for bytes is longer than this. It ends with a time-out, after which reading can continue.
    pub(crate) fn wake_every(&mut self, wait: Duration) -> Result<()> {
        self.longest_wait = Some(wait);
        self.set_timeout(self.timeout)
    }

    fn shorter(&self, limit: Option<Duration>) -> Option<Duration> {
        match self.longest_wait {
            None => limit,
            Some(wait) => Some(limit.map_or(wait, |limit| limit.min(wait))),
        }
    }

    fn remaining(&self, doing: &str) -> Result<Option<Duration>> {
        match self.deadline.or(self.call_deadline) {
            None => Ok(self.timeout),
            Some(deadline) => match deadline.checked_duration_since(Instant::now()) {
                Some(left) if !left.is_zero() => Ok(Some(left)),
                _ => Err(timeout(doing)),
            },
        }
    }

    /// Waits for bytes and stores at least one; 0 means that the server closed the connection.
    #[inline]
    pub(crate) fn receive(&mut self, space: &mut [u8]) -> Result<usize> {
        if kelvin_fiber::runs_in_fiber() {
            return self.receive_in_fiber(space);
        }
        if self.deadline.is_some() || self.call_deadline.is_some() {
            let left = self.remaining(RECEIVING)?;
            self.socket.set_read_timeout(left).map_err(|e| from_io(&e, RECEIVING))?;
        }
        if self.tls.is_some() {
            return self.receive_tls(space);
        }
        if self.is_unix() {
            // A thread that sleeps in recv on a unix socket is also woken, needlessly, when the peer has read our
            // request; poll sleeps until there are data to read. An additional call is cheaper than an additional
            // context switch.
            let limit = self.remaining(RECEIVING)?;
            self.wait_readable(limit, RECEIVING)?;
        }
        receive_raw(&self.socket, space, RecvFlags::empty()).map_err(|e| from_io(&e, RECEIVING))
    }

    /// [`Stream::receive`] into `inbox`; an end of the connection is an error.
    #[inline]
    pub(crate) fn fill(&mut self, inbox: &mut Buffer) -> Result<()> {
        match self.receive(inbox.space()?)? {
            0 => Err(Error::connection_lost("the server closed the connection")),
            count => {
                inbox.filled(count);
                Ok(())
            }
        }
    }

    fn receive_in_fiber(&mut self, space: &mut [u8]) -> Result<usize> {
        let limit = self.shorter(self.remaining(RECEIVING)?);
        if self.tls.is_some() {
            return self.receive_tls(space);
        }
        loop {
            if self.drained {
                self.wait_readable(limit, RECEIVING)?;
            }
            match receive_raw(&self.socket, space, RecvFlags::DONTWAIT) {
                Ok(count) => {
                    self.drained = count < space.len();
                    return Ok(count);
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => self.drained = true,
                Err(e) => return Err(from_io(&e, RECEIVING)),
            }
        }
    }

    fn wait_readable(&mut self, limit: Option<Duration>, doing: &str) -> Result<()> {
        match self.source.wait_readable(&self.socket, limit) {
            Ok(WaitResult::Ready) => Ok(()),
            Ok(WaitResult::TimedOut) => Err(timeout(doing)),
            Err(e) => Err(from_io(&e, doing)),
        }
    }

    /// Reads what TLS has sent, waiting for it; 0 means that the server closed the connection.
    fn read_wire(&mut self, tls: &mut ClientConnection, doing: &str) -> Result<usize> {
        if !kelvin_fiber::runs_in_fiber() {
            let mut wire = Wire { socket: &self.socket, flags: RecvFlags::empty() };
            return tls.read_tls(&mut wire).map_err(|e| from_io(&e, doing));
        }
        let limit = self.shorter(self.remaining(doing)?);
        loop {
            match tls.read_tls(&mut Wire { socket: &self.socket, flags: RecvFlags::DONTWAIT }) {
                Ok(count) => return Ok(count),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => self.wait_readable(limit, doing)?,
                Err(e) => return Err(from_io(&e, doing)),
            }
        }
    }

    fn receive_tls(&mut self, space: &mut [u8]) -> Result<usize> {
        // Taken out and restored, so that the socket can be waited for meanwhile.
        let Some(mut tls) = self.tls.take() else { return Ok(0) };
        let result = self.receive_from(&mut tls, space);
        self.tls = Some(tls);
        result
    }

    fn receive_from(&mut self, tls: &mut ClientConnection, space: &mut [u8]) -> Result<usize> {
        loop {
            match tls.reader().read(space) {
                Ok(count) => return Ok(count),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                // The peer left without the TLS farewell, as PostgreSQL and MySQL do when they are stopped.
                Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                Err(e) => return Err(from_io(&e, RECEIVING)),
            }
            self.read_wire(tls, RECEIVING)?;
            process(tls, &self.socket)?;
        }
    }

    /// Takes data that have already arrived, without waiting. False when there were none.
    pub(crate) fn receive_ready(&mut self, inbox: &mut Buffer) -> Result<bool> {
        self.drained = false;
        let Some(tls) = self.tls.as_mut() else {
            return match receive_raw(&self.socket, inbox.space()?, RecvFlags::DONTWAIT) {
                Ok(0) => Err(Error::connection_lost("the server closed the connection")),
                Ok(count) => {
                    inbox.filled(count);
                    Ok(true)
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(false),
                Err(e) => Err(from_io(&e, RECEIVING)),
            };
        };
        let mut wire = Wire { socket: &self.socket, flags: RecvFlags::DONTWAIT };
        match tls.read_tls(&mut wire) {
            Ok(_) => process(tls, &self.socket)?,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(e) => return Err(from_io(&e, RECEIVING)),
        }
        loop {
            match tls.reader().read(inbox.space()?) {
                Ok(0) => return Err(Error::connection_lost("the server closed the connection")),
                Ok(count) => inbox.filled(count),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                Err(e) => return Err(from_io(&e, RECEIVING)),
            }
        }
    }

    /// Sends all of `data`; data that the server sends meanwhile go into `inbox`.
    #[inline]
    pub(crate) fn send(&mut self, data: &[u8], inbox: &mut Buffer) -> Result<()> {
        if self.call_deadline.is_some() {
            self.forget_call()?;
        }
        if self.tls.is_some() {
            return self.send_tls(data, inbox);
        }
        // The usual case in one call.
        match send(&self.socket, data, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
            Ok(count) if count == data.len() => Ok(()),
            first => self.send_rest(data, first, inbox),
        }
    }

    #[cold]
    fn send_rest(
        &mut self,
        mut data: &[u8],
        mut sent: rustix::io::Result<usize>,
        inbox: &mut Buffer,
    ) -> Result<()> {
        loop {
            match sent {
                Ok(count) => {
                    data = &data[count..];
                    if data.is_empty() {
                        return Ok(());
                    }
                    self.wait_for_space(inbox)?;
                }
                Err(Errno::AGAIN) => self.wait_for_space(inbox)?,
                Err(Errno::INTR) => {}
                Err(e) => return Err(from_io(&e.into(), SENDING)),
            }
            sent = send(&self.socket, data, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
        }
    }

    fn send_tls(&mut self, mut data: &[u8], inbox: &mut Buffer) -> Result<()> {
        loop {
            let Some(tls) = self.tls.as_mut() else { return Ok(()) };
            // The connection takes as much as its buffer holds, then has to write it.
            let taken = tls.writer().write(data).map_err(|e| from_io(&e, SENDING))?;
            data = &data[taken..];
            while let Some(tls) = self.tls.as_mut().filter(|tls| tls.wants_write()) {
                let mut wire = Wire { socket: &self.socket, flags: RecvFlags::empty() };
                match tls.write_tls(&mut wire) {
                    Ok(_) => {}
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => self.wait_for_space(inbox)?,
                    Err(e) => return Err(from_io(&e, SENDING)),
                }
            }
            if data.is_empty() {
                return Ok(());
            }
        }
    }

    /// Waits until the socket takes more, and reads what comes in meanwhile.
    fn wait_for_space(&mut self, inbox: &mut Buffer) -> Result<()> {
        loop {
            let (readable, writable) = self.wait_any(SENDING)?;
            if readable {
                self.receive_ready(inbox)?;
            }
            if writable {
                return Ok(());
            }
        }
    }

    /// Waits until something may be (read, written).
    fn wait_any(&mut self, doing: &str) -> Result<(bool, bool)> {
        let limit = self.remaining(doing)?;
        match self.source.wait_any(&self.socket, limit) {
            Ok((false, false)) => Err(timeout(doing)),
            Ok(found) => Ok(found),
            Err(e) => Err(from_io(&e, doing)),
        }
    }

    /// Makes `tls` the way of speaking, after its handshake.
    pub(crate) fn start_tls(&mut self, mut tls: ClientConnection) -> Result<()> {
        const DOING: &str = "negotiating TLS";
        while tls.is_handshaking() || tls.wants_write() {
            let left = self.remaining(DOING)?;
            self.socket.set_read_timeout(left).map_err(|e| from_io(&e, DOING))?;
            if tls.wants_write() {
                match tls.write_tls(&mut Wire { socket: &self.socket, flags: RecvFlags::empty() }) {
                    Ok(_) => {}
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                        self.wait_any(DOING)?;
                    }
                    Err(e) => return Err(from_io(&e, DOING)),
                }
            } else {
                if self.read_wire(&mut tls, DOING)? == 0 {
                    return Err(Error::connection_lost(format!("{DOING}: the server closed the connection")));
                }
                process(&mut tls, &self.socket)?;
            }
        }
        self.set_tls(Some(tls));
        Ok(())
    }

    /// Uses `tls` from now on, whose handshake has been made elsewhere, or plain text.
    pub(crate) fn set_tls(&mut self, tls: Option<ClientConnection>) {
        self.tls = tls.map(Box::new);
    }
}

/// Decrypts received data, and answers key updates; a failed answer shows at the next send.
fn process(tls: &mut ClientConnection, socket: &Socket) -> Result<()> {
    let result = tls.process_new_packets();
    if tls.wants_write() {
        let _ = tls.write_tls(&mut Wire { socket, flags: RecvFlags::empty() });
    }
    result.map(drop).map_err(|e| tls::failure(&e))
}

#[inline]
fn receive_raw(socket: &Socket, space: &mut [u8], flags: RecvFlags) -> io::Result<usize> {
    loop {
        match recv(socket, &mut *space, flags) {
            Ok((count, _)) => return Ok(count),
            Err(Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
}

/// The socket as TLS reads and writes it.
struct Wire<'a> {
    socket: &'a Socket,
    flags: RecvFlags,
}

impl Read for Wire<'_> {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        receive_raw(self.socket, space, self.flags)
    }
}

impl Write for Wire<'_> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        loop {
            match send(self.socket, data, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Err(Errno::INTR) => {}
                other => return other.map_err(Into::into),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

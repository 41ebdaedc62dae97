//! A server of the subset of PostgreSQL's protocol that a load driver needs, for any number of connections.
//! It does not parse SQL: a statement that begins with "select" returns one row with one text column, any
//! other statement returns none.

use std::collections::HashMap;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

const LISTENER: u64 = u64::MAX;

/// A longer message is an error.
const LONGEST: usize = 1 << 20;

struct Connection {
    socket: UnixStream,
    started: bool,
    unread: Vec<u8>,
    answer: Vec<u8>,
    /// By name: whether the statement returns a row, and its number of parameters.
    statements: HashMap<Vec<u8>, (bool, u16)>,
    /// Whether the portal returns a row.
    row: bool,
}

/// Serves until it is killed.
pub(crate) fn serve(socket: &Path) -> io::Result<()> {
    let listener = UnixListener::bind(socket)?;
    // The maximum backlog; each connects after the previous one was answered.
    rustix::net::listen(&listener, 4096)?;
    let watch = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&watch, &listener, epoll::EventData::new_u64(LISTENER), epoll::EventFlags::IN)?;
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    rustix::process::setrlimit(
        rustix::process::Resource::Nofile,
        rustix::process::Rlimit { current: limit.maximum, maximum: limit.maximum },
    )?;
    let mut connections: HashMap<u64, Connection> = HashMap::new();
    let (mut next, mut events, mut space) = (0, Vec::with_capacity(1024), vec![0; 64 << 10]);
    loop {
        events.clear();
        match epoll::wait(&watch, spare_capacity(&mut events), None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in events.drain(..) {
            let data = event.data;
            let id = data.u64();
            if id == LISTENER {
                let (socket, _) = listener.accept()?;
                epoll::add(&watch, socket.as_fd(), epoll::EventData::new_u64(next), epoll::EventFlags::IN)?;
                connections.insert(next, Connection::new(socket));
                next += 1;
            } else if let Some(connection) = connections.get_mut(&id)
                && !connection.serve(&mut space)?
            {
                connections.remove(&id);
            }
        }
    }
}

impl Connection {
    fn new(socket: UnixStream) -> Self {
        let (unread, answer, statements) = (Vec::new(), Vec::new(), HashMap::new());
        Self { socket, started: false, unread, answer, statements, row: false }
    }

    /// Answers received messages. Returns `false` when the peer has closed the connection.
    fn serve(&mut self, space: &mut [u8]) -> io::Result<bool> {
        match recv(&self.socket, &mut *space, RecvFlags::DONTWAIT) {
            Ok((0, _)) => return Ok(false),
            Ok((count, _)) => self.unread.extend_from_slice(&space[..count]),
            Err(Errno::AGAIN | Errno::INTR) => return Ok(true),
            Err(_) => return Ok(false),
        }
        let unread = std::mem::take(&mut self.unread);
        let mut rest = unread.as_slice();
        while let Some((tag, body, after)) = cut(rest, self.started)? {
            rest = after;
            if tag == b'X' {
                return Ok(false);
            }
            self.answer(tag, body);
        }
        self.unread.extend_from_slice(rest);
        if !self.answer.is_empty() {
            // The peer is a test driver that reads its answers, so they fit into the socket buffer.
            if send(&self.socket, &self.answer, SendFlags::NOSIGNAL) != Ok(self.answer.len()) {
                return Ok(false);
            }
            self.answer.clear();
        }
        Ok(true)
    }

    fn answer(&mut self, tag: u8, body: &[u8]) {
        match tag {
            0 => {
                self.started = true;
                self.put(b'R', &0_u32.to_be_bytes());
                for (name, value) in [
                    ("server_version", "15.0"),
                    ("server_encoding", "UTF8"),
                    ("client_encoding", "UTF8"),
                    ("standard_conforming_strings", "on"),
                    ("integer_datetimes", "on"),
                ] {
                    self.put(b'S', format!("{name}\0{value}\0").as_bytes());
                }
                self.put(b'K', &[0, 0, 0, 1, 0, 0, 0, 2]);
                self.put(b'Z', b"I");
            }
            b'P' => {
                let (name, text) = text(body);
                let (sql, _) = self::text(text);
                let parameters = String::from_utf8_lossy(sql).matches('$').count() as u16;
                let row = sql.len() > 6 && sql[..6].eq_ignore_ascii_case(b"select");
                self.statements.insert(name.to_vec(), (row, parameters));
                self.put(b'1', &[]);
            }
            b'D' => {
                let (row, parameters) = self.statements.get(text(&body[1..]).0).copied().unwrap_or_default();
                let mut types = parameters.to_be_bytes().to_vec();
                types.extend(std::iter::repeat_n(25_u32.to_be_bytes(), parameters.into()).flatten());
                self.put(b't', &types);
                if row {
                    let mut column = vec![0, 1, b'c', 0, 0, 0, 0, 0, 0, 0];
                    column.extend_from_slice(&25_u32.to_be_bytes());
                    column.extend_from_slice(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0]);
                    self.put(b'T', &column);
                } else {
                    self.put(b'n', &[]);
                }
            }
            b'B' => {
                let (_, after) = text(body);
                self.row = self.statements.get(text(after).0).is_some_and(|statement| statement.0);
                self.put(b'2', &[]);
            }
            b'E' if self.row => {
                self.put(b'D', &[0, 1, 0, 0, 0, 1, b'1']);
                self.put(b'C', b"SELECT 1\0");
            }
            b'E' => self.put(b'C', b"SET\0"),
            b'C' => self.put(b'3', &[]),
            b'S' => self.put(b'Z', b"I"),
            b'Q' => {
                self.put(b'C', b"SET\0");
                self.put(b'Z', b"I");
            }
            _ => {}
        }
    }

    fn put(&mut self, tag: u8, body: &[u8]) {
        self.answer.push(tag);
        self.answer.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
        self.answer.extend_from_slice(body);
    }
}

/// The text up to its zero byte, and the remaining bytes.
fn text(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    (&bytes[..end], bytes.get(end + 1..).unwrap_or_default())
}

/// A message's tag and body, and the remaining bytes.
type Cut<'a> = (u8, &'a [u8], &'a [u8]);

/// Splits off the first message: its tag (0 for the startup message, which has none), its body, and the
/// remaining bytes.
fn cut(bytes: &[u8], started: bool) -> io::Result<Option<Cut<'_>>> {
    let header = if started { 5 } else { 4 };
    let Some(head) = bytes.get(..header) else { return Ok(None) };
    let mut length = [0; 4];
    length.copy_from_slice(&head[header - 4..]);
    let end = u32::from_be_bytes(length) as usize + header - 4;
    if !(header..LONGEST).contains(&end) {
        return Err(io::Error::other("a message of an impossible length"));
    }
    let tag = if started { head[0] } else { 0 };
    Ok(bytes.get(header..end).map(|body| (tag, body, &bytes[end..])))
}

//! A TCP proxy that disturbs connections on command.
//!
//! It has two threads per connection and one that accepts; all end with the proxy. Each fault can be switched
//! on and off while connections exist.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// The interval at which switches are checked.
const LOOK: Duration = Duration::from_millis(10);

/// How bytes from the server to the client are garbled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Garble {
    /// One byte is replaced.
    Change,
    /// One bit is flipped.
    Flip,
    /// Bytes are removed.
    Truncate,
    /// Bytes are inserted.
    Insert,
}

#[derive(Default)]
struct Switches {
    ended: AtomicBool,
    refuse: AtomicBool,
    stall: AtomicBool,
    /// Delay in milliseconds, in each direction.
    delay: AtomicU64,
    cut_within: AtomicBool,
    /// One of this number of answers is garbled; 0 for none.
    garble_every: AtomicU64,
    garble: Mutex<Option<Garble>>,
    random: AtomicU64,
    garbled: AtomicU64,
    connections: Mutex<Vec<Arc<AtomicBool>>>,
}

impl Switches {
    fn random(&self) -> u64 {
        // SplitMix64.
        let mut z = self.random.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn spoil(&self, bytes: &mut Vec<u8>) {
        let every = self.garble_every.load(Ordering::Acquire);
        if every == 0 || bytes.is_empty() || !self.random().is_multiple_of(every) {
            return;
        }
        let Some(garble) = *self.garble.lock().unwrap() else { return };
        self.garbled.fetch_add(1, Ordering::AcqRel);
        let at = self.random() as usize % bytes.len();
        match garble {
            Garble::Change => bytes[at] ^= 1 + (self.random() % 255) as u8,
            Garble::Flip => bytes[at] ^= 1 << (self.random() % 8),
            Garble::Truncate => {
                let end = bytes.len().min(at + 1 + self.random() as usize % 8);
                bytes.drain(at..end);
            }
            Garble::Insert => {
                let more: Vec<u8> = (0..=self.random() % 8).map(|_| self.random() as u8).collect();
                bytes.splice(at..at, more);
            }
        }
    }
}

pub struct Proxy {
    pub port: u16,
    switches: Arc<Switches>,
    acceptor: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Forwards from a free loopback port to the loopback port `server`.
    pub fn start(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let switches = Arc::new(Switches::default());
        let shared = Arc::clone(&switches);
        let acceptor = std::thread::spawn(move || accept(listener, port, server, &shared));
        Self { port, switches, acceptor: Some(acceptor) }
    }

    /// Delays bytes by `length`, in each direction.
    pub fn delay(&self, length: Duration) {
        self.switches.delay.store(length.as_millis() as u64, Ordering::Release);
    }

    /// Forwards nothing in either direction. Connections stay open, and new ones are accepted.
    pub fn stall(&self, on: bool) {
        self.switches.stall.store(on, Ordering::Release);
    }

    /// Refuses new connections.
    pub fn refuse(&self, on: bool) {
        self.switches.refuse.store(on, Ordering::Release);
    }

    /// Resets every connection.
    pub fn cut(&self) {
        for closed in self.switches.connections.lock().unwrap().drain(..) {
            closed.store(true, Ordering::Release);
        }
    }

    /// Closes each connection three bytes before the end of its next answer, including new connections.
    pub fn cut_within(&self, on: bool) {
        self.switches.cut_within.store(on, Ordering::Release);
    }

    /// Garbles one in `every` answers.
    pub fn garble(&self, garble: Garble, every: u64) {
        *self.switches.garble.lock().unwrap() = Some(garble);
        self.switches.garble_every.store(every, Ordering::Release);
    }

    /// Stops garbling.
    pub fn be_honest(&self) {
        self.switches.garble_every.store(0, Ordering::Release);
    }

    /// The number of garbled answers.
    pub fn garbled(&self) -> u64 {
        self.switches.garbled.load(Ordering::Acquire)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.switches.ended.store(true, Ordering::Release);
        self.cut();
        if let Some(thread) = self.acceptor.take() {
            let _ = thread.join();
        }
    }
}

fn accept(listener: TcpListener, port: u16, server: u16, switches: &Arc<Switches>) {
    listener.set_nonblocking(true).unwrap();
    let mut listener = Some(listener);
    let mut pumps: Vec<JoinHandle<()>> = Vec::new();
    while !switches.ended.load(Ordering::Acquire) {
        if switches.refuse.load(Ordering::Acquire) {
            listener = None;
        } else if listener.is_none() {
            listener = TcpListener::bind(("127.0.0.1", port)).ok();
            if let Some(listener) = &listener {
                listener.set_nonblocking(true).unwrap();
            }
        }
        let Some(Ok((client, _))) = listener.as_ref().map(TcpListener::accept) else {
            std::thread::sleep(LOOK);
            continue;
        };
        let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else { continue };
        let closed = Arc::new(AtomicBool::new(false));
        switches.connections.lock().unwrap().push(Arc::clone(&closed));
        for socket in [&client, &server] {
            socket.set_nonblocking(false).unwrap();
            socket.set_nodelay(true).unwrap();
            socket.set_read_timeout(Some(LOOK)).unwrap();
            // Closing resets the connection, so data in transit is lost.
            rustix::net::sockopt::set_socket_linger(socket, Some(Duration::ZERO)).unwrap();
        }
        let (client, server) = (Arc::new(client), Arc::new(server));
        for (from, to, answers) in [(&client, &server, false), (&server, &client, true)] {
            let (from, to) = (Arc::clone(from), Arc::clone(to));
            let (closed, switches) = (Arc::clone(&closed), Arc::clone(switches));
            pumps.push(std::thread::spawn(move || {
                pump(&from, &to, answers, &closed, &switches);
                closed.store(true, Ordering::Release);
            }));
        }
        pumps.retain(|pump| !pump.is_finished());
    }
    for pump in pumps {
        let _ = pump.join();
    }
}

fn pump(mut from: &TcpStream, mut to: &TcpStream, answers: bool, closed: &AtomicBool, switches: &Switches) {
    let mut space = vec![0; 16 << 10];
    while !closed.load(Ordering::Acquire) && !switches.ended.load(Ordering::Acquire) {
        if switches.stall.load(Ordering::Acquire) {
            std::thread::sleep(LOOK);
            continue;
        }
        let count = match from.read(&mut space) {
            Ok(0) => {
                // An orderly end is forwarded as such.
                let _ = rustix::net::sockopt::set_socket_linger(to, None);
                let _ = to.shutdown(Shutdown::Write);
                return;
            }
            Ok(count) => count,
            // Interrupted: the process was stopped and continues.
            Err(e)
                if matches!(
                    e.kind(),
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                ) =>
            {
                continue;
            }
            Err(_) => return,
        };
        let delay = switches.delay.load(Ordering::Acquire);
        if delay > 0 {
            std::thread::sleep(Duration::from_millis(delay));
        }
        // Bytes read when the stall began belong to the stall.
        while switches.stall.load(Ordering::Acquire) && !closed.load(Ordering::Acquire) {
            std::thread::sleep(LOOK);
        }
        let mut bytes = space[..count].to_vec();
        if answers {
            switches.spoil(&mut bytes);
            if switches.cut_within.load(Ordering::Acquire) {
                let _ = rustix::net::sockopt::set_socket_linger(to, None);
                let _ = to.write_all(&bytes[..count.saturating_sub(3)]);
                let _ = to.shutdown(Shutdown::Both);
                return;
            }
        }
        if to.write_all(&bytes).is_err() {
            return;
        }
    }
}

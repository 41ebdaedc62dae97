//! A server that says what a test has written for it, token by token.
#![allow(dead_code, unreachable_pub, missing_docs, clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use kelvin_database::sqlserver::{Config, Encrypt, Password, SqlServerEngine};
use kelvin_database::{Engine, Error, Session};
use rustls::{ServerConfig, ServerConnection};

pub const DONE: u8 = 0xfd;
pub const DONE_PROC: u8 = 0xfe;
pub const DONE_IN_PROC: u8 = 0xff;
pub const FINAL: u16 = 0;
pub const MORE: u16 = 1;
pub const FAILED: u16 = 2;
pub const COUNT: u16 = 0x10;
pub const ATTENTION: u16 = 0x20;
pub const IN_BATCH: u16 = 0x80;

pub fn wide(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

pub fn short(text: &str) -> Vec<u8> {
    [&[text.encode_utf16().count() as u8], &wide(text)[..]].concat()
}

fn token(number: u8, body: &[u8]) -> Vec<u8> {
    [&[number], &(body.len() as u16).to_le_bytes()[..], body].concat()
}

pub fn done(of: u8, status: u16, count: u64) -> Vec<u8> {
    [&[of], &status.to_le_bytes()[..], &[0xc1, 0], &count.to_le_bytes()].concat()
}

pub fn error(number: i32, severity: u8, message: &str) -> Vec<u8> {
    let text = wide(message);
    let body = [
        &number.to_le_bytes()[..],
        &[1, severity],
        &((text.len() / 2) as u16).to_le_bytes(),
        &text,
        &short("srv"),
        &short(""),
        &1_u32.to_le_bytes(),
    ]
    .concat();
    token(0xaa, &body)
}

pub fn environment(kind: u8, new: &[u8]) -> Vec<u8> {
    token(0xe3, &[&[kind, new.len() as u8], new, &[0]].concat())
}

/// Packets have this size from now on.
pub fn packet_size(size: usize) -> Vec<u8> {
    let text = size.to_string();
    token(0xe3, &[&[4][..], &short(&text), &short("4096")].concat())
}

/// A transaction begins under this descriptor.
pub fn began(descriptor: u64) -> Vec<u8> {
    environment(8, &descriptor.to_le_bytes())
}

pub fn rolled_back() -> Vec<u8> {
    environment(10, &[])
}

/// A column of the type int named so, and rows of it.
pub fn ints(name: &str, values: &[i32]) -> Vec<u8> {
    let mut out = vec![0x81, 1, 0, 0, 0, 0, 0, 1, 0, 0x26, 4];
    out.extend(short(name));
    for value in values {
        out.extend([0xd1, 4]);
        out.extend(value.to_le_bytes());
    }
    out
}

/// An OUTPUT parameter of the type int.
pub fn returned(value: i32) -> Vec<u8> {
    let mut out = vec![0xac, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0x26, 4, 4];
    out.extend(value.to_le_bytes());
    out
}

pub fn login_ack(version: u32) -> Vec<u8> {
    token(0xad, &[&[1], &version.to_be_bytes()[..], &short("Scripted"), &[16, 0, 0, 0]].concat())
}

/// A prelogin's answer that says this of encryption.
pub fn prelogin(encryption: u8) -> Vec<u8> {
    let mut out = vec![0, 0, 11, 0, 6, 1, 0, 17, 0, 1, 0xff];
    out.extend([16, 0, 0, 0, 0, 0, encryption]);
    out
}

enum Wire {
    Plain(TcpStream),
    Tls(Box<ServerConnection>, TcpStream),
    None,
}

impl Read for Wire {
    fn read(&mut self, space: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(space),
            Self::Tls(tls, stream) => rustls::Stream::new(&mut **tls, stream).read(space),
            Self::None => Ok(0),
        }
    }
}

impl Write for Wire {
    fn write(&mut self, data: &[u8]) -> std::io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.write(data),
            Self::Tls(tls, stream) => rustls::Stream::new(&mut **tls, stream).write(data),
            Self::None => Ok(0),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The server's end of a connection.
pub struct Peer {
    wire: Wire,
    packet_size: usize,
    /// What the client sent last, its kind before it.
    pub heard: Vec<(u8, Vec<u8>)>,
}

impl Peer {
    fn packet(&mut self) -> Option<(u8, bool, Vec<u8>)> {
        let mut head = [0; 8];
        self.wire.read_exact(&mut head).ok()?;
        let mut body = vec![0; usize::from(u16::from_be_bytes([head[2], head[3]])) - 8];
        self.wire.read_exact(&mut body).ok()?;
        Some((head[0], head[1] & 1 != 0, body))
    }

    /// The client's next message.
    pub fn hear(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut whole = Vec::new();
        loop {
            let (kind, last, body) = self.packet()?;
            whole.extend(body);
            if last {
                self.heard.push((kind, whole.clone()));
                return Some((kind, whole));
            }
        }
    }

    /// Sends these tokens as one message.
    pub fn say(&mut self, tokens: &[Vec<u8>]) {
        self.say_as(4, &tokens.concat());
    }

    pub fn say_as(&mut self, kind: u8, content: &[u8]) {
        let parts: Vec<&[u8]> = content.chunks(self.packet_size - 8).collect();
        let mut out = Vec::new();
        for (at, part) in parts.iter().enumerate() {
            let last = u8::from(at + 1 == parts.len());
            let [high, low] = ((part.len() + 8) as u16).to_be_bytes();
            out.extend([kind, last, high, low, 0, 51, at as u8, 0]);
            out.extend_from_slice(part);
        }
        self.raw(&out);
    }

    pub fn raw(&mut self, bytes: &[u8]) {
        let _ = self.wire.write_all(bytes);
    }

    /// Shakes hands in prelogin packets.
    pub fn encrypt_within(&mut self, config: &Arc<ServerConfig>) -> Option<()> {
        let mut tls = ServerConnection::new(Arc::clone(config)).unwrap();
        while tls.is_handshaking() || tls.wants_write() {
            if tls.wants_write() {
                let mut out = Vec::new();
                while tls.wants_write() {
                    tls.write_tls(&mut out).unwrap();
                }
                self.say_as(0x12, &out);
            } else {
                let (kind, body) = self.hear()?;
                assert_eq!(kind, 0x12);
                let mut rest = &body[..];
                while !rest.is_empty() {
                    tls.read_tls(&mut rest).ok()?;
                    tls.process_new_packets().ok()?;
                }
            }
        }
        self.set_tls(Some(tls));
        Some(())
    }

    /// Shakes hands before all else.
    pub fn encrypt_first(&mut self, config: &Arc<ServerConfig>) -> Option<()> {
        let tls = ServerConnection::new(Arc::clone(config)).unwrap();
        self.set_tls(Some(tls));
        let Wire::Tls(tls, stream) = &mut self.wire else { return None };
        tls.complete_io(stream).ok()?;
        (tls.alpn_protocol() == Some(b"tds/8.0")).then_some(())
    }

    pub fn set_tls(&mut self, tls: Option<ServerConnection>) {
        let (Wire::Plain(stream) | Wire::Tls(_, stream)) = std::mem::replace(&mut self.wire, Wire::None)
        else {
            return;
        };
        self.wire = match tls {
            Some(tls) => Wire::Tls(Box::new(tls), stream),
            None => Wire::Plain(stream),
        };
    }

    /// Prelogin, login and what every session sets, all as it should be, without encryption.
    pub fn let_in(&mut self) -> Option<()> {
        self.hear()?;
        self.say_as(4, &prelogin(2));
        self.welcome(0x7400_0004)
    }

    /// Login and what every session sets.
    pub fn welcome(&mut self, version: u32) -> Option<()> {
        self.hear()?;
        self.take_in(version)
    }

    /// The answer to a login that was heard, and what every session sets.
    pub fn take_in(&mut self, version: u32) -> Option<()> {
        self.say(&[
            login_ack(version),
            packet_size(4096),
            environment(7, &[9, 4, 0xd0, 0, 0x34]),
            done(DONE, FINAL, 0),
        ]);
        self.hear()?;
        self.say(&[done(DONE, MORE, 0), ints("", &[0]), done(DONE, COUNT, 1)]);
        Some(())
    }
}

/// A server that plays `script` for one connection after the other, as often as `times`.
pub struct Scripted {
    pub config: Config,
    thread: JoinHandle<Vec<(u8, Vec<u8>)>>,
}

impl Scripted {
    pub fn new(script: impl Fn(&mut Peer) -> Option<()> + Send + 'static) -> Self {
        Self::with_packets(4096, script)
    }

    pub fn with_packets(
        packet_size: usize,
        script: impl Fn(&mut Peer) -> Option<()> + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut config = Config::new("localhost", listener.local_addr().unwrap().port(), "sa", "db");
        config.password = Some(Password::new("s3crét"));
        config.encrypt = Encrypt::Optional;
        config.connect_timeout = Duration::from_secs(20);
        let thread = std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            let mut peer = Peer { wire: Wire::Plain(stream), packet_size, heard: Vec::new() };
            let _ = script(&mut peer);
            peer.heard
        });
        Self { config, thread }
    }

    pub fn connect(&self) -> Result<Box<dyn Session>, Error> {
        SqlServerEngine::new(self.config.clone()).connect()
    }

    /// What the client has sent, once the script has ended.
    pub fn heard(self) -> Vec<(u8, Vec<u8>)> {
        self.thread.join().unwrap()
    }
}

/// The text of a batch, behind its headers.
pub fn batch_text(body: &[u8]) -> String {
    let units: Vec<u16> =
        body[22..].chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
    String::from_utf16(&units).unwrap()
}

//! A TCP proxy that can cut connections silently, as a network partition does. It records all bytes.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Forwards connections to a port of this host.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    cut: Arc<AtomicBool>,
    recorded: Record,
}

/// The recorded bytes of each direction of each connection.
type Record = Arc<Mutex<Vec<Vec<u8>>>>;

/// Text from a client that cuts the connection.
type Trigger = Option<&'static str>;

impl Proxy {
    pub(crate) fn to(port: u16) -> Self {
        Self::triggered(port, None)
    }

    /// A proxy that cuts the connection as soon as a client sends this text.
    pub(crate) fn cut_by(port: u16, text: &'static str) -> Self {
        Self::triggered(port, Some(text))
    }

    fn triggered(port: u16, trigger: Trigger) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own = listener.local_addr().unwrap().port();
        let cut = Arc::new(AtomicBool::new(false));
        let cuts = Arc::clone(&cut);
        let recorded = Record::default();
        let record = Arc::clone(&recorded);
        // The thread ends with the test's process.
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (Ok(client), Ok(server)) = (client, TcpStream::connect(("127.0.0.1", port))) else {
                    continue;
                };
                for (from, to, trigger) in [(&client, &server, trigger), (&server, &client, None)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let (cut, record) = (Arc::clone(&cuts), Arc::clone(&record));
                    std::thread::spawn(move || pass(from, to, (&cut, trigger), &record));
                }
            }
        });
        Self { port: own, cut, recorded }
    }

    /// The recorded bytes, in one piece for each direction of each connection.
    pub(crate) fn recorded(&self) -> Vec<Vec<u8>> {
        self.recorded.lock().unwrap().clone()
    }

    /// Cuts the connection, or restores it and forwards what was held back.
    pub(crate) fn cut(&self, cut: bool) {
        self.cut.store(cut, Ordering::Release);
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, (cut, trigger): (&AtomicBool, Trigger), record: &Record) {
    let stream = {
        let mut record = record.lock().unwrap();
        record.push(Vec::new());
        record.len() - 1
    };
    let mut buffer = vec![0; 64 << 10];
    loop {
        let read = from.read(&mut buffer).unwrap_or(0);
        let is_sent = |text: &str| buffer[..read].windows(text.len()).any(|part| part == text.as_bytes());
        if trigger.is_some_and(is_sent) {
            cut.store(true, Ordering::Release);
        }
        record.lock().unwrap()[stream].extend_from_slice(&buffer[..read]);
        while cut.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_millis(5));
        }
        if read == 0 || to.write_all(&buffer[..read]).is_err() {
            let _ = to.shutdown(Shutdown::Write);
            return;
        }
    }
}

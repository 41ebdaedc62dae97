//! A TCP connection that can be cut without either side being told: a partition of the network.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Passes connections on to a port of this host.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    cut: Arc<AtomicBool>,
}

/// What cuts the connection by itself when a client sends it.
type Trigger = Option<&'static str>;

impl Proxy {
    pub(crate) fn to(port: u16) -> Self {
        Self::triggered(port, None)
    }

    /// The same, which is cut as soon as a client sends this text.
    pub(crate) fn cut_by(port: u16, text: &'static str) -> Self {
        Self::triggered(port, Some(text))
    }

    fn triggered(port: u16, trigger: Trigger) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own = listener.local_addr().unwrap().port();
        let cut = Arc::new(AtomicBool::new(false));
        let cuts = Arc::clone(&cut);
        // It ends with the test's process.
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (Ok(client), Ok(server)) = (client, TcpStream::connect(("127.0.0.1", port))) else {
                    continue;
                };
                for (from, to, trigger) in [(&client, &server, trigger), (&server, &client, None)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let cut = Arc::clone(&cuts);
                    std::thread::spawn(move || pass(from, to, &cut, trigger));
                }
            }
        });
        Self { port: own, cut }
    }

    /// From now on nothing passes, or everything that waited does.
    pub(crate) fn cut(&self, cut: bool) {
        self.cut.store(cut, Ordering::Release);
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, cut: &AtomicBool, trigger: Trigger) {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let read = from.read(&mut buffer).unwrap_or(0);
        let is_sent = |text: &str| buffer[..read].windows(text.len()).any(|part| part == text.as_bytes());
        if trigger.is_some_and(is_sent) {
            cut.store(true, Ordering::Release);
        }
        while cut.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_millis(5));
        }
        if read == 0 || to.write_all(&buffer[..read]).is_err() {
            let _ = to.shutdown(Shutdown::Write);
            return;
        }
    }
}

//! The listener: one thread that answers one request after another.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::sink::MetricsSink;
use crate::state::State;
use crate::{exposition, text_format};

/// The longest request in bytes, including headers.
const MOST_BYTES: usize = 8 * 1024;

/// Time limit for receiving a request and for sending its answer; other requests wait meanwhile.
const PATIENCE: Duration = Duration::from_secs(2);

/// The address at which a run's metrics can be scraped. Stops listening when dropped.
#[derive(Debug)]
pub struct MetricsEndpoint {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl MetricsEndpoint {
    /// Listens at `address`; port 0 selects a free port. Other hosts can connect only if it is not a loopback
    /// address.
    ///
    /// # Errors
    /// When the address is in use, or is not an address of this host.
    pub fn start(address: SocketAddr) -> std::io::Result<(Self, MetricsSink)> {
        let listener = TcpListener::bind(address).map_err(|error| {
            let why = match error.kind() {
                ErrorKind::AddrInUse => "another program is listening there".to_owned(),
                ErrorKind::AddrNotAvailable => "this host has no such address".to_owned(),
                _ => error.to_string(),
            };
            std::io::Error::new(error.kind(), format!("cannot serve metrics at {address}: {why}"))
        })?;
        let address = listener.local_addr()?;
        let state = Arc::new(Mutex::new(State::default()));
        let stop = Arc::new(AtomicBool::new(false));
        let sink = MetricsSink::new(Arc::clone(&state));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("metrics".into())
            .stack_size(512 * 1024)
            .spawn(move || serve(&listener, &state, &stopped))?;
        Ok((Self { address, stop, thread: Some(thread) }, sink))
    }

    /// The listening address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for MetricsEndpoint {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        // This connection wakes the listener. If it fails, the thread ends with the process.
        let woken = TcpStream::connect_timeout(&self.address, PATIENCE).is_ok();
        if let Some(thread) = self.thread.take().filter(|_| woken) {
            let _panicked = thread.join();
        }
    }
}

fn serve(listener: &TcpListener, state: &Mutex<State>, stop: &AtomicBool) {
    loop {
        let accepted = listener.accept();
        if stop.load(Ordering::Acquire) {
            return;
        }
        match accepted {
            // A client that has disconnected gets no answer.
            Ok((stream, _)) => drop(answer(stream, state)),
            // Probably out of file descriptors; some may be closed soon.
            Err(_) => std::thread::sleep(Duration::from_millis(100)),
        }
    }
}

/// Reads one request and answers it.
fn answer(mut stream: TcpStream, state: &Mutex<State>) -> std::io::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut request = Vec::new();
    let mut buffer = [0; 1024];
    let head = loop {
        if let Some(end) = request.windows(4).position(|four| four == b"\r\n\r\n") {
            request.truncate(end);
            break String::from_utf8_lossy(&request);
        }
        if request.len() > MOST_BYTES {
            return reply(&mut stream, "431 Request Header Fields Too Large", PLAIN, "request too long\n");
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return reply(&mut stream, "408 Request Timeout", PLAIN, "request too slow\n");
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => request.extend_from_slice(&buffer[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    };
    match Request::parse(&head) {
        Request::Metrics { open } => {
            // Copied, so that the run does not wait while the page is written.
            let state = state.lock().unwrap_or_else(PoisonError::into_inner).clone();
            match exposition::text(state) {
                Ok(text) if open => reply(&mut stream, "200 OK", OPEN, &text),
                Ok(text) => reply(&mut stream, "200 OK", CLASSIC, &text_format::from_open(&text)),
                Err(_) => {
                    reply(&mut stream, "500 Internal Server Error", PLAIN, "the metrics cannot be written\n")
                }
            }
        }
        Request::Elsewhere => {
            reply(&mut stream, "404 Not Found", PLAIN, "kelvin's metrics are at /metrics\n")
        }
        Request::NotGet => reply(&mut stream, "405 Method Not Allowed\r\nAllow: GET", PLAIN, "GET only\n"),
        Request::Malformed => reply(&mut stream, "400 Bad Request", PLAIN, "not an HTTP/1 request\n"),
    }
}

const PLAIN: &str = "text/plain; charset=utf-8";
const CLASSIC: &str = "text/plain; version=0.0.4; charset=utf-8";
const OPEN: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

fn reply(stream: &mut TcpStream, status: &str, kind: &str, body: &str) -> std::io::Result<()> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())?;
    stream.flush()
}

/// The requested content.
#[derive(Debug, PartialEq, Eq)]
enum Request {
    /// The metrics; `open` if the client understands OpenMetrics.
    Metrics {
        open: bool,
    },
    Elsewhere,
    NotGet,
    Malformed,
}

impl Request {
    fn parse(head: &str) -> Self {
        let mut lines = head.split("\r\n");
        let mut words = lines.next().unwrap_or_default().split(' ');
        let (Some(method), Some(target), Some(version), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Self::Malformed;
        };
        if !version.starts_with("HTTP/1.") {
            return Self::Malformed;
        }
        if method != "GET" {
            return Self::NotGet;
        }
        if target.split('?').next() != Some("/metrics") {
            return Self::Elsewhere;
        }
        let open = lines.filter_map(|line| line.split_once(':')).any(|(name, value)| {
            name.eq_ignore_ascii_case("accept") && value.contains("application/openmetrics-text")
        });
        Self::Metrics { open }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_metrics_can_be_asked_for() {
        let open = "GET /metrics HTTP/1.1\r\nHost: a\r\nAccept: application/openmetrics-text;version=1.0.0,*/*;q=0.1";
        assert_eq!(Request::parse(open), Request::Metrics { open: true });
        assert_eq!(Request::parse("GET /metrics?a=b HTTP/1.0"), Request::Metrics { open: false });
        assert_eq!(Request::parse("GET /metrics/ HTTP/1.1"), Request::Elsewhere);
        assert_eq!(Request::parse("POST /metrics HTTP/1.1"), Request::NotGet);
        for bad in ["", "GET", "GET /metrics", "GET /metrics HTTP/2", "GET  /metrics HTTP/1.1", "\0 \0 \0"] {
            assert_eq!(Request::parse(bad), Request::Malformed, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn any_head_is_read_without_harm(head: String) {
            Request::parse(&head);
        }
    }
}

//! The socket of a session, which checks between two waits whether its statement is to be cancelled.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::inbox::Source;
use super::packet;
use crate::client::CONNECT_TIMEOUT;
use crate::stream::{Buffer, Stream};
use crate::{Cancel, ErrorClass, Result};

/// The maximum time until a cancellation is noticed.
const WAKE_EVERY: Duration = Duration::from_millis(200);
/// The server has this long to confirm that it has stopped.
const CONFIRM_WITHIN: Duration = CONNECT_TIMEOUT;

/// Asks a session to cancel its statement. Only the session itself can do so, by a packet on its own connection: under
/// TLS no other thread can send on it.
pub(crate) struct CancelRequest(Arc<AtomicBool>);

impl Cancel for CancelRequest {
    fn cancel(&self) -> Result<()> {
        self.0.store(true, Ordering::Relaxed);
        Ok(())
    }
}

pub(crate) struct Link {
    pub(crate) stream: Stream,
    wanted: Arc<AtomicBool>,
    /// A cancellation can be requested.
    wakes: bool,
    timeout: Option<Duration>,
    /// When the wait under way began, once it has been interrupted.
    since: Option<Instant>,
    /// The server has been asked to stop, and has not confirmed it yet.
    pub(crate) attention: bool,
}

impl Link {
    pub(crate) fn new(stream: Stream) -> Self {
        Self { stream, wanted: Arc::default(), wakes: false, timeout: None, since: None, attention: false }
    }

    /// A new request begins: earlier cancellations do not apply to it. Once a cancellation can be requested, the
    /// connection wakes to check for one.
    #[inline]
    pub(crate) fn begin(&mut self) -> Result<()> {
        if !self.wakes {
            if Arc::strong_count(&self.wanted) == 1 {
                return Ok(());
            }
            self.stream.wake_every(WAKE_EVERY)?;
            self.wakes = true;
        }
        self.wanted.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Whether the request under way is to be cancelled.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.wakes && self.wanted.load(Ordering::Relaxed)
    }

    pub(crate) fn set_timeout(&mut self, timeout: Option<Duration>) -> Result<()> {
        self.timeout = timeout;
        self.stream.set_timeout(timeout)
    }

    pub(crate) fn cancel(&self) -> CancelRequest {
        CancelRequest(Arc::clone(&self.wanted))
    }

    /// Whether to continue waiting after an interruption.
    #[cold]
    fn goes_on(&mut self, buffer: &mut Buffer) -> Result<bool> {
        let now = Instant::now();
        // The first interruption comes after the first of these waits.
        let since = *self.since.get_or_insert_with(|| now.checked_sub(WAKE_EVERY).unwrap_or(now));
        if !self.attention && self.is_cancelled() {
            self.stream.send(&[packet::kind::ATTENTION, packet::LAST, 0, 8, 0, 0, 1, 0], buffer)?;
            self.attention = true;
            self.since = Some(now);
            return Ok(true);
        }
        let limit = if self.attention { Some(CONFIRM_WITHIN) } else { self.timeout };
        Ok(limit.is_none_or(|limit| now.duration_since(since) < limit))
    }
}

impl Source for Link {
    #[inline]
    fn fill(&mut self, buffer: &mut Buffer) -> Result<()> {
        loop {
            match self.stream.fill(buffer) {
                Ok(()) => {
                    self.since = None;
                    return Ok(());
                }
                Err(error) if self.wakes && error.class() == ErrorClass::Timeout => {
                    if !self.goes_on(buffer)? {
                        self.since = None;
                        return Err(error);
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }
}

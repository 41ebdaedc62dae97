//! A socket that a thread or a fiber can wait for.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::io::Errno;

use crate::WaitResult;
use crate::context::{self, Context, Request, Signal};

/// The loop's state of one socket, to be stored next to it and dropped with it.
///
/// A fiber's loop is notified once of arriving bytes, and not of bytes that remain. Before waiting, a fiber
/// must have read everything: a read must have returned less than it had room for.
#[derive(Debug, Default)]
pub struct SocketWatch {
    /// The loop that watches the socket; 0 for none.
    watched_by: u64,
    /// Its token in that loop.
    token: u64,
    /// Whether the loop was notified that the other end closed: there will be no further events, so no wait may wait
    /// for one.
    closed: bool,
}

impl SocketWatch {
    /// A socket that is not watched yet.
    pub const fn new() -> Self {
        Self { watched_by: 0, token: 0, closed: false }
    }

    /// Waits until bytes can be read, or until `limit` has passed. May return early; an attempt to read shows
    /// it.
    #[inline]
    pub fn wait_readable(&mut self, socket: impl AsFd, limit: Option<Duration>) -> io::Result<WaitResult> {
        match context::current() {
            None => poll_for(&socket, PollFlags::IN, limit).map(|found| found.0),
            Some(context) => {
                self.watch(&context, &socket)?;
                if self.closed {
                    return Ok(WaitResult::Ready);
                }
                let token = self.token;
                let signal = context.take_unheard(token).unwrap_or_else(|| {
                    let until = limit.and_then(|limit| Instant::now().checked_add(limit));
                    context.suspend(Request::Socket { token, until })
                });
                self.closed = signal == Signal::Closed;
                Ok(if signal == Signal::TimedOut { WaitResult::TimedOut } else { WaitResult::Ready })
            }
        }
    }

    /// Waits until bytes can be read or written. Returns (readable, writable), both false after a time-out.
    pub fn wait_any(&mut self, socket: impl AsFd, limit: Option<Duration>) -> io::Result<(bool, bool)> {
        let both = PollFlags::IN | PollFlags::OUT;
        let Some(context) = context::current() else {
            return poll_for(&socket, both, limit).map(|(_, events)| ready(events));
        };
        let until = limit.and_then(|limit| Instant::now().checked_add(limit));
        loop {
            let (wait, events) = poll_for(&socket, both, Some(Duration::ZERO))?;
            if wait == WaitResult::Ready {
                return Ok(ready(events));
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                return Ok((false, false));
            }
            self.watch(&context, &socket)?;
            let (fd, token) = (socket.as_fd(), self.token);
            let data = epoll::EventData::new_u64(token);
            epoll::modify(&context.epoll, fd, data, watched() | epoll::EventFlags::OUT)?;
            context.suspend(Request::Socket { token, until });
            // This reports existing readable data again.
            epoll::modify(&context.epoll, fd, data, watched())?;
        }
    }

    /// Makes the loop of the running fiber watch the socket, once.
    #[inline]
    fn watch(&mut self, context: &Context, socket: &impl AsFd) -> io::Result<()> {
        if self.watched_by == context.id {
            return Ok(());
        }
        self.begin_watching(context, socket)
    }

    #[cold]
    fn begin_watching(&mut self, context: &Context, socket: &impl AsFd) -> io::Result<()> {
        let fd = socket.as_fd();
        (self.token, self.closed) = (context.new_token(), false);
        let data = epoll::EventData::new_u64(self.token);
        match epoll::add(&context.epoll, fd, data, watched()) {
            // Another `SocketWatch` registered it while it was connecting.
            Err(Errno::EXIST) => epoll::modify(&context.epoll, fd, data, watched())?,
            other => other?,
        }
        self.watched_by = context.id;
        Ok(())
    }
}

/// The events of a loop: arriving bytes and the peer's closing. Errors are always reported.
fn watched() -> epoll::EventFlags {
    epoll::EventFlags::IN | epoll::EventFlags::RDHUP | epoll::EventFlags::ET
}

fn ready(events: PollFlags) -> (bool, bool) {
    let broken = events.intersects(PollFlags::ERR | PollFlags::HUP);
    (events.intersects(PollFlags::IN), broken || events.intersects(PollFlags::OUT))
}

fn poll_for(
    socket: &impl AsFd,
    flags: PollFlags,
    limit: Option<Duration>,
) -> io::Result<(WaitResult, PollFlags)> {
    let limit = limit.map(timespec);
    let mut fds = [PollFd::new(socket, flags)];
    loop {
        match poll(&mut fds, limit.as_ref()) {
            Ok(0) => return Ok((WaitResult::TimedOut, PollFlags::empty())),
            Ok(_) => return Ok((WaitResult::Ready, fds[0].revents())),
            Err(Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
}

pub(crate) fn timespec(length: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(length.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: length.subsec_nanos().into(),
    }
}

//! Blocking code that shares a thread.
//!
//! A virtual user is written as a thread would run it: send, wait for the answer, sleep, continue. Where it
//! waits, it calls [`wait`], [`sleep`] or [`park`] of this crate. In a separate thread that blocks the
//! thread. On an [`EventLoop`] the user becomes a fiber (a stackful coroutine), and waiting gives the thread
//! to the next one. The same code serves both, without futures, an executor or a second driver.
//!
//! Threads are faster with a few users, the loop with many; measurements are in ARCHITECTURE.md.

mod context;
mod event_loop;
mod socket_watch;
mod timers;

use std::time::{Duration, Instant};

pub use event_loop::{EventLoop, Task, Waker};
pub use socket_watch::SocketWatch;

/// The result of a wait for a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitResult {
    /// The socket may be ready; an attempt shows it.
    Ready,
    /// The time is over.
    TimedOut,
}

/// Whether the caller runs as a fiber. A blocking system call would then hold up all fibers of its thread.
#[inline]
pub fn runs_in_fiber() -> bool {
    context::current().is_some()
}

/// Waits for at least `length`.
pub fn sleep(length: Duration) {
    match context::current() {
        None => std::thread::sleep(length),
        Some(context) => {
            let Some(deadline) = Instant::now().checked_add(length) else { return };
            while Instant::now() < deadline {
                context.suspend(context::Request::Sleep { until: deadline });
            }
        }
    }
}

/// Waits for `length`, or until the thread is woken (`unpark`) or the loop is ([`Waker::wake_all`]). It may
/// also return early, so the caller checks its condition again, as with [`std::thread::park_timeout`].
pub fn park(length: Duration) {
    match context::current() {
        None => std::thread::park_timeout(length),
        Some(context) => {
            let Some(until) = Instant::now().checked_add(length) else { return };
            context.suspend(context::Request::Sleep { until });
        }
    }
}

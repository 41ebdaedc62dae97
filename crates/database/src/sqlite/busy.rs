//! Waiting for a lock that another process (or another engine on the same file) holds.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// What one session waits for and how long it may: shared with the busy handler, the progress handler and
/// the handles that cancel it.
#[derive(Debug)]
pub(crate) struct Waits {
    epoch: Instant,
    /// Longest wait for a lock.
    limit: Duration,
    /// Nanoseconds after `epoch` at which the running call has to end; 0 for never.
    deadline: AtomicU64,
    /// Nanoseconds after `epoch` at which the wait under way began.
    began: AtomicU64,
    cancelled: AtomicBool,
    count: AtomicU64,
}

thread_local! {
    /// SQLite's busy handler is a bare function: this is how it learns whose call it is in.
    static CURRENT: RefCell<Option<Arc<Waits>>> = const { RefCell::new(None) };
}

impl Waits {
    pub(crate) fn new(limit: Duration) -> Arc<Self> {
        Arc::new(Self {
            epoch: Instant::now(),
            limit,
            deadline: AtomicU64::new(0),
            began: AtomicU64::new(0),
            cancelled: AtomicBool::new(false),
            count: AtomicU64::new(0),
        })
    }

    /// Begins a call on this thread that may last `timeout`.
    pub(crate) fn start(self: &Arc<Self>, timeout: Option<Duration>) {
        self.cancelled.store(false, Relaxed);
        if let Some(timeout) = timeout {
            self.deadline.store(self.now().saturating_add(nanos(timeout)).max(1), Relaxed);
        }
        CURRENT.with_borrow_mut(|current| {
            if !current.as_ref().is_some_and(|waits| Arc::ptr_eq(waits, self)) {
                *current = Some(Arc::clone(self));
            }
        });
    }

    /// Forgets the deadline: from now on a call may last for ever.
    pub(crate) fn clear_deadline(&self) {
        self.deadline.store(0, Relaxed);
    }

    /// Whether the running call has lasted too long.
    pub(crate) fn is_overdue(&self) -> bool {
        let deadline = self.deadline.load(Relaxed);
        deadline != 0 && self.now() >= deadline
    }

    /// Asks a wait under way to end.
    pub(crate) fn cancel(&self) {
        self.cancelled.store(true, Relaxed);
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Relaxed)
    }

    /// Counts a wait and returns the moment at which it has to be given up.
    pub(crate) fn begin_wait(&self) -> Instant {
        self.count.fetch_add(1, Relaxed);
        let limit = self.now().saturating_add(nanos(self.limit));
        let until = match self.deadline.load(Relaxed) {
            0 => limit,
            deadline => deadline.min(limit),
        };
        self.epoch + Duration::from_nanos(until)
    }

    /// Number of waits so far.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }

    fn now(&self) -> u64 {
        nanos(self.epoch.elapsed())
    }

    /// One turn of SQLite's busy handler; `false` gives up.
    fn wait(&self, turn: i32) -> bool {
        let now = self.now();
        if turn == 0 {
            self.count.fetch_add(1, Relaxed);
            self.began.store(now, Relaxed);
        }
        let waited = now.saturating_sub(self.began.load(Relaxed));
        if waited >= nanos(self.limit) || self.is_overdue() || self.is_cancelled() {
            return false;
        }
        // Short at first, since a write transaction lasts some 100 µs; a tenth of the time waited later on.
        std::thread::sleep(Duration::from_nanos((waited / 10).clamp(50_000, 5_000_000)));
        true
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX / 4).min(u64::MAX / 4)
}

/// SQLite's busy handler: `turn` counts the calls for one lock from 0.
pub(crate) fn handler(turn: i32) -> bool {
    CURRENT.with_borrow(|current| current.as_ref().is_some_and(|waits| waits.wait(turn)))
}

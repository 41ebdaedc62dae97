//! Reads the server's own counters at both edges of the measured window, over a separate connection, so that
//! neither the users nor the thread that drains them waits for it. A point has one such reader, whatever its
//! number of generators.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use kelvin_database::{Engine, Session};
use kelvin_measure::{Clock, Nanos};
use kelvin_workload::{Stop, Workload};

use crate::error::RunError;
use kelvin_users::wait_until;

/// The readings at one edge.
#[derive(Debug)]
struct Edge {
    /// Headline transactions since the load, as the server counts them; `None` if the count could not be
    /// read.
    headline: Option<u64>,
    /// Commits and rollbacks in the database, from the server's statistics; `None` where there are none.
    transactions: Option<u64>,
    /// How late the headline may have been read: the time from the edge to the end of the query.
    late: Nanos,
}

/// The connection over which the counters are read.
pub(super) struct Monitor {
    engine: Arc<dyn Engine>,
    workload: Arc<dyn Workload>,
    timeout: Duration,
    session: Box<dyn Session>,
}

impl Monitor {
    /// Connects.
    pub(super) fn connect(
        engine: &Arc<dyn Engine>,
        workload: &Arc<dyn Workload>,
        timeout: Duration,
    ) -> kelvin_database::Result<Self> {
        let session = kelvin_users::connect(&**engine, timeout)?;
        Ok(Self { engine: Arc::clone(engine), workload: Arc::clone(workload), timeout, session })
    }

    /// The server's count of headline transactions since the database was loaded.
    pub(super) fn headline(&mut self) -> kelvin_database::Result<u64> {
        self.workload.headline_count(&mut *self.session)
    }

    /// The count after the last user has ended. A restart of the server during the run may have cost the
    /// connection, so one new connection is tried.
    pub(super) fn final_headline(&mut self) -> kelvin_database::Result<u64> {
        if let Ok(count) = self.headline() {
            return Ok(count);
        }
        self.session = kelvin_users::connect(&*self.engine, self.timeout)?;
        self.headline()
    }

    fn read(&mut self, clock: &Clock, at: Nanos) -> Edge {
        if self.session.is_broken()
            && let Ok(session) = kelvin_users::connect(&*self.engine, self.timeout)
        {
            self.session = session;
        }
        let headline = if self.workload.counts_on_server() { self.headline().ok() } else { None };
        let late = clock.now().saturating_sub(at);
        let counters = self.engine.counters(&mut *self.session).ok().flatten();
        Edge { headline, transactions: counters.map(|c| c.commits + c.rollbacks), late }
    }
}

/// The server's counts between the edges, and its connection for the last comparison, after all users have ended.
pub(super) struct ServerReadings {
    open: Edge,
    close: Edge,
    pub(super) monitor: Monitor,
}

impl ServerReadings {
    /// Headline transactions; `None` if they could not be read or decreased.
    pub(super) fn headline(&self) -> Option<u64> {
        self.close.headline?.checked_sub(self.open.headline?)
    }

    /// Commits and rollbacks of all clients.
    pub(super) fn transactions(&self) -> Option<u64> {
        self.close.transactions?.checked_sub(self.open.transactions?)
    }

    /// How late the headline was read, summed over both edges.
    pub(super) fn late(&self) -> Nanos {
        self.open.late + self.close.late
    }
}

/// When the thread has to read.
struct Window {
    open: Nanos,
    /// Moved to an earlier time when the run is stopped early; `u64::MAX` when it ends by count.
    close: AtomicU64,
    /// All users have ended.
    over: AtomicBool,
    clock: Clock,
    stop: Stop,
}

impl Window {
    fn read(&self, mut monitor: Monitor) -> ServerReadings {
        let over = || self.over.load(Ordering::Acquire) || self.stop.is_immediate();
        wait_until(&self.clock, || self.open, over);
        let open = monitor.read(&self.clock, self.open);
        wait_until(&self.clock, || self.close.load(Ordering::Acquire), over);
        // In a run that ends by count the window closes with the last user; the exact time is not known.
        let at = self.close.load(Ordering::Acquire).min(self.clock.now());
        let close = monitor.read(&self.clock, at);
        ServerReadings { open, close, monitor }
    }
}

/// The thread that reads the counters.
pub(super) struct ServerCounters {
    thread: JoinHandle<ServerReadings>,
    window: Arc<Window>,
}

impl ServerCounters {
    /// Starts the thread, which waits for the window from `open` to `close`.
    pub(super) fn start(
        monitor: Monitor,
        (open, close): (Nanos, Nanos),
        clock: Clock,
        stop: Stop,
    ) -> Result<Self, RunError> {
        let (close, over) = (AtomicU64::new(close), AtomicBool::new(false));
        let window = Arc::new(Window { open, close, over, clock, stop });
        let read = Arc::clone(&window);
        let thread = std::thread::Builder::new()
            .name("edges".into())
            .spawn(move || read.read(monitor))
            .map_err(|error| {
                RunError::Start(format!("cannot start the thread that reads the server's counters: {error}"))
            })?;
        Ok(Self { thread, window })
    }

    /// Moves the window's end to `close`.
    pub(super) fn close(&self, close: Nanos) {
        self.window.close.fetch_min(close, Ordering::AcqRel);
    }

    /// Wakes the thread so that it checks whether the window has closed; `over` means that all users have
    /// ended.
    pub(super) fn wake(&self, over: bool) {
        self.window.over.store(over, Ordering::Release);
        self.thread.thread().unpark();
    }

    /// Waits for both readings; with `now`, takes them only if they are complete.
    pub(super) fn finish(self, now: bool) -> Option<ServerReadings> {
        self.wake(true);
        if now && !self.thread.is_finished() {
            return None;
        }
        self.thread.join().ok()
    }
}

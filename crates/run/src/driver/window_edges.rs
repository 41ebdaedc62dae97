//! Reads the server's own counters, and our CPU time, at the two edges of the measured window, from a
//! connection of its own, so that neither the users nor the thread that drains them waits for it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use kelvin_database::Session;
use kelvin_measure::Nanos;
use kelvin_observe::ThreadTimes;
use kelvin_workload::Workload;

use super::user::Shared;
use crate::run::RunError;

/// What stood at one edge.
#[derive(Debug, Clone)]
pub(super) struct Edge {
    /// Headline transactions since the load, by the server; none when it could not be read.
    pub(super) headline: Option<u64>,
    /// Commits and rollbacks in the database, by the server's statistics; none where there are none.
    pub(super) transactions: Option<u64>,
    /// CPU time of this process in nanoseconds, and when it was read; `threads` were read right after.
    pub(super) client_cpu: Nanos,
    pub(super) read_at: Nanos,
    /// The times of this process's threads; none where the kernel keeps none.
    pub(super) threads: Option<Vec<ThreadTimes>>,
    /// How far from the edge the headline may have been read: from the edge to the query's end.
    pub(super) late: Nanos,
}

impl Edge {
    /// What a counter grew by between two edges; none when either is missing or it went back.
    pub(super) fn difference(
        open: Option<&Self>,
        close: Option<&Self>,
        counter: impl Fn(&Self) -> Option<u64>,
    ) -> Option<u64> {
        counter(close?)?.checked_sub(counter(open?)?)
    }

    /// What the threads that were there at both edges got between them.
    /// Of those that ended before the closing edge was read, `ended` knows what they had by then.
    pub(super) fn threads(
        open: Option<&Self>,
        close: Option<&Self>,
        ended: &[ThreadTimes],
    ) -> Option<Vec<ThreadTimes>> {
        let (open, close) = (open?.threads.as_ref()?, close?.threads.as_ref()?);
        let grown = |now: &ThreadTimes| {
            let before = open.binary_search_by_key(&now.id, |thread| thread.id).ok().map(|at| &open[at])?;
            Some(ThreadTimes {
                id: now.id,
                run: now.run.checked_sub(before.run)?,
                delay: now.delay.checked_sub(before.delay)?,
            })
        };
        let gone = |thread: &&ThreadTimes| close.binary_search_by_key(&thread.id, |t| t.id).is_err();
        Some(close.iter().chain(ended.iter().filter(gone)).filter_map(grown).collect())
    }
}

/// The connection that reads, and what it read.
pub(super) struct Readings {
    pub(super) open: Option<Edge>,
    pub(super) close: Option<Edge>,
    /// For the last comparison, after all users have ended.
    pub(super) monitor: Box<dyn Session>,
}

/// The thread that reads.
pub(super) struct WindowEdges {
    thread: JoinHandle<Readings>,
}

impl WindowEdges {
    /// Starts the thread; it waits for the window to open by itself.
    pub(super) fn start(
        shared: Arc<Shared>,
        workload: Arc<dyn Workload>,
        monitor: Box<dyn Session>,
    ) -> Result<Self, RunError> {
        let thread = std::thread::Builder::new()
            .name("edges".into())
            .spawn(move || watch(&shared, &*workload, monitor))
            .map_err(|error| {
                RunError::Start(format!(
                    "cannot start the thread that reads the server's \
                counters: {error}"
                ))
            })?;
        Ok(Self { thread })
    }

    /// Makes it look at whether the window has closed.
    pub(super) fn wake(&self) {
        self.thread.thread().unpark();
    }

    /// Waits for both readings; when there is no time for that (`now`), takes them only if they are there.
    pub(super) fn finish(self, now: bool) -> Option<Readings> {
        self.wake();
        if now && !self.thread.is_finished() {
            return None;
        }
        self.thread.join().ok()
    }
}

fn watch(shared: &Shared, workload: &dyn Workload, mut monitor: Box<dyn Session>) -> Readings {
    wait(shared, || shared.open);
    let open = Some(read(shared, workload, &mut monitor, shared.open));
    wait(shared, || shared.close.load(Ordering::Acquire));
    // In a run that ends by count the window closes with the last user, and no earlier moment is known.
    let at = shared.close.load(Ordering::Acquire).min(shared.clock.now());
    let close = Some(read(shared, workload, &mut monitor, at));
    Readings { open, close, monitor }
}

/// Waits until `deadline`, which may move, has come, or all users have ended.
fn wait(shared: &Shared, deadline: impl Fn() -> Nanos) {
    loop {
        let now = shared.clock.now();
        let until = deadline();
        if now >= until || shared.all_ended() || shared.stop.is_immediate() {
            return;
        }
        std::thread::park_timeout(Duration::from_nanos((until - now).min(100_000_000)));
    }
}

fn read(shared: &Shared, workload: &dyn Workload, monitor: &mut Box<dyn Session>, at: Nanos) -> Edge {
    let (client_cpu, read_at) = (kelvin_observe::cpu_time().as_nanos() as u64, shared.clock.now());
    if monitor.is_broken()
        && let Ok(session) = shared.connect()
    {
        *monitor = session;
    }
    let threads = kelvin_observe::threads();
    let counted = workload.counts_on_server();
    let headline = if counted { workload.headline_count(&mut **monitor).ok() } else { None };
    let late = shared.clock.now().saturating_sub(at);
    let counters = shared.engine.counters(&mut **monitor).ok().flatten();
    Edge {
        headline,
        transactions: counters.map(|c| c.commits + c.rollbacks),
        client_cpu,
        read_at,
        threads,
        late,
    }
}

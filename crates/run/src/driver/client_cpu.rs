//! Reads the CPU time of this process and of its threads at both edges of the measured window. A separate
//! thread reads it, which waits for nothing else, so that a slow server does not delay a reading.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use kelvin_measure::Nanos;
use kelvin_observe::ThreadTimes;
use serde::{Deserialize, Serialize};

use crate::error::RunError;
use kelvin_users::Shared;

/// A reading at one edge.
#[derive(Debug)]
struct Edge {
    /// CPU time of this process in nanoseconds, and when it was read; `threads` were read immediately after
    /// it.
    cpu: Nanos,
    read_at: Nanos,
    /// CPU times of this process's threads; `None` where the kernel does not count them.
    threads: Option<Vec<ThreadTimes>>,
}

impl Edge {
    fn read(shared: &Shared) -> Self {
        let (cpu, read_at) = (kelvin_observe::cpu_time().as_nanos() as u64, shared.clock.now());
        Self { cpu, read_at, threads: kelvin_observe::threads() }
    }
}

/// What the process used between the edges.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ClientCpu {
    /// User and system time in nanoseconds; `None` if the kernel's counter decreased.
    pub(super) time: Option<Nanos>,
    /// Time between the two readings.
    pub(super) between: Nanos,
    /// CPU times of the threads that existed at both edges; `None` where the kernel does not count them.
    pub(super) threads: Option<Vec<ThreadTimes>>,
}

/// The thread that reads.
pub(super) struct ClientCpuReader {
    thread: JoinHandle<(Edge, Edge)>,
}

impl ClientCpuReader {
    /// Starts the thread, which waits for the window to open.
    pub(super) fn start(shared: Arc<Shared>) -> Result<Self, RunError> {
        let thread = std::thread::Builder::new()
            .name("client-cpu".into())
            .spawn(move || {
                shared.wait_until(|| shared.open);
                let open = Edge::read(&shared);
                shared.wait_until(|| shared.close.load(Ordering::Acquire));
                (open, Edge::read(&shared))
            })
            .map_err(|error| RunError::Start(format!("no thread for the client's CPU time: {error}")))?;
        Ok(Self { thread })
    }

    /// Wakes the thread so that it checks whether the window has closed.
    pub(super) fn wake(&self) {
        self.thread.thread().unpark();
    }

    /// Waits for both readings; with `now`, takes them only if they are complete. `ended` has the final times
    /// of threads that ended before the second reading.
    pub(super) fn finish(self, now: bool, ended: &[ThreadTimes]) -> Option<ClientCpu> {
        self.wake();
        if now && !self.thread.is_finished() {
            return None;
        }
        let (open, close) = self.thread.join().ok()?;
        Some(ClientCpu {
            time: close.cpu.checked_sub(open.cpu),
            between: close.read_at.saturating_sub(open.read_at),
            threads: threads_between(&open, &close, ended),
        })
    }
}

fn threads_between(open: &Edge, close: &Edge, ended: &[ThreadTimes]) -> Option<Vec<ThreadTimes>> {
    let (open, close) = (open.threads.as_ref()?, close.threads.as_ref()?);
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

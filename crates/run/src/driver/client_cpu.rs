//! Reads the CPU time of this process, and of its threads, at the two edges of the measured window: what the generator took
//! of its host. In a thread that waits for nothing else, so that a slow server makes no reading late.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use kelvin_measure::Nanos;
use kelvin_observe::ThreadTimes;
use serde::{Deserialize, Serialize};

use crate::error::RunError;
use kelvin_users::Shared;

/// What stood at one edge.
#[derive(Debug)]
struct Edge {
    /// CPU time of this process in nanoseconds, and when it was read; `threads` were read right after.
    cpu: Nanos,
    read_at: Nanos,
    /// The times of this process's threads; none where the kernel keeps none.
    threads: Option<Vec<ThreadTimes>>,
}

impl Edge {
    fn read(shared: &Shared) -> Self {
        let (cpu, read_at) = (kelvin_observe::cpu_time().as_nanos() as u64, shared.clock.now());
        Self { cpu, read_at, threads: kelvin_observe::threads() }
    }
}

/// What the process took between the edges.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ClientCpu {
    /// User and system; none when the kernel's counter went back.
    pub(super) time: Option<Nanos>,
    /// Between the two readings.
    pub(super) between: Nanos,
    /// What the threads that were there at both edges got; none where the kernel does not say.
    pub(super) threads: Option<Vec<ThreadTimes>>,
}

/// The thread that reads.
pub(super) struct ClientCpuReader {
    thread: JoinHandle<(Edge, Edge)>,
}

impl ClientCpuReader {
    /// Starts the thread; it waits for the window to open by itself.
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

    /// Wakes it to check whether the window has closed.
    pub(super) fn wake(&self) {
        self.thread.thread().unpark();
    }

    /// Waits for both readings; when there is no time for that (`now`), takes them only if they are there. Of threads that
    /// ended before the second, `ended` knows what they had by then.
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

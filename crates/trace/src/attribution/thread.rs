//! Looking for files beside a recording: a look may take longer than the kernel's buffers last.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use kelvin_measure::Nanos;
use rustix::time::{ClockId, clock_gettime};

use super::FileWatcher;
use crate::recording::{DiskRange, FileChanges};

/// Between two looks, and at least so many times as long as a look takes.
const PAUSE: Duration = Duration::from_secs(1);
const SHARE: u32 = 20;
/// Ranges that were never written at most: about 30 bytes each in the recording.
const MOST_UNWRITTEN: usize = 100_000;

fn nanos(clock: ClockId) -> Nanos {
    let time = clock_gettime(clock);
    (time.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64)
}

/// A thread that looks for files.
#[derive(Debug)]
pub struct FileThread {
    end: Sender<()>,
    found: Receiver<FileChanges>,
    thread: JoinHandle<(bool, Nanos, (Vec<DiskRange>, u64))>,
}

/// What the thread says at its end.
#[derive(Debug, Clone, Default)]
pub struct LastLook {
    /// What was not fetched yet.
    pub changes: Vec<FileChanges>,
    /// Whether there were too many files or extents to follow.
    pub is_partial: bool,
    /// Where files had room that was never written, in the order of the places.
    pub unwritten: Vec<DiskRange>,
    /// Ranges of such room that were too many.
    pub unwritten_left_out: u64,
    /// CPU time of all looks.
    pub cpu: Nanos,
}

impl FileThread {
    /// Begins to look: for open files, and those in directories.
    ///
    /// # Errors
    /// When there can be no thread.
    pub fn start(directories: Vec<PathBuf>) -> std::io::Result<Self> {
        let (end, ended) = channel();
        let (send, found) = channel();
        let look = move || {
            let mut watcher = FileWatcher::new(directories);
            loop {
                let began = Instant::now();
                let changes = watcher.file_changes(nanos(ClockId::Monotonic));
                if (!changes.files.is_empty() || !changes.changes.is_empty()) && send.send(changes).is_err() {
                    break;
                }
                let pause = PAUSE.max(began.elapsed() * SHARE);
                if ended.recv_timeout(pause) != Err(RecvTimeoutError::Timeout) {
                    // Files that grew since.
                    let _ = send.send(watcher.file_changes(nanos(ClockId::Monotonic)));
                    break;
                }
            }
            (watcher.is_partial, nanos(ClockId::ThreadCPUTime), watcher.unwritten(MOST_UNWRITTEN))
        };
        let thread = std::thread::Builder::new().name("kelvin-files".into()).spawn(look)?;
        Ok(Self { end, found, thread })
    }

    /// What was found since the last time.
    pub fn take(&self) -> impl Iterator<Item = FileChanges> + '_ {
        self.found.try_iter()
    }

    /// Has it look once more, and ends it.
    pub fn finish(self) -> LastLook {
        drop(self.end);
        let changes = self.found.iter().collect();
        let (is_partial, cpu, (unwritten, unwritten_left_out)) =
            self.thread.join().unwrap_or((true, 0, (Vec::new(), 0)));
        LastLook { changes, is_partial, unwritten, unwritten_left_out, cpu }
    }
}

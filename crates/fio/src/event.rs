//! Events of a run of jobs.

use crate::tick::Tick;

/// What a worker is doing; the letters are those of fio's status line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerState {
    /// `P`: waits for its turn.
    Planned,
    /// `C`: its thread is there.
    Created,
    /// `I`: makes or lays out its files.
    SettingUp,
    /// `p`: reads its files before.
    PreReading,
    /// `/`: I/O that is not measured.
    RampUp,
    /// Measured I/O.
    Running,
    /// `F`: waits for a sync.
    Syncing,
    /// `V`: looks at what it wrote.
    Verifying,
    /// `f`: ends.
    Finishing,
    /// `_`: has ended.
    Ended,
    /// `X`: ended with an error.
    Failed,
}

/// Something happened.
#[derive(Debug)]
pub enum IoEvent<'a> {
    /// A worker does something else from now on.
    State {
        /// Which worker.
        worker: u32,
        /// What it does.
        state: WorkerState,
    },
    /// Files are being made or filled.
    Layout {
        /// Which worker.
        worker: u32,
        /// What, with the file's name.
        what: &'a str,
        /// Bytes done.
        done: u64,
        /// Bytes in all.
        total: u64,
    },
    /// A worker handed over what it counted. All ticks of all workers come this way, and their sums are the result.
    Tick(&'a Tick),
    /// Something the reader should know at once.
    Note(&'a str),
}

/// Who wants to know.
pub trait IoWatcher {
    /// Called by the thread that runs the jobs, at least every 100 ms with something or through [`IoWatcher::idle`].
    fn event(&mut self, event: &IoEvent<'_>);

    /// Nothing happened; for status lines that go on.
    fn idle(&mut self) {}
}

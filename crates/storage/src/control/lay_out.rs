//! Laying out files before the first I/O, with progress reports.

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use kelvin_measure::Stop;

use super::Prepared;
use crate::event::{IoEvent, IoWatcher, WorkerState};
use crate::layout;
use crate::{Error, Result, TargetKind};

/// The longest interval between calls of a watcher.
pub(super) const QUIET: Duration = Duration::from_millis(100);

/// Creates and fills the files of a run, as [`super::run`] would. Call it first if the files are to be examined before
/// the I/O begins. Ends early on a stop request; the completed part is kept, and a later call continues from there.
pub fn lay_out(prepared: &mut Prepared, stop: &Stop, watcher: &mut dyn IoWatcher) -> Result<()> {
    if prepared.laid_out {
        return Ok(());
    }
    for note in &prepared.notes {
        watcher.event(&IoEvent::Note(note));
    }
    if !prepared.plan.makings.is_empty() {
        let plan = prepared.plan.clone();
        let stopper = stop.clone();
        let (sender, receiver) = channel();
        run_in_thread(
            stop,
            move || {
                let report = |worker: u32, what: &str, done: u64, total: u64| {
                    let _ = sender.send((worker, what.to_owned(), done, total));
                };
                layout::carry_out_plan(&plan, &stopper, &report)
            },
            |worker_is_set| forward_progress(&receiver, watcher, worker_is_set),
        )?
        .unwrap_or(Ok(()))?;
    }
    if stop.requested() {
        return Ok(());
    }
    prepared.laid_out = true;
    measured_again(prepared)
}

/// Runs a function in a separate thread, and calls `wait` repeatedly until it is done; `wait` must not take much longer
/// than [`QUIET`]. `None` after a second stop request: then the thread is abandoned.
pub(super) fn run_in_thread<T: Send + 'static>(
    stop: &Stop,
    something: impl FnOnce() -> T + Send + 'static,
    mut wait: impl FnMut(&mut Option<u32>),
) -> Result<Option<T>> {
    let spawned = std::thread::Builder::new().name("kelvin-io-aside".into()).spawn(something);
    let thread = spawned.map_err(Error::system("cannot start a thread"))?;
    let mut current = None;
    while !thread.is_finished() {
        if stop.is_immediate() {
            return Ok(None);
        }
        wait(&mut current);
    }
    wait(&mut current);
    match thread.join() {
        Ok(answer) => Ok(Some(answer)),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// Progress of a layout: the worker, the step, bytes done and in total.
type LayoutProgress = (u32, String, u64, u64);

/// Forwards the layout's progress for a while.
fn forward_progress(
    receiver: &Receiver<LayoutProgress>,
    watcher: &mut dyn IoWatcher,
    current: &mut Option<u32>,
) {
    let mut first = receiver.recv_timeout(Duration::from_millis(20));
    if matches!(first, Err(RecvTimeoutError::Timeout)) {
        return watcher.idle();
    }
    while let Ok((worker, what, done, total)) = first {
        if *current != Some(worker) {
            *current = Some(worker);
            watcher.event(&IoEvent::State { worker, state: WorkerState::SettingUp });
        }
        watcher.event(&IoEvent::Layout { worker, what: &what, done, total });
        first = receiver.try_recv().map_err(|_| RecvTimeoutError::Timeout);
    }
}

/// Updates the sizes of files that were filled until there was no space.
fn measured_again(prepared: &mut Prepared) -> Result<()> {
    for worker in &mut prepared.workers {
        let job = &prepared.each[worker.job];
        if !job.targets.fills() || job.pattern.changes_data() {
            continue;
        }
        for target in worker.targets.iter_mut().filter(|target| target.kind == TargetKind::File) {
            let size = layout::size_now(&target.path)
                .map_err(Error::system(format!("cannot inspect {}", target.path.display())))?;
            target.length = target.length.min(size.saturating_sub(target.begin));
        }
    }
    Ok(())
}

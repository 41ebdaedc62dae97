//! A worker's thread: the work around the measured part.

use std::any::Any;
use std::fs::File;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::thread::JoinHandle;

use super::WorkerIo;
use crate::event::WorkerState;
use crate::layout;
use crate::message::{Message, WorkerEnd};
use crate::worker::{Shared, WorkerPlan, take_rights};
use crate::{Error, Result};

/// Starts a worker. However it ends, `Message::End` is its last message except for states, and its thread ends.
pub(super) fn start(
    work: Arc<dyn WorkerIo>,
    plan: WorkerPlan,
    shared: Arc<Shared>,
    directory: PathBuf,
) -> io::Result<JoinHandle<()>> {
    let name = format!("kelvin-io-{}", plan.number);
    std::thread::Builder::new().name(name).spawn(move || {
        let number = plan.number;
        let lived = catch_unwind(AssertUnwindSafe(|| whole(&*work, plan, &shared, &directory)));
        // Other workers may wait for it to begin.
        shared.flow.absent(number);
        let (failed, problem) = match lived {
            Ok(Ok(failed)) => (failed, None),
            Ok(Err(error)) => (true, Some(error_number(&error))),
            Err(panic) => {
                (true, Some((libc::EFAULT, format!("the thread panicked: {}", panic_message(&*panic)))))
            }
        };
        let state = if failed { WorkerState::Failed } else { WorkerState::Ended };
        if let Some(error) = problem {
            let thread = rustix::thread::gettid().as_raw_nonzero().get();
            let end = WorkerEnd { worker: number, thread, error: Some(error), ..WorkerEnd::default() };
            let _ = shared.messages.send(Message::End(Box::new(end)));
        }
        // Wakes the receiver that waits for the thread.
        let _ = shared.messages.send(Message::State(number, state));
    })
}

/// Everything that a worker's thread does. Returns whether the worker ended with an error, which it has reported.
fn whole(work: &dyn WorkerIo, plan: WorkerPlan, shared: &Shared, directory: &Path) -> Result<bool> {
    let number = plan.number;
    let job = Arc::clone(&plan.job);
    let send = |message: Message| {
        let _ = shared.messages.send(message);
    };
    send(Message::State(number, WorkerState::SettingUp));
    take_rights(&job.process)?;
    if let Some(command) = &job.process.before {
        execute(command, &job.name, "prerun", directory)?;
    }
    // `pre_read` fills the page cache, so it must not be dropped.
    if job.targets.invalidate && !job.targets.pre_read {
        for note in plan.targets.iter().filter_map(layout::invalidate) {
            send(Message::Note(number, note));
        }
    }
    let end = work.run(plan, shared);
    if let Some(command) = &job.process.after {
        execute(command, &job.name, "postrun", directory)?;
    }
    Ok(end.error.is_some())
}

/// Runs a command of the job. Its output goes to a file named as in fio.
fn execute(command: &str, job: &str, when: &str, directory: &Path) -> Result<()> {
    let path = directory.join(format!("{}.{when}.txt", job.replace('/', "_")));
    let failed = || Error::system(format!("exec_{when}={command}"));
    let output = File::create(&path).map_err(Error::system(format!("cannot write {}", path.display())))?;
    let errors = output.try_clone().map_err(failed())?;
    let status = Command::new("/bin/sh").arg("-c").arg(command).stdout(output).stderr(errors).status();
    let status = status.map_err(failed())?;
    if status.success() {
        return Ok(());
    }
    let problem = format!("{status}; its output is in {}", path.display());
    Err(Error::System { what: format!("exec_{when}={command}"), cause: io::Error::other(problem) })
}

/// An error as fio reports it: the kernel's error number and a text.
fn error_number(error: &Error) -> (i32, String) {
    let number = match error {
        Error::System { cause, .. } => cause.raw_os_error(),
        _ => None,
    };
    (number.unwrap_or(libc::ECANCELED), error.to_string())
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without a message".into())
}

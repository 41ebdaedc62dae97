//! `verify_async=`: threads that verify read data, so that the worker can continue with other I/Os.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use super::parts::Answer;
use super::thread_setup;
use crate::Io;
use crate::data::{Examiner, ReadExpectation};

/// Maximum wait for an answer: the worker has other work to do.
const PATIENCE: Duration = Duration::from_millis(20);

/// A read whose data is to be verified.
struct Task {
    slot: u32,
    io: Io,
    question: ReadExpectation,
    address: *const u8,
}

// SAFETY: the memory at the address is not written to before the answer has arrived.
#[allow(unsafe_code, reason = "another thread reads it")]
unsafe impl Send for Task {}

/// The threads.
pub(super) struct Checkers {
    to: Option<Sender<Task>>,
    answers: Sender<Answer>,
    from: Receiver<Answer>,
    threads: Vec<JoinHandle<()>>,
}

impl Checkers {
    /// `count` threads, each with an examiner made by `examiner`, on these CPUs if any are named.
    pub(super) fn new(count: u32, cpus: &[u32], mut examiner: impl FnMut() -> Examiner) -> io::Result<Self> {
        let (to, tasks) = channel::<Task>();
        let (answers, from) = channel();
        let tasks = Arc::new(Mutex::new(tasks));
        let threads = (0..count).map(|_| {
            let (tasks, answers, examiner) = (Arc::clone(&tasks), answers.clone(), examiner());
            let cpus = cpus.to_vec();
            let begin = std::thread::Builder::new().name("kelvin-verify".into());
            begin.spawn(move || {
                // If it cannot be pinned, it runs where the kernel schedules it.
                let _ = thread_setup::pin_if_any(&cpus);
                work(&tasks, &answers, examiner);
            })
        });
        let threads = threads.collect::<io::Result<Vec<_>>>()?;
        Ok(Self { to: Some(to), answers, from, threads })
    }

    /// Passes a read on; its data are at `address` and do not change until the answer has arrived.
    pub(super) fn ask(&self, slot: u32, io: &Io, question: ReadExpectation, address: *const u8) {
        let task = Task { slot, io: *io, question, address };
        let sent = self.to.as_ref().is_some_and(|to| to.send(task).is_ok());
        if !sent {
            let result = Err("verify: the verify_async threads have ended".to_owned());
            // The receiver is in this value, too.
            let _ = self.answers.send(Answer { slot, io: *io, result });
        }
    }

    /// An answer, if one is available; with `wait`, waits a moment for it.
    pub(super) fn answer(&self, wait: bool) -> Option<Answer> {
        if wait { self.from.recv_timeout(PATIENCE).ok() } else { self.from.try_recv().ok() }
    }
}

impl Drop for Checkers {
    /// The buffers are borrowed: no thread may still be reading one afterwards.
    fn drop(&mut self) {
        self.to = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

#[allow(unsafe_code, reason = "reads a buffer by its address")]
fn work(tasks: &Mutex<Receiver<Task>>, answers: &Sender<Answer>, mut examiner: Examiner) {
    loop {
        let next = match tasks.lock() {
            Ok(tasks) => tasks.recv(),
            Err(_) => return,
        };
        let Ok(Task { slot, io, question, address }) = next else { return };
        // SAFETY: the buffer has the I/O's length, and the worker does not touch it until the answer has arrived.
        let buffer = unsafe { std::slice::from_raw_parts(address, io.length as usize) };
        // The other thread waits for the answer in any case.
        let looked = catch_unwind(AssertUnwindSafe(|| examiner.examine(&question, buffer)));
        let result = match looked {
            Ok(result) => result.map_err(|wrong| format!("verify: {wrong}")),
            Err(_) => Err(format!("verify: checking offset {} failed", io.offset)),
        };
        if answers.send(Answer { slot, io, result }).is_err() {
            return;
        }
    }
}

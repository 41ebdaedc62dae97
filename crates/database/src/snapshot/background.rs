//! Work in another thread, while this thread reports progress and checks for a stop request.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use crate::{Error, ErrorClass, Result};

const LOOK: Duration = Duration::from_millis(100);

/// Does `work` on a separate thread and calls `each` ten times a second until it has ended.
pub(crate) fn watched<T: Send>(work: impl FnOnce() -> Result<T> + Send, each: &mut dyn FnMut()) -> Result<T> {
    let (ended, wait) = channel::<()>();
    std::thread::scope(|scope| {
        let work = scope.spawn(move || {
            let outcome = work();
            drop(ended);
            outcome
        });
        while wait.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
            each();
        }
        work.join().unwrap_or_else(|_| Err(Error::new(ErrorClass::Server, "the background thread panicked")))
    })
}

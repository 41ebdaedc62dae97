//! `io_submit_mode=offload`: separate threads do the I/Os, so that an engine whose call waits for the I/O has several
//! in flight, and a slow call does not delay the next start.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use super::{CompletedRequest, IoEngine, Request, SyncCall, Wait};

/// Maximum number of threads per worker.
const THREADS: u32 = 128;

/// Threads, each with a separate engine.
pub(crate) struct Offload {
    to: Option<Sender<Request>>,
    from: Receiver<CompletedRequest>,
    queued: Vec<Request>,
    under_way: u32,
    threads: Vec<JoinHandle<()>>,
}

impl Offload {
    /// As many threads as the depth, each with an engine made by `engine`.
    pub(crate) fn new<E: IoEngine + Send + 'static>(
        depth: u32,
        mut engine: impl FnMut(u32) -> E,
    ) -> io::Result<Self> {
        let (to, jobs) = channel::<Request>();
        let (ended, from) = channel();
        let jobs = Arc::new(Mutex::new(jobs));
        let threads = (0..depth.min(THREADS)).map(|number| {
            let (jobs, ended, engine) = (Arc::clone(&jobs), ended.clone(), engine(number));
            std::thread::Builder::new()
                .name("kelvin-offload".into())
                .spawn(move || work(&jobs, &ended, engine))
        });
        let threads = threads.collect::<io::Result<Vec<_>>>()?;
        Ok(Self { to: Some(to), from, queued: Vec::with_capacity(depth as usize), under_way: 0, threads })
    }
}

fn work<E: IoEngine>(jobs: &Mutex<Receiver<Request>>, ended: &Sender<CompletedRequest>, mut engine: E) {
    let mut results = Vec::with_capacity(1);
    loop {
        let next = match jobs.lock() {
            Ok(jobs) => jobs.recv(),
            Err(_) => return,
        };
        let Ok(request) = next else { return };
        engine.queue(request);
        if let Err(error) = engine.commit(&mut results) {
            results.push(CompletedRequest::from_result(request.slot, Err(error)));
        }
        for result in results.drain(..) {
            if ended.send(result).is_err() {
                return;
            }
        }
    }
}

impl IoEngine for Offload {
    fn is_synchronous(&self) -> bool {
        false
    }

    fn queue(&mut self, request: Request) {
        self.queued.push(request);
    }

    fn commit(&mut self, _ended: &mut Vec<CompletedRequest>) -> io::Result<()> {
        let gone = || io::Error::other("the I/O threads have ended");
        let to = self.to.as_ref().ok_or_else(gone)?;
        for request in self.queued.drain(..) {
            to.send(request).map_err(|_| gone())?;
            self.under_way += 1;
        }
        Ok(())
    }

    fn reap(
        &mut self,
        least: u32,
        most: u32,
        wait: Wait,
        ended: &mut Vec<CompletedRequest>,
    ) -> io::Result<()> {
        let most = most.min(self.under_way);
        let least = if wait == Wait::No { 0 } else { least.min(most) };
        let mut taken = 0;
        while taken < most {
            let next = match wait {
                Wait::AtMost(nanos) if taken < least => self.from.recv_timeout(Duration::from_nanos(nanos)),
                _ => self.from.try_recv().map_err(|_| RecvTimeoutError::Timeout),
            };
            match next {
                Ok(result) => ended.push(result),
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(io::Error::other("the I/O threads have ended"));
                }
            }
            taken += 1;
        }
        self.under_way -= taken;
        Ok(())
    }

    fn flush(&mut self, _target: u32, _how: SyncCall) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Offload {
    fn drop(&mut self) {
        self.to = None;
        // Threads that a hung device holds up are not joined.
        if self.under_way == 0 {
            for thread in self.threads.drain(..) {
                let _ = thread.join();
            }
        }
    }
}

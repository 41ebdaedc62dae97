//! The threads that run the users of a point: one for each user, or a few event loops with many fibers.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use kelvin_fiber::{EventLoop, Task, Waker};
use kelvin_measure::{schedule_promptly, wake_on_time};
use kelvin_workload::Stop;

use crate::user::{Shared, User};

/// Stack size in bytes; only touched pages use memory.
const THREAD_STACK: usize = 512 << 10;
const FIBER_STACK: usize = 256 << 10;

/// Users for each event loop beyond the first two. A loop on a CPU handles over 100,000 calls per second;
/// with two loops users do not all wait for the same thread.
const USERS_PER_LOOP: u32 = 16;
const FEWEST_LOOPS: u32 = 2;

/// The threads or event loops that run the users.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResolvedThreading {
    /// A thread for each user.
    Threads,
    /// This many event loops.
    Loops(u32),
}

impl ResolvedThreading {
    /// A description such as "8 virtual users, one thread each".
    pub fn describe(self, users: u32) -> String {
        match (self, users) {
            (_, 1) => "1 virtual user".into(),
            (Self::Threads, _) => format!("{users} virtual users, one thread each"),
            (Self::Loops(1), _) => format!("{users} virtual users on an event loop"),
            (Self::Loops(loops), _) => format!("{users} virtual users on {loops} event loops"),
        }
    }

    /// The useful number of loops for `users`, at most the number of CPUs.
    pub fn loops_for(users: u32) -> Self {
        let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32);
        Self::Loops(users.div_ceil(USERS_PER_LOOP).max(FEWEST_LOOPS).min(users).clamp(1, cpus))
    }
}

/// The running threads.
pub enum UserPool {
    /// A thread for each user.
    Threads(Vec<JoinHandle<()>>),
    /// The threads of the event loops.
    Loops(Vec<(JoinHandle<io::Result<()>>, Waker)>),
}

impl UserPool {
    /// Starts all users, which wait for the start time themselves.
    pub fn start(
        users: Vec<User>,
        threading: ResolvedThreading,
        shared: &Arc<Shared>,
        stop: &Stop,
    ) -> io::Result<Self> {
        let started = match threading {
            ResolvedThreading::Threads => Self::threads(users, shared),
            ResolvedThreading::Loops(count) => Self::loops(users, count, shared),
        };
        started.inspect_err(|_| stop.request())
    }

    fn threads(users: Vec<User>, shared: &Arc<Shared>) -> io::Result<Self> {
        let start = |user: User| {
            let shared = Arc::clone(shared);
            std::thread::Builder::new()
                .name(format!("user-{}", user.number + 1))
                .stack_size(THREAD_STACK)
                .spawn(move || {
                    schedule(&shared);
                    user.run(|| shared.keep_times());
                })
        };
        users.into_iter().map(start).collect::<io::Result<_>>().map(Self::Threads)
    }

    fn loops(users: Vec<User>, count: u32, shared: &Arc<Shared>) -> io::Result<Self> {
        let mut shares: Vec<Vec<Task>> = (0..count).map(|_| Vec::new()).collect();
        let places = shares.len();
        for (index, user) in users.into_iter().enumerate() {
            shares[index % places].push(Box::new(move || user.run(|| {})));
        }
        let start = |(index, tasks): (usize, Vec<Task>)| {
            let event_loop = EventLoop::new()?;
            let (waker, shared) = (event_loop.waker(), Arc::clone(shared));
            let thread = std::thread::Builder::new().name(format!("users-{}", index + 1));
            let handle = thread.spawn(move || {
                schedule(&shared);
                shared.add_loop(kelvin_observe::thread_id());
                let ended = event_loop.run(tasks, FIBER_STACK);
                shared.keep_times();
                ended
            })?;
            Ok((handle, waker))
        };
        shares.into_iter().enumerate().map(start).collect::<io::Result<_>>().map(Self::Loops)
    }

    /// Wakes sleeping users so that they check whether the window has closed.
    pub fn wake(&self) {
        match self {
            Self::Threads(threads) => threads.iter().for_each(|thread| thread.thread().unpark()),
            Self::Loops(loops) => loops.iter().for_each(|(_, waker)| waker.wake_all()),
        }
    }

    /// Joins the threads of users that have all ended. Returns the first error of an event loop.
    pub fn join(self) -> Option<String> {
        match self {
            Self::Threads(threads) => {
                // A panic is recorded separately and checked by the invariants.
                for thread in threads {
                    let _ = thread.join();
                }
                None
            }
            Self::Loops(loops) => {
                let ends = loops.into_iter().filter_map(|(thread, _)| thread.join().ok()?.err());
                ends.map(|error| format!("an event loop of the users ended early: {error}")).next()
            }
        }
    }
}

/// Tells the kernel how to schedule the calling thread, which runs users: the delay of an arrival is measured, so that an open
/// loop runs before the server's processes; a closed loop takes its turn as the application would.
fn schedule(shared: &Shared) {
    if shared.queue.is_some() {
        schedule_promptly();
    } else {
        wake_on_time();
    }
}

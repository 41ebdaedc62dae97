//! The loop: resumes the fiber whose socket has an event or whose sleep is over.

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult};
use rustix::buffer::spare_capacity;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, epoll, eventfd, poll};
use rustix::io::Errno;

use crate::context::{self, Context, FiberYielder, Request, Signal};
use crate::socket_watch::timespec;
use crate::timers::Timers;

/// The function that a fiber runs.
pub type Task = Box<dyn FnOnce() + Send>;

/// The granularity of socket time-outs. Time-outs are for errors, and a timer for each wait would cost more
/// than the wait.
const TIMEOUT_GRAIN: Duration = Duration::from_millis(100);

/// Events taken from the kernel at a time.
const MOST_EVENTS: usize = 256;

/// Epoll's data value for the waker.
const WAKER: u64 = u64::MAX;

type Fiber = Coroutine<Signal, Request, (), DefaultStack>;

/// A loop for some fibers, created in any thread and run in one.
#[derive(Debug)]
pub struct EventLoop {
    epoll: OwnedFd,
    waker: Waker,
}

/// Wakes the sleepers of one loop from any thread.
#[derive(Debug, Clone)]
pub struct Waker(Arc<OwnedFd>);

impl Waker {
    /// Ends every [`crate::park`] of the loop.
    pub fn wake_all(&self) {
        // A full counter means that the loop was woken already.
        let _ = rustix::io::write(&*self.0, &1_u64.to_ne_bytes());
    }
}

/// The event that a fiber waits for.
#[derive(Debug, Clone, Copy)]
enum Waits {
    Timer,
    Socket { token: u64, until: Option<Instant> },
    Ended,
}

struct Slot {
    fiber: Fiber,
    waits: Waits,
    /// Counts the waits, so that a timer of an earlier wait is recognised.
    generation: u64,
}

impl EventLoop {
    /// A loop without fibers.
    pub fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let waker = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &waker, epoll::EventData::new_u64(WAKER), epoll::EventFlags::IN)?;
        Ok(Self { epoll, waker: Waker(Arc::new(waker)) })
    }

    /// The means to wake its sleepers.
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Runs every task as a fiber with a stack of `stack` bytes, of which only touched pages use memory, until all have
    /// ended. An error means that the operating system refused the loop a resource; fibers that have not ended are
    /// unwound then. A panic of a task is propagated.
    pub fn run(self, tasks: Vec<Task>, stack: usize) -> io::Result<()> {
        if tasks.len() >= 1 << context::FIBER_BITS {
            return Err(io::Error::other(format!("{} fibers are too many for one loop", tasks.len())));
        }
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        let context = Rc::new(Context {
            epoll: self.epoll,
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            current: Cell::new(0),
            yielder: Cell::new(std::ptr::null()),
            unheard: RefCell::new(vec![Vec::new(); tasks.len()]),
            registrations: Cell::new(0),
        });
        let mut slots = Vec::with_capacity(tasks.len());
        for task in tasks {
            let context = Rc::clone(&context);
            let fiber = Fiber::with_stack(DefaultStack::new(stack)?, move |yielder: &FiberYielder, _| {
                context.yielder.set(std::ptr::from_ref(yielder));
                let _unset = NoYielder(&context);
                task();
            });
            slots.push(Slot { fiber, waits: Waits::Timer, generation: 0 });
        }
        context::set(Some(Rc::clone(&context)));
        let _unset = Unset;
        Running { timers: Timers::with_capacity(slots.len()), alive: slots.len(), slots, context: &context }
            .run(&self.waker)
    }
}

/// Removes the way back into a fiber that has ended, even by a panic. The other fibers are unwound then, and
/// waits in their destructors must not use this fiber's stack.
struct NoYielder<'a>(&'a Context);

impl Drop for NoYielder<'_> {
    fn drop(&mut self) {
        self.0.yielder.set(std::ptr::null());
    }
}

/// Leaves the thread without a loop, also after a panic.
struct Unset;

impl Drop for Unset {
    fn drop(&mut self) {
        context::set(None);
    }
}

struct Running<'a> {
    slots: Vec<Slot>,
    timers: Timers,
    alive: usize,
    context: &'a Context,
}

impl Running<'_> {
    fn run(&mut self, waker: &Waker) -> io::Result<()> {
        for index in 0..self.slots.len() {
            self.resume(index, Signal::News);
        }
        let mut events: Vec<epoll::Event> = Vec::with_capacity(MOST_EVENTS);
        let mut next_look = Instant::now() + TIMEOUT_GRAIN;
        while self.alive > 0 {
            let now = Instant::now();
            while let Some((index, generation)) = self.timers.pop_due(now) {
                let slot = &self.slots[index];
                if slot.generation == generation && matches!(slot.waits, Waits::Timer) {
                    self.resume(index, Signal::TimedOut);
                }
            }
            if self.alive == 0 {
                break;
            }
            if now >= next_look {
                next_look = now + TIMEOUT_GRAIN;
                self.end_overdue(now);
            }
            let until = self.timers.next().map_or(next_look, |timer| timer.min(next_look));
            events.clear();
            let limit = self.wait_exactly(until)?;
            match epoll::wait(&self.context.epoll, spare_capacity(&mut events), Some(&limit)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            for event in events.drain(..) {
                // Packed fields: copied, not borrowed.
                let (data, flags) = (event.data, event.flags);
                let gone = epoll::EventFlags::RDHUP | epoll::EventFlags::HUP | epoll::EventFlags::ERR;
                let signal = if flags.intersects(gone) { Signal::Closed } else { Signal::News };
                self.heard(data.u64(), signal, waker);
            }
        }
        Ok(())
    }

    /// Waits until `until` or the first event, if a timer is due within the millisecond to which epoll rounds
    /// up its own wait. Returns how long epoll may wait after that.
    fn wait_exactly(&self, until: Instant) -> io::Result<Timespec> {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(timespec(Duration::ZERO));
        }
        if self.timers.next().is_none_or(|timer| timer > until) {
            return Ok(timespec(left));
        }
        match poll(&mut [PollFd::new(&self.context.epoll, PollFlags::IN)], Some(&timespec(left))) {
            Ok(_) | Err(Errno::INTR) => Ok(timespec(Duration::ZERO)),
            Err(error) => Err(error.into()),
        }
    }

    fn heard(&mut self, data: u64, signal: Signal, waker: &Waker) {
        if data == WAKER {
            // An unread remainder causes one further wake-up, which is harmless.
            let _ = rustix::io::read(&*waker.0, &mut [0; 8]);
            for index in 0..self.slots.len() {
                if matches!(self.slots[index].waits, Waits::Timer) {
                    self.resume(index, Signal::News);
                }
            }
            return;
        }
        let index = Context::fiber_of(data);
        match self.slots[index].waits {
            Waits::Socket { token, .. } if token == data => self.resume(index, signal),
            Waits::Ended => {}
            _ => self.context.keep_unheard(data, signal),
        }
    }

    /// Ends the waits for sockets whose time-out has passed.
    fn end_overdue(&mut self, now: Instant) {
        for index in 0..self.slots.len() {
            if let Waits::Socket { until: Some(until), .. } = self.slots[index].waits
                && now >= until
            {
                self.resume(index, Signal::TimedOut);
            }
        }
    }

    fn resume(&mut self, index: usize, signal: Signal) {
        let slot = &mut self.slots[index];
        slot.generation += 1;
        self.context.current.set(index);
        match slot.fiber.resume(signal) {
            CoroutineResult::Yield(Request::Sleep { until }) => {
                slot.waits = Waits::Timer;
                self.timers.add(until, index, slot.generation);
            }
            CoroutineResult::Yield(Request::Socket { token, until }) => {
                slot.waits = Waits::Socket { token, until };
            }
            CoroutineResult::Return(()) => {
                slot.waits = Waits::Ended;
                self.alive -= 1;
            }
        }
    }
}

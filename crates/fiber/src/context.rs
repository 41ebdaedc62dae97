//! What a fiber knows of its event loop.

use std::cell::{Cell, RefCell};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Instant;

use corosensei::Yielder;

/// Why a fiber suspends itself.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Request {
    /// Until `until`, or until the loop is woken.
    Sleep { until: Instant },
    /// Until the socket that is watched under this token has an event, or until the time is over.
    Socket { token: u64, until: Option<Instant> },
}

/// Why a fiber is resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    /// An event of its socket, or the loop was woken.
    News,
    /// The peer has closed the socket, or the socket is broken. Unread data may remain, but no other event
    /// will follow.
    Closed,
    /// The time is over.
    TimedOut,
}

/// Bits of a token that identify a fiber of the loop.
pub(crate) const FIBER_BITS: u32 = 24;

/// The largest number of events stored for one fiber.
const MOST_UNHEARD: usize = 8;

pub(crate) type FiberYielder = Yielder<Signal, Request>;

/// A loop as its fibers see it.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) epoll: OwnedFd,
    /// Unique among the loops of this process.
    pub(crate) id: u64,
    /// The running fiber.
    pub(crate) current: Cell<usize>,
    /// The way from the running fiber back into the loop; null between fibers.
    pub(crate) yielder: Cell<*const FiberYielder>,
    /// By fiber: events of sockets for which it was not waiting, by token.
    pub(crate) unheard: RefCell<Vec<Vec<(u64, Signal)>>>,
    /// The number of registrations so far; see [`Context::new_token`].
    pub(crate) registrations: Cell<u64>,
}

thread_local! {
    static CONTEXT: RefCell<Option<Rc<Context>>> = const { RefCell::new(None) };
}

/// The loop of the running fiber; `None` outside of a fiber.
#[inline]
pub(crate) fn current() -> Option<Rc<Context>> {
    CONTEXT.with(|context| context.borrow().as_ref().filter(|c| !c.yielder.get().is_null()).cloned())
}

/// Sets or clears the loop of this thread.
pub(crate) fn set(context: Option<Rc<Context>>) {
    CONTEXT.with(|place| *place.borrow_mut() = context);
}

impl Context {
    /// Gives the thread back to the loop until the request is fulfilled.
    #[allow(unsafe_code)]
    pub(crate) fn suspend(&self, request: Request) -> Signal {
        let (yielder, fiber) = (self.yielder.get(), self.current.get());
        assert!(!yielder.is_null(), "only a fiber can be suspended");
        self.yielder.set(std::ptr::null());
        // SAFETY: the pointer is set to the yielder of the running fiber when that fiber starts, and below
        // when it continues, and is null in between. A yielder lives as long as its fiber's stack, on which
        // this call is. `Context` never leaves its thread, since it contains cells and is held by an `Rc`.
        let signal = unsafe { &*yielder }.suspend(request);
        self.current.set(fiber);
        self.yielder.set(yielder);
        signal
    }

    /// A token for a socket of the running fiber, unique among the registrations of this loop. The number of
    /// the descriptor is not, since another socket may get it later.
    pub(crate) fn new_token(&self) -> u64 {
        let registration = self.registrations.get() + 1;
        self.registrations.set(registration);
        registration << FIBER_BITS | self.current.get() as u64
    }

    /// The fiber that a token belongs to.
    pub(crate) fn fiber_of(token: u64) -> usize {
        (token & ((1 << FIBER_BITS) - 1)) as usize
    }

    /// Takes a stored event of this socket.
    pub(crate) fn take_unheard(&self, token: u64) -> Option<Signal> {
        let mut unheard = self.unheard.borrow_mut();
        let mine = &mut unheard[self.current.get()];
        let place = mine.iter().position(|news| news.0 == token)?;
        Some(mine.swap_remove(place).1)
    }

    /// Stores an event for a fiber that is not waiting for it. A closed socket is not overwritten by other
    /// events.
    pub(crate) fn keep_unheard(&self, token: u64, signal: Signal) {
        let mut unheard = self.unheard.borrow_mut();
        let fibers = &mut unheard[Self::fiber_of(token)];
        match fibers.iter_mut().find(|news| news.0 == token) {
            Some(news) if news.1 != Signal::Closed => news.1 = signal,
            Some(_) => {}
            None => {
                if fibers.len() >= MOST_UNHEARD {
                    // It belongs to a socket that the fiber no longer uses, since a fiber has at most two.
                    fibers.remove(0);
                }
                fibers.push((token, signal));
            }
        }
    }
}

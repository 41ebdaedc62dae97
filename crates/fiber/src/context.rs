//! What a fiber knows of the loop that it runs on.

use std::cell::{Cell, RefCell};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Instant;

use corosensei::Yielder;

/// Why a fiber gives up its thread.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Request {
    /// Until `until`, or until the loop is woken.
    Sleep { until: Instant },
    /// Until the socket that is watched under this token has news, or until the time is over.
    Socket { token: u64, until: Option<Instant> },
}

/// Why a fiber gets its thread back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    /// There is news for its socket, or the loop was woken.
    News,
    /// The other end of its socket has closed, or the socket is broken. Behind what is there to read still, no
    /// other news will come.
    Closed,
    /// The time is over.
    TimedOut,
}

/// Fibers of one loop fit into so many bits of a token.
pub(crate) const FIBER_BITS: u32 = 24;

/// News kept for one fiber.
const MOST_UNHEARD: usize = 8;

pub(crate) type FiberYielder = Yielder<Signal, Request>;

/// One loop, as its fibers see it.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) epoll: OwnedFd,
    /// Unlike that of any other loop of this process.
    pub(crate) id: u64,
    /// The fiber that runs.
    pub(crate) current: Cell<usize>,
    /// The way back into the loop from the fiber that runs; null between fibers.
    pub(crate) yielder: Cell<*const FiberYielder>,
    /// By fiber: news for sockets that it did not wait for at that moment, by their tokens.
    pub(crate) unheard: RefCell<Vec<Vec<(u64, Signal)>>>,
    /// Registrations so far; see [`Context::new_token`].
    pub(crate) registrations: Cell<u64>,
}

thread_local! {
    static CONTEXT: RefCell<Option<Rc<Context>>> = const { RefCell::new(None) };
}

/// The loop of the fiber that runs, if one does.
#[inline]
pub(crate) fn current() -> Option<Rc<Context>> {
    CONTEXT.with(|context| context.borrow().as_ref().filter(|c| !c.yielder.get().is_null()).cloned())
}

/// Makes a loop this thread's, or none.
pub(crate) fn set(context: Option<Rc<Context>>) {
    CONTEXT.with(|place| *place.borrow_mut() = context);
}

impl Context {
    /// Gives the thread back to the loop until what is asked for has come.
    #[allow(unsafe_code)]
    pub(crate) fn suspend(&self, request: Request) -> Signal {
        let (yielder, fiber) = (self.yielder.get(), self.current.get());
        assert!(!yielder.is_null(), "only a fiber can be suspended");
        self.yielder.set(std::ptr::null());
        // SAFETY: the pointer is set to the yielder of the running fiber when that fiber starts, and below
        // when it goes on, and is null in between; a yielder lives as long as its fiber's stack, on which
        // this call stands. `Context` never leaves its thread (it holds an `Rc`'s cells).
        let signal = unsafe { &*yielder }.suspend(request);
        self.current.set(fiber);
        self.yielder.set(yielder);
        signal
    }

    /// A name for a socket of the running fiber that no other registration of this loop has: its descriptor's
    /// number may be another socket's next.
    pub(crate) fn new_token(&self) -> u64 {
        let registration = self.registrations.get() + 1;
        self.registrations.set(registration);
        registration << FIBER_BITS | self.current.get() as u64
    }

    /// The fiber that a token belongs to.
    pub(crate) fn fiber_of(token: u64) -> usize {
        (token & ((1 << FIBER_BITS) - 1)) as usize
    }

    /// What news there was for this socket before the running fiber asked.
    pub(crate) fn take_unheard(&self, token: u64) -> Option<Signal> {
        let mut unheard = self.unheard.borrow_mut();
        let mine = &mut unheard[self.current.get()];
        let place = mine.iter().position(|news| news.0 == token)?;
        Some(mine.swap_remove(place).1)
    }

    /// Keeps news for a fiber that does not wait for it now. That the other end has closed outlasts all else.
    pub(crate) fn keep_unheard(&self, token: u64, signal: Signal) {
        let mut unheard = self.unheard.borrow_mut();
        let fibers = &mut unheard[Self::fiber_of(token)];
        match fibers.iter_mut().find(|news| news.0 == token) {
            Some(news) if news.1 != Signal::Closed => news.1 = signal,
            Some(_) => {}
            None => {
                if fibers.len() >= MOST_UNHEARD {
                    // Of sockets that the fiber has left behind: it holds two at most.
                    fibers.remove(0);
                }
                fibers.push((token, signal));
            }
        }
    }
}

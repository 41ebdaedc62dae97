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
    /// Until the socket with this number has news, or until the time is over.
    Socket { fd: i32, until: Option<Instant> },
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
    /// News for sockets that no fiber waited for at that moment: fiber, socket, and what.
    pub(crate) unheard: RefCell<Vec<(usize, i32, Signal)>>,
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

    /// What news there was for this socket before the running fiber asked.
    pub(crate) fn take_unheard(&self, fd: i32) -> Option<Signal> {
        let mut unheard = self.unheard.borrow_mut();
        let mine = |news: &(usize, i32, Signal)| (news.0, news.1) == (self.current.get(), fd);
        let place = unheard.iter().position(mine)?;
        Some(unheard.swap_remove(place).2)
    }

    /// Keeps news for a fiber that does not wait for it now. That the other end has closed outlasts all else.
    pub(crate) fn keep_unheard(&self, fiber: usize, fd: i32, signal: Signal) {
        let mut unheard = self.unheard.borrow_mut();
        match unheard.iter_mut().find(|news| (news.0, news.1) == (fiber, fd)) {
            Some(news) if news.2 != Signal::Closed => news.2 = signal,
            Some(_) => {}
            None => unheard.push((fiber, fd, signal)),
        }
    }
}

//! What a fiber knows of the loop that it runs on.

use std::cell::{Cell, RefCell};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Instant;

use corosensei::Yielder;

use crate::Wait;

/// Why a fiber gives up its thread.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Request {
    /// Until `until`, or until the loop is woken.
    Sleep { until: Instant },
    /// Until the socket with this number has news, or until the time is over.
    Socket { fd: i32, until: Option<Instant> },
}

pub(crate) type FiberYielder = Yielder<Wait, Request>;

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
    /// News for sockets that no fiber waited for at that moment: fiber and socket.
    pub(crate) unheard: RefCell<Vec<(usize, i32)>>,
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
    pub(crate) fn suspend(&self, request: Request) -> Wait {
        let (yielder, fiber) = (self.yielder.get(), self.current.get());
        assert!(!yielder.is_null(), "only a fiber can be suspended");
        self.yielder.set(std::ptr::null());
        // SAFETY: the pointer is set to the yielder of the running fiber when that fiber starts, and below
        // when it goes on, and is null in between; a yielder lives as long as its fiber's stack, on which
        // this call stands. `Context` never leaves its thread (it holds an `Rc`'s cells).
        let wait = unsafe { &*yielder }.suspend(request);
        self.current.set(fiber);
        self.yielder.set(yielder);
        wait
    }

    /// Whether there was news for this socket before the running fiber asked.
    pub(crate) fn take_unheard(&self, fd: i32) -> bool {
        let mut unheard = self.unheard.borrow_mut();
        let before = unheard.len();
        if before > 0 {
            let fiber = self.current.get();
            unheard.retain(|&news| news != (fiber, fd));
        }
        unheard.len() < before
    }
}

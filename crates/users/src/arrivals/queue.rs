//! The queue of an open loop, shared by all virtual users.
//!
//! A free user claims the next arrival in order; one that lies ahead is waited for, one that is due has been
//! waiting for the user. That is a first-come, first-served queue with one server a user, without a thread
//! that hands out work and would be late itself.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kelvin_measure::{Nanos, SECOND};

use super::Arrivals;

/// What a user that is free does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// Serve the arrival that was meant to start at `at`: at once when that has passed, or else then.
    Serve {
        /// The intended time.
        at: Nanos,
        /// How often the rate had been changed by then: see [`Queue::confirms`].
        changes: usize,
    },
    /// Nothing arrives before the end any more.
    End,
}

/// Arrivals refused within one second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused {
    /// Intended time of the first of them.
    pub first: Nanos,
    /// How many.
    pub count: u64,
}

/// The queue's books. In each, `due` = `claimed` + `refused` + `waiting`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueTally {
    /// Arrivals whose intended time has come.
    pub due: u64,
    /// Those of them that a user has taken.
    pub claimed: u64,
    /// Those that nobody will serve, because more than the limit were waiting.
    pub refused: u64,
    /// Those that still wait: at the end of the load, the ones that were not served.
    pub waiting: u64,
    /// The most that ever waited at once; never more than the limit.
    pub longest: u64,
}

/// A change of the rate.
#[derive(Debug, Clone)]
pub struct Change {
    /// From when on the arrivals are those of the new schedule.
    pub at: Nanos,
    /// The new schedule.
    pub arrivals: Arrivals,
}

/// Arrivals on their way to the users. See the module.
#[derive(Debug)]
pub struct Queue {
    limit: u64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// At the first arrival that is neither claimed nor refused.
    next: Cursor,
    /// At the first arrival that is not yet due; behind `next` while users wait for what is to come.
    due: Cursor,
    until: Nanos,
    /// Latest time that anybody has come with.
    seen: Nanos,
    refused: u64,
    longest: u64,
    /// Where seconds and the window begin.
    open: Nanos,
    /// Where the window ends; the load may go on.
    close: Nanos,
    /// Index of the first arrival of the window, once it is due.
    first_of_window: Option<u64>,
    /// Index of the first arrival after the window, once it is due.
    first_after: Option<u64>,
    refused_in_window: u64,
    /// Arrivals of the window that were waiting at the first check after it closed.
    waiting_at_close: Option<u64>,
    /// By second, the order of time; emptied by [`Queue::take_refused`].
    seconds: Vec<Refused>,
    /// In the order of time.
    changes: Vec<Change>,
}

/// One of the two places in the schedule.
#[derive(Debug)]
struct Cursor {
    arrivals: Arrivals,
    /// Time of the arrival it stands at.
    at: Nanos,
    /// Its index: how many it has passed.
    passed: u64,
    /// The schedules that follow, each from the arrival with this index on.
    then: VecDeque<(u64, Arrivals)>,
}

impl Cursor {
    fn new(mut arrivals: Arrivals) -> Self {
        let at = arrivals.advance();
        Self { arrivals, at, passed: 0, then: VecDeque::new() }
    }

    fn pass(&mut self) -> Nanos {
        let passed = self.at;
        self.passed += 1;
        while let Some((_, arrivals)) = self.then.pop_front_if(|(from, _)| *from == self.passed) {
            self.arrivals = arrivals;
        }
        self.at = self.arrivals.advance();
        passed
    }

    /// Goes on with another schedule from the arrival that it stands at.
    fn follow(&mut self, arrivals: Arrivals) {
        self.arrivals = arrivals;
        self.at = self.arrivals.advance();
    }
}

impl Queue {
    /// A queue in which at most `limit` arrivals wait, of those meant to start before `until`. With a limit of
    /// 0 an arrival is served only if a user waits for it.
    pub fn new(arrivals: Arrivals, limit: u64, until: Nanos) -> Self {
        let state = State {
            next: Cursor::new(arrivals.clone()),
            due: Cursor::new(arrivals),
            until,
            seen: 0,
            refused: 0,
            longest: 0,
            open: 0,
            close: Nanos::MAX,
            first_of_window: None,
            first_after: None,
            refused_in_window: 0,
            waiting_at_close: None,
            seconds: Vec::new(),
            changes: Vec::new(),
        };
        Self { limit, state: Mutex::new(state) }
    }

    /// The measured window from `open` to `close`: [`Queue::window`] counts what was meant to start in it, and the seconds
    /// of [`Queue::take_refused`] begin with it. Without it both begin at 0.
    #[must_use]
    pub fn with_window(self, open: Nanos, close: Nanos) -> Self {
        let mut state = self.lock();
        (state.open, state.close) = (open, close);
        drop(state);
        self
    }

    /// The next arrival in order, for a user that is free at `now`. When more than the limit are waiting, the
    /// oldest of them are refused first: they have been late for longest.
    pub fn claim(&self, now: Nanos) -> Claim {
        let mut state = self.lock();
        state.settle(now, self.limit);
        if state.next.at >= state.until {
            return Claim::End;
        }
        Claim::Serve { at: state.next.pass(), changes: state.changes.len() }
    }

    /// Goes on with another schedule from `now`, or as soon after it as nobody has come with a later time: `arrivals` makes it.
    /// Whoever waits for an arrival of the old schedule behind that has to give it back ([`Queue::confirms`]), and must be
    /// woken for that. Returns the moment.
    pub fn change(&self, now: Nanos, arrivals: impl FnOnce(Nanos) -> Arrivals) -> Nanos {
        let mut state = self.lock();
        state.settle(now, self.limit);
        let at = now.max(state.seen).saturating_add(1);
        let arrivals = arrivals(at);
        let (due, waiting) = (state.due.passed, state.waiting());
        state.due.follow(arrivals.clone());
        if waiting == 0 {
            // What users wait for is taken back from them.
            state.next.passed = due;
            state.next.follow(arrivals.clone());
        } else {
            state.next.then.push_back((due, arrivals.clone()));
        }
        state.changes.push(Change { at, arrivals });
        at
    }

    /// Whether a user at `now` may begin the arrival at `at` that it claimed after so many changes: it may not if a change
    /// since then has put another schedule in its place.
    pub fn confirms(&self, at: Nanos, changes: usize, now: Nanos) -> bool {
        let mut state = self.lock();
        // From here on no change can take it back.
        state.settle(now, self.limit);
        state.changes.get(changes).is_none_or(|change| at < change.at)
    }

    /// The changes from the given number on.
    pub fn changes(&self, from: usize) -> Vec<Change> {
        self.lock().changes.get(from..).map_or_else(Vec::new, <[Change]>::to_vec)
    }

    /// Ends the load and the window at `at`: nothing arrives from there on, when that is earlier than what was said before.
    /// A user that waits for a later arrival must read the clock itself. Returns the moment at which the window
    /// ends: later than `at` when a claim has been made at a later time already.
    pub fn close(&self, at: Nanos) -> Nanos {
        let mut state = self.lock();
        state.end(at);
        state.close = state.close.min(state.until);
        state.close
    }

    /// Closes the window at `close`, which may lie ahead, and ends the load at `end`.
    pub fn close_window(&self, close: Nanos, end: Nanos) {
        let mut state = self.lock();
        state.end(end);
        state.close = close.min(state.until);
    }

    /// Ends the load at `at`, as [`Queue::close`], and leaves the window's end where it is. Returns the moment.
    pub fn end(&self, at: Nanos) -> Nanos {
        let mut state = self.lock();
        state.end(at);
        state.until
    }

    /// The books of everything up to `now`.
    pub fn tally(&self, now: Nanos) -> QueueTally {
        let mut state = self.lock();
        state.settle(now, self.limit);
        QueueTally {
            due: state.due.passed,
            claimed: state.gone(state.due.passed) - state.refused,
            refused: state.refused,
            waiting: state.waiting(),
            longest: state.longest,
        }
    }

    /// The books of what was meant to start in the window, up to `now`; `longest` is that of the whole load.
    pub fn window(&self, now: Nanos) -> QueueTally {
        let mut state = self.lock();
        state.settle(now, self.limit);
        let first = state.first_of_window.unwrap_or(state.due.passed);
        state.books(first, state.refused_in_window)
    }

    /// Arrivals of the window that waited when it closed; none before anybody has come after that.
    pub fn waiting_at_close(&self) -> Option<u64> {
        self.lock().waiting_at_close
    }

    /// The refusals since the last call, by the second (from the window's opening) in which they were meant to
    /// start. A second that was handed out may come again with more of them.
    pub fn take_refused(&self) -> Vec<Refused> {
        std::mem::take(&mut self.lock().seconds)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere leaves nothing half done here.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Counts what has become due by `now`, and refuses what waits beyond the limit. Its work is one step for
    /// each arrival over the whole run, however seldom it is called.
    fn settle(&mut self, now: Nanos, limit: u64) {
        self.seen = self.seen.max(now.min(self.until.saturating_sub(1)));
        while self.due.at <= now && self.due.at < self.until {
            if self.first_of_window.is_none() && self.due.at >= self.open {
                self.first_of_window = Some(self.due.passed);
            }
            if self.first_after.is_none() && self.due.at >= self.close {
                self.first_after = Some(self.due.passed);
            }
            self.due.pass();
        }
        while self.waiting() > limit {
            let at = self.next.pass();
            self.refuse(at);
        }
        if now >= self.close && self.waiting_at_close.is_none() {
            self.waiting_at_close = Some(self.last_of_window().saturating_sub(self.next.passed));
        }
        self.longest = self.longest.max(self.waiting());
    }

    fn waiting(&self) -> u64 {
        self.due.passed.saturating_sub(self.next.passed)
    }

    fn refuse(&mut self, at: Nanos) {
        self.refused += 1;
        self.refused_in_window += u64::from((self.open..self.close).contains(&at));
        if at >= self.close {
            // The load continues after the window, whose seconds are reported.
            return;
        }
        let second = |at: Nanos| (at as i128 - self.open as i128).div_euclid(i128::from(SECOND));
        let same = self.seconds.last().is_some_and(|last| second(last.first) == second(at));
        match self.seconds.last_mut() {
            Some(last) if same => last.count += 1,
            _ => self.seconds.push(Refused { first: at, count: 1 }),
        }
    }

    fn end(&mut self, at: Nanos) {
        // What has become due stays due, or the books would lose it.
        self.until = self.until.min(at.max(self.seen.saturating_add(1)));
    }

    /// Index of the first arrival that is due and not of the window any more.
    fn last_of_window(&self) -> u64 {
        self.first_after.unwrap_or(self.due.passed)
    }

    /// Arrivals before the `last` one that were taken or refused. Beyond what is due, users wait for what is to come.
    fn gone(&self, last: u64) -> u64 {
        self.next.passed.min(last)
    }

    fn books(&self, first: u64, refused: u64) -> QueueTally {
        let last = self.last_of_window();
        let due = last.saturating_sub(first);
        let gone = self.gone(last).saturating_sub(first);
        QueueTally { due, claimed: gone - refused, refused, waiting: due - gone, longest: self.longest }
    }
}

#[cfg(test)]
mod tests;

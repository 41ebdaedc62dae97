//! The queue of an open loop, shared by all virtual users.
//!
//! A free user claims the next arrival in order. If its time lies ahead, the user waits for it; if it is due,
//! it has waited for the user. This is a first-come, first-served queue with one server per user, without a
//! dispatching thread that could be late itself.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kelvin_measure::{Nanos, SECOND};

use super::Arrivals;

/// What a free user does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// Serve the arrival that is intended to start at `at`: immediately if that time has passed, otherwise then.
    Serve {
        /// The intended start.
        at: Nanos,
        /// The number of changes of the rate at the time of the claim, for [`Queue::confirms`].
        changes: usize,
    },
    /// There are no further arrivals before the end.
    End,
}

/// Arrivals refused within one second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused {
    /// Intended start of the first of them.
    pub first: Nanos,
    /// Their number.
    pub count: u64,
}

/// The queue's counts. `due` = `claimed` + `refused` + `waiting`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueTally {
    /// Arrivals whose intended start has come.
    pub due: u64,
    /// Due arrivals that a user has taken.
    pub claimed: u64,
    /// Due arrivals that are not served because more than the limit were waiting.
    pub refused: u64,
    /// Due arrivals that still wait; at the end of the load, the unserved ones.
    pub waiting: u64,
    /// The largest number of arrivals that waited at the same time; never above the limit.
    pub longest: u64,
}

/// A change of the rate.
#[derive(Debug, Clone)]
pub struct Change {
    /// From this time on the arrivals are those of the new schedule.
    pub at: Nanos,
    /// The new schedule.
    pub arrivals: Arrivals,
}

/// The queue of an open loop's arrivals; see the module.
#[derive(Debug)]
pub struct Queue {
    limit: u64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Position of the first arrival that is neither claimed nor refused.
    next: Cursor,
    /// Position of the first arrival that is not due; behind `next` while users wait for future arrivals.
    due: Cursor,
    until: Nanos,
    /// The latest time of any call.
    seen: Nanos,
    refused: u64,
    longest: u64,
    /// Start of the window and of second 0.
    open: Nanos,
    /// End of the window; the load may continue.
    close: Nanos,
    /// Index of the first arrival of the window, once it is due.
    first_of_window: Option<u64>,
    /// Index of the first arrival after the window, once it is due.
    first_after: Option<u64>,
    refused_in_window: u64,
    /// Arrivals of the window that were waiting at the first check after it closed.
    waiting_at_close: Option<u64>,
    /// Refusals by second, in the order of time; emptied by [`Queue::take_refused`].
    seconds: Vec<Refused>,
    /// In the order of time.
    changes: Vec<Change>,
}

/// A position in the schedule.
#[derive(Debug)]
struct Cursor {
    arrivals: Arrivals,
    /// Time of the arrival at the position.
    at: Nanos,
    /// Its index, which is the number of arrivals passed.
    passed: u64,
    /// The schedules that follow, each with the index of its first arrival.
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

    /// Continues with another schedule, starting with the current arrival.
    fn follow(&mut self, arrivals: Arrivals) {
        self.arrivals = arrivals;
        self.at = self.arrivals.advance();
    }
}

impl Queue {
    /// A queue of the arrivals before `until`, in which at most `limit` wait. With a limit of 0 an arrival is
    /// served only if a user is waiting for it.
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

    /// Sets the measured window, from `open` to `close`. [`Queue::window`] counts the arrivals intended to
    /// start in it, and the seconds of [`Queue::take_refused`] are counted from `open`. The default is a
    /// window from 0 without end.
    #[must_use]
    pub fn with_window(self, open: Nanos, close: Nanos) -> Self {
        let mut state = self.lock();
        (state.open, state.close) = (open, close);
        drop(state);
        self
    }

    /// Claims the next arrival in order for a user who is free at `now`. If more than the limit are waiting,
    /// the oldest are refused first, since they are the latest.
    pub fn claim(&self, now: Nanos) -> Claim {
        let mut state = self.lock();
        state.settle(now, self.limit);
        if state.next.at >= state.until {
            return Claim::End;
        }
        Claim::Serve { at: state.next.pass(), changes: state.changes.len() }
    }

    /// Continues with another schedule, which `arrivals` creates for its start. The start is `now`, or as
    /// soon after it as no call has had a later time. Users that wait for a later arrival of the old schedule
    /// must be woken and give it back ([`Queue::confirms`]). Returns the start.
    pub fn change(&self, now: Nanos, arrivals: impl FnOnce(Nanos) -> Arrivals) -> Nanos {
        let mut state = self.lock();
        state.settle(now, self.limit);
        let at = now.max(state.seen).saturating_add(1);
        let arrivals = arrivals(at);
        let (due, waiting) = (state.due.passed, state.waiting());
        state.due.follow(arrivals.clone());
        if waiting == 0 {
            // Arrivals for which users wait are taken back.
            state.next.passed = due;
            state.next.follow(arrivals.clone());
        } else {
            state.next.then.push_back((due, arrivals.clone()));
        }
        state.changes.push(Change { at, arrivals });
        at
    }

    /// Whether a user at `now` may begin the arrival at `at` that it claimed after `changes` changes: not if
    /// a later change has replaced its schedule.
    pub fn confirms(&self, at: Nanos, changes: usize, now: Nanos) -> bool {
        let mut state = self.lock();
        // From here on no change can take the arrival back.
        state.settle(now, self.limit);
        state.changes.get(changes).is_none_or(|change| at < change.at)
    }

    /// The changes from number `from` on.
    pub fn changes(&self, from: usize) -> Vec<Change> {
        self.lock().changes.get(from..).map_or_else(Vec::new, <[Change]>::to_vec)
    }

    /// Ends load and window at `at`, unless they end earlier. A user that waits for a later arrival must
    /// check the clock. Returns the end of the window, which is later than `at` if a call has had a later
    /// time.
    pub fn close(&self, at: Nanos) -> Nanos {
        let mut state = self.lock();
        state.end(at);
        state.close = state.close.min(state.until);
        state.close
    }

    /// Closes the window at `close`, which may be in the future, and ends the load at `end`.
    pub fn close_window(&self, close: Nanos, end: Nanos) {
        let mut state = self.lock();
        state.end(end);
        state.close = close.min(state.until);
    }

    /// Ends the load at `at`, as [`Queue::close`] does, and keeps the window's end. Returns the end of the
    /// load.
    pub fn end(&self, at: Nanos) -> Nanos {
        let mut state = self.lock();
        state.end(at);
        state.until
    }

    /// The counts of all arrivals up to `now`.
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

    /// The counts of the arrivals of the window up to `now`; `longest` is that of the whole load.
    pub fn window(&self, now: Nanos) -> QueueTally {
        let mut state = self.lock();
        state.settle(now, self.limit);
        let first = state.first_of_window.unwrap_or(state.due.passed);
        state.books(first, state.refused_in_window)
    }

    /// Arrivals of the window that were waiting when it closed; `None` before the first call after that.
    pub fn waiting_at_close(&self) -> Option<u64> {
        self.lock().waiting_at_close
    }

    /// The refusals since the last call, by the second of their intended start. Seconds are counted from the
    /// window's opening. The same second may be returned again with further refusals.
    pub fn take_refused(&self) -> Vec<Refused> {
        std::mem::take(&mut self.lock().seconds)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic in another thread leaves the state consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Updates what is due at `now`, and refuses what waits beyond the limit. Its cost is one step per
    /// arrival over the whole run, regardless of the number of calls.
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
            // Only the window's seconds are reported, but the load continues after it.
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
        // Due arrivals stay due, otherwise the counts would not add up.
        self.until = self.until.min(at.max(self.seen.saturating_add(1)));
    }

    /// Index of the first due arrival after the window.
    fn last_of_window(&self) -> u64 {
        self.first_after.unwrap_or(self.due.passed)
    }

    /// Arrivals before index `last` that were taken or refused. Claims beyond the due arrivals are for future
    /// ones.
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

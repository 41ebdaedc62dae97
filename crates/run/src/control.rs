//! Orders of a scenario's timeline to one of several loads on the same clock: its start, its changes, its
//! end.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kelvin_measure::{Clock, Nanos, SECOND};
use kelvin_workload::Stop;
use serde::{Deserialize, Serialize};

/// How often a load that waits for its start checks for a stop request.
const PATIENCE: Duration = Duration::from_millis(50);

/// A change of a running load.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// Arrivals per second of an open loop.
    Rate(f64),
    /// Active users of a closed loop; the others keep their connections and are idle.
    Users(u32),
    /// The end of the window and of the load. An open loop continues for a limited time until the waiting
    /// arrivals have begun.
    Close,
}

/// The timeline's control of one load. All times are those of the clock that the loads share.
#[derive(Debug, Default)]
pub struct LoadControl {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Whether the load is ready to start.
    armed: bool,
    /// The ordered start.
    begins: Option<Nanos>,
    /// The actual start, and whether the load has ended.
    begun: Option<Nanos>,
    ended: bool,
    /// In the order of their times.
    changes: Vec<(Nanos, Change)>,
}

impl LoadControl {
    /// The control of a load that waits for its start.
    pub fn new() -> Self {
        Self::default()
    }

    /// Orders the start. A load that cannot be ready by then starts a whole number of seconds later.
    pub fn begin_at(&self, at: Nanos) {
        self.lock().begins = Some(at);
        self.changed.notify_all();
    }

    /// Orders a change; it should come [`LoadControl::NOTICE`] ahead to take effect on time.
    pub fn change_at(&self, at: Nanos, change: Change) {
        let mut state = self.lock();
        let place = state.changes.partition_point(|(before, _)| *before <= at);
        state.changes.insert(place, (at, change));
    }

    /// How long before its time an order should be given.
    pub const NOTICE: Duration = Duration::from_millis(300);

    /// Whether the load is ready to start, or has ended.
    pub fn is_armed(&self) -> bool {
        let state = self.lock();
        state.armed || state.ended
    }

    /// When the load started.
    pub fn begun(&self) -> Option<Nanos> {
        self.lock().begun
    }

    /// Whether it has ended, or will never begin.
    pub fn is_ended(&self) -> bool {
        self.lock().ended
    }

    /// Marks the load as ended, for whatever reason.
    pub fn end(&self) {
        self.lock().ended = true;
        self.changed.notify_all();
    }

    /// Called by the load: reports that it is ready, waits for the order to start, and returns the time of
    /// the start, which is at least `head` from now. `None` if a stop was requested first.
    pub fn wait_to_begin(&self, clock: &Clock, head: Duration, stop: &Stop) -> Option<Nanos> {
        let mut state = self.lock();
        state.armed = true;
        self.changed.notify_all();
        loop {
            if stop.requested() {
                return None;
            }
            if let Some(at) = state.begins {
                let earliest = clock.now() + head.as_nanos() as u64;
                let at = at + earliest.saturating_sub(at).div_ceil(SECOND) * SECOND;
                state.begun = Some(at);
                self.changed.notify_all();
                return Some(at);
            }
            state = self.changed.wait_timeout(state, PATIENCE).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// As [`LoadControl::wait_to_begin`], but returns only at the start.
    pub(crate) fn begin(&self, clock: &Clock, head: Duration, stop: &Stop) -> Option<Nanos> {
        let at = self.wait_to_begin(clock, head, stop)?;
        loop {
            let now = clock.now();
            if now >= at || stop.requested() {
                return Some(at).filter(|_| !stop.requested());
            }
            std::thread::sleep(Duration::from_nanos(at - now).min(PATIENCE));
        }
    }

    /// Called by the load: when the next change is due.
    pub(crate) fn next_change(&self) -> Option<Nanos> {
        self.lock().changes.first().map(|(at, _)| *at)
    }

    /// Called by the load: takes the changes that are due at `now`, and a [`Change::Close`] even if it is for
    /// later.
    pub(crate) fn take_changes(&self, now: Nanos) -> Vec<(Nanos, Change)> {
        let due = |(at, change): &(Nanos, Change)| *at <= now || *change == Change::Close;
        let mut state = self.lock();
        let (taken, left) = std::mem::take(&mut state.changes).into_iter().partition(due);
        state.changes = left;
        taken
    }

    /// Called by whoever forwards the orders to a load in another process: the ordered start, and the changes
    /// not yet taken, with their times.
    pub fn relay(&self) -> (Option<Nanos>, Vec<(Nanos, Change)>) {
        let mut state = self.lock();
        (state.begins, std::mem::take(&mut state.changes))
    }

    /// Called by whoever forwards the orders: the load is ready, or `begun` is the time of its start.
    pub fn heard(&self, begun: Option<Nanos>) {
        let mut state = self.lock();
        state.armed = true;
        state.begun = begun.or(state.begun);
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic in another thread leaves the state consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

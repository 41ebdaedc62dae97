//! What a timeline decides of a load that others share the clock with: when it begins, how it changes, when it ends.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kelvin_measure::{Clock, Nanos, SECOND};
use kelvin_workload::Stop;
use serde::{Deserialize, Serialize};

/// How often a load that waits for its beginning checks whether somebody has asked to stop.
const PATIENCE: Duration = Duration::from_millis(50);

/// A change of a load that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// Arrivals a second of an open loop.
    Rate(f64),
    /// Users at work in a closed loop; the others keep their connections and rest.
    Users(u32),
    /// The end of the window, and of the load; the arrivals that wait then are followed for a while.
    Close,
}

/// The timeline's hold on one load. Times are those of the clock that all loads share.
#[derive(Debug, Default)]
pub struct LoadControl {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Ready to begin.
    armed: bool,
    /// When it is to begin.
    begins: Option<Nanos>,
    /// When it began, and whether it has ended.
    begun: Option<Nanos>,
    ended: bool,
    /// In the order of their times.
    changes: Vec<(Nanos, Change)>,
}

impl LoadControl {
    /// A load that waits for its beginning.
    pub fn new() -> Self {
        Self::default()
    }

    /// Orders its beginning. One that cannot be ready by then begins a whole number of seconds later.
    pub fn begin_at(&self, at: Nanos) {
        self.lock().begins = Some(at);
        self.changed.notify_all();
    }

    /// Orders a change; best some [`LoadControl::NOTICE`] ahead, so that it takes place at its time.
    pub fn change_at(&self, at: Nanos, change: Change) {
        let mut state = self.lock();
        let place = state.changes.partition_point(|(before, _)| *before <= at);
        state.changes.insert(place, (at, change));
    }

    /// How long before its time an order should come.
    pub const NOTICE: Duration = Duration::from_millis(300);

    /// Whether everything before its beginning is done.
    pub fn is_armed(&self) -> bool {
        let state = self.lock();
        state.armed || state.ended
    }

    /// When it began.
    pub fn begun(&self) -> Option<Nanos> {
        self.lock().begun
    }

    /// Whether it has ended, or will never begin.
    pub fn is_ended(&self) -> bool {
        self.lock().ended
    }

    /// It has ended, in whatever way.
    pub fn end(&self) {
        self.lock().ended = true;
        self.changed.notify_all();
    }

    /// For the load: says that it is ready, waits for the order to begin, and answers when that is: at the earliest `head` from
    /// then. None if somebody asked to stop first.
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

    /// The same, which returns at that moment.
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

    /// For the load: when the next change is due.
    pub(crate) fn next_change(&self) -> Option<Nanos> {
        self.lock().changes.first().map(|(at, _)| *at)
    }

    /// For the load: takes the changes that are due at `now`, and ends that are ordered for later.
    pub(crate) fn take_changes(&self, now: Nanos) -> Vec<(Nanos, Change)> {
        let due = |(at, change): &(Nanos, Change)| *at <= now || *change == Change::Close;
        let mut state = self.lock();
        let (taken, left) = std::mem::take(&mut state.changes).into_iter().partition(due);
        state.changes = left;
        taken
    }

    /// For whoever relays the orders to a load elsewhere: when it is to begin, and the changes that were not taken yet, with
    /// their times.
    pub fn relay(&self) -> (Option<Nanos>, Vec<(Nanos, Change)>) {
        let mut state = self.lock();
        (state.begins, std::mem::take(&mut state.changes))
    }

    /// The same, who has heard that the load is ready, or that it began then.
    pub fn heard(&self, begun: Option<Nanos>) {
        let mut state = self.lock();
        state.armed = true;
        state.begun = begun.or(state.begun);
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere leaves nothing half done here.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! The arrivals of an open loop by second, and over the window.

use std::collections::BTreeMap;
use std::sync::Arc;

use kelvin_measure::event::{self, Event};
use kelvin_measure::{Nanos, SECOND, second_from};

use crate::arrivals::{Arrivals, Queue};

/// Counts the arrivals of each second from the same schedule that the users follow.
#[derive(Debug)]
pub struct Schedule {
    point: u32,
    rate: f64,
    open: Nanos,
    queue: Arc<Queue>,
    arrivals: Arrivals,
    /// Time of the first arrival that was not counted.
    next: Nanos,
    /// The first second that was not reported.
    second: i64,
    refused: BTreeMap<i64, u64>,
    /// The number of changes of the rate that were taken into account.
    changes: usize,
    /// Arrivals requested from the window's opening to the last change.
    asked: f64,
    /// The start of the current rate, within the window.
    since: Nanos,
}

impl Schedule {
    /// The counter of a point with this number and rate per second. Its users begin, and its window opens, at
    /// these times.
    pub fn new(
        point: u32,
        rate: f64,
        (begin, open): (Nanos, Nanos),
        queue: Arc<Queue>,
        mut arrivals: Arrivals,
    ) -> Self {
        let next = arrivals.advance();
        let second = second_from(open, begin);
        let refused = BTreeMap::new();
        Self {
            point,
            rate,
            open,
            queue,
            arrivals,
            next,
            second,
            refused,
            changes: 0,
            asked: 0.0,
            since: open,
        }
    }

    /// The arrivals of the seconds that ended before `now`. The last one ends with the window at `close`.
    pub fn complete(&mut self, now: Nanos, close: Nanos) -> Vec<Event> {
        let mut events = Vec::new();
        let tally = if now < close { self.queue.tally(now) } else { self.queue.window(now) };
        for refused in self.queue.take_refused() {
            *self.refused.entry(second_from(self.open, refused.first)).or_default() += refused.count;
        }
        while self.end_of(self.second).min(close) <= now && self.start_of(self.second) < close {
            let end = self.end_of(self.second).min(close);
            let due = self.due_before(end);
            events.push(self.event(self.second, due, Some(tally.waiting)));
            self.second += 1;
        }
        // Refusals in seconds that were already reported.
        while let Some(entry) = self.refused.first_entry().filter(|entry| *entry.key() < self.second) {
            let second = *entry.key();
            events.push(self.event(second, 0, None));
        }
        events
    }

    /// The counts of the window's arrivals. `unended` of them were taken by users but had no end before the
    /// run was over.
    pub fn window(&self, close: Nanos, unended: u64) -> event::ArrivalSchedule {
        let books = self.queue.window(close);
        event::ArrivalSchedule {
            rate: self.mean_rate(close),
            due: books.due,
            refused: books.refused,
            waiting: books.waiting,
            waiting_at_close: self.queue.waiting_at_close(),
            cut_off: unended,
            longest: books.longest,
        }
    }

    /// Counts the arrivals up to `end`, including changes of the rate.
    fn due_before(&mut self, end: Nanos) -> u64 {
        let mut due = 0;
        loop {
            let change = self.queue.changes(self.changes).into_iter().next().filter(|change| change.at < end);
            let until = change.as_ref().map_or(end, |change| change.at);
            while self.next < until {
                self.next = self.arrivals.advance();
                due += 1;
            }
            let Some(change) = change else { return due };
            self.changes += 1;
            self.asked += self.rate * seconds(self.since, change.at);
            (self.since, self.rate) = (change.at.max(self.open), change.arrivals.rate());
            self.arrivals = change.arrivals;
            self.next = self.arrivals.advance();
        }
    }

    /// Requested arrivals per second, on average over the window.
    fn mean_rate(&self, close: Nanos) -> f64 {
        if self.changes == 0 || close <= self.open {
            return self.rate;
        }
        (self.asked + self.rate * seconds(self.since, close)) / seconds(self.open, close)
    }

    fn event(&mut self, second: i64, due: u64, waiting: Option<u64>) -> Event {
        let refused = self.refused.remove(&second).unwrap_or(0);
        Event::Arrivals(event::Arrivals { point: self.point, second, due, refused, waiting })
    }

    fn start_of(&self, second: i64) -> Nanos {
        (self.open as i64 + second * SECOND as i64).max(0) as Nanos
    }

    fn end_of(&self, second: i64) -> Nanos {
        self.start_of(second + 1)
    }
}

fn seconds(from: Nanos, to: Nanos) -> f64 {
    to.saturating_sub(from) as f64 / 1e9
}

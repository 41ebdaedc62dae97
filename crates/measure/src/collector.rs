//! Sorts the samples of all users into seconds and keeps the books.

use std::collections::BTreeMap;

use rtrb::Consumer;

use crate::event::{KindCounts, Part, Second};
use crate::invariant::{Invariant, counts_agree};
use crate::{Nanos, Outcome, Sample};

const SECOND: Nanos = 1_000_000_000;

/// How long a second stays open for samples on their way; what comes later is emitted as an addition.
const GRACE: Nanos = 200_000_000;

/// Drains every user's ring, from one thread, a few times a second.
#[derive(Debug)]
pub struct Collector {
    point: u32,
    kinds: usize,
    rings: Vec<Consumer<Sample>>,
    window_start: Nanos,
    window_end: Option<Nanos>,
    open: BTreeMap<(i64, u8), Second>,
    /// The seconds before this one were handed out.
    complete: i64,
    totals: Totals,
}

/// Sums over one point.
#[derive(Debug, Clone)]
pub struct Totals {
    /// Over the measured window, by transaction type.
    pub measured: Vec<KindCounts>,
    /// Over ramp-up, window and tail: everything that the users did.
    pub all: Vec<KindCounts>,
    /// Samples drained, of any outcome.
    pub samples: u64,
    /// When the last sample of the window ended.
    pub last_end: Nanos,
}

impl Totals {
    fn new(kinds: usize) -> Self {
        Self {
            measured: vec![KindCounts::default(); kinds],
            all: vec![KindCounts::default(); kinds],
            samples: 0,
            last_end: 0,
        }
    }

    /// Every sample must be in exactly one count, and every good one in the histogram.
    pub fn invariants(&self, pushed: u64) -> Vec<Invariant> {
        let counted: u64 = self.all.iter().map(|k| k.good() + k.failed).sum();
        let good: u64 = self.measured.iter().map(KindCounts::good).sum();
        let in_histograms: u64 = self.measured.iter().map(|k| k.latency.count()).sum();
        vec![
            counts_agree(
                "every transaction that a user ended was counted",
                ("ended by the users", pushed),
                ("counted", counted),
                0,
            ),
            counts_agree(
                "the latency histograms hold every counted transaction",
                ("transactions in the window", good),
                ("latencies", in_histograms),
                0,
            ),
        ]
    }
}

impl Collector {
    /// A collector for `point` whose load begins at `begin` and whose measured window opens at `window_start`
    /// and closes at `window_end`, or when [`Collector::close_window`] says so.
    pub fn new(
        point: u32,
        kinds: usize,
        rings: Vec<Consumer<Sample>>,
        begin: Nanos,
        window_start: Nanos,
        window_end: Option<Nanos>,
    ) -> Self {
        let totals = Totals::new(kinds);
        let complete = second_from(window_start, begin);
        Self { point, kinds, rings, window_start, window_end, open: BTreeMap::new(), complete, totals }
    }

    /// Closes the window at `end` if it was to close later. `end` must be the clock's time now, read in the
    /// thread that drains: then no sample that ended after it can have been taken for measured.
    pub fn close_window(&mut self, end: Nanos) {
        self.window_end = Some(self.window_end.map_or(end, |planned| planned.min(end)));
    }

    /// Takes what the users have recorded; returns the seconds that are complete at `now`, also those in which
    /// nothing ended: a stall is something to see.
    pub fn drain(&mut self, now: Nanos) -> Vec<Second> {
        self.take_samples();
        let complete_before = self.second_of(now.saturating_sub(GRACE));
        for second in self.complete..complete_before {
            let start = self.window_start as i64 + second * SECOND as i64;
            let part = part_of(self.window_start, self.window_end, start.max(0) as u64);
            if part != Part::Tail && self.open.range((second, 0)..(second + 1, 0)).next().is_none() {
                self.open
                    .insert((second, part_key(part)), empty_second(self.point, second, part, self.kinds));
            }
        }
        self.complete = self.complete.max(complete_before);
        let still_open = self.open.split_off(&(complete_before, 0));
        std::mem::replace(&mut self.open, still_open).into_values().collect()
    }

    /// Takes the last samples, after all users have ended, and returns what is left, with the sums.
    pub fn finish(mut self) -> (Vec<Second>, Totals) {
        self.take_samples();
        (self.open.into_values().collect(), self.totals)
    }

    /// Transactions of `kind` that ended well within the measured window so far.
    pub fn measured_good(&self, kind: usize) -> u64 {
        self.totals.measured[kind].good()
    }

    /// Transactions that ended so far, of any kind and outcome.
    pub fn samples(&self) -> u64 {
        self.totals.samples
    }

    /// The second, counted from the window's opening, that holds a point in time.
    pub fn second_of(&self, at: Nanos) -> i64 {
        second_from(self.window_start, at)
    }

    /// Takes what the users have recorded and emits nothing yet.
    pub fn take_samples(&mut self) {
        for ring in &mut self.rings {
            // A bound, so that a user who records faster than we drain cannot hold us here.
            for _ in 0..ring.buffer().capacity() {
                let Ok(sample) = ring.pop() else { break };
                let part = part_of(self.window_start, self.window_end, sample.end);
                let second = second_from(self.window_start, sample.end);
                let empty = || empty_second(self.point, second, part, self.kinds);
                let entry = self.open.entry((second, part_key(part))).or_insert_with(empty);
                let kind = usize::from(sample.kind);
                count(&mut entry.kinds[kind], &sample);
                count(&mut self.totals.all[kind], &sample);
                if part == Part::Measured {
                    count(&mut self.totals.measured[kind], &sample);
                    self.totals.last_end = self.totals.last_end.max(sample.end);
                }
                self.totals.samples += 1;
            }
        }
    }
}

/// The second, counted from `window_start`, that holds `at`; negative before the window.
pub fn second_from(window_start: Nanos, at: Nanos) -> i64 {
    (at as i64 - window_start as i64).div_euclid(SECOND as i64)
}

fn empty_second(point: u32, second: i64, part: Part, kinds: usize) -> Second {
    Second { point, second, part, kinds: vec![KindCounts::default(); kinds] }
}

fn part_of(window_start: Nanos, window_end: Option<Nanos>, end: Nanos) -> Part {
    if end < window_start {
        Part::RampUp
    } else if window_end.is_some_and(|close| end >= close) {
        Part::Tail
    } else {
        Part::Measured
    }
}

fn part_key(part: Part) -> u8 {
    match part {
        Part::RampUp => 0,
        Part::Measured => 1,
        Part::Tail => 2,
    }
}

fn count(counts: &mut KindCounts, sample: &Sample) {
    counts.retries += u64::from(sample.retries);
    match sample.outcome {
        Outcome::Committed => counts.committed += 1,
        Outcome::RolledBack => counts.rolled_back += 1,
        Outcome::Failed => {
            counts.failed += 1;
            return;
        }
    }
    counts.latency.record(sample.service);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder;

    fn sample(end: Nanos, outcome: Outcome) -> Sample {
        Sample::closed(end, 1_000_000, 0, outcome, 0)
    }

    #[test]
    fn a_sample_counts_in_the_part_and_second_in_which_it_ended() {
        let (mut user, ring) = recorder(16);
        let mut collector = Collector::new(0, 1, vec![ring], 0, 5 * SECOND, Some(7 * SECOND));
        for end in [SECOND, 5 * SECOND - 1, 5 * SECOND, 6 * SECOND, 7 * SECOND - 1, 7 * SECOND] {
            user.record(sample(end, Outcome::Committed));
        }
        user.record(sample(6 * SECOND, Outcome::Failed));
        assert!(collector.drain(SECOND).is_empty(), "nothing is complete within the grace");
        let seconds = collector.drain(9 * SECOND);
        let found: Vec<_> =
            seconds.iter().map(|s| (s.second, s.part, s.kinds[0].good(), s.kinds[0].failed)).collect();
        assert_eq!(
            found,
            [
                (-5, Part::RampUp, 0, 0),
                (-4, Part::RampUp, 1, 0),
                (-3, Part::RampUp, 0, 0),
                (-2, Part::RampUp, 0, 0),
                (-1, Part::RampUp, 1, 0),
                (0, Part::Measured, 1, 0),
                (1, Part::Measured, 2, 1),
                (2, Part::Tail, 1, 0)
            ]
        );
        let (rest, totals) = collector.finish();
        assert!(rest.is_empty());
        assert_eq!((totals.measured[0].good(), totals.all[0].good(), totals.samples), (3, 6, 7));
        assert!(totals.invariants(user.pushed()).iter().all(|i| i.holds));
        assert!(!totals.invariants(8).iter().all(|i| i.holds), "a lost sample is found");
    }

    #[test]
    fn a_window_closed_early_keeps_what_ended_before() {
        let (mut user, ring) = recorder(16);
        let mut collector = Collector::new(0, 1, vec![ring], 0, 0, Some(60 * SECOND));
        user.record(sample(SECOND / 2, Outcome::Committed));
        collector.drain(SECOND);
        collector.close_window(SECOND);
        user.record(sample(SECOND + 1, Outcome::RolledBack));
        let (_, totals) = collector.finish();
        assert_eq!((totals.measured[0].good(), totals.all[0].good()), (1, 2));
    }
}

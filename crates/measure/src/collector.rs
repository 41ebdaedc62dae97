//! Sorts the samples of all users into seconds and keeps the books.

use std::collections::BTreeMap;

use rtrb::Consumer;
use serde::{Deserialize, Serialize};

use crate::event::{KindCounts, LoadPart, Second, SeriesRole};
use crate::invariant::{Invariant, counts_agree};
use crate::{Nanos, SECOND, Sample, TransactionLog, TransactionOutcome};

/// How long a second stays open for samples on their way; what comes later is emitted as an addition.
const GRACE: Nanos = 200_000_000;

/// Drains every user's ring, from one thread, a few times a second.
#[derive(Debug)]
pub struct Collector {
    point: u32,
    layout: SeriesLayout,
    rings: Vec<Consumer<Sample>>,
    window_start: Nanos,
    window_end: Option<Nanos>,
    open: BTreeMap<(i64, u8), Second>,
    /// The seconds before this one were handed out.
    complete: i64,
    totals: Totals,
    log: Option<TransactionLog>,
}

/// Which series a sample goes into.
#[derive(Debug)]
struct SeriesLayout {
    roles: Vec<SeriesRole>,
    /// By series of transactions: the series of their response times.
    response: Vec<Option<usize>>,
    lag: Option<usize>,
}

impl SeriesLayout {
    fn new(roles: Vec<SeriesRole>) -> Self {
        let place = |wanted: SeriesRole| roles.iter().position(|&role| role == wanted);
        let response = (0..roles.len()).map(|of| place(SeriesRole::Response { of: of as u16 })).collect();
        Self { lag: place(SeriesRole::Lag), response, roles }
    }

    /// `intended` says to which part of the load the sample's intended start belongs, and `ended` its end.
    fn count(&self, kinds: &mut [KindCounts], sample: &Sample, intended: LoadPart, ended: LoadPart) {
        let kind = usize::from(sample.kind);
        count(&mut kinds[kind], sample, sample.service);
        // The window's arrivals are those that were to start in it.
        let left_over = intended == LoadPart::RampUp && ended != LoadPart::RampUp;
        if left_over || intended == LoadPart::Tail {
            return;
        }
        if let Some(response) = self.response[kind] {
            count(&mut kinds[response], sample, sample.response());
        }
        if let Some(lag) = self.lag.filter(|_| sample.awaited) {
            kinds[lag].committed += 1;
            kinds[lag].latency.record(sample.late);
        }
    }
}

/// Sums over one point, by series.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Totals {
    /// What each series is of.
    pub roles: Vec<SeriesRole>,
    /// Over the measured window.
    pub measured: Vec<KindCounts>,
    /// Over ramp-up, window and tail: everything that the users did.
    pub all: Vec<KindCounts>,
    /// Samples drained, of any outcome.
    pub samples: u64,
    /// When the last sample of the window ended.
    pub last_end: Nanos,
}

impl Totals {
    /// Of nothing yet; the roles are those of the run's series, in their order.
    pub fn new(roles: Vec<SeriesRole>) -> Self {
        Self {
            measured: vec![KindCounts::default(); roles.len()],
            all: vec![KindCounts::default(); roles.len()],
            roles,
            samples: 0,
            last_end: 0,
        }
    }

    /// The series of transactions out of those in `kinds`: what may be added up.
    pub fn transactions<'a>(&'a self, kinds: &'a [KindCounts]) -> impl Iterator<Item = &'a KindCounts> {
        let of =
            |(kind, &role): (&'a KindCounts, &SeriesRole)| (role == SeriesRole::Transaction).then_some(kind);
        kinds.iter().zip(&self.roles).filter_map(of)
    }

    /// The sums over the measured window of the series whose role is `wanted`.
    pub fn measured_of(&self, wanted: impl Fn(SeriesRole) -> bool) -> KindCounts {
        let mut sum = KindCounts::default();
        for (kind, _) in self.measured.iter().zip(&self.roles).filter(|(_, role)| wanted(**role)) {
            sum.add(kind);
        }
        sum
    }

    /// Adds those of another generator, which have the same series.
    pub fn merge(&mut self, other: &Self) {
        let sums = self.measured.iter_mut().chain(&mut self.all);
        sums.zip(other.measured.iter().chain(&other.all)).for_each(|(sum, kind)| sum.add(kind));
        self.samples = self.samples.saturating_add(other.samples);
        self.last_end = self.last_end.max(other.last_end);
    }

    /// Adds a second that was handed out; its series are those of the roles.
    pub fn add(&mut self, second: &Second) {
        for (index, kind) in second.kinds.iter().enumerate() {
            self.all[index].add(kind);
            if self.roles[index].counts_in(second.part) {
                self.measured[index].add(kind);
            }
        }
    }

    /// Every sample must be in exactly one count, and every good one in the histogram.
    pub fn invariants(&self, pushed: u64) -> Vec<Invariant> {
        let own = |role: &SeriesRole| matches!(role, SeriesRole::Transaction | SeriesRole::Statement { .. });
        let own = self.all.iter().zip(&self.roles).filter(|(_, role)| own(role));
        let counted: u64 = own.map(|(k, _)| k.good() + k.failed).sum();
        let good: u64 = self.transactions(&self.measured).map(KindCounts::good).sum();
        let in_histograms: u64 = self.transactions(&self.measured).map(|k| k.latency.count()).sum();
        vec![
            counts_agree(
                "every transaction that the users finished was counted",
                ("finished by the users", pushed),
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
    /// and closes at `window_end`, or when [`Collector::close_window`] says so. The roles are those of the run's
    /// series, in their order.
    pub fn new(
        point: u32,
        roles: Vec<SeriesRole>,
        rings: Vec<Consumer<Sample>>,
        begin: Nanos,
        window_start: Nanos,
        window_end: Option<Nanos>,
    ) -> Self {
        let totals = Totals::new(roles.clone());
        let complete = second_from(window_start, begin);
        let layout = SeriesLayout::new(roles);
        let open = BTreeMap::new();
        Self { point, layout, rings, window_start, window_end, open, complete, totals, log: None }
    }

    /// The same, which writes every transaction to a log.
    #[must_use]
    pub fn logging(mut self, log: Option<TransactionLog>) -> Self {
        self.log = log;
        self
    }

    /// Takes the log out, when all samples have been taken.
    pub fn take_log(&mut self) -> Option<TransactionLog> {
        self.take_samples();
        self.log.take()
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
            if part != LoadPart::Tail && self.open.range((second, 0)..(second + 1, 0)).next().is_none() {
                let empty = self.empty_second(second, part);
                self.open.insert((second, part_key(part)), empty);
            }
        }
        self.complete = self.complete.max(complete_before);
        let still_open = self.open.split_off(&(complete_before, 0));
        let complete = std::mem::replace(&mut self.open, still_open);
        self.hand_out(complete)
    }

    /// Takes the last samples, after all users have ended, and returns what is left, with the sums.
    pub fn finish(mut self) -> (Vec<Second>, Totals) {
        self.take_samples();
        let rest = std::mem::take(&mut self.open);
        (self.hand_out(rest), self.totals)
    }

    /// The sums are those of the seconds: a sample costs one histogram access, not three.
    fn hand_out(&mut self, seconds: BTreeMap<(i64, u8), Second>) -> Vec<Second> {
        seconds.into_values().inspect(|second| self.totals.add(second)).collect()
    }

    fn empty_second(&self, second: i64, part: LoadPart) -> Second {
        Second {
            point: self.point,
            second,
            part,
            kinds: vec![KindCounts::default(); self.layout.roles.len()],
        }
    }

    /// The second, counted from the window's opening, that holds a point in time.
    pub fn second_of(&self, at: Nanos) -> i64 {
        second_from(self.window_start, at)
    }

    /// Takes what the users have recorded and emits nothing yet.
    pub fn take_samples(&mut self) {
        for (user, ring) in self.rings.iter_mut().enumerate() {
            // A bound, so that a user who records faster than we drain cannot hold us here.
            for _ in 0..ring.buffer().capacity() {
                let Ok(sample) = ring.pop() else { break };
                if let Some(log) = &mut self.log {
                    log.add(user, &sample);
                }
                let part = part_of(self.window_start, self.window_end, sample.end);
                let second = second_from(self.window_start, sample.end);
                let (point, series) = (self.point, self.layout.roles.len());
                let entry = self.open.entry((second, part_key(part))).or_insert_with(|| Second {
                    point,
                    second,
                    part,
                    kinds: vec![KindCounts::default(); series],
                });
                let intended = sample.end.saturating_sub(sample.response());
                let intended = part_of(self.window_start, self.window_end, intended);
                self.layout.count(&mut entry.kinds, &sample, intended, part);
                if part == LoadPart::Measured {
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

fn part_of(window_start: Nanos, window_end: Option<Nanos>, end: Nanos) -> LoadPart {
    if end < window_start {
        LoadPart::RampUp
    } else if window_end.is_some_and(|close| end >= close) {
        LoadPart::Tail
    } else {
        LoadPart::Measured
    }
}

fn part_key(part: LoadPart) -> u8 {
    match part {
        LoadPart::RampUp => 0,
        LoadPart::Measured => 1,
        LoadPart::Tail => 2,
    }
}

fn count(counts: &mut KindCounts, sample: &Sample, took: Nanos) {
    counts.retries += u64::from(sample.retries);
    match sample.outcome {
        TransactionOutcome::Committed => counts.committed += 1,
        TransactionOutcome::RolledBack => counts.rolled_back += 1,
        TransactionOutcome::Failed => {
            counts.failed += 1;
            return;
        }
    }
    counts.latency.record(took);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder;

    fn sample(end: Nanos, outcome: TransactionOutcome) -> Sample {
        Sample::closed(end, 1_000_000, 0, outcome, 0)
    }

    #[test]
    fn a_sample_counts_in_the_part_and_second_in_which_it_ended() {
        let (mut user, ring) = recorder(16);
        let mut collector =
            Collector::new(0, vec![SeriesRole::Transaction], vec![ring], 0, 5 * SECOND, Some(7 * SECOND));
        for end in [SECOND, 5 * SECOND - 1, 5 * SECOND, 6 * SECOND, 7 * SECOND - 1, 7 * SECOND] {
            user.record(sample(end, TransactionOutcome::Committed));
        }
        user.record(sample(6 * SECOND, TransactionOutcome::Failed));
        assert!(collector.drain(SECOND).is_empty(), "nothing is complete within the grace");
        let seconds = collector.drain(9 * SECOND);
        let found: Vec<_> =
            seconds.iter().map(|s| (s.second, s.part, s.kinds[0].good(), s.kinds[0].failed)).collect();
        assert_eq!(
            found,
            [
                (-5, LoadPart::RampUp, 0, 0),
                (-4, LoadPart::RampUp, 1, 0),
                (-3, LoadPart::RampUp, 0, 0),
                (-2, LoadPart::RampUp, 0, 0),
                (-1, LoadPart::RampUp, 1, 0),
                (0, LoadPart::Measured, 1, 0),
                (1, LoadPart::Measured, 2, 1),
                (2, LoadPart::Tail, 1, 0)
            ]
        );
        let (rest, totals) = collector.finish();
        assert!(rest.is_empty());
        assert_eq!((totals.measured[0].good(), totals.all[0].good(), totals.samples), (3, 6, 7));
        assert!(totals.invariants(user.pushed()).iter().all(|i| i.holds));
        assert!(!totals.invariants(8).iter().all(|i| i.holds), "a lost sample is found");
    }

    #[test]
    fn an_arrival_of_the_window_has_its_response_time_even_if_it_ends_later() {
        let (mut user, ring) = recorder(16);
        let roles = vec![SeriesRole::Transaction, SeriesRole::Response { of: 0 }, SeriesRole::Lag];
        let mut collector = Collector::new(0, roles, vec![ring], 0, SECOND, Some(3 * SECOND));
        let mut serve = |intended: Nanos, end: Nanos, outcome| {
            let service = 1_000_000;
            let late = end - service - intended;
            user.record(Sample { late, ..Sample::closed(end, service, 0, outcome, 0) });
        };
        serve(SECOND - 1, SECOND + SECOND / 2, TransactionOutcome::Committed); // left over from the ramp-up
        serve(SECOND, SECOND + SECOND / 2, TransactionOutcome::Committed);
        serve(2 * SECOND, 7 * SECOND, TransactionOutcome::Committed); // stalled over the closing
        serve(2 * SECOND, 7 * SECOND, TransactionOutcome::Failed);
        serve(3 * SECOND, 7 * SECOND, TransactionOutcome::Committed); // the load goes on while they are followed to their end
        collector.take_samples();
        let (_, totals) = collector.finish();
        assert_eq!((totals.measured[0].good(), totals.measured[0].failed), (2, 0), "by their ends");
        assert_eq!(
            (totals.measured[1].good(), totals.measured[1].failed),
            (2, 1),
            "by their intended starts"
        );
        assert!(totals.measured[1].latency.max().unwrap() >= 4_900_000_000);
        assert!(totals.invariants(user.pushed()).iter().all(|i| i.holds));
    }

    #[test]
    fn a_window_closed_early_keeps_what_ended_before() {
        let (mut user, ring) = recorder(16);
        let mut collector =
            Collector::new(0, vec![SeriesRole::Transaction], vec![ring], 0, 0, Some(60 * SECOND));
        user.record(sample(SECOND / 2, TransactionOutcome::Committed));
        collector.drain(SECOND);
        collector.close_window(SECOND);
        user.record(sample(SECOND + 1, TransactionOutcome::RolledBack));
        let (_, totals) = collector.finish();
        assert_eq!((totals.measured[0].good(), totals.all[0].good()), (1, 2));
    }

    #[test]
    fn an_open_loop_has_its_response_times_and_its_lateness_beside_the_service_times() {
        let (mut user, ring) = recorder(16);
        let roles = vec![
            SeriesRole::Transaction,
            SeriesRole::Statement { of: 0 },
            SeriesRole::Response { of: 0 },
            SeriesRole::Lag,
        ];
        let mut collector = Collector::new(0, roles, vec![ring], 0, 0, None);
        let sample = |late, awaited, outcome| Sample {
            late,
            awaited,
            ..Sample::closed(SECOND / 2, 1_000_000, 0, outcome, 0)
        };
        user.record(sample(20_000, true, TransactionOutcome::Committed));
        user.record(sample(4_000_000, false, TransactionOutcome::Committed));
        user.record(sample(0, true, TransactionOutcome::Failed));
        user.record(Sample::closed(SECOND / 2, 300_000, 1, TransactionOutcome::Committed, 0));
        collector.take_samples();
        let (_, totals) = collector.finish();
        let sums: Vec<_> =
            totals.all.iter().map(|k| (k.committed, k.failed, k.latency.sum() / 1000)).collect();
        assert_eq!(sums, [(2, 1, 2000), (1, 0, 300), (2, 1, 6020), (2, 0, 20)]);
        assert_eq!(totals.transactions(&totals.all).map(KindCounts::good).sum::<u64>(), 2);
        assert!(totals.invariants(user.pushed()).iter().all(|i| i.holds), "{:?}", totals.invariants(4));
    }
}

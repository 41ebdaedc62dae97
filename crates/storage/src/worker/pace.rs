//! When the next I/O may start: `rate=`, `rate_iops=`, and their minima.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use kelvin_measure::{Nanos, Random, SECOND};

use crate::job::{Rate, RateProcess};
use crate::{Direction, Io, PerDirection};

/// The unit of a direction's rate.
#[derive(Debug, Clone, Copy)]
enum Unit {
    Bytes,
    Ios,
}

/// Changes of the rates of all workers during the run.
#[derive(Debug, Default)]
pub struct RateChanges {
    /// The time and the factor of each change, relative to the jobs' rates, in order of time.
    ordered: Mutex<Vec<(Nanos, f64)>>,
    count: AtomicUsize,
}

impl RateChanges {
    /// From a time of the run's clock on, multiplies the rates of the jobs by `factor`. `at` must be later than any
    /// earlier change, and should be a second ahead, so that every worker sees the change in time.
    pub fn change_at(&self, at: Nanos, factor: f64) {
        let mut ordered = self.ordered.lock().unwrap_or_else(PoisonError::into_inner);
        ordered.push((at, factor.max(f64::MIN_POSITIVE)));
        self.count.store(ordered.len(), Ordering::Release);
    }

    /// The mean factor between two times; `None` if nothing was changed.
    pub fn mean(&self, from: Nanos, to: Nanos) -> Option<f64> {
        let ordered = self.ordered.lock().unwrap_or_else(PoisonError::into_inner);
        if ordered.is_empty() || to <= from {
            return None;
        }
        let ends = ordered.iter().map(|(at, _)| *at).skip(1).chain([Nanos::MAX]);
        let before = ordered[0].0.clamp(from, to) - from;
        let parts = ordered
            .iter()
            .zip(ends)
            .map(|((at, factor), end)| factor * (end.clamp(from, to) - (*at).clamp(from, to)) as f64);
        Some((before as f64 + parts.sum::<f64>()) / (to - from) as f64)
    }

    /// The changes after the first `seen`.
    fn after(&self, seen: usize) -> Vec<(Nanos, f64)> {
        let ordered = self.ordered.lock().unwrap_or_else(PoisonError::into_inner);
        ordered.get(seen..).unwrap_or_default().to_vec()
    }
}

/// The schedule of one direction. Start times do not depend on completions, so that the latency of a slow device is
/// measured from the intended start.
#[derive(Debug)]
struct Lane {
    unit: Unit,
    rate: u64,
    origin: Nanos,
    issued: u64,
    next: Nanos,
    /// The current factor of the job's rate.
    factor: f64,
    /// Changes later than `next`.
    changes: VecDeque<(Nanos, f64)>,
}

impl Lane {
    /// Applies changes before `next`: the time from a change to `next` scales inversely with the rate. Evenly spaced
    /// and exponential gaps keep their distribution.
    fn follow(&mut self) {
        while let Some(&(at, factor)) = self.changes.front().filter(|(at, _)| *at < self.next) {
            let left = (self.next - at) as f64 * self.factor / factor;
            self.next = at.saturating_add(left as Nanos);
            (self.origin, self.issued, self.factor) = (self.next, 0, factor);
            self.changes.pop_front();
        }
    }
}

/// The schedules of a worker.
#[derive(Debug)]
pub(super) struct Pacer {
    lanes: PerDirection<Option<Lane>>,
    /// Random gaps; `None` for even ones.
    random: Option<Random>,
    changes: Arc<RateChanges>,
    /// Number of changes that the lanes have received.
    seen: usize,
}

impl Pacer {
    /// `None` without a limit.
    pub(super) fn new(rate: &Rate, seed: u64, origin: Nanos) -> Option<Self> {
        if !rate.limits() {
            return None;
        }
        let poisson = rate.process == RateProcess::Poisson;
        let mut random = poisson.then(|| Random::part(seed, 0x7061_6365, 0));
        let mut lane = |direction: Direction| {
            let (unit, rate) = match (rate.bytes[direction], rate.iops[direction]) {
                (Some(bytes), _) => (Unit::Bytes, bytes),
                (None, Some(ios)) => (Unit::Ios, ios),
                (None, None) => return None,
            };
            let (rate, changes) = (rate.max(1), VecDeque::new());
            let mut lane = Lane { unit, rate, origin, issued: 0, next: origin, factor: 1.0, changes };
            // The first gap of a Poisson process is distributed like any other.
            if let (Some(random), Unit::Ios) = (&mut random, unit) {
                lane.next += random.exponential(1e9 / lane.rate as f64) as Nanos;
            }
            Some(lane)
        };
        let lanes = PerDirection([lane(Direction::Read), lane(Direction::Write), lane(Direction::Trim)]);
        Some(Self { lanes, random, changes: Arc::default(), seen: 0 })
    }

    /// As before, but with rates that may change.
    pub(super) fn changed_by(mut self, changes: &Arc<RateChanges>) -> Self {
        self.changes = Arc::clone(changes);
        self
    }

    /// Receives new changes.
    #[inline]
    pub(super) fn follow(&mut self) {
        if self.changes.count.load(Ordering::Acquire) > self.seen {
            let new = self.changes.after(self.seen);
            self.seen += new.len();
            for lane in self.lanes.0.iter_mut().flatten() {
                lane.changes.extend(&new);
                lane.follow();
            }
        }
    }

    /// When an I/O should start; `None` for a direction without a limit.
    #[inline]
    pub(super) fn start(&self, direction: Direction) -> Option<Nanos> {
        self.lanes[direction].as_ref().map(|lane| lane.next)
    }

    /// Another direction whose next I/O is due at `now`, for jobs that mix directions of different rates.
    pub(super) fn other_due(&self, direction: Direction, now: Nanos) -> Option<Direction> {
        let due = |other: &Direction| self.lanes[*other].as_ref().is_some_and(|lane| lane.next <= now);
        [Direction::Read, Direction::Write].into_iter().find(|other| *other != direction && due(other))
    }

    /// Records a started I/O.
    #[inline]
    pub(super) fn started(&mut self, io: &Io) {
        let Some(lane) = &mut self.lanes[io.direction] else { return };
        let amount = match lane.unit {
            Unit::Bytes => u64::from(io.length),
            Unit::Ios => 1,
        };
        if let Some(random) = &mut self.random {
            lane.next += random.exponential(amount as f64 * 1e9 / (lane.rate as f64 * lane.factor)) as Nanos;
        } else {
            // Calculated from the total, so that rounding errors do not add up.
            lane.issued += amount;
            let since = u128::from(lane.issued) * u128::from(SECOND) / u128::from(lane.rate);
            #[expect(clippy::float_cmp, reason = "the factor of a rate that nobody changed is exactly 1")]
            let since = if lane.factor == 1.0 { since } else { (since as f64 / lane.factor) as u128 };
            lane.next = lane.origin + since as Nanos;
        }
        if !lane.changes.is_empty() {
            lane.follow();
        }
    }

    /// Delays all starts: for pauses that are not made up for.
    pub(super) fn put_off(&mut self, by: Nanos) {
        for lane in self.lanes.0.iter_mut().flatten() {
            lane.origin += by;
            lane.next += by;
        }
    }
}

/// `rate_min=`, `rate_iops_min=`: checked once a cycle.
#[derive(Debug)]
pub(super) struct Minimum {
    cycle: Nanos,
    /// When the next check is due.
    pub(super) next: Nanos,
    from: Nanos,
    before: PerDirection<(u64, u64)>,
    bytes: PerDirection<Option<u64>>,
    ios: PerDirection<Option<u64>>,
}

impl Minimum {
    /// `None` without a minimum.
    pub(super) fn new(rate: &Rate, now: Nanos) -> Option<Self> {
        let any = rate.bytes_min.0.iter().chain(&rate.iops_min.0).any(Option::is_some);
        let cycle = rate.cycle.max(1_000_000);
        any.then(|| Self {
            cycle,
            next: now + cycle,
            from: now,
            before: PerDirection::default(),
            bytes: rate.bytes_min,
            ios: rate.iops_min,
        })
    }

    /// Checks the I/Os and bytes up to now, by direction; describes a rate below its minimum.
    pub(super) fn check(&mut self, now: Nanos, done: &PerDirection<(u64, u64)>) -> Option<String> {
        let seconds = now.saturating_sub(self.from).max(1) as f64 / 1e9;
        let below = Direction::ALL.into_iter().find_map(|direction| {
            let ios = (done[direction].0 - self.before[direction].0) as f64 / seconds;
            let bytes = (done[direction].1 - self.before[direction].1) as f64 / seconds;
            let too_few = |what: &str, least: Option<u64>, found: f64| {
                let least = least.filter(|least| found < *least as f64)?;
                Some(format!("{direction}: {found:.0} {what} per second, less than {least} (rate_min)"))
            };
            too_few("bytes", self.bytes[direction], bytes)
                .or_else(|| too_few("I/Os", self.ios[direction], ios))
        });
        (self.from, self.before, self.next) = (now, *done, now + self.cycle);
        below
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate() -> Rate {
        Rate {
            bytes: PerDirection::default(),
            bytes_min: PerDirection::default(),
            iops: PerDirection::default(),
            iops_min: PerDirection::default(),
            process: RateProcess::Linear,
            cycle: 1_000_000_000,
            ignore_think_time: false,
        }
    }

    fn io(length: u32) -> Io {
        Io { direction: Direction::Read, target: 0, offset: 0, length }
    }

    #[test]
    fn even_starts_never_drift() {
        let mut wanted = rate();
        wanted.iops[Direction::Read] = Some(3);
        let mut pacer = Pacer::new(&wanted, 1, 1000).unwrap();
        assert_eq!(pacer.start(Direction::Write), None);
        for second in 0..100_u64 {
            assert_eq!(pacer.start(Direction::Read), Some(1000 + second * 1_000_000_000));
            for _ in 0..3 {
                pacer.started(&io(4096));
            }
        }
        pacer.put_off(7);
        assert_eq!(pacer.start(Direction::Read), Some(1007 + 100 * 1_000_000_000));
    }

    #[test]
    fn bytes_count_with_their_lengths() {
        let mut wanted = rate();
        wanted.bytes[Direction::Read] = Some(1 << 20);
        let mut pacer = Pacer::new(&wanted, 1, 0).unwrap();
        pacer.started(&io(1 << 19));
        pacer.started(&io(1 << 18));
        assert_eq!(pacer.start(Direction::Read), Some(750_000_000));
    }

    #[test]
    fn poisson_gaps_are_exponential() {
        let mut wanted = rate();
        wanted.iops[Direction::Read] = Some(1000);
        wanted.process = RateProcess::Poisson;
        let mut pacer = Pacer::new(&wanted, 42, 0).unwrap();
        let mut last = 0;
        let mut gaps: Vec<f64> = (0..5000)
            .map(|_| {
                let start = pacer.start(Direction::Read).unwrap();
                pacer.started(&io(4096));
                let gap = (start - last) as f64 / 1e6;
                last = start;
                gap
            })
            .collect();
        gaps.sort_by(f64::total_cmp);
        // Kolmogorov and Smirnov: 1.63/√n is exceeded in one of a hundred cases.
        let n = gaps.len() as f64;
        let distance = gaps.iter().enumerate().fold(0.0_f64, |worst, (rank, gap)| {
            let expected = 1.0 - (-gap).exp();
            worst.max((expected - rank as f64 / n).abs()).max((expected - (rank + 1) as f64 / n).abs())
        });
        assert!(distance < 1.63 / n.sqrt(), "{distance}");
    }

    #[test]
    fn a_changed_rate_takes_effect_at_its_time() {
        for process in [RateProcess::Linear, RateProcess::Poisson] {
            let mut wanted = rate();
            wanted.iops[Direction::Read] = Some(1000);
            wanted.process = process;
            let changes = Arc::new(RateChanges::default());
            let mut pacer = Pacer::new(&wanted, 3, 0).unwrap().changed_by(&changes);
            let mut seconds = [0_u32; 12];
            while let Some(count) =
                pacer.start(Direction::Read).and_then(|at| seconds.get_mut((at / 1_000_000_000) as usize))
            {
                *count += 1;
                if seconds[2] == 1 && changes.mean(0, 1).is_none() {
                    changes.change_at(4_000_000_000, 3.0);
                    changes.change_at(8_000_000_000, 0.5);
                }
                pacer.follow();
                pacer.started(&io(4096));
            }
            let sums: Vec<u32> = seconds.chunks(4).map(|part| part.iter().sum()).collect();
            // Four standard deviations of a Poisson count.
            let near =
                |found: u32, expected: f64| (f64::from(found) - expected).abs() <= 4.0 * expected.sqrt();
            assert!(near(sums[0], 4e3) && near(sums[1], 12e3) && near(sums[2], 2e3), "{seconds:?}");
            if process == RateProcess::Linear {
                assert!(
                    sums[0] == 4000 && sums[1].abs_diff(12_000) <= 1 && sums[2].abs_diff(2000) <= 1,
                    "{sums:?}"
                );
            }
            assert_eq!(changes.mean(3_000_000_000, 5_000_000_000), Some(2.0));
            assert_eq!(changes.mean(0, 16_000_000_000), Some((4.0 + 12.0 + 4.0) / 16.0));
        }
    }

    #[test]
    fn what_is_below_its_minimum_is_named() {
        let mut wanted = rate();
        wanted.iops_min[Direction::Write] = Some(100);
        let mut minimum = Minimum::new(&wanted, 0).unwrap();
        let done = |ios| PerDirection([(0, 0), (ios, ios * 4096), (0, 0)]);
        assert_eq!(minimum.check(1_000_000_000, &done(100)), None);
        let said = minimum.check(2_000_000_000, &done(190)).unwrap();
        assert_eq!(said, "write: 90 I/Os per second, less than 100 (rate_min)");
        assert!(Minimum::new(&rate(), 0).is_none());
    }
}

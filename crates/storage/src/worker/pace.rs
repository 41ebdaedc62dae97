//! When the next I/O may start: `rate=`, `rate_iops=`, and their minima.

use kelvin_measure::{Nanos, Random};

use crate::job::{Rate, RateProcess};
use crate::{Direction, Io, PerDirection};

const SECOND: u128 = 1_000_000_000;

/// What a direction's rate is counted in.
#[derive(Debug, Clone, Copy)]
enum Unit {
    Bytes,
    Ios,
}

/// The schedule of one direction. Starts follow from it alone and not from when I/Os end, so that a device that falls
/// behind is measured from when it should have been asked.
#[derive(Debug)]
struct Lane {
    unit: Unit,
    rate: u64,
    origin: Nanos,
    issued: u64,
    next: Nanos,
}

/// The schedules of a worker.
#[derive(Debug)]
pub(super) struct Pacer {
    lanes: PerDirection<Option<Lane>>,
    /// Gaps are drawn; none for even ones.
    random: Option<Random>,
}

impl Pacer {
    /// None where there is no limit.
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
            let mut lane = Lane { unit, rate: rate.max(1), origin, issued: 0, next: origin };
            // The first gap of a Poisson process is as long as any other.
            if let (Some(random), Unit::Ios) = (&mut random, unit) {
                lane.next += random.exponential(1e9 / lane.rate as f64) as Nanos;
            }
            Some(lane)
        };
        let lanes = PerDirection([lane(Direction::Read), lane(Direction::Write), lane(Direction::Trim)]);
        Some(Self { lanes, random })
    }

    /// When an I/O is to start; none for a direction without a limit.
    #[inline]
    pub(super) fn start(&self, direction: Direction) -> Option<Nanos> {
        self.lanes[direction].as_ref().map(|lane| lane.next)
    }

    /// Another direction whose next I/O is due at `now`, for jobs that mix directions of different rates.
    pub(super) fn other_due(&self, direction: Direction, now: Nanos) -> Option<Direction> {
        let due = |other: &Direction| self.lanes[*other].as_ref().is_some_and(|lane| lane.next <= now);
        [Direction::Read, Direction::Write].into_iter().find(|other| *other != direction && due(other))
    }

    /// An I/O was started.
    #[inline]
    pub(super) fn started(&mut self, io: &Io) {
        let Some(lane) = &mut self.lanes[io.direction] else { return };
        let amount = match lane.unit {
            Unit::Bytes => u64::from(io.length),
            Unit::Ios => 1,
        };
        if let Some(random) = &mut self.random {
            lane.next += random.exponential(amount as f64 * 1e9 / lane.rate as f64) as Nanos;
        } else {
            // From the whole and not from the last: no rounding adds up.
            lane.issued += amount;
            lane.next = lane.origin + (u128::from(lane.issued) * SECOND / u128::from(lane.rate)) as Nanos;
        }
    }

    /// Everything starts so much later: for pauses that are not made up for.
    pub(super) fn put_off(&mut self, by: Nanos) {
        for lane in self.lanes.0.iter_mut().flatten() {
            lane.origin += by;
            lane.next += by;
        }
    }
}

/// `rate_min=`, `rate_iops_min=`: looked at once a cycle.
#[derive(Debug)]
pub(super) struct Minimum {
    cycle: Nanos,
    /// When to look next.
    pub(super) next: Nanos,
    from: Nanos,
    before: PerDirection<(u64, u64)>,
    bytes: PerDirection<Option<u64>>,
    ios: PerDirection<Option<u64>>,
}

impl Minimum {
    /// None where there is no minimum.
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

    /// Looks at what was done up to now, I/Os and bytes by direction: what is below its minimum, as text.
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
        // Kolmogorov and Smirnov: 1.63/√n is exceeded once in a hundred.
        let n = gaps.len() as f64;
        let distance = gaps.iter().enumerate().fold(0.0_f64, |worst, (rank, gap)| {
            let expected = 1.0 - (-gap).exp();
            worst.max((expected - rank as f64 / n).abs()).max((expected - (rank + 1) as f64 / n).abs())
        });
        assert!(distance < 1.63 / n.sqrt(), "{distance}");
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

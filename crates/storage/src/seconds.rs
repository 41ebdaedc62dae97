//! Converts the ticks of workers into the seconds of a run, counted from the opening of its point's window.
//!
//! Ticks are slightly longer than half a second. A tick that extends beyond the end of a second is divided between the
//! two seconds in proportion to time: with whole ticks, a second would sometimes be one tick short, which would look
//! like a stall. Sums do not change. A tick longer than a second, from a worker that was held up in a call, belongs to
//! the second in which it ends.
//!
//! Workers of a point begin at slightly different times. The window opens with the first of them and closes with the
//! last, so its opening is known only a moment later: ticks wait until then.

use std::collections::BTreeMap;

use crate::tick::{TICK, Tally, Tick};
use crate::{Direction, Moments, middle};
use kelvin_measure::event::{ErrorCount, Event, KindCounts, LoadPart, Phase, Second};
use kelvin_measure::{Histogram, Nanos, SECOND, Totals};

use crate::series_layout::SeriesLayout;

/// How long ticks wait for those of other workers. A tick arrives at most this long after the time that it covers.
const PATIENCE: Nanos = 2 * TICK;

/// One point while it runs.
#[derive(Debug, Default)]
struct PointProgress {
    /// Ticks received before the window's opening was known.
    waiting: Vec<Tick>,
    /// The first measured tick's end.
    first: Option<Nanos>,
    open: Option<Nanos>,
    /// The end of the last measured tick.
    close: Nanos,
    /// The first ramp-up tick's beginning.
    ramp: Option<Nanos>,
    /// Seconds that are not complete yet.
    seconds: BTreeMap<(i64, bool), Vec<KindCounts>>,
    errors: Vec<ErrorCount>,
}

/// Sums of a point over its window, for comparison with the result.
#[derive(Debug, Clone, Default)]
pub struct Sums {
    /// When it opened and when it closed.
    pub window: Option<(Nanos, Nanos)>,
    /// When the ramp-up began.
    pub ramp: Option<Nanos>,
    /// By series.
    pub kinds: Vec<KindCounts>,
    /// The same, with the ramp-up before the window.
    pub all: Vec<KindCounts>,
    /// Bytes by series of transactions.
    pub bytes: Vec<u64>,
    /// Submission to completion of everything, in nanoseconds.
    pub in_system: u128,
    /// I/Os of which `in_system` knows the time.
    pub timed: u64,
    /// The longest of them.
    pub longest: Nanos,
    /// Sum over I/Os of the number under way when each was issued.
    pub depth: u64,
    /// I/Os whose times were requested and are in no histogram, or vice versa.
    pub astray: u64,
}

/// Seconds of all points.
#[derive(Debug)]
pub struct Seconds {
    layout: SeriesLayout,
    /// The point of each worker.
    points: Vec<u32>,
    courses: BTreeMap<u32, PointProgress>,
    sums: BTreeMap<u32, Sums>,
    /// Windows open a whole number of seconds after this time.
    grid: Option<Nanos>,
}

impl Seconds {
    /// For workers in these series; `points` has the point of each worker.
    pub fn new(layout: SeriesLayout, points: Vec<u32>) -> Self {
        Self { layout, points, courses: BTreeMap::new(), sums: BTreeMap::new(), grid: None }
    }

    /// Makes windows open a whole number of seconds after `grid`, at or before their first I/O.
    pub fn align(&mut self, grid: Option<Nanos>) {
        self.grid = grid;
    }

    /// The sums of a point so far.
    pub fn sums(&self, point: u32) -> Sums {
        self.sums.get(&point).cloned().unwrap_or_else(|| empty(&self.layout))
    }

    /// The sums of each point whose window has opened.
    pub fn totals(&self) -> Vec<(u32, Totals)> {
        let opened = self.sums.iter().filter_map(|(point, sums)| Some((*point, sums, sums.window?.1)));
        let each = opened.map(|(point, sums, last_end)| {
            let totals = Totals {
                roles: self.layout.series.iter().map(|series| series.role).collect(),
                measured: sums.kinds.clone(),
                all: sums.all.clone(),
                samples: sums
                    .all
                    .iter()
                    .take(sums.bytes.len())
                    .map(|kind| kind.committed + kind.failed)
                    .sum(),
                last_end,
            };
            (point, totals)
        });
        each.collect()
    }

    /// Adds a tick. Returns the events that are now complete.
    pub fn tick(&mut self, tick: &Tick) -> Vec<Event> {
        let Some(&point) = self.points.get(tick.worker as usize) else { return Vec::new() };
        let mut events = Vec::new();
        let course = self.courses.entry(point).or_default();
        match tick.part {
            LoadPart::RampUp if course.ramp.is_none() => {
                course.ramp = Some(tick.from);
                self.sums.entry(point).or_insert_with(|| empty(&self.layout)).ramp = Some(tick.from);
                let (phase, at) = (Phase::RampUp, tick.from);
                events.push(Event::Phase { point, phase, at, users: 0, planned: None });
            }
            LoadPart::Measured => {
                course.first.get_or_insert(tick.to);
            }
            _ => {}
        }
        if course.open.is_some() {
            self.count(point, tick);
        } else {
            course.waiting.push(tick.clone());
            let first = course.first;
            if first.is_some_and(|first| tick.to >= first + PATIENCE) {
                events.extend(self.open(point));
            }
        }
        events.extend(self.complete(point, tick.to.saturating_sub(PATIENCE)));
        events
    }

    /// The remaining events of a point, after its last tick.
    pub fn end(&mut self, point: u32) -> Vec<Event> {
        let mut events = self.open(point);
        // Observers learn the length of the last second before it comes.
        if let Some((_, close)) = self.sums(point).window {
            events.push(Event::Phase { point, phase: Phase::Stop, at: close, users: 0, planned: None });
        }
        events.extend(self.complete(point, Nanos::MAX));
        events
    }

    /// Opens the window at the beginning of its first tick.
    fn open(&mut self, point: u32) -> Vec<Event> {
        let Some(course) = self.courses.get_mut(&point).filter(|course| course.open.is_none()) else {
            return Vec::new();
        };
        let waiting = std::mem::take(&mut course.waiting);
        let measured =
            waiting.iter().filter(|tick| tick.part == LoadPart::Measured).map(|tick| tick.from).min();
        let Some(first) = measured else {
            course.waiting = waiting;
            return Vec::new();
        };
        let open = self.grid.map_or(first, |grid| first - first.saturating_sub(grid) % SECOND);
        course.open = Some(open);
        for tick in &waiting {
            self.count(point, tick);
        }
        vec![Event::Phase { point, phase: Phase::Measure, at: open, users: 0, planned: None }]
    }

    /// The seconds before `now` that are complete.
    fn complete(&mut self, point: u32, now: Nanos) -> Vec<Event> {
        let Some(course) = self.courses.get_mut(&point) else { return Vec::new() };
        let Some(open) = course.open else { return Vec::new() };
        let complete =
            |second: i64| now == Nanos::MAX || (second + 1) * SECOND as i64 <= now as i64 - open as i64;
        let ready: Vec<(i64, bool)> =
            course.seconds.keys().copied().filter(|(second, _)| complete(*second)).collect();
        let mut events: Vec<Event> =
            std::mem::take(&mut course.errors).into_iter().map(Event::Errors).collect();
        for key in ready {
            let Some(kinds) = course.seconds.remove(&key) else { continue };
            let part = if key.1 { LoadPart::Measured } else { LoadPart::RampUp };
            events.push(Event::Second(Second { point, second: key.0, part, kinds }));
        }
        events
    }

    fn count(&mut self, point: u32, tick: &Tick) {
        let sums = self.sums.entry(point).or_insert_with(|| empty(&self.layout));
        let Some(course) = self.courses.get_mut(&point) else { return };
        let Some(open) = course.open else { return };
        let measured = tick.part == LoadPart::Measured;
        let (first, second, part) = share(tick.from as i64 - open as i64, tick.to as i64 - open as i64);
        // Another worker's ramp-up continues during the window: it is not in any result and has no separate second.
        if !measured && first >= 0 {
            return;
        }
        let (first, second) = if measured { (first.max(0), second.max(0)) } else { (first, second.min(-1)) };
        if measured {
            course.close = course.close.max(tick.to);
            sums.window = Some((open, course.close));
            sums.depth += tick.depth.sum;
        }
        let series = self.layout.series.len();
        for (target, directions) in tick.targets.iter().enumerate() {
            for (direction, tally) in directions.iter() {
                let Some(tally) = tally else { continue };
                let Some(kind) = self.layout.kind(tick.worker, target, direction) else {
                    sums.astray += tally.ios;
                    continue;
                };
                let counts = KindCounts {
                    committed: tally.ios,
                    failed: tally.failed,
                    latency: histogram(tally),
                    ..KindCounts::default()
                };
                let response = self.layout.response(kind).zip(responses(tally));
                let kind = usize::from(kind);
                let mut place = |second: i64, part: Share| {
                    let kinds = course
                        .seconds
                        .entry((second, measured))
                        .or_insert_with(|| vec![KindCounts::default(); series]);
                    if let Some(place) = kinds.get_mut(kind) {
                        place.add(&part.apply(&counts));
                    }
                    if let Some((kind, counts)) = &response
                        && let Some(place) = kinds.get_mut(usize::from(*kind))
                    {
                        place.add(&part.apply(counts));
                    }
                };
                if part >= 1.0 {
                    place(first, Share::Whole);
                } else {
                    place(first, Share::First(part));
                    place(second, Share::Rest(part));
                }
                add(&mut sums.all, kind, &counts, response.as_ref());
                if measured {
                    sums.take(kind, &counts, response.as_ref(), tally);
                }
            }
        }
        for failure in &tick.failures {
            let kind = failure
                .direction
                .and_then(|direction| self.layout.kind(tick.worker, failure.target as usize, direction));
            course.errors.push(ErrorCount {
                point,
                second: first,
                kind,
                class: class(failure.direction, failure.number).into(),
                code: failure.number.to_string(),
                message: failure.message.clone(),
                retried: false,
                count: failure.count,
            });
        }
    }
}

/// The second in which a time span begins, the second in which it ends, and the share of it in the first, 0 to 1. Times
/// are relative to the window's opening.
fn share(from: i64, to: i64) -> (i64, i64, f64) {
    const LENGTH: i64 = SECOND as i64;
    let (first, last) = (from.div_euclid(LENGTH), (to - 1).max(from).div_euclid(LENGTH));
    if to - from > LENGTH {
        return (last, last, 1.0);
    }
    let part = ((first + 1) * LENGTH - from) as f64 / (to - from).max(1) as f64;
    // A share below 2 % is not worth an estimate.
    match part {
        _ if first == last => (first, first, 1.0),
        part if part > 0.98 => (first, first, 1.0),
        part if part < 0.02 => (last, last, 1.0),
        part => (first, last, part),
    }
}

/// The part of a tick's counts to apply.
#[derive(Debug, Clone, Copy)]
enum Share {
    Whole,
    /// This share of them, 0 to 1.
    First(f64),
    /// The remainder after this share.
    Rest(f64),
}

impl Share {
    /// The part of these counts. First part and remainder add up to the whole in every count and sum.
    fn apply(self, counts: &KindCounts) -> KindCounts {
        let (share, rest) = match self {
            Self::Whole => return counts.clone(),
            Self::First(share) => (share, false),
            Self::Rest(share) => (share, true),
        };
        let of = |count: u64| {
            let first = (count as f64 * share).round() as u64;
            if rest { count - first } else { first }
        };
        let times = counts.latency.count();
        let wanted = (times as f64 * share).round() as u64;
        let (mut seen, mut taken) = (0_u64, 0_u64);
        let mut latency = Histogram::new();
        let mut values: Vec<(Nanos, u64)> = Vec::new();
        for (value, count) in counts.latency.buckets() {
            seen += count;
            let upto = (u128::from(seen) * u128::from(wanted) / u128::from(times.max(1))) as u64;
            let first = upto - taken;
            taken = upto;
            values.push((value, if rest { count - first } else { first }));
        }
        let sum = counts.latency.sum();
        let of_first = sum * u128::from(wanted) / u128::from(times.max(1));
        let sum = if rest { sum - of_first } else { of_first };
        values.retain(|(_, count)| *count > 0);
        // The maximum is in the part that has counts in the highest bucket. The other part has its
        // highest bucket instead.
        let (highest, longest) = (counts.latency.buckets().last(), counts.latency.exact().max);
        let own = values.last().map_or(0, |(value, _)| *value);
        let longest = if highest.is_some_and(|(value, _)| value == own) { longest } else { own };
        latency.add_counted(values, sum, longest);
        KindCounts {
            committed: of(counts.committed),
            failed: of(counts.failed),
            latency,
            ..KindCounts::default()
        }
    }
}

fn empty(layout: &SeriesLayout) -> Sums {
    Sums {
        kinds: vec![KindCounts::default(); layout.series.len()],
        all: vec![KindCounts::default(); layout.series.len()],
        bytes: vec![0; layout.kinds],
        ..Sums::default()
    }
}

impl Sums {
    fn take(
        &mut self,
        kind: usize,
        counts: &KindCounts,
        response: Option<&(u16, KindCounts)>,
        tally: &Tally,
    ) {
        add(&mut self.kinds, kind, counts, response);
        if let Some(bytes) = self.bytes.get_mut(kind) {
            *bytes += tally.bytes;
        }
        // If completion times were requested, every I/O has one, in the moments and in the bins.
        let timed = counts.latency.count();
        if timed > 0 || tally.completion.count > 0 {
            self.astray += timed.abs_diff(tally.ios) + tally.completion.count.abs_diff(tally.ios);
        }
        // Total times if they were recorded, else completion times.
        let whole = if tally.total.count > 0 { &tally.total } else { &tally.completion };
        self.in_system += u128::from(whole.sum);
        self.timed += whole.count;
        if whole.count > 0 {
            self.longest = self.longest.max(whole.greatest);
        }
    }
}

/// Adds the counts of a series of transactions, and those of its response times.
fn add(sums: &mut [KindCounts], kind: usize, counts: &KindCounts, response: Option<&(u16, KindCounts)>) {
    if let Some(sum) = sums.get_mut(kind) {
        sum.add(counts);
    }
    if let Some((kind, counts)) = response
        && let Some(sum) = sums.get_mut(usize::from(*kind))
    {
        sum.add(counts);
    }
}

/// Completion times.
fn histogram(tally: &Tally) -> Histogram {
    let mut histogram = Histogram::new();
    let Moments { sum, greatest, .. } = tally.completion;
    let values = tally.completion_bins.filled().map(|(bin, count)| (middle(bin), count));
    histogram.add_counted(values, sum.into(), greatest);
    histogram
}

/// Times from the intended start, if there was one.
fn responses(tally: &Tally) -> Option<KindCounts> {
    let bins = tally.response_bins.as_ref()?;
    let mut latency = Histogram::new();
    let sum = u128::from(tally.response.sum);
    let longest = tally.response.greatest;
    latency.add_counted(bins.filled().map(|(bin, count)| (middle(bin), count)), sum, longest);
    Some(KindCounts { committed: latency.count(), latency, ..KindCounts::default() })
}

/// The class of an error in a word or two.
fn class(direction: Option<Direction>, number: i32) -> &'static str {
    match number {
        libc::EILSEQ => "verify",
        libc::ENOSPC => "no space",
        libc::EIO => "i/o error",
        libc::ENODEV | libc::ENXIO => "device gone",
        libc::ETIMEDOUT | libc::ETIME => "too slow",
        libc::EINVAL => "invalid argument",
        _ if direction.is_none() => "sync",
        _ => "system",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_is_shared_between_the_seconds_that_it_lies_in() {
        let milli = |n: i64| n * 1_000_000;
        for (from, to, expected) in [
            (0, 500, (0, 0, 1.0)),
            (500, 1001, (0, 0, 1.0)),
            (999, 1500, (1, 1, 1.0)),
            (800, 1300, (0, 1, 0.4)),
            (-700, -200, (-1, -1, 1.0)),
            (-300, 200, (-1, 0, 0.6)),
            (1200, 4300, (4, 4, 1.0)),
        ] {
            let (first, last, part) = share(milli(from), milli(to));
            assert_eq!((first, last), (expected.0, expected.1), "{from} to {to}");
            assert!((part - expected.2).abs() < 1e-9, "{from} to {to}: {part}");
        }
        assert_eq!(share(7, 7), (0, 0, 1.0));
    }

    proptest::proptest! {
        #[test]
        fn the_parts_of_a_tick_are_the_whole(
            times in proptest::collection::vec(1_u64..10_000_000, 0..200), failed in 0_u64..20, part in 0.02..0.98_f64,
        ) {
            let mut latency = Histogram::new();
            for time in &times {
                latency.record(*time);
            }
            let counts = KindCounts { committed: times.len() as u64, failed, latency, ..KindCounts::default() };
            let (first, rest) = (Share::First(part).apply(&counts), Share::Rest(part).apply(&counts));
            proptest::prop_assert_eq!(first.committed, first.latency.count());
            let mut both = first;
            both.add(&rest);
            proptest::prop_assert_eq!((both.committed, both.failed), (counts.committed, counts.failed));
            proptest::prop_assert_eq!(both.latency.exact(), counts.latency.exact());
            proptest::prop_assert!(both.latency.buckets().eq(counts.latency.buckets()));
        }
    }
}

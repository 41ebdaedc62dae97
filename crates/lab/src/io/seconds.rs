//! From the ticks of workers to the seconds of a run: each tick belongs to the second of its middle, counted from where the
//! window of its point opened.
//!
//! Workers of a point begin at slightly different times. The window opens with the first of them and closes with the last,
//! so that it is known only a moment later where it opened: ticks wait so long.

use std::collections::BTreeMap;

use kelvin_measure::event::{ErrorCount, Event, KindCounts, Part, Phase, Second};
use kelvin_measure::{Histogram, Nanos};
use kelvin_storage::tick::{TICK, Tally, Tick};
use kelvin_storage::{Direction, middle};

use super::plan::Layout;

/// How long ticks wait for those of other workers: a tick comes at most so long after what it tells.
const PATIENCE: Nanos = 2 * TICK;
const SECOND: Nanos = 1_000_000_000;

/// One point while it runs.
#[derive(Debug, Default)]
struct Course {
    /// Ticks of before the window's opening was known.
    waiting: Vec<Tick>,
    /// The first measured tick's end.
    first: Option<Nanos>,
    open: Option<Nanos>,
    /// The end of the last measured tick.
    close: Nanos,
    /// The first ramp-up tick's beginning.
    ramp: Option<Nanos>,
    /// Seconds that are not complete.
    seconds: BTreeMap<(i64, bool), Vec<KindCounts>>,
    errors: Vec<ErrorCount>,
}

/// Sums of a point over its window, to be held against the result.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sums {
    /// When it opened and when it closed.
    pub(crate) window: Option<(Nanos, Nanos)>,
    /// When the ramp-up began.
    pub(crate) ramp: Option<Nanos>,
    /// By series.
    pub(crate) kinds: Vec<KindCounts>,
    /// Bytes by series of transactions.
    pub(crate) bytes: Vec<u64>,
    /// Submission to completion of everything, in nanoseconds.
    pub(crate) in_system: u128,
    /// I/Os of which `in_system` knows the time.
    pub(crate) timed: u64,
    /// The longest of them.
    pub(crate) longest: Nanos,
    /// Sum over I/Os of the number under way when each was issued.
    pub(crate) depth: u64,
    /// I/Os whose time was asked for and is in no histogram, or the reverse.
    pub(crate) astray: u64,
}

/// Seconds of all points.
#[derive(Debug)]
pub(crate) struct Seconds {
    layout: Layout,
    /// The point of each worker.
    points: Vec<u32>,
    courses: BTreeMap<u32, Course>,
    sums: BTreeMap<u32, Sums>,
}

impl Seconds {
    pub(crate) fn new(layout: Layout, points: Vec<u32>) -> Self {
        Self { layout, points, courses: BTreeMap::new(), sums: BTreeMap::new() }
    }

    /// The sums of a point so far.
    pub(crate) fn sums(&self, point: u32) -> Sums {
        self.sums.get(&point).cloned().unwrap_or_else(|| empty(&self.layout))
    }

    /// Takes a tick; the events that became known by it.
    pub(crate) fn tick(&mut self, tick: &Tick) -> Vec<Event> {
        let Some(&point) = self.points.get(tick.worker as usize) else { return Vec::new() };
        let mut events = Vec::new();
        let course = self.courses.entry(point).or_default();
        match tick.part {
            Part::RampUp if course.ramp.is_none() => {
                course.ramp = Some(tick.from);
                self.sums.entry(point).or_insert_with(|| empty(&self.layout)).ramp = Some(tick.from);
                let (phase, at) = (Phase::RampUp, tick.from);
                events.push(Event::Phase { point, phase, at, users: 0, planned: None });
            }
            Part::Measured => {
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

    /// Everything that is left, when no more ticks of a point come.
    pub(crate) fn end(&mut self, point: u32) -> Vec<Event> {
        let mut events = self.open(point);
        events.extend(self.complete(point, Nanos::MAX));
        if let Some((_, close)) = self.sums(point).window {
            events.push(Event::Phase { point, phase: Phase::Stop, at: close, users: 0, planned: None });
        }
        events
    }

    /// Opens the window where its first tick began.
    fn open(&mut self, point: u32) -> Vec<Event> {
        let Some(course) = self.courses.get_mut(&point).filter(|course| course.open.is_none()) else {
            return Vec::new();
        };
        let waiting = std::mem::take(&mut course.waiting);
        let measured = waiting.iter().filter(|tick| tick.part == Part::Measured).map(|tick| tick.from).min();
        let Some(open) = measured else {
            course.waiting = waiting;
            return Vec::new();
        };
        course.open = Some(open);
        for tick in &waiting {
            self.count(point, tick);
        }
        vec![Event::Phase { point, phase: Phase::Measure, at: open, users: 0, planned: None }]
    }

    /// The seconds before `now` that nothing is added to any more.
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
            let part = if key.1 { Part::Measured } else { Part::RampUp };
            events.push(Event::Second(Second { point, second: key.0, part, kinds }));
        }
        events
    }

    fn count(&mut self, point: u32, tick: &Tick) {
        let sums = self.sums.entry(point).or_insert_with(|| empty(&self.layout));
        let Some(course) = self.courses.get_mut(&point) else { return };
        let Some(open) = course.open else { return };
        let measured = tick.part == Part::Measured;
        let half = tick.to.saturating_sub(tick.from) / 2;
        let middle = (tick.from + half) as i64 - open as i64;
        // Another worker's ramp-up goes on beside the window: it is in no figure and has no second of its own.
        let second = middle.div_euclid(SECOND as i64);
        if !measured && second >= 0 {
            return;
        }
        let second = if measured { second.max(0) } else { second };
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
                let kinds = course
                    .seconds
                    .entry((second, measured))
                    .or_insert_with(|| vec![KindCounts::default(); series]);
                let kind = usize::from(kind);
                if let Some(place) = kinds.get_mut(kind) {
                    place.add(&counts);
                }
                if let Some((kind, counts)) = &response
                    && let Some(place) = kinds.get_mut(usize::from(*kind))
                {
                    place.add(counts);
                }
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
                second,
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

fn empty(layout: &Layout) -> Sums {
    Sums {
        kinds: vec![KindCounts::default(); layout.series.len()],
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
        if let Some(sum) = self.kinds.get_mut(kind) {
            sum.add(counts);
        }
        if let Some((kind, counts)) = response
            && let Some(sum) = self.kinds.get_mut(usize::from(*kind))
        {
            sum.add(counts);
        }
        if let Some(bytes) = self.bytes.get_mut(kind) {
            *bytes += tally.bytes;
        }
        // Where completion times were asked for, every I/O has one, in the moments and in the bins.
        let timed = counts.latency.count();
        if timed > 0 || tally.completion.count > 0 {
            self.astray += timed.abs_diff(tally.ios) + tally.completion.count.abs_diff(tally.ios);
        }
        // Total times where they were taken, else their parts.
        let whole = if tally.total.count > 0 { &tally.total } else { &tally.completion };
        self.in_system += u128::from(whole.sum);
        self.timed += whole.count;
        if whole.count > 0 {
            self.longest = self.longest.max(whole.greatest);
        }
    }
}

/// Completion times.
fn histogram(tally: &Tally) -> Histogram {
    let mut histogram = Histogram::new();
    let sum = if tally.completion.count > 0 { u128::from(tally.completion.sum) } else { 0 };
    histogram.add_counted(tally.completion_bins.filled().map(|(bin, count)| (middle(bin), count)), sum);
    histogram
}

/// Times from the intended start, where there was one.
fn responses(tally: &Tally) -> Option<KindCounts> {
    let bins = tally.response_bins.as_ref()?;
    let mut latency = Histogram::new();
    let sum = u128::from(tally.response.sum);
    latency.add_counted(bins.filled().map(|(bin, count)| (middle(bin), count)), sum);
    Some(KindCounts { committed: latency.count(), latency, ..KindCounts::default() })
}

/// An error in a word or two.
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

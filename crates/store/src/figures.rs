//! What a report needs of a stored run: per point the window, the sums, the series and the judgements.

use std::collections::BTreeMap;

use kelvin_measure::event::{AuditLine, CheckLine, Event, KindCounts, Part, Phase, Window};
use kelvin_measure::invariant::{Invariant, counts_agree};
use kelvin_measure::{Histogram, LatencySummary, Nanos};

use crate::error::Result;
use crate::stored::{LONGEST_SECONDS, StoredRun, StoredSecond};

/// One point of a run: a number of users held for one ramp-up and one window.
#[derive(Debug, Clone)]
pub struct Point {
    /// From 0.
    pub point: u32,
    /// Virtual users.
    pub users: u32,
    /// The measured window; none while it is open, or when the run ended before it closed.
    pub window: Option<Window>,
    /// The phases of the point, in their order.
    pub phases: Vec<PhaseSpan>,
    /// Length of the ramp-up in seconds as elapsed; 0 without one.
    pub ramp_up: f64,
    /// The self-audit's last lines.
    pub audit: Vec<AuditLine>,
    /// Invariants as checked at run time.
    pub invariants: Vec<Invariant>,
    /// Sentences on the timeline: seconds since the window opened, and the text.
    pub notes: Vec<(i64, String)>,
    /// The last values of the workload's counters.
    pub counters: Vec<u64>,
}

/// One phase on the run's clock.
#[derive(Debug, Clone, PartialEq)]
pub struct PhaseSpan {
    /// Which point.
    pub point: u32,
    /// Which phase.
    pub phase: Phase,
    /// When it began, on the run's clock.
    pub start: Nanos,
    /// When the next began; none for the last.
    pub end: Option<Nanos>,
    /// Virtual users; 0 outside the load.
    pub users: u32,
    /// How long it should have lasted.
    pub planned: Option<Nanos>,
}

/// Sums and series of one point. Latencies in nanoseconds.
#[derive(Debug, Clone)]
pub struct Figures {
    /// Length of the window in seconds: as elapsed, or up to the last whole second of a run without its end.
    pub seconds: f64,
    /// Whether the window closed; if not, the figures are of a part.
    pub closed: bool,
    /// Over the measured window, by transaction type.
    pub kinds: Vec<KindCounts>,
    /// Latencies of all types together.
    pub all: Histogram,
    /// Headline transactions committed in the window.
    pub headline: u64,
    /// Headline transactions per elapsed minute; none without a window.
    pub per_minute: Option<f64>,
    /// Commits and rollbacks of all types per elapsed minute; none without a window.
    pub transactions_per_minute: Option<f64>,
    /// One row a second, without gaps: a second in which nothing ended is there with zeros.
    pub series: Vec<SecondRow>,
}

/// One second of one part of the load.
#[derive(Debug, Clone)]
pub struct SecondRow {
    /// Seconds since the window opened; negative in the ramp-up.
    pub second: i64,
    /// Ramp-up, measured or after.
    pub part: Part,
    /// How much of the second belongs to the part, 0 to 1: the last one of a window may be cut.
    pub width: f64,
    /// Headline transactions committed.
    pub headline: u64,
    /// By transaction type: committed and rolled back.
    pub good: Vec<u64>,
    /// Failed, all types.
    pub failed: u64,
    /// Repetitions, all types.
    pub retries: u64,
    /// Latencies by transaction type.
    pub latency: Vec<LatencySummary>,
    /// Latencies of all types together.
    pub all: LatencySummary,
}

impl SecondRow {
    /// Headline transactions per minute at this second's pace.
    pub fn per_minute(&self) -> f64 {
        if self.width > 0.0 { self.headline as f64 * 60.0 / self.width } else { 0.0 }
    }

    /// Transactions per minute at this second's pace.
    pub fn transactions_per_minute(&self) -> f64 {
        if self.width > 0.0 { self.good.iter().sum::<u64>() as f64 * 60.0 / self.width } else { 0.0 }
    }
}

/// Errors of one sort over a point or a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorGroup {
    /// The transaction type; none when no transaction was under way.
    pub kind: Option<u16>,
    /// The class, such as "deadlock".
    pub class: String,
    /// The engine's own code.
    pub code: String,
    /// The first message.
    pub message: String,
    /// How many in all.
    pub count: u64,
    /// How many of them were followed by a repetition.
    pub retried: u64,
    /// First and last second, since the window of their point opened.
    pub seconds: (i64, i64),
}

impl StoredRun {
    /// The points of the run, in their order.
    pub fn points(&self) -> Vec<Point> {
        let mut points: BTreeMap<u32, Point> = BTreeMap::new();
        for span in self.phases() {
            if !matches!(span.phase, Phase::Connect | Phase::RampUp | Phase::Measure | Phase::Stop) {
                continue;
            }
            let point = at(&mut points, span.point);
            point.users = point.users.max(span.users);
            if let (Phase::RampUp, Some(end)) = (span.phase, span.end) {
                point.ramp_up = end.saturating_sub(span.start) as f64 / 1e9;
            }
            point.phases.push(span);
        }
        for (_, event) in &self.events {
            match event {
                Event::Window(window) => {
                    let point = at(&mut points, window.point);
                    point.users = window.users;
                    point.window = Some(window.clone());
                }
                Event::Audit { point, lines } => at(&mut points, *point).audit.clone_from(lines),
                Event::Invariant { point, invariant } => {
                    at(&mut points, *point).invariants.push(invariant.clone());
                }
                Event::Note { point, second, text } => {
                    at(&mut points, *point).notes.push((*second, text.clone()));
                }
                Event::Counters { point, values } => at(&mut points, *point).counters.clone_from(values),
                _ => {}
            }
        }
        for second in &self.seconds {
            at(&mut points, second.point);
        }
        points.into_values().collect()
    }

    /// All phases of the run, in their order.
    pub fn phases(&self) -> Vec<PhaseSpan> {
        let mut spans: Vec<PhaseSpan> = Vec::new();
        for (_, event) in &self.events {
            if let Event::Phase { point, phase, at, users, planned } = event {
                if let Some(last) = spans.last_mut() {
                    last.end = Some(*at);
                }
                let (point, phase, start, users, planned) = (*point, *phase, *at, *users, *planned);
                spans.push(PhaseSpan { point, phase, start, end: None, users, planned });
            }
        }
        spans
    }

    /// Consistency conditions: before or after the load, and the outcome.
    pub fn checks(&self) -> Vec<(Phase, CheckLine)> {
        let check = |event: &Event| match event {
            Event::Check { phase, line } => Some((*phase, line.clone())),
            _ => None,
        };
        self.events.iter().filter_map(|(_, e)| check(e)).collect()
    }

    /// Errors of a point, or of the whole run, grouped by transaction type, class and code; most frequent first.
    pub fn errors(&self, point: Option<u32>) -> Vec<ErrorGroup> {
        let mut groups: BTreeMap<(Option<u16>, &str, &str), ErrorGroup> = BTreeMap::new();
        for (_, event) in &self.events {
            let Event::Errors(e) = event else { continue };
            if point.is_some_and(|p| p != e.point) {
                continue;
            }
            let group = groups.entry((e.kind, &e.class, &e.code)).or_insert_with(|| ErrorGroup {
                kind: e.kind,
                class: e.class.clone(),
                code: e.code.clone(),
                message: e.message.clone(),
                count: 0,
                retried: 0,
                seconds: (e.second, e.second),
            });
            group.count = group.count.saturating_add(e.count);
            group.retried = group.retried.saturating_add(if e.retried { e.count } else { 0 });
            group.seconds = (group.seconds.0.min(e.second), group.seconds.1.max(e.second));
        }
        let mut groups: Vec<_> = groups.into_values().collect();
        groups.sort_by_key(|g| std::cmp::Reverse(g.count));
        groups
    }

    /// Errors of a point by second: seconds since its window opened, and how many.
    pub fn errors_by_second(&self, point: u32) -> BTreeMap<i64, u64> {
        let mut seconds = BTreeMap::new();
        for (_, event) in &self.events {
            if let Event::Errors(e) = event
                && e.point == point
            {
                let sum: &mut u64 = seconds.entry(e.second).or_default();
                *sum = sum.saturating_add(e.count);
            }
        }
        seconds
    }

    /// Sums and series of a point. Takes milliseconds per minute of load: every histogram is decoded.
    ///
    /// # Errors
    /// When a stored histogram is damaged.
    pub fn figures(&self, point: u32) -> Result<Figures> {
        let elapsed = self.events.iter().find_map(|(_, e)| match e {
            Event::Window(w) if w.point == point => Some(w.elapsed as f64 / 1e9),
            _ => None,
        });
        let mut stored: Vec<&StoredSecond> = self.seconds.iter().filter(|s| s.point == point).collect();
        stored.sort_by_key(|s| (part_order(s.part), s.second));
        let last = stored.iter().filter(|s| s.part == Part::Measured).map(|s| s.second + 1).max();
        let seconds = elapsed.unwrap_or(last.unwrap_or(0) as f64);
        if seconds > LONGEST_SECONDS as f64 {
            return Err(self.damaged(format!("run {} has a window of {seconds:.0} s", self.id)));
        }
        let mut figures = Figures {
            seconds,
            closed: elapsed.is_some(),
            kinds: vec![KindCounts::default(); self.info.kinds.len()],
            all: Histogram::new(),
            headline: 0,
            per_minute: None,
            transactions_per_minute: None,
            series: Vec::with_capacity(stored.len()),
        };
        let mut together = Histogram::new();
        for second in stored {
            let decoded = self.decode(second)?;
            together.clear();
            for kind in &decoded.kinds {
                together.add(&kind.latency);
            }
            if second.part == Part::Measured {
                figures.all.add(&together);
                for (sum, kind) in figures.kinds.iter_mut().zip(&decoded.kinds) {
                    sum.add(kind);
                }
            }
            figures.fill_gap(second.second, second.part, self.info.kinds.len());
            figures.series.push(SecondRow {
                second: second.second,
                part: second.part,
                width: width(second.second, second.part, seconds),
                headline: self.headline_of(&decoded.kinds),
                good: decoded.kinds.iter().map(KindCounts::good).collect(),
                failed: decoded.kinds.iter().map(|k| k.failed).sum(),
                retries: decoded.kinds.iter().map(|k| k.retries).sum(),
                latency: decoded.kinds.iter().map(|k| k.latency.summary()).collect(),
                all: together.summary(),
            });
        }
        figures.fill_end(self.info.kinds.len());
        figures.headline = self.headline_of(&figures.kinds);
        if seconds > 0.0 {
            let good: u64 = figures.kinds.iter().map(KindCounts::good).sum();
            figures.per_minute = Some(figures.headline as f64 * 60.0 / seconds);
            figures.transactions_per_minute = Some(good as f64 * 60.0 / seconds);
        }
        Ok(figures)
    }

    /// The stored seconds must add up to what the window and the collector counted; empty when neither said.
    pub fn cross_checks(&self, point: u32, figures: &Figures) -> Vec<Invariant> {
        let mut found = Vec::new();
        for (_, event) in &self.events {
            if let Event::Window(w) = event
                && w.point == point
            {
                found.push(counts_agree(
                    "the stored seconds add up to the window's count",
                    ("in the seconds", figures.headline),
                    ("in the window", w.client_headline),
                    0,
                ));
            }
        }
        let mut sums = [0_u64; 5];
        let mut totals = [0_u64; 5];
        let mut any = false;
        for total in self.totals.iter().filter(|t| t.point == point && t.measured) {
            any = true;
            let Some(k) = figures.kinds.get(total.kind) else { continue };
            let own = [k.committed, k.rolled_back, k.failed, k.retries, k.latency.sum() as u64];
            for i in 0..5 {
                sums[i] = sums[i].saturating_add(own[i]);
                totals[i] = totals[i].saturating_add(total.figures[i]);
            }
        }
        if any {
            let names = ["committed", "rolled back", "failed", "retries", "latency in nanoseconds"];
            for i in 0..5 {
                if sums[i] != totals[i] || i == 0 {
                    found.push(counts_agree(
                        &format!("the stored seconds add up to the collector's sum: {}", names[i]),
                        ("in the seconds", sums[i]),
                        ("by the collector", totals[i]),
                        0,
                    ));
                }
            }
        }
        found
    }

    fn headline_of(&self, kinds: &[KindCounts]) -> u64 {
        kinds.iter().zip(&self.info.kinds).filter(|(_, name)| name.headline).map(|(k, _)| k.committed).sum()
    }
}

impl Figures {
    /// Adds the seconds in which nothing ended between the last row and `second`.
    fn fill_gap(&mut self, second: i64, part: Part, kinds: usize) {
        let next = match self.series.last() {
            Some(row) if row.part == part => row.second + 1,
            // The window opens at 0 even when nothing ended in its first seconds.
            _ if part == Part::Measured => 0,
            _ => return,
        };
        for missing in next..second {
            self.series.push(empty_row(missing, part, self.seconds, kinds));
        }
    }

    /// Adds the seconds in which nothing ended before the window closed.
    fn fill_end(&mut self, kinds: usize) {
        let end = self.seconds.ceil() as i64;
        let at = self.series.iter().position(|r| r.part == Part::Tail).unwrap_or(self.series.len());
        let next = self.series[..at].last().filter(|r| r.part == Part::Measured).map_or(0, |r| r.second + 1);
        let rows = (next..end).map(|s| empty_row(s, Part::Measured, self.seconds, kinds));
        self.series.splice(at..at, rows);
    }

    /// The measured rows.
    pub fn measured(&self) -> impl Iterator<Item = &SecondRow> {
        self.series.iter().filter(|r| r.part == Part::Measured)
    }
}

fn empty_row(second: i64, part: Part, seconds: f64, kinds: usize) -> SecondRow {
    let none = LatencySummary { count: 0, mean: None, percentiles: [None; 4], min: None, max: None };
    SecondRow {
        second,
        part,
        width: width(second, part, seconds),
        headline: 0,
        good: vec![0; kinds],
        failed: 0,
        retries: 0,
        latency: vec![none; kinds],
        all: none,
    }
}

fn width(second: i64, part: Part, window: f64) -> f64 {
    match part {
        Part::Measured => (window - second as f64).clamp(0.0, 1.0),
        Part::Tail if (second as f64) < window => (second as f64 + 1.0 - window).clamp(0.0, 1.0),
        Part::RampUp | Part::Tail => 1.0,
    }
}

fn part_order(part: Part) -> u8 {
    match part {
        Part::RampUp => 0,
        Part::Measured => 1,
        Part::Tail => 2,
    }
}

fn at(points: &mut BTreeMap<u32, Point>, point: u32) -> &mut Point {
    points.entry(point).or_insert_with(|| Point {
        point,
        users: 0,
        window: None,
        phases: Vec::new(),
        ramp_up: 0.0,
        audit: Vec::new(),
        invariants: Vec::new(),
        notes: Vec::new(),
        counters: Vec::new(),
    })
}

//! One point of a run: its window, counts and errors.

use std::collections::BTreeMap;

use kelvin_measure::event::{
    Arrivals, AuditLine, ErrorCount, HostLoad, KindCounts, LoadPart, Phase, Second, Series, SeriesRole,
    Window,
};
use kelvin_measure::invariant::Invariant;
use kelvin_measure::{Histogram, Nanos};

/// A stretch of time on the run's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// When it begins.
    pub from: Nanos,
    /// When it ends.
    pub to: Nanos,
}

impl Span {
    /// Its length in seconds.
    pub fn seconds(self) -> f64 {
        self.to.saturating_sub(self.from) as f64 / 1e9
    }
}

/// Counts of one second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SecondCounts {
    /// Committed and rolled back as asked, of all types.
    pub good: u64,
    /// Failed for good.
    pub failed: u64,
    /// Repeated.
    pub retries: u64,
    /// Committed of the headline's type.
    pub headline: u64,
    /// 95th percentile of the service times in nanoseconds; none without a transaction.
    pub p95: Option<Nanos>,
    /// Their mean; none without a transaction.
    pub mean: Option<f64>,
}

/// What is known of a point.
#[derive(Debug)]
pub struct PointEvidence {
    /// Which point of the run.
    pub point: u32,
    /// Virtual users.
    pub users: u32,
    /// When the users began to connect.
    pub connect: Option<Nanos>,
    /// When the ramp-up began; none without one.
    pub ramp: Option<Nanos>,
    /// When the window opened.
    pub open: Option<Nanos>,
    /// When the load was asked to stop.
    pub stopped: Option<Nanos>,
    /// The planned length of the window.
    pub planned: Option<Nanos>,
    /// The window's counts, once it has closed.
    pub window: Option<Window>,
    /// Counts by second from the window's opening, negative in the ramp-up; what ended after the window is not there.
    pub seconds: BTreeMap<i64, SecondCounts>,
    /// Counts and service times of the window by series, as of the context's series.
    pub kinds: Vec<KindCounts>,
    /// Arrivals of an open loop.
    pub arrivals: Vec<Arrivals>,
    /// Errors by second.
    pub errors: Vec<ErrorCount>,
    /// The self-audit.
    pub audit: Vec<AuditLine>,
    /// What was checked.
    pub invariants: Vec<Invariant>,
    /// Sentences on the timeline.
    pub notes: Vec<(i64, String)>,
    /// The hosts of a fleet that generated the load, with their names.
    pub hosts: Vec<(String, HostLoad)>,
    series: Vec<Series>,
}

/// Seconds of a window that are examined: a month. A longer one comes from a damaged store.
const LONGEST_SECONDS: i64 = 31 * 86_400;

impl PointEvidence {
    pub(super) fn new(point: u32, series: &[Series]) -> Self {
        Self {
            point,
            users: 0,
            connect: None,
            ramp: None,
            open: None,
            stopped: None,
            planned: None,
            window: None,
            seconds: BTreeMap::new(),
            kinds: vec![KindCounts::default(); series.len()],
            arrivals: Vec::new(),
            errors: Vec::new(),
            audit: Vec::new(),
            invariants: Vec::new(),
            notes: Vec::new(),
            hosts: Vec::new(),
            series: series.to_vec(),
        }
    }

    pub(super) fn phase(&mut self, phase: Phase, at: Nanos, users: u32, planned: Option<Nanos>) {
        match phase {
            Phase::Connect => self.connect = Some(at),
            Phase::RampUp => self.ramp = Some(at),
            Phase::Measure => (self.open, self.planned) = (Some(at), planned),
            Phase::Stop => self.stopped = Some(at),
            Phase::Build | Phase::CheckBefore | Phase::CheckAfter => {}
        }
        self.users = self.users.max(users);
    }

    pub(super) fn second(&mut self, second: &Second) {
        let mut latency = Histogram::new();
        let mut counts = SecondCounts::default();
        for ((series, kind), sum) in self.series.iter().zip(&second.kinds).zip(&mut self.kinds) {
            if series.role.counts_in(second.part) {
                sum.add(kind);
            }
            if series.role == SeriesRole::Transaction {
                counts.good = counts.good.saturating_add(kind.good());
                counts.failed = counts.failed.saturating_add(kind.failed);
                counts.retries = counts.retries.saturating_add(kind.retries);
                counts.headline =
                    counts.headline.saturating_add(if series.headline { kind.committed } else { 0 });
                latency.add(&kind.latency);
            }
        }
        if second.part == LoadPart::Tail {
            return;
        }
        let entry = self.seconds.entry(second.second).or_default();
        entry.good = entry.good.saturating_add(counts.good);
        entry.failed = entry.failed.saturating_add(counts.failed);
        entry.retries = entry.retries.saturating_add(counts.retries);
        entry.headline = entry.headline.saturating_add(counts.headline);
        // A second event for the same second holds the few that came late.
        entry.p95 = entry.p95.max(latency.percentile(95.0));
        entry.mean = entry.mean.or(latency.mean());
    }

    /// Counts of all transaction types over the window.
    pub fn transactions(&self) -> KindCounts {
        let mut sum = KindCounts::default();
        self.by_type().for_each(|kind| sum.add(kind));
        sum
    }

    /// The same by transaction type.
    pub fn by_type(&self) -> impl Iterator<Item = &KindCounts> {
        let series = self.series.iter().zip(&self.kinds);
        series.filter(|(series, _)| series.role == SeriesRole::Transaction).map(|(_, kind)| kind)
    }

    /// Good transactions a second, by whole seconds of the window in their order: the last, which may be cut, is left
    /// out once the window has closed.
    pub fn throughput(&self) -> Vec<f64> {
        self.by_second(|counts| counts.good)
    }

    /// The same of the headline's types alone.
    pub fn headline(&self) -> Vec<f64> {
        self.by_second(|counts| counts.headline)
    }

    fn by_second(&self, of: impl Fn(&SecondCounts) -> u64) -> Vec<f64> {
        // A second in which nothing ended may have no entry.
        let last = self.seconds.last_key_value().map_or(0, |(second, _)| second + 1);
        let whole = self.window.as_ref().map_or(last, |w| (w.elapsed / 1_000_000_000) as i64);
        let whole = whole.clamp(0, LONGEST_SECONDS);
        (0..whole).map(|second| self.seconds.get(&second).map_or(0, &of) as f64).collect()
    }
}

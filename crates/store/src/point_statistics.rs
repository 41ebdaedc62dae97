//! The figures of a point of a stored run: the sums over its window, and its seconds. Only the series of
//! transactions are ever added up; response times, statements and the generator's lateness stand beside them.

use std::collections::{BTreeMap, BTreeSet};

use kelvin_measure::event::{Arrivals, Event, KindCounts, LoadPart, RatePeriod, Series, SeriesRole, Stretch};
use kelvin_measure::invariant::{Invariant, counts_agree};
use kelvin_measure::{CensoredTimes, Exact, Histogram, LatencySummary, Source, SourceId, labels};
use kelvin_stats::percentile;

use crate::error::Result;
use crate::stored::{LONGEST_SECONDS, StoredRun, StoredSecond};

/// Sums and series of one point. Latencies in nanoseconds.
#[derive(Debug, Clone)]
pub struct PointStatistics {
    /// Length of the window in seconds: as elapsed, or up to the last whole second of a run without its end.
    pub seconds: f64,
    /// Whether the window closed; if not, the figures are of a part.
    pub closed: bool,
    /// Over the measured window, by series in the run's order.
    pub kinds: Vec<KindCounts>,
    /// Sums over the transaction types, with their service times.
    pub all: KindCounts,
    /// The arrivals of the window that ended, of all transaction types, with their response times; empty in a closed loop.
    pub response: KindCounts,
    /// The times of [`PointStatistics::times`] in stretches of the window that are alike in length, at most [`MOST_STRETCHES`] and of
    /// whole seconds, in their order: what ended in each, and in the last what ended after the window as well. None of one source.
    pub stretches: Vec<Histogram>,
    /// Arrivals of the window that never began: refused, still waiting when the load ended, or cut off by its end. Of what
    /// type they would have been nobody knows.
    pub never_begun: u64,
    /// Whether everything began by a schedule. The series of a run of I/O jobs are those of all its phases, so that they do
    /// not show which had a rate: the response times of a phase do, and a phase in which a job without a rate runs
    /// beside one with a rate finds its throughput out.
    pub open_loop: bool,
    /// The generator's lateness; empty in a closed loop.
    pub lag: Histogram,
    /// Headline transactions committed in the window.
    pub headline: u64,
    /// The arrivals of the window; none in a closed loop.
    pub arrivals: Option<Arrivals>,
    /// One row a second, without gaps: a second in which nothing ended is there with zeros.
    pub series: Vec<SecondRow>,
    /// Of I/O jobs the directions of their series ("read", "write", "trim"), whose times are never put together. Other
    /// workloads have none.
    pub directions: Vec<String>,
}

/// What one of several sources did in a point.
#[derive(Debug, Clone)]
pub struct SourceStatistics {
    /// Its number.
    pub id: SourceId,
    /// What it was declared to be.
    pub source: Source,
    /// The most users of a tenant of a scenario; none of another source.
    pub users: Option<u32>,
    /// Its sums and series.
    pub figures: PointStatistics,
}

/// Stretches of a window, over which the interval of a percentile is judged.
pub const MOST_STRETCHES: usize = percentile::MOST_BATCHES;

/// One second of one part of the load.
#[derive(Debug, Clone)]
pub struct SecondRow {
    /// Seconds since the window opened; negative in the ramp-up.
    pub second: i64,
    /// Ramp-up, measured or after.
    pub part: LoadPart,
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
    /// Service times of all types together.
    pub all: LatencySummary,
    /// Response times of all types together.
    pub response: LatencySummary,
    /// The generator's lateness.
    pub lag: LatencySummary,
    /// The arrivals of an open loop.
    pub arrivals: Option<Arrivals>,
    /// Service times and response times by [`PointStatistics::directions`]; none in a second in which nothing ended.
    pub directions: Vec<[LatencySummary; 2]>,
}

impl SecondRow {
    /// Headline transactions per minute or second at this second's pace.
    pub fn headline_per(&self, per: RatePeriod) -> f64 {
        pace(self.headline, self.width, per).unwrap_or(0.0)
    }

    /// Transactions per minute or second at this second's pace.
    pub fn transactions_per(&self, per: RatePeriod) -> f64 {
        pace(self.good.iter().sum(), self.width, per).unwrap_or(0.0)
    }
}

impl PointStatistics {
    /// Headline transactions per elapsed minute or second; none without a window.
    pub fn headline_per(&self, per: RatePeriod) -> Option<f64> {
        pace(self.headline, self.seconds, per)
    }

    /// Commits and rollbacks of all types per elapsed minute or second; none without a window.
    pub fn transactions_per(&self, per: RatePeriod) -> Option<f64> {
        pace(self.all.good(), self.seconds, per)
    }

    /// The times that whoever asks the system would see, of all transaction types: response times in an open loop, else
    /// service times. Every percentile that stands for a point is one of these.
    pub fn times(&self) -> CensoredTimes<'_> {
        if self.open_loop { self.response_times() } else { CensoredTimes::all_answered(&self.all.latency) }
    }

    /// Response times of all transaction types. The population is the arrivals of the window: those that failed and
    /// those that never began have no answer.
    pub fn response_times(&self) -> CensoredTimes<'_> {
        self.response_times_of(&self.response)
    }

    /// The same of one type: `kind` is its series of responses. Of what never began each type has the share that it has of
    /// what ended.
    pub fn response_times_of<'a>(&self, kind: &'a KindCounts) -> CensoredTimes<'a> {
        let ended = |kind: &KindCounts| (kind.good() + kind.failed) as f64;
        let all = ended(&self.response);
        let share = if all > 0.0 { ended(kind) / all } else { 1.0 };
        let unanswered = kind.failed as f64 + self.never_begun as f64 * share;
        CensoredTimes::with_unanswered(&kind.latency, unanswered)
    }

    /// The interval at 95 % of a percentile of [`PointStatistics::times`] within this run, in nanoseconds: where that of a much longer
    /// run would lie.
    pub fn interval(&self, percent: f64) -> Option<percentile::Interval> {
        let stretch =
            |times: &Histogram| times.buckets().map(|(nanos, count)| (nanos as f64, count)).collect();
        let stretches: Vec<Vec<(f64, u64)>> = self.stretches.iter().map(stretch).collect();
        percentile::interval(&stretches, self.times().unanswered(), percent, 0.95)
    }

    /// The measured rows.
    pub fn measured(&self) -> impl Iterator<Item = &SecondRow> {
        self.series.iter().filter(|r| r.part == LoadPart::Measured)
    }
}

/// So many in so many seconds.
pub(crate) fn pace(count: u64, seconds: f64, per: RatePeriod) -> Option<f64> {
    (seconds > 0.0).then(|| count as f64 * per.seconds() / seconds)
}

impl StoredRun {
    /// Sums and series of a point. Takes milliseconds per minute of load: every histogram is decoded.
    ///
    /// # Errors
    /// When a stored histogram is damaged.
    pub fn point_statistics(&self, point: u32) -> Result<PointStatistics> {
        self.statistics(point, None)
    }

    /// What `each` makes of the same of each source apart, where several put load on the point, or where it is a tenant of a
    /// scenario; else empty. One source's histograms are in memory at a time, and no stretches are kept: a fleet has hundreds
    /// of sources.
    ///
    /// # Errors
    /// When a stored histogram is damaged.
    pub fn source_statistics<T>(
        &self,
        point: u32,
        mut each: impl FnMut(SourceStatistics) -> T,
    ) -> Result<Vec<T>> {
        let seconds = self.seconds.iter().filter(|second| second.point == point);
        let mut ids: BTreeSet<SourceId> = seconds.flat_map(StoredSecond::sources).collect();
        let failed = |event: &Event| matches!(event, Event::Errors(errors) if errors.point == point);
        let failed = self.events.iter().filter(|(_, event)| failed(event));
        ids.extend(failed.map(|(seq, _)| self.source_of(*seq)));
        // A tenant that did nothing while its load was on has no second.
        let on = |event: &Event| matches!(event, Event::Stretch(stretch) if stretch.point == point);
        let on = self.events.iter().filter(|(_, event)| on(event));
        ids.extend(on.map(|(seq, _)| self.source_of(*seq)));
        let declared: BTreeMap<SourceId, &Source> = self.sources().collect();
        let is_tenant = |id: &SourceId| declared.get(id).is_some_and(|source| source.tenant.is_some());
        if ids.len() < 2 && !ids.iter().any(is_tenant) {
            return Ok(Vec::new());
        }
        let found = ids.into_iter().map(|id| {
            let source = declared.get(&id).copied().cloned().unwrap_or_default();
            let users = self.stretches(point, id).map(|stretch| stretch.users).max();
            Ok(each(SourceStatistics { id, source, users, figures: self.statistics(point, Some(id))? }))
        });
        found.collect()
    }

    fn statistics(&self, point: u32, only: Option<SourceId>) -> Result<PointStatistics> {
        let elapsed = self.events.iter().find_map(|(_, e)| match e {
            Event::Window(w) if w.point == point => Some(w.elapsed as f64 / 1e9),
            _ => None,
        });
        let of_source = |second: &&StoredSecond| only.is_none_or(|id| second.sources().any(|of| of == id));
        let stored = self.seconds.iter().filter(|s| s.point == point).filter(of_source);
        let mut stored: Vec<&StoredSecond> = stored.collect();
        stored.sort_by_key(|s| (part_order(s.part), s.second));
        let last = stored.iter().filter(|s| s.part == LoadPart::Measured).map(|s| s.second + 1).max();
        let seconds = elapsed.unwrap_or(last.unwrap_or(0) as f64);
        if seconds > LONGEST_SECONDS as f64 {
            return Err(self.damaged(format!("run {} has an impossible window of {seconds:.0} s", self.id)));
        }
        let series = &self.info.kinds;
        let types = series.iter().filter(|s| s.is_transaction()).count();
        let stretches = if only.is_some() { 0 } else { last.unwrap_or(0).max(0) as usize };
        let responds = series.iter().any(|s| matches!(s.role, SeriesRole::Response { .. }));
        let mut figures = PointStatistics {
            seconds,
            closed: elapsed.is_some(),
            kinds: vec![KindCounts::default(); series.len()],
            all: KindCounts::default(),
            response: KindCounts::default(),
            stretches: vec![Histogram::new(); stretches.min(MOST_STRETCHES)],
            never_begun: 0,
            open_loop: false,
            lag: Histogram::new(),
            headline: 0,
            arrivals: None,
            series: Vec::with_capacity(stored.len()),
            directions: self.directions(),
        };
        let mut sums =
            Sums { directions: vec![Default::default(); figures.directions.len()], ..Sums::default() };
        for second in stored {
            let decoded = self.decode(second, only)?;
            sums.take(series, &decoded.kinds);
            sums.take_directions(&figures.directions, series, &decoded.kinds);
            if second.part == LoadPart::Measured {
                figures.all.add(&sums.all);
                figures.headline += sums.headline;
            }
            for ((sum, kind), series) in figures.kinds.iter_mut().zip(&decoded.kinds).zip(series) {
                if series.role.counts_in(second.part) {
                    sum.add(kind);
                }
            }
            let from = if responds { SeriesRole::Lag } else { SeriesRole::Transaction };
            if from.counts_in(second.part) {
                let times = if responds { &sums.response.latency } else { &sums.all.latency };
                let place = second.second.max(0) as usize * figures.stretches.len()
                    / last.unwrap_or(1).max(1) as usize;
                let place = place.min(figures.stretches.len().saturating_sub(1));
                if let Some(stretch) = figures.stretches.get_mut(place) {
                    stretch.add(times);
                }
            }
            if SeriesRole::Lag.counts_in(second.part) {
                figures.response.add(&sums.response);
                figures.lag.add(&sums.lag);
            }
            figures.fill_gap(second.second, second.part, types);
            figures.series.push(SecondRow {
                second: second.second,
                part: second.part,
                width: width(second.second, second.part, seconds),
                headline: sums.headline,
                good: transactions(series, &decoded.kinds).map(KindCounts::good).collect(),
                failed: sums.all.failed,
                retries: sums.all.retries,
                all: sums.all.latency.summary(),
                response: sums.response.latency.summary(),
                lag: sums.lag.summary(),
                arrivals: None,
                directions: sums
                    .directions
                    .iter()
                    .map(|times| times.each_ref().map(Histogram::summary))
                    .collect(),
            });
        }
        figures.fill_end(types);
        self.add_arrivals(point, only, &mut figures);
        if let Some(own) = only.and_then(|id| self.at_work(point, id)) {
            figures.seconds = own;
        }
        figures.open_loop = self.is_open_loop(point, &figures);
        figures.never_begun = self.never_begun(point, only, &figures);
        if responds != figures.open_loop {
            // Some of it had a rate and some had not.
            figures.stretches.clear();
        }
        Ok(figures)
    }

    /// The directions of the series of I/O jobs, each once.
    fn directions(&self) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        if self.info.workload == labels::IO {
            for series in self.info.kinds.iter().filter(|series| series.is_transaction()) {
                let direction = series.direction();
                if found.iter().all(|known| known != direction) {
                    found.push(direction.to_owned());
                }
            }
        }
        found
    }

    fn is_open_loop(&self, point: u32, figures: &PointStatistics) -> bool {
        let kept =
            self.info.kinds.iter().any(|s| matches!(s.role, SeriesRole::Response { .. } | SeriesRole::Lag));
        // Tenants of a scenario have loops of both kinds beside each other, as jobs have.
        let several =
            self.info.workload == labels::IO || self.sources().any(|(_, source)| source.tenant.is_some());
        if !kept || !several {
            return kept;
        }
        let scheduled = self
            .events
            .iter()
            .any(|(_, e)| matches!(e, Event::Window(w) if w.point == point && w.schedule.is_some()));
        let answered = figures.response.latency.count();
        scheduled || answered > 0 && answered >= figures.all.good()
    }

    /// The seconds in which a tenant's load was on, as its source reports; none of a source that does not.
    fn at_work(&self, point: u32, source: SourceId) -> Option<f64> {
        let each = self.stretches(point, source).map(|one| one.to.saturating_sub(one.from) as f64 / 1e9);
        each.reduce(|sum, one| sum + one)
    }

    fn stretches(&self, point: u32, source: SourceId) -> impl Iterator<Item = &Stretch> {
        self.events.iter().filter_map(move |(seq, event)| match event {
            Event::Stretch(one) if one.point == point && self.source_of(*seq) == source => Some(one),
            _ => None,
        })
    }

    /// From the window's end; of one of its sources, and of a run without its end, from its seconds.
    fn never_begun(&self, point: u32, only: Option<SourceId>, figures: &PointStatistics) -> u64 {
        let schedule = self.events.iter().find_map(|(_, event)| match event {
            Event::Window(window) if window.point == point && only.is_none() => window.schedule,
            _ => None,
        });
        let sofar = || figures.arrivals.map_or(0, |a| a.refused.saturating_add(a.waiting.unwrap_or(0)));
        schedule.map_or_else(sofar, |schedule| schedule.never_begun())
    }

    /// Puts the arrivals into their seconds. The last second of a window that cuts it holds all its arrivals.
    fn add_arrivals(&self, point: u32, only: Option<SourceId>, figures: &mut PointStatistics) {
        let rows = figures.series.iter().enumerate().filter(|(_, r)| r.part != LoadPart::Tail);
        let places: BTreeMap<i64, usize> = rows.map(|(i, r)| (r.second, i)).collect();
        let mut seconds: BTreeMap<(usize, SourceId), Option<Arrivals>> = BTreeMap::new();
        let mut window: BTreeMap<SourceId, Option<Arrivals>> = BTreeMap::new();
        for (seq, event) in &self.events {
            let (Event::Arrivals(new), source) = (event, self.source_of(*seq)) else { continue };
            if new.point != point || only.is_some_and(|id| id != source) {
                continue;
            }
            let Some(&place) = places.get(&new.second) else { continue };
            // The number that waits is in a source's last event; those of several sources all wait.
            add(seconds.entry((place, source)).or_default(), new, |_, last| last);
            if figures.series[place].part == LoadPart::Measured {
                add(window.entry(source).or_default(), new, |_, last| last);
            }
        }
        for ((place, _), sum) in &seconds {
            let all = &mut figures.series[*place].arrivals;
            if let Some(sum) = sum {
                add(all, sum, u64::saturating_add);
            }
        }
        window.values().flatten().for_each(|sum| add(&mut figures.arrivals, sum, u64::saturating_add));
    }

    /// The stored seconds must add up to what the window and the collector counted; empty when neither said.
    pub fn cross_checks(&self, point: u32, figures: &PointStatistics) -> Vec<Invariant> {
        let mut found = Vec::new();
        for (_, event) in &self.events {
            if let Event::Window(w) = event
                && w.point == point
            {
                found.push(counts_agree(
                    "the stored per-second records add up to the count for the window",
                    ("in the records", figures.headline),
                    ("in the window", w.client_headline),
                    0,
                ));
            }
        }
        self.check_totals(point, figures, true, "", &mut found);
        self.check_totals(point, figures, false, " for responses, statements and lateness", &mut found);
        found
    }

    fn check_totals(
        &self,
        point: u32,
        figures: &PointStatistics,
        transactions: bool,
        of: &str,
        found: &mut Vec<Invariant>,
    ) {
        let mut sums = [0_u64; CHECKED.len()];
        let mut totals = [0_u64; CHECKED.len()];
        let mut any = false;
        for total in self.totals.iter().filter(|t| t.point == point && t.measured) {
            let Some(k) = figures.kinds.get(total.kind) else { continue };
            if self.info.kinds[total.kind].is_transaction() != transactions {
                continue;
            }
            any = true;
            let Exact { sum, max, .. } = k.latency.exact();
            let own = [k.committed, k.rolled_back, k.failed, k.retries, sum as u64, max];
            for (i, (_, combined)) in CHECKED.iter().enumerate() {
                sums[i] = combined(sums[i], own[i]);
                totals[i] = combined(totals[i], total.figures[i]);
            }
        }
        if any {
            for (i, (name, _)) in CHECKED.iter().enumerate() {
                if sums[i] != totals[i] || i == 0 {
                    found.push(counts_agree(
                        &format!("the stored per-second records add up to the collector's sum{of}: {name}"),
                        ("in the records", sums[i]),
                        ("by the collector", totals[i]),
                        0,
                    ));
                }
            }
        }
    }
}

/// How two sums of one figure become one.
type Merge = fn(u64, u64) -> u64;

/// What the collector's sums are compared in, and how the series' figures are combined.
const CHECKED: [(&str, Merge); 6] = [
    ("committed", u64::saturating_add),
    ("rolled back", u64::saturating_add),
    ("failed", u64::saturating_add),
    ("retries", u64::saturating_add),
    ("latency in nanoseconds", u64::saturating_add),
    ("longest latency in nanoseconds", u64::max),
];

/// The sums of one second, its memory kept for the next.
#[derive(Default)]
struct Sums {
    all: KindCounts,
    response: KindCounts,
    lag: Histogram,
    headline: u64,
    /// Service and response times.
    directions: Vec<[Histogram; 2]>,
}

impl Sums {
    fn take_directions(&mut self, names: &[String], series: &[Series], kinds: &[KindCounts]) {
        for (name, sums) in names.iter().zip(&mut self.directions) {
            sums.iter_mut().for_each(Histogram::clear);
            for (one, kind) in series.iter().zip(kinds).filter(|(one, _)| one.direction() == name) {
                match one.role {
                    SeriesRole::Transaction => sums[0].add(&kind.latency),
                    SeriesRole::Response { .. } => sums[1].add(&kind.latency),
                    SeriesRole::Lag | SeriesRole::Statement { .. } => {}
                }
            }
        }
    }

    fn take(&mut self, series: &[Series], kinds: &[KindCounts]) {
        for sum in [&mut self.all, &mut self.response] {
            let mut latency = std::mem::take(&mut sum.latency);
            latency.clear();
            *sum = KindCounts { latency, ..KindCounts::default() };
        }
        self.lag.clear();
        self.headline = 0;
        for (series, kind) in series.iter().zip(kinds) {
            match series.role {
                SeriesRole::Transaction => {
                    self.all.add(kind);
                    self.headline += if series.headline { kind.committed } else { 0 };
                }
                SeriesRole::Response { .. } => self.response.add(kind),
                SeriesRole::Lag => self.lag.add(&kind.latency),
                SeriesRole::Statement { .. } => {}
            }
        }
    }
}

fn transactions<'a>(
    series: &'a [Series],
    kinds: &'a [KindCounts],
) -> impl Iterator<Item = &'a KindCounts> + 'a {
    series.iter().zip(kinds).filter(|(series, _)| series.is_transaction()).map(|(_, kind)| kind)
}

/// The sums of arrivals; of those who wait `waiting` makes one number.
fn add(sum: &mut Option<Arrivals>, new: &Arrivals, waiting: fn(u64, u64) -> u64) {
    let before = sum.unwrap_or(Arrivals { point: new.point, second: new.second, ..Arrivals::default() });
    let both = before.waiting.zip(new.waiting).map(|(before, new)| waiting(before, new));
    *sum = Some(Arrivals {
        due: before.due.saturating_add(new.due),
        refused: before.refused.saturating_add(new.refused),
        waiting: both.or(new.waiting).or(before.waiting),
        ..before
    });
}

impl PointStatistics {
    /// Adds the seconds in which nothing ended between the last row and `second`.
    fn fill_gap(&mut self, second: i64, part: LoadPart, types: usize) {
        let next = match self.series.last() {
            Some(row) if row.part == part => row.second + 1,
            // The window opens at 0 even when nothing ended in its first seconds.
            _ if part == LoadPart::Measured => 0,
            _ => return,
        };
        for missing in next..second {
            self.series.push(empty_row(missing, part, self.seconds, types));
        }
    }

    /// Adds the seconds in which nothing ended before the window closed.
    fn fill_end(&mut self, types: usize) {
        let end = self.seconds.ceil() as i64;
        let at = self.series.iter().position(|r| r.part == LoadPart::Tail).unwrap_or(self.series.len());
        let next =
            self.series[..at].last().filter(|r| r.part == LoadPart::Measured).map_or(0, |r| r.second + 1);
        let rows = (next..end).map(|s| empty_row(s, LoadPart::Measured, self.seconds, types));
        self.series.splice(at..at, rows);
    }
}

fn empty_row(second: i64, part: LoadPart, seconds: f64, types: usize) -> SecondRow {
    let none = LatencySummary { count: 0, mean: None, percentiles: [None; 4], min: None, max: None };
    SecondRow {
        second,
        part,
        width: width(second, part, seconds),
        headline: 0,
        good: vec![0; types],
        failed: 0,
        retries: 0,
        all: none,
        response: none,
        lag: none,
        arrivals: None,
        directions: Vec::new(),
    }
}

fn width(second: i64, part: LoadPart, window: f64) -> f64 {
    match part {
        LoadPart::Measured => (window - second as f64).clamp(0.0, 1.0),
        LoadPart::Tail if (second as f64) < window => (second as f64 + 1.0 - window).clamp(0.0, 1.0),
        LoadPart::RampUp | LoadPart::Tail => 1.0,
    }
}

fn part_order(part: LoadPart) -> u8 {
    match part {
        LoadPart::RampUp => 0,
        LoadPart::Measured => 1,
        LoadPart::Tail => 2,
    }
}

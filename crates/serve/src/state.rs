//! The exported state of a run, updated by its events.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kelvin_measure::event::{
    Arrivals, ErrorCount, LoadPart, Phase, RatePeriod, Second, Series, SeriesRole, Status, Window,
};
use kelvin_measure::observation::{Observation, Observer, Reading, WaitGroup, WaitSamples};
use kelvin_measure::{Event, declare};

use crate::latency::Latency;
use crate::names::{PrometheusMetric, prometheus_metric};

/// Limit of the occurrences of a kind in progress.
const MOST_GOING_ON: usize = 65_536;
/// How long a value is exported after its last update.
const FRESH: Duration = Duration::from_secs(30);

/// The identity of a run and the meaning of its events.
#[derive(Debug, Clone, Default)]
pub struct RunInfo {
    /// The run's identifier.
    pub run: String,
    /// The workload's name, such as "tproc-c".
    pub workload: String,
    /// Name of the headline figure, such as "NOPM".
    pub headline: String,
    /// The period of the headline figure.
    pub per: RatePeriod,
    /// The series of the run's seconds, in order.
    pub series: Vec<Series>,
}

/// Counts of a series in a part of the load.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counts {
    pub(crate) committed: u64,
    pub(crate) rolled_back: u64,
    pub(crate) failed: u64,
    pub(crate) retries: u64,
    pub(crate) latency: Latency,
}

/// The name of the transaction type, the error class, and whether the transaction was retried.
pub(crate) type ErrorKey = (String, String, bool);

/// Everything that a scrape exports. Counters continue over all points of a run.
#[derive(Debug, Clone, Default)]
pub(crate) struct State {
    pub(crate) info: RunInfo,
    pub(crate) phase: Option<Phase>,
    pub(crate) status: Option<Status>,
    pub(crate) point: u32,
    pub(crate) users: u32,
    pub(crate) counts: BTreeMap<(u16, &'static str), Counts>,
    pub(crate) errors: BTreeMap<ErrorKey, u64>,
    pub(crate) arrivals: Option<Queue>,
    measured: Measured,
    pub(crate) occurrences: BTreeMap<String, Occurred>,
    groups: Vec<WaitGroup>,
    waits: Option<(Instant, Vec<(u32, f64)>)>,
    metrics: Vec<Option<Observed>>,
}

/// Arrivals of an open loop.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Queue {
    pub(crate) due: u64,
    pub(crate) refused: u64,
    pub(crate) waiting: u64,
}

/// The window of the newest point.
#[derive(Debug, Clone, Copy, Default)]
struct Measured {
    headline: u64,
    seconds: f64,
}

/// Occurrences of one kind.
#[derive(Debug, Clone, Default)]
pub(crate) struct Occurred {
    pub(crate) ended: u64,
    /// The numbers of the occurrences in progress.
    pub(crate) going_on: Vec<u32>,
}

/// A metric of an observer and its newest value.
#[derive(Debug, Clone)]
struct Observed {
    told: Arc<(PrometheusMetric, String)>,
    value: Option<(Instant, f32)>,
}

/// A sample to export: its metric, its help, its value in the metric's unit.
pub(crate) type MetricSample<'a> = (&'a PrometheusMetric, &'a str, f64);

impl State {
    pub(crate) fn begin(&mut self, info: RunInfo) {
        *self = Self { info, ..Self::default() };
    }

    pub(crate) fn event(&mut self, event: &Event, now: Instant) {
        match event {
            Event::Phase { point, phase, users, .. } => {
                if *phase == Phase::Connect {
                    self.measured = Measured::default();
                }
                (self.point, self.phase, self.users) = (*point, Some(*phase), *users);
            }
            Event::Second(second) => self.second(second),
            Event::Arrivals(arrivals) => self.arrivals(arrivals),
            Event::Errors(errors) => self.errors(errors),
            Event::Window(window) => self.window(window),
            Event::Observed(observation) => self.observed(observation, now),
            Event::Finished { status, .. } => {
                (self.status, self.phase, self.users) = (Some(*status), None, 0);
            }
            Event::Source { .. }
            | Event::Progress { .. }
            | Event::Note { .. }
            | Event::Query(_)
            | Event::QueryAnalysis(_)
            | Event::Counters { .. }
            | Event::Audit { .. }
            | Event::Invariant { .. }
            | Event::Check { .. }
            | Event::Step(_)
            | Event::Stretch(_)
            | Event::HostLoad(_)
            | Event::Scalability(_)
            | Event::MaximumRate(_)
            | Event::Squeeze(_)
            | Event::Storage { .. } => {}
        }
    }

    fn second(&mut self, second: &Second) {
        let part = match second.part {
            LoadPart::RampUp => "ramp-up",
            LoadPart::Measured => "measured",
            LoadPart::Tail => "tail",
        };
        for (kind, (series, new)) in self.info.series.iter().zip(&second.kinds).enumerate() {
            let counts = self.counts.entry((kind as u16, part)).or_default();
            counts.committed += new.committed;
            counts.rolled_back += new.rolled_back;
            counts.failed += new.failed;
            counts.retries += new.retries;
            counts.latency.add(&new.latency);
            if second.part == LoadPart::Measured && series.headline && series.is_transaction() {
                self.measured.headline += new.committed;
            }
        }
        if second.part == LoadPart::Measured {
            self.measured.seconds = self.measured.seconds.max(second.second as f64 + 1.0);
        }
    }

    fn arrivals(&mut self, new: &Arrivals) {
        let queue = self.arrivals.get_or_insert_default();
        queue.due += new.due;
        queue.refused += new.refused;
        queue.waiting = new.waiting.unwrap_or(queue.waiting);
    }

    fn errors(&mut self, new: &ErrorCount) {
        let kind = new.kind.and_then(|kind| self.info.series.get(usize::from(kind)));
        let kind = kind.map_or("connecting", |series| &series.name);
        *self.errors.entry((kind.to_owned(), new.class.clone(), new.retried)).or_default() += new.count;
    }

    fn window(&mut self, window: &Window) {
        self.measured = Measured { headline: window.client_headline, seconds: window.elapsed as f64 / 1e9 };
    }

    fn observed(&mut self, observation: &Observation, now: Instant) {
        match observation {
            Observation::Observer(observer) => self.observer(observer),
            Observation::Reading(reading) => self.reading(reading, now),
            Observation::WaitGroups { first, groups } => declare(&mut self.groups, *first, groups),
            Observation::Waits(waits) => self.waits(waits, now),
            Observation::Occurrence(occurrence) => {
                let occurred = self.occurrences.entry(occurrence.kind.clone()).or_default();
                occurred.going_on.retain(|id| *id != occurrence.id);
                if occurrence.to.is_some() {
                    occurred.ended += 1;
                } else if occurred.going_on.len() < MOST_GOING_ON {
                    occurred.going_on.push(occurrence.id);
                }
            }
            Observation::Statements { .. }
            | Observation::Relations { .. }
            | Observation::Settings { .. }
            | Observation::PreparedStatements { .. }
            | Observation::StatementTexts { .. }
            | Observation::Blocking { .. }
            | Observation::OtherProcesses { .. }
            | Observation::Lost(_) => {}
        }
    }

    fn observer(&mut self, observer: &Observer) {
        let new = observer.metrics.iter().map(|metric| {
            let told = Arc::new((prometheus_metric(&metric.name, &metric.unit), metric.help.clone()));
            Some(Observed { told, value: None })
        });
        declare(&mut self.metrics, observer.first, &new.collect::<Vec<_>>());
    }

    fn reading(&mut self, reading: &Reading, now: Instant) {
        let metrics = self.metrics.iter_mut().skip(reading.first as usize);
        for (metric, &value) in metrics.zip(&reading.values) {
            if let Some(metric) = metric {
                // Unknown values are omitted.
                metric.value = value.is_finite().then_some((now, value));
            }
        }
    }

    fn waits(&mut self, waits: &WaitSamples, now: Instant) {
        if waits.looks > 0 {
            let mean = |(group, seen): &(u32, u32)| (*group, f64::from(*seen) / f64::from(waits.looks));
            self.waits = Some((now, waits.seen.iter().map(mean).collect()));
        }
    }

    /// The headline figure over the window so far; `None` before its first second.
    pub(crate) fn headline(&self) -> Option<f64> {
        let Measured { headline, seconds } = self.measured;
        (seconds > 0.0).then(|| headline as f64 * self.info.per.seconds() / seconds)
    }

    /// Average number of sessions by kind of process, wait class and wait event.
    pub(crate) fn sessions(&self, now: Instant) -> BTreeMap<(&str, &str, &str), f64> {
        let mut sessions = BTreeMap::new();
        let waits = self.waits.iter().filter(|(at, _)| is_fresh(*at, now));
        for (group, mean) in waits.flat_map(|(_, waits)| waits) {
            if let Some(group) = self.groups.get(*group as usize) {
                let key = (group.backend.as_str(), group.class.as_str(), group.event.as_str());
                *sessions.entry(key).or_default() += mean;
            }
        }
        sessions
    }

    /// The observers' current values, in the observers' order.
    pub(crate) fn observations(&self, now: Instant) -> impl Iterator<Item = MetricSample<'_>> {
        self.metrics.iter().flatten().filter_map(move |metric| {
            let (at, value) = metric.value?;
            let (named, help) = metric.told.as_ref();
            is_fresh(at, now).then(|| (named, help.as_str(), f64::from(value) * named.factor))
        })
    }

    /// A series and the name of its transaction type.
    pub(crate) fn series(&self, kind: u16) -> Option<(&Series, &str)> {
        let series = self.info.series.get(usize::from(kind))?;
        let of = match series.role {
            SeriesRole::Transaction | SeriesRole::Lag => series,
            SeriesRole::Response { of } | SeriesRole::Statement { of } => {
                self.info.series.get(usize::from(of))?
            }
        };
        Some((series, &of.name))
    }
}

fn is_fresh(at: Instant, now: Instant) -> bool {
    now.saturating_duration_since(at) < FRESH
}

#[cfg(test)]
mod tests {
    use kelvin_measure::event::KindCounts;
    use kelvin_measure::observation::Metric;

    use super::*;

    fn state() -> State {
        let mut state = State::default();
        state.begin(RunInfo {
            headline: "NOPM".into(),
            series: vec![Series::transaction("New-Order", true), Series::transaction("Payment", false)],
            ..RunInfo::default()
        });
        state
    }

    fn second(second: i64, part: LoadPart, committed: u64) -> Event {
        let kind = |committed| KindCounts { committed, ..KindCounts::default() };
        Event::Second(Second { point: 0, second, part, kinds: vec![kind(committed), kind(1000)] })
    }

    #[test]
    fn the_headline_is_of_the_window_of_the_point_alone() {
        let (mut state, now) = (state(), Instant::now());
        state.event(&second(-1, LoadPart::RampUp, 500), now);
        assert_eq!(state.headline(), None);
        state.event(&second(0, LoadPart::Measured, 10), now);
        state.event(&second(1, LoadPart::Measured, 20), now);
        // A sample that came late.
        state.event(&second(0, LoadPart::Measured, 3), now);
        state.event(&second(2, LoadPart::Tail, 500), now);
        assert_eq!(state.headline(), Some(33.0 * 60.0 / 2.0));
        state.event(&Event::Phase { point: 1, phase: Phase::Connect, at: 0, users: 8, planned: None }, now);
        assert_eq!(state.headline(), None);
        assert_eq!(state.counts[&(0, "measured")].committed, 33);
    }

    #[test]
    fn stale_and_unowned_values_are_omitted() {
        let (mut state, now) = (state(), Instant::now());
        let metric = Metric { name: "host.forks".into(), unit: "1/s".into(), help: String::new() };
        let observer = Observer { first: 3, metrics: vec![metric], ..Observer::default() };
        let seen = |observation| Event::Observed(observation);
        state.event(&seen(Observation::Observer(observer)), now);
        // Values without a metric, before and after the known one.
        state.event(
            &seen(Observation::Reading(Reading { at: 0, first: 2, values: vec![1.0, 2.0, 3.0] })),
            now,
        );
        let value = |at| state.observations(at).map(|(_, _, value)| value).collect::<Vec<_>>();
        assert_eq!(value(now), [2.0]);
        assert_eq!(value(now + FRESH), [0.0; 0]);
        let waits = WaitSamples { looks: 2, seen: vec![(0, 3), (9, 1)], ..WaitSamples::default() };
        let group = WaitGroup { class: "CPU".into(), ..WaitGroup::default() };
        state.event(&seen(Observation::WaitGroups { first: 0, groups: vec![group] }), now);
        state.event(&seen(Observation::Waits(waits)), now);
        assert_eq!(state.sessions(now), BTreeMap::from([(("", "CPU", ""), 1.5)]));
        assert!(state.sessions(now + FRESH).is_empty());
        // An index that no run uses allocates no memory.
        let first = u32::MAX;
        state.event(&seen(Observation::WaitGroups { first, groups: vec![WaitGroup::default()] }), now);
        state.event(&seen(Observation::Observer(Observer { first, ..Observer::default() })), now);
        assert!(state.groups.len() == 1 && state.metrics.len() == 4);
    }

    #[test]
    fn a_connection_that_failed_is_an_error_of_no_transaction() {
        let (mut state, now) = (state(), Instant::now());
        let error = |kind, count| {
            Event::Errors(ErrorCount {
                point: 0,
                second: 0,
                kind,
                class: "connection".into(),
                code: String::new(),
                message: String::new(),
                retried: true,
                count,
            })
        };
        state.event(&error(None, 2), now);
        state.event(&error(Some(1), 3), now);
        state.event(&error(None, 4), now);
        let counts: Vec<_> = state.errors.iter().map(|((kind, ..), count)| (kind.as_str(), *count)).collect();
        assert_eq!(counts, [("Payment", 3), ("connecting", 6)]);
    }
}

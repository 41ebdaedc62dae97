//! Everything known about a run, for questions about a point's measured window.

mod context;
mod metric_values;
mod point;
mod sessions;

use std::collections::{BTreeMap, HashMap};

use kelvin_measure::event::{Event, Scalability};
use kelvin_measure::observation::{
    Blocker, CaptureTime, DatabaseDirectory, Observation, Occurrence, OtherProcess, PreparedStatement,
    Relation, StatementTotals, UnavailableMetrics,
};
use kelvin_measure::query::QueryExecution;
use kelvin_measure::query_analysis::QueryAnalysis;
use kelvin_measure::{Nanos, SourceId, event::Phase};
use kelvin_store::StoredRun;

pub use context::Context;
pub use metric_values::SpanValue;
use metric_values::Values;
pub use point::{PointEvidence, Span};
pub use sessions::ActiveSessions;
pub(crate) use sessions::Sessions;

/// Everything that a run's events have established so far.
#[derive(Debug, Default)]
pub struct Evidence {
    /// What was known before the run began.
    pub context: Context,
    points: BTreeMap<u32, PointEvidence>,
    values: Values,
    sessions: Sessions,
    occurrences: BTreeMap<u32, Occurrence>,
    statements: BTreeMap<u32, (Vec<StatementTotals>, f64)>,
    prepared: BTreeMap<u32, Vec<PreparedStatement>>,
    other_processes: BTreeMap<u32, Vec<OtherProcess>>,
    before: Option<(Vec<Relation>, u64)>,
    after: Option<(Vec<Relation>, u64)>,
    settings: BTreeMap<String, String>,
    places: Vec<DatabaseDirectory>,
    absent: Vec<UnavailableMetrics>,
    lost: Vec<UnavailableMetrics>,
    scalability: Option<Scalability>,
    built: bool,
    latest: Nanos,
    finished: bool,
    storage: Option<kelvin_storage::probe::StorageFacts>,
    tenants: Vec<SourceId>,
    queries: Vec<QueryExecution>,
    query_analyses: Vec<QueryAnalysis>,
    /// Names of the sources that are hosts.
    hosts: BTreeMap<SourceId, String>,
    /// The newest complete run of the same workload on the same target before this one, when there is one.
    pub earlier: Option<Box<Evidence>>,
}

impl Evidence {
    /// Nothing but what is known before the first event.
    pub fn new(context: Context) -> Self {
        Self { context, ..Self::default() }
    }

    /// The evidence of a stored run.
    ///
    /// # Errors
    /// When the stored run is damaged.
    pub fn from_run(run: &StoredRun) -> kelvin_store::Result<Self> {
        let mut evidence = Self::new(Context::from_stored_run(run.id, &run.info));
        for sourced in run.merged_events() {
            let sourced = sourced?;
            evidence.event_from(sourced.source_id, &sourced.event);
        }
        Ok(evidence)
    }

    /// Takes an event of a source. What was seen of one tenant's database says nothing of the run: it is left to the
    /// comparisons of that tenant.
    pub fn event_from(&mut self, source: SourceId, event: &Event) {
        match event {
            Event::Source { id, source } if source.tenant.is_some() => self.tenants.push(*id),
            Event::Source { id, source } => {
                let name = source.host.clone().unwrap_or_else(|| source.describe(*id));
                self.hosts.insert(*id, name);
            }
            // Tenants' agents do different work: they are not the hosts of one load.
            Event::Observed(_) | Event::Query(_) | Event::HostLoad(_) if self.tenants.contains(&source) => {}
            Event::HostLoad(load) => {
                let name = self.hosts.get(&source).cloned().unwrap_or_default();
                self.point_mut(load.point).hosts.push((name, (**load).clone()));
            }
            event => self.event(event),
        }
    }

    /// How many users a point had, where no event says it: of a server that is watched, whose load is others'.
    pub fn set_users(&mut self, point: u32, users: u32) {
        self.point_mut(point).users = users;
    }

    /// Takes an event.
    pub fn event(&mut self, event: &Event) {
        match event {
            Event::Phase { point, phase, at, users, planned } => {
                self.latest = self.latest.max(*at);
                self.built |= *phase == Phase::Build;
                if !matches!(phase, Phase::Build | Phase::CheckBefore | Phase::CheckAfter) {
                    self.point_mut(*point).phase(*phase, *at, *users, *planned);
                }
            }
            Event::Second(second) => self.point_mut(second.point).second(second),
            Event::Arrivals(arrivals) => self.point_mut(arrivals.point).arrivals.push(*arrivals),
            Event::Errors(errors) => self.point_mut(errors.point).errors.push(errors.clone()),
            Event::Window(window) => self.point_mut(window.point).window = Some(window.clone()),
            Event::Audit { point, lines } => self.point_mut(*point).audit.clone_from(lines),
            Event::Invariant { point, invariant } => {
                self.point_mut(*point).invariants.push(invariant.clone());
            }
            Event::Note { point, second, text } => {
                self.point_mut(*point).notes.push((*second, text.clone()));
            }
            Event::Scalability(found) => self.scalability = Some(found.clone()),
            Event::Observed(observation) => self.observed(observation),
            // What an older or a newer Kelvin wrote, and cannot be read here, is no evidence.
            Event::Storage { what, body } if what == "facts" => {
                self.storage = serde_json::from_value(body.clone()).ok();
            }
            Event::Query(execution) => self.queries.push(execution.clone()),
            Event::QueryAnalysis(analysis) => self.query_analyses.push(QueryAnalysis::clone(analysis)),
            Event::Finished { .. } => self.finished = true,
            _ => {}
        }
    }

    fn observed(&mut self, observation: &Observation) {
        match observation {
            Observation::Observer(observer) => {
                self.absent.extend_from_slice(&observer.absent);
                self.places.extend_from_slice(&observer.places);
                self.values.declare(observer);
            }
            Observation::Reading(reading) => {
                self.latest = self.latest.max(reading.at);
                self.values.reading(reading);
            }
            Observation::WaitGroups { first, groups } => self.sessions.declare(*first, groups),
            Observation::Waits(waits) => {
                self.latest = self.latest.max(waits.at);
                self.sessions.take(waits);
            }
            Observation::Blocking { at, blockers } => self.sessions.blocking(*at, blockers),
            Observation::Occurrence(occurrence) => {
                self.occurrences.insert(occurrence.id, occurrence.clone());
            }
            Observation::Statements { point, statements, total_ms } => {
                self.statements.insert(*point, (statements.clone(), *total_ms));
            }
            Observation::PreparedStatements { point, statements } => {
                self.prepared.insert(*point, statements.clone());
            }
            Observation::OtherProcesses { point, processes } => {
                self.other_processes.insert(*point, processes.clone());
            }
            Observation::Relations { when, relations, database_bytes } => {
                let place = match when {
                    CaptureTime::Before => &mut self.before,
                    CaptureTime::After => &mut self.after,
                };
                *place = Some((relations.clone(), *database_bytes));
            }
            Observation::Settings { values } => {
                self.settings.extend(values.iter().map(|(k, v)| (k.clone(), v.clone())));
            }
            Observation::Lost(absent) => self.lost.push(absent.clone()),
            // The totals of a window have them too.
            Observation::StatementTexts { .. } => {}
        }
    }

    fn point_mut(&mut self, point: u32) -> &mut PointEvidence {
        let series = &self.context.series;
        self.points.entry(point).or_insert_with(|| PointEvidence::new(point, series))
    }

    /// The points whose window has opened, in their order.
    pub fn points(&self) -> impl Iterator<Item = &PointEvidence> {
        self.points.values().filter(|point| point.open.is_some())
    }

    /// One point.
    pub fn point(&self, point: u32) -> Option<&PointEvidence> {
        self.points.get(&point)
    }

    /// A point's measured window on the run's clock, up to now while it is open.
    pub fn window(&self, point: u32) -> Option<Span> {
        let point = self.points.get(&point)?;
        let from = point.open?;
        let to = point
            .window
            .as_ref()
            .map(|w| from.saturating_add(w.elapsed))
            .or(point.stopped)
            .unwrap_or(self.latest);
        (to > from).then_some(Span { from, to })
    }

    /// A point's ramp-up; none without one.
    pub fn ramp_up(&self, point: u32) -> Option<Span> {
        let point = self.points.get(&point)?;
        Some(Span { from: point.ramp?, to: point.open? }).filter(|span| span.to > span.from)
    }

    /// The law fitted to the points of a sweep over users.
    pub fn scalability(&self) -> Option<&Scalability> {
        self.scalability.as_ref()
    }

    /// Whether the run made its data itself.
    pub fn built(&self) -> bool {
        self.built
    }

    /// Whether the run has ended.
    pub fn finished(&self) -> bool {
        self.finished
    }

    /// Names of the metrics that begin and end so, in their order.
    pub fn names<'a>(&'a self, prefix: &'a str, suffix: &'a str) -> impl Iterator<Item = &'a str> {
        self.values.names().filter(move |name| {
            name.len() >= prefix.len() + suffix.len() && name.starts_with(prefix) && name.ends_with(suffix)
        })
    }

    /// The unit of a metric.
    pub fn unit(&self, name: &str) -> Option<&str> {
        self.values.metric(name).map(|metric| metric.unit.as_str())
    }

    /// The values of a metric over a stretch of time, each with the stretch that it covers, cut to it; unknown ones
    /// are left out.
    pub fn values_within(&self, name: &str, span: Span) -> Vec<SpanValue> {
        self.values.values_within(name, span)
    }

    /// Mean of a metric over a point's window, weighted by the time that each value covers; none where less than half
    /// of the window is known.
    pub fn mean(&self, point: u32, name: &str) -> Option<f64> {
        self.mean_over(name, self.window(point)?)
    }

    /// [`Evidence::mean`] of the first of these that the run has: of a figure for which each engine has a separate name
    /// (`kelvin_observe::metric`).
    pub fn mean_of_first_known(&self, point: u32, names: &[&str]) -> Option<f64> {
        self.mean(point, self.first_known_metric(names)?)
    }

    /// The first of these metrics that the run has.
    pub fn first_known_metric<'a>(&self, names: &[&'a str]) -> Option<&'a str> {
        names.iter().copied().find(|name| self.values.metric(name).is_some())
    }

    /// The same over any stretch of time.
    ///
    /// Of what PostgreSQL's backends publish, a reading that reaches beyond the span is left out: when a load ends they
    /// publish at once what they had held back, which would be counted on top of as much from before the span.
    pub fn mean_over(&self, name: &str, span: Span) -> Option<f64> {
        let mut seen = self.values_within(name, span);
        if kelvin_observe::metric::is_late(name) && seen.len() > 2 && self.values.reaches_beyond(name, span) {
            seen.pop();
        }
        let known: f64 = seen.iter().map(SpanValue::seconds).sum();
        let sum: f64 = seen.iter().map(|s| s.value * s.seconds()).sum();
        (known > 0.0 && known >= span.seconds() / 2.0).then(|| sum / known)
    }

    /// The values of a metric that is a mean over requests, such as the time of a write, each with the number of requests
    /// that it stands for by their rate a second. Both are of the same observer.
    pub fn by_request(&self, name: &str, rate: &str, span: Span) -> Vec<(SpanValue, f64)> {
        let requests: HashMap<Nanos, f64> = self
            .values_within(rate, span)
            .into_iter()
            .map(|seen| (seen.to, seen.value * seen.seconds()))
            .collect();
        let of = |seen: SpanValue| requests.get(&seen.to).map(|number| (seen, *number));
        self.values_within(name, span).into_iter().filter_map(of).collect()
    }

    /// Mean over all requests of a stretch of time of a metric that is a mean over those of each interval; none without a
    /// request. The mean over time would let an interval with one request count as much as one with thousands.
    pub fn mean_by_request(&self, name: &str, rate: &str, span: Span) -> Option<f64> {
        let seen = self.by_request(name, rate, span);
        let requests: f64 = seen.iter().map(|(_, number)| number).sum();
        let sum: f64 = seen.iter().map(|(seen, number)| seen.value * number).sum();
        (requests > 0.0).then(|| sum / requests)
    }

    /// The largest value within a point's window.
    pub fn largest(&self, point: u32, name: &str) -> Option<f64> {
        let seen = self.values_within(name, self.window(point)?);
        seen.into_iter().map(|s| s.value).reduce(f64::max)
    }

    /// The newest known value of a metric, whenever it was read.
    pub fn newest(&self, name: &str) -> Option<f64> {
        self.values.newest(name)
    }

    /// What the sessions were doing in a point's window: of backends for which `of` holds.
    pub fn active(
        &self,
        point: u32,
        of: impl Fn(&kelvin_measure::observation::WaitGroup) -> bool,
    ) -> ActiveSessions {
        self.window(point).map_or_else(ActiveSessions::default, |span| self.sessions.active(span, of))
    }

    /// Share of a statement's time in which its sessions waited for locks in a point's window, by the statement's identifier; of
    /// all statements where the sessions' statements are not known (within functions).
    pub fn waited_for_locks(&self, point: u32, query: i64) -> f64 {
        use kelvin_measure::observation::{WaitGroup, WaitKind};
        let at_work = |group: &WaitGroup| {
            let away = matches!(group.kind, WaitKind::Client | WaitKind::IdleInTransaction);
            group.backend == "client backend" && !away
        };
        let own = self.active(point, |group| at_work(group) && group.query == Some(query));
        let active = if own.groups.is_empty() { self.active(point, at_work) } else { own };
        let is_lock =
            |(group, _): &&(WaitGroup, f64)| matches!(group.kind, WaitKind::RowLock | WaitKind::Lock);
        let locks: f64 = active.groups.iter().filter(is_lock).map(|(_, sessions)| sessions).sum();
        let all = active.sessions();
        if all > 0.0 { locks / all } else { 0.0 }
    }

    /// Average number of sessions that waited for a row in a point's window, by relation, the most first.
    pub fn row_waits(&self, point: u32) -> Vec<(String, f64)> {
        self.window(point).map_or_else(Vec::new, |span| self.sessions.rows(span))
    }

    /// Who held what others waited for in a point's window: one entry for each look at the locks that found somebody, with
    /// its time on the run's clock.
    pub fn blockers(&self, point: u32) -> &[(Nanos, Vec<Blocker>)] {
        self.window(point).map_or(&[], |span| self.sessions.blockers(span))
    }

    /// Average number of sessions in each state for which `of` holds, over time: the end of each stretch on the run's
    /// clock with (group, sessions).
    pub fn sessions_over_time(
        &self,
    ) -> impl Iterator<Item = (Nanos, Vec<(&kelvin_measure::observation::WaitGroup, f64)>)> {
        self.sessions.over_time()
    }

    /// What happened in the database, of one kind, with any part of it within the stretch of time.
    pub fn occurrences<'a>(&'a self, kind: &'a str, span: Span) -> impl Iterator<Item = &'a Occurrence> {
        self.all_occurrences()
            .filter(move |o| o.kind == kind && o.from < span.to && o.to.is_none_or(|to| to >= span.from))
    }

    /// Everything that happened in the database, in the order of its numbers.
    pub fn all_occurrences(&self) -> impl Iterator<Item = &Occurrence> {
        self.occurrences.values()
    }

    /// The top statements of a point, the longest first, and the time of all in milliseconds.
    pub fn statements(&self, point: u32) -> Option<(&[StatementTotals], f64)> {
        self.statements.get(&point).map(|(statements, total)| (statements.as_slice(), *total))
    }

    /// How some of the load's sessions planned a statement that they had prepared; none of one that they had not.
    pub fn prepared(&self, point: u32, statement: &StatementTotals) -> Option<&PreparedStatement> {
        let text = kelvin_observe::comparable(&statement.text)?;
        self.prepared.get(&point)?.iter().find(|one| one.text == text)
    }

    /// The programs on this host, besides load generator and server, that used the most in a point's window.
    pub fn other_processes(&self, point: u32) -> &[OtherProcess] {
        self.other_processes.get(&point).map_or(&[], Vec::as_slice)
    }

    /// Tables and indexes, the largest first, and the bytes of the whole database.
    pub fn relations(&self, when: CaptureTime) -> Option<(&[Relation], u64)> {
        let relations = match when {
            CaptureTime::Before => &self.before,
            CaptureTime::After => &self.after,
        };
        relations.as_ref().map(|(relations, bytes)| (relations.as_slice(), *bytes))
    }

    /// A setting of the database, in bytes, milliseconds, or "on" and "off".
    pub fn setting(&self, name: &str) -> Option<&str> {
        self.settings.get(name).map(String::as_str)
    }

    /// The same as a number.
    pub fn setting_number(&self, name: &str) -> Option<f64> {
        self.setting(name)?.parse().ok()
    }

    /// Every setting that is known.
    pub fn settings(&self) -> &BTreeMap<String, String> {
        &self.settings
    }

    /// Where "data" or "wal" lies, when the database is on this host.
    pub fn file_location(&self, role: &str) -> Option<&DatabaseDirectory> {
        self.places.iter().find(|place| place.role == role)
    }

    /// Every place that is known.
    pub fn file_locations(&self) -> &[DatabaseDirectory] {
        &self.places
    }

    /// What was seen of the files, the devices and the host around a run of I/O jobs.
    pub fn storage(&self) -> Option<&kelvin_storage::probe::StorageFacts> {
        self.storage.as_ref()
    }

    /// The executions of TPROC-H's queries.
    pub fn queries(&self) -> &[QueryExecution] {
        &self.queries
    }

    /// What the plans of TPROC-H's queries did after the load.
    pub fn query_analyses(&self) -> &[QueryAnalysis] {
        &self.query_analyses
    }

    /// Whether it is a run of I/O jobs, of which the findings about databases say nothing.
    pub fn is_io(&self) -> bool {
        self.context.workload == kelvin_measure::labels::IO
    }

    /// What could not be seen.
    pub fn absent(&self) -> &[UnavailableMetrics] {
        &self.absent
    }

    /// What fell silent.
    pub fn lost(&self) -> &[UnavailableMetrics] {
        &self.lost
    }
}

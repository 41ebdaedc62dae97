//! From the events of the tenants to those of one run: their seconds on one clock, their series side by side, each from the
//! source of its tenant.

use kelvin_measure::event::{
    AuditLine, Event, HostLoad, KindCounts, Phase, Series, SeriesRole, Status, Step, StepKind, Stretch,
    Window,
};
use kelvin_measure::{Nanos, SECOND, Sink, SinkError, Source, SourceId, Totals};
use kelvin_run::RunError;
use kelvin_run::observation::{Watched, Watchers};
use kelvin_store::NewRun;

use super::prepare::PreparedLoad;
use super::tenant::TurnOutcome;
use super::{Message, Stage};
use crate::scenario::Scenario;
use crate::step::Action;

/// The series and counters of all tenants, one after another, each with its tenant's name. All that a tenant does counts for
/// the headline: a workload's own headline (New-Orders) means nothing beside other loads.
pub(super) fn layout(scenario: &Scenario, loads: &[PreparedLoad]) -> (Vec<Series>, Vec<String>) {
    let (mut kinds, mut counters): (Vec<Series>, Vec<String>) = (Vec::new(), Vec::new());
    for (tenant, load) in scenario.tenants.iter().zip(loads) {
        let first = kinds.len() as u16;
        kinds.extend(load.series().into_iter().map(|series| Series {
            name: format!("{}: {}", tenant.name, series.name),
            headline: series.is_transaction(),
            role: match series.role {
                SeriesRole::Response { of } => SeriesRole::Response { of: of + first },
                SeriesRole::Statement { of } => SeriesRole::Statement { of: of + first },
                role => role,
            },
        }));
        counters.extend(load.counters().into_iter().map(|name| format!("{}: {name}", tenant.name)));
    }
    (kinds, counters)
}

/// Where a tenant's events go.
struct TenantSlot {
    name: String,
    source: SourceId,
    /// Its first series and its first counter among those of the run, and how many it has of each.
    first: usize,
    kinds: usize,
    counter: usize,
    counters: usize,
    /// The counters of the turns that have ended.
    counted: Vec<u64>,
    /// Seconds of the scenario's clock at which its present turn opened.
    opened: i64,
    /// The step that began its present turn.
    users: u32,
    /// Whether its arrivals are a Poisson process of one rate.
    poisson: bool,
    /// What its agent did in the turns that have ended, and began with the first.
    host_load: Option<HostLoad>,
}

impl TenantSlot {
    /// Adds what its agent did in a turn: the counts; the clock is that of the first start.
    fn add_host_load(&mut self, turn: HostLoad) {
        let Some(sum) = &mut self.host_load else {
            self.host_load = Some(turn);
            return;
        };
        sum.client_headline += turn.client_headline;
        sum.client_cpu = sum.client_cpu.zip(turn.client_cpu).map(|(sum, turn)| sum + turn);
        sum.users = sum.users.max(turn.users);
        sum.lost = sum.lost.take().or(turn.lost);
    }
}

/// Merges the streams.
pub(super) struct Merge<'a> {
    stage: &'a Stage<'a>,
    places: Vec<TenantSlot>,
    kinds: usize,
    /// Which of the run's series count for the headline.
    headline: Vec<bool>,
    counters: Vec<u64>,
    totals: Totals,
    origin: Option<Nanos>,
    /// Since the clock began: the end of the last load.
    end: Nanos,
    window: Window,
    audit: Vec<AuditLine>,
    cpu: Nanos,
    /// CPU time of the tenants' own processes.
    cpu_apart: Nanos,
    error: Option<String>,
}

impl<'a> Merge<'a> {
    pub(super) fn new(stage: &'a Stage<'a>, loads: &[PreparedLoad], info: &NewRun) -> Self {
        let (mut first, mut counter) = (0, 0);
        let mut places = Vec::with_capacity(loads.len());
        for (index, (tenant, load)) in stage.scenario.tenants.iter().zip(loads).enumerate() {
            let (kinds, counters) = (load.series().len(), load.counters().len());
            places.push(TenantSlot {
                name: tenant.name.clone(),
                source: SourceId(index as u16 + 1),
                first,
                kinds,
                counter,
                counters,
                counted: vec![0; counters],
                opened: 0,
                users: tenant.users,
                poisson: tenant.has_poisson_arrivals() && !changes_rate(stage.scenario, index),
                host_load: None,
            });
            (first, counter) = (first + kinds, counter + counters);
        }
        Self {
            stage,
            places,
            kinds: first,
            headline: info.kinds.iter().map(|kind| kind.headline).collect(),
            counters: vec![0; counter],
            totals: Totals::new(info.kinds.iter().map(|kind| kind.role).collect()),
            origin: None,
            end: 0,
            window: Window {
                point: 0,
                users: stage.scenario.tenants.iter().map(|tenant| tenant.users).sum(),
                elapsed: 0,
                idle: 0,
                client_headline: 0,
                server_headline: None,
                server_transactions: None,
                client_cpu: 0,
                client_run_delay: None,
                schedule: None,
            },
            audit: Vec::new(),
            cpu: 0,
            cpu_apart: 0,
            error: None,
        }
    }

    /// Declares the tenants, and has each of their databases watched once.
    pub(super) fn declare(&self, loads: &[PreparedLoad], sink: &mut Watched<'_>) -> Result<(), SinkError> {
        let mut watched: Vec<String> = Vec::new();
        for ((place, load), tenant) in self.places.iter().zip(loads).zip(&self.stage.scenario.tenants) {
            let engine = load.engine();
            let database = engine.map(|_| kelvin_measure::redact(&load.target()));
            let source = Source {
                tenant: Some(place.name.clone()),
                host: tenant.host.clone(),
                database: database.clone(),
                ..Source::default()
            };
            sink.event(&Event::Source { id: place.source, source })?;
            if let Some((engine, database)) = engine.zip(database).filter(|(_, one)| !watched.contains(one)) {
                let watchers = Watchers::for_database(&self.stage.scenario.observe, engine);
                sink.watch_source(place.source, watchers, &self.stage.clock)?;
                watched.push(database);
            }
        }
        Ok(())
    }

    /// The tenants connect.
    pub(super) fn begin(&self, sink: &mut dyn Sink) -> Result<(), SinkError> {
        self.phase(sink, Phase::Connect, self.stage.clock.now(), None)
    }

    fn phase(
        &self,
        sink: &mut dyn Sink,
        phase: Phase,
        at: Nanos,
        planned: Option<Nanos>,
    ) -> Result<(), SinkError> {
        sink.event(&Event::Phase { point: 0, phase, at, users: self.window.users, planned })
    }

    /// Whether something has ended the scenario early.
    pub(super) fn has_failed(&self) -> bool {
        self.error.is_some()
    }

    /// Takes a message of a thread.
    pub(super) fn take(&mut self, message: Message, sink: &mut dyn Sink) -> Result<(), SinkError> {
        match message {
            Message::Opened(origin) => {
                self.origin = Some(origin);
                self.cpu = process_cpu();
                let timeline = &self.stage.scenario.timeline;
                let planned = (timeline.seconds * 1e9) as Nanos;
                self.phase(sink, Phase::Measure, origin, (!timeline.at_least).then_some(planned))
            }
            Message::Step(step) => {
                self.end = self.end.max(step.at);
                sink.event(&Event::Step(step))
            }
            Message::Failed(why) => {
                self.error.get_or_insert(why);
                Ok(())
            }
            Message::Event(tenant, event) => self.event(tenant, event, sink),
            Message::Ended(tenant, outcome) => self.ended(tenant, *outcome, sink),
        }
    }

    /// An event of a tenant in the words of the run.
    fn event(&mut self, tenant: usize, event: Event, sink: &mut dyn Sink) -> Result<(), SinkError> {
        let place = &mut self.places[tenant];
        let (source, opened) = (place.source, place.opened);
        let event = match event {
            Event::Phase { phase: Phase::Measure, at, users, .. } => {
                let since = at.saturating_sub(self.origin.unwrap_or(at));
                // Loads begin at whole seconds.
                place.opened = ((since + SECOND / 2) / SECOND) as i64;
                place.users = users;
                return Ok(());
            }
            Event::Second(mut second) => {
                second.second += opened;
                let mut kinds = vec![KindCounts::default(); self.kinds];
                let own = kinds.iter_mut().skip(place.first).take(place.kinds);
                own.zip(second.kinds).for_each(|(place, counts)| *place = counts);
                second.kinds = kinds;
                Event::Second(second)
            }
            Event::Arrivals(mut arrivals) => {
                arrivals.second += opened;
                Event::Arrivals(arrivals)
            }
            Event::Errors(mut errors) => {
                errors.second += opened;
                errors.kind = errors.kind.filter(|kind| usize::from(*kind) < place.kinds);
                errors.kind = errors.kind.map(|kind| kind + place.first as u16);
                Event::Errors(errors)
            }
            Event::Note { point, second, text } => {
                Event::Note { point, second: second + opened, text: format!("{}: {text}", place.name) }
            }
            Event::Counters { point, values } => {
                let of = place.counter..place.counter + place.counters;
                let own = self.counters.get_mut(of).unwrap_or_default();
                let sums = place.counted.iter().zip(&values).map(|(before, value)| before + value);
                own.iter_mut().zip(sums).for_each(|(place, value)| *place = value);
                return sink.event(&Event::Counters { point, values: self.counters.clone() });
            }
            Event::Audit { lines, .. } => {
                let named =
                    |line: AuditLine| AuditLine { name: format!("{}: {}", place.name, line.name), ..line };
                self.audit.extend(lines.into_iter().map(named));
                return Ok(());
            }
            Event::Invariant { point, mut invariant } => {
                invariant.name = format!("{}: {}", place.name, invariant.name);
                Event::Invariant { point, invariant }
            }
            Event::Progress { what, done, total, rows } => {
                Event::Progress { what: format!("{}: {what}", place.name), done, total, rows }
            }
            Event::HostLoad(load) => {
                place.add_host_load(*load);
                return Ok(());
            }
            // They come with the end of its turn.
            Event::Phase { .. } | Event::Window(_) => return Ok(()),
            other => other,
        };
        sink.event_from(source, &event)
    }

    /// A turn of a tenant has ended.
    fn ended(&mut self, tenant: usize, outcome: TurnOutcome, sink: &mut dyn Sink) -> Result<(), SinkError> {
        let place = &mut self.places[tenant];
        if let Some(error) = outcome.error {
            self.error.get_or_insert_with(|| format!("{}: {error}", place.name));
        }
        let of = place.counter..place.counter + place.counters;
        place.counted = self.counters.get(of).unwrap_or_default().to_vec();
        let done = outcome.totals.as_ref().map(|totals| {
            let counted = self.headline.iter().skip(place.first).take(place.kinds).zip(&totals.measured);
            counted.filter(|(headline, _)| **headline).map(|(_, kind)| kind.committed).sum::<u64>()
        });
        if let Some(totals) = outcome.totals {
            add(&mut self.totals, (place.first, place.kinds), &totals);
        }
        let (Some(_), Some(window), Some(_)) = (outcome.begun, outcome.window, self.origin) else {
            return Ok(());
        };
        if let Some(load) = &mut place.host_load {
            load.elapsed = Some(load.elapsed.unwrap_or(0) + window.elapsed);
        }
        let from = place.opened.max(0) as Nanos * SECOND;
        let to = from + window.elapsed;
        self.end = self.end.max(to);
        self.window.client_headline += done.unwrap_or(window.client_headline);
        self.window.idle += window.idle;
        if self.stage.is_apart(tenant) {
            self.cpu_apart += window.client_cpu;
        }
        let stretch = Stretch {
            point: 0,
            from,
            to,
            users: place.users,
            client_headline: window.client_headline,
            server_headline: window.server_headline,
            schedule: window.schedule,
            poisson: place.poisson,
        };
        sink.event_from(place.source, &Event::Stretch(stretch))?;
        if outcome.ended_by_step {
            return Ok(());
        }
        let (name, text) = (place.name.clone(), format!("{} ended", place.name));
        let (kind, tenants) = (StepKind::Stop, vec![name]);
        sink.event(&Event::Step(Step { point: 0, number: 0, at: to, kind, tenants, text, annotated: true }))
    }

    /// What is said of the whole when all threads have ended.
    pub(super) fn end(&mut self, sink: &mut dyn Sink) -> Result<(), SinkError> {
        let Some(origin) = self.origin else { return Ok(()) };
        self.phase(sink, Phase::Stop, origin + self.end, None)?;
        self.window.elapsed = self.end;
        self.window.client_cpu = process_cpu().saturating_sub(self.cpu) + self.cpu_apart;
        if self.end > 0 {
            sink.event(&Event::Window(self.window.clone()))?;
            for place in &self.places {
                if let Some(load) = &place.host_load {
                    sink.event_from(place.source, &Event::HostLoad(Box::new(load.clone())))?;
                }
            }
            sink.event(&Event::Audit { point: 0, lines: std::mem::take(&mut self.audit) })?;
        }
        Ok(())
    }

    /// Fails the run when a server is without the limits that are said of it.
    pub(super) fn check_limits(&mut self) {
        let limits = self.stage.limits();
        let tenants = &self.stage.scenario.tenants;
        let lost = (0..tenants.len()).find(|index| limits.has_lost_server(tenants.len() + index));
        if let Some(tenant) = lost.and_then(|index| tenants.get(index)) {
            let name = &tenant.name;
            self.error.get_or_insert_with(|| {
                format!("{name}: its server was restarted, and has had no limits since then")
            });
        }
    }

    /// The end of the run; the sums of all tenants.
    ///
    /// # Errors
    /// When the clock never began.
    pub(super) fn finish(self, sink: &mut dyn Sink) -> Result<Totals, RunError> {
        let stopped = self.stage.stop.requested();
        let status = match &self.error {
            Some(_) => Status::Failed,
            None if stopped => Status::Interrupted,
            None => Status::Complete,
        };
        sink.event(&Event::Finished { status, error: self.error.clone() })?;
        match (self.origin, self.error) {
            (Some(_), _) => Ok(self.totals),
            (None, None) => Err(RunError::Interrupted),
            (None, Some(error)) => Err(RunError::Start(error)),
        }
    }
}

/// Whether a step changes a tenant's rate.
fn changes_rate(scenario: &Scenario, tenant: usize) -> bool {
    let changes = |step: &crate::step::Step| {
        matches!(step.action, Action::Rate(..)) && step.action.tenants().contains(&tenant)
    };
    scenario.steps.iter().any(changes)
}

/// Adds the sums of a turn to its own series: so many from the first.
fn add(sum: &mut Totals, (first, kinds): (usize, usize), turn: &Totals) {
    for (all, of) in [(&mut sum.measured, &turn.measured), (&mut sum.all, &turn.all)] {
        all.iter_mut().skip(first).take(kinds).zip(of).for_each(|(sum, kind)| sum.add(kind));
    }
    sum.samples += turn.samples;
    sum.last_end = sum.last_end.max(turn.last_end);
}

/// CPU time of this process.
fn process_cpu() -> Nanos {
    kelvin_observe::cpu_time().as_nanos() as Nanos
}

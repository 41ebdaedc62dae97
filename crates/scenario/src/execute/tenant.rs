//! A tenant's thread: its turns, one after another, each armed before its time comes.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use kelvin_lab::store_bench::{Unseen, io_run};
use kelvin_measure::event::{Event, HostLoad, Status, Window};
use kelvin_measure::{Nanos, SECOND, Sink, SinkError, SourceId, Totals};
use kelvin_run::RunError;
use kelvin_run::driver::{FleetShare, Point};
use kelvin_run::fleet::Fleet;
use kelvin_run::io::FleetIoRun;
use kelvin_run::spec::Span;
use serde::{Deserialize, Serialize};

use super::prepare::PreparedLoad;
use super::{Message, Stage, Turn, agents};

/// A turn that a step ends is planned for so long.
const ENDLESS: Span = Span::seconds(30 * 24 * 3600);

/// What came of a turn.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct TurnOutcome {
    /// When it began; none if it never did.
    pub(super) begun: Option<Nanos>,
    /// Whether a step, or somebody, ended it.
    pub(super) ended_by_step: bool,
    /// The counts over its window.
    pub(super) window: Option<Window>,
    /// The sums of its series.
    pub(super) totals: Option<Totals>,
    /// The error that ended it.
    pub(super) error: Option<String>,
}

/// Runs all turns of a tenant.
pub(super) fn run(stage: &Stage<'_>, tenant: usize, load: &PreparedLoad, sender: &Sender<Message>) {
    for turn in &stage.turns[tenant] {
        let mut sink = TenantSink { tenant, sender, window: None, error: None, lost: false };
        let done = agents::take(stage, tenant, turn, load).and_then(|agent| {
            let fleet = agent.as_deref().map(|agent| agent as &dyn Fleet);
            let done = match (load, fleet) {
                (PreparedLoad::Database(load), fleet) => {
                    database(stage, tenant, turn, &load.0, &load.1, fleet, &mut sink)
                }
                (PreparedLoad::Io(_), None) => io(stage, tenant, turn, &mut sink),
                (PreparedLoad::Io(_), Some(fleet)) => io_on_agent(stage, tenant, turn, fleet, &mut sink),
            };
            if let Some(agent) = &agent {
                agent.finish();
            }
            done
        });
        let begun = turn.control.begun();
        let (totals, error) = match done {
            Ok((totals, error)) => (totals, error),
            // Nobody wanted it any more.
            Err(RunError::Interrupted) if begun.is_none() => (None, None),
            Err(error) => (None, Some(error.to_string())),
        };
        let failed = error.is_some();
        let outcome = TurnOutcome {
            begun,
            ended_by_step: !ended_by_itself(stage, tenant, turn, sink.window.as_ref()),
            window: sink.window.take(),
            totals,
            error,
        };
        // Whoever waits for its end finds it sent.
        let sent = sender.send(Message::Ended(tenant, Box::new(outcome)));
        turn.control.end();
        if failed || sent.is_err() || begun.is_none() {
            break;
        }
    }
    for turn in &stage.turns[tenant] {
        turn.control.end();
    }
}

/// Whether a turn came to its own end.
fn ended_by_itself(stage: &Stage<'_>, tenant: usize, turn: &Turn, window: Option<&Window>) -> bool {
    let elapsed = window.map_or(0, |window| window.elapsed);
    match turn.lasts {
        // I/O jobs end with a tick.
        Some(lasts) => elapsed + SECOND / 2 >= lasts.nanos(),
        None => stage.scenario.tenants[tenant].ends_by_itself() && !turn.stop.requested(),
    }
}

type TurnResult = Result<(Option<Totals>, Option<String>), RunError>;

fn database(
    stage: &Stage<'_>,
    tenant: usize,
    turn: &Turn,
    spec: &kelvin_run::Spec,
    prepared: &kelvin_lab::store_bench::PreparedTenant,
    fleet: Option<&dyn Fleet>,
    sink: &mut TenantSink<'_>,
) -> TurnResult {
    let mut load = spec.load.clone();
    load.ramp_up = Span::seconds(0);
    load.duration = turn.lasts.unwrap_or(ENDLESS);
    let users = stage.scenario.tenants[tenant].users;
    let point = Point {
        index: 0,
        users,
        most_users: users,
        rate: load.points().first().and_then(|&(_, rate)| rate),
        load: &load,
        accept_noise: stage.scenario.accept_noise,
        observed: false,
        clock: &stage.clock,
        stop: &turn.stop,
        control: Some(&turn.control),
        fleet: fleet.map(|fleet| FleetShare { fleet, hosts: 1 }),
    };
    let result = point.run(prepared.engine(), &prepared.workload, sink)?;
    let gave_up = result.gave_up.map(|error| format!("every user gave up; the last error was: {error}"));
    Ok((Some(result.totals), gave_up))
}

fn io(stage: &Stage<'_>, tenant: usize, turn: &Turn, sink: &mut TenantSink<'_>) -> TurnResult {
    let mut spec = stage.scenario.tenants[tenant].spec_for(turn.lasts);
    spec.accept_noise = stage.scenario.accept_noise;
    let run =
        io_run(&spec, &stage.conditions.devices, None).map_err(|error| RunError::Start(error.to_string()))?;
    let run = run.controlled(Arc::clone(&turn.control));
    let done = run.execute(&spec, &stage.clock, &turn.stop, sink, &mut Unseen)?;
    let error = done.error.filter(|_| done.status == Status::Failed);
    Ok((done.totals.into_iter().next().map(|(_, totals)| totals), error))
}

fn io_on_agent(
    stage: &Stage<'_>,
    tenant: usize,
    turn: &Turn,
    fleet: &dyn Fleet,
    sink: &mut TenantSink<'_>,
) -> TurnResult {
    let mut spec = stage.scenario.tenants[tenant].spec_for(turn.lasts);
    spec.accept_noise = stage.scenario.accept_noise;
    let run = FleetIoRun::new(&spec, fleet)?.controlled(Arc::clone(&turn.control));
    let (status, totals) = run.execute(&stage.clock, &turn.stop, sink)?;
    Ok((Some(totals), sink.error.take().filter(|_| status == Status::Failed)))
}

/// Sends a turn's events to the thread that has the run's sink.
struct TenantSink<'a> {
    tenant: usize,
    sender: &'a Sender<Message>,
    window: Option<Window>,
    /// The error of its end.
    error: Option<String>,
    lost: bool,
}

impl Sink for TenantSink<'_> {
    fn event_from(&mut self, _source: SourceId, event: &Event) -> Result<(), SinkError> {
        match event {
            // Said of the scenario as a whole, or of the tenant when its turn has ended.
            Event::Source { .. } | Event::Storage { .. } => return Ok(()),
            Event::Finished { error, .. } => {
                self.error.clone_from(error);
                return Ok(());
            }
            Event::Window(window) => self.window = Some(window.clone()),
            _ => {}
        }
        let clock = if let Event::HostLoad(load) = event { describe_clock(load) } else { None };
        let note = clock.map(|text| Event::Note { point: 0, second: 0, text });
        for event in note.into_iter().chain([event.clone()]) {
            self.lost |= self.sender.send(Message::Event(self.tenant, event)).is_err();
        }
        if self.lost { Err("the scenario has ended".into()) } else { Ok(()) }
    }
}

/// How well the clock of an agent's host was known.
fn describe_clock(load: &HostLoad) -> Option<String> {
    let clock = load.clock.as_ref()?;
    let microseconds = |nanos: f64| format!("{:.0} µs", nanos / 1e3);
    Some(format!(
        "its host started {} from the scheduled time; its clock was known to ± {}, from {} exchanges",
        microseconds(clock.start_error as f64),
        microseconds(clock.bound as f64),
        clock.exchanges
    ))
}

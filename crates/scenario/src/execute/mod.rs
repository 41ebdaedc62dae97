//! A scenario's run: every tenant's load in threads of its own, the steps in another, and all their events in one stored run.

mod agents;
mod command;
mod merge;
mod prepare;
mod process;
mod serve;
mod steps;
mod tenant;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};

use kelvin_diagnose::tenants::TenantSeries;
use kelvin_lab::limits::{HeldLimits, Limited};
use kelvin_lab::store_bench::{CompletedRun, StoreBench, StoreBenchError};
use kelvin_measure::event::{Event, Step};
use kelvin_measure::{Clock, Nanos, Sink, Totals, labels};
use kelvin_run::control::LoadControl;
use kelvin_run::observation::{Watched, Watchers};
use kelvin_run::spec::{Span, Users};
use kelvin_run::{RunError, Spec};
use kelvin_store::NewRun;
use kelvin_workload::Stop;

use crate::expectation::ExpectationResult;
use crate::scenario::Scenario;
use crate::step::Action;
use crate::tenant::Tenant;
pub use agents::{TenantAgent, TenantAgents};
use merge::Merge;
use prepare::PreparedLoad;
pub use serve::serve_tenant;
use tenant::TurnOutcome;

/// What a scenario needs of the command that runs it.
#[derive(Debug, Clone, Default)]
pub struct Conditions {
    /// Block devices that I/O jobs may write to whatever they hold.
    pub devices: Vec<PathBuf>,
    /// The command, with its arguments, that calls [`serve_tenant`]: the process of a tenant with limits.
    pub tenant_command: Vec<OsString>,
    /// The agents of the fleet that was named.
    pub agents: Option<Arc<dyn TenantAgents>>,
}

/// A scenario that was run.
pub struct CompletedScenario {
    /// As it was stored.
    pub run: CompletedRun,
    /// What came of the expectations.
    pub expectations: Vec<ExpectationResult>,
    /// What each tenant did.
    pub tenants: Vec<TenantSeries>,
}

/// One turn of a tenant, from a start to its end.
struct Turn {
    /// Planned length; none until a step ends it, or it ends by itself.
    lasts: Option<Span>,
    control: Arc<LoadControl>,
    stop: Stop,
}

impl Turn {
    fn new(lasts: Option<Span>) -> Self {
        Self { lasts, control: Arc::new(LoadControl::new()), stop: Stop::new() }
    }
}

/// What threads send to the one that has the sink.
enum Message {
    /// An event of a tenant.
    Event(usize, Event),
    /// The clock began.
    Opened(Nanos),
    /// A step was done.
    Step(Step),
    /// A turn of a tenant ended.
    Ended(usize, Box<TurnOutcome>),
    /// Why the timeline ended early.
    Failed(String),
}

/// What all threads share.
struct Stage<'a> {
    scenario: &'a Scenario,
    conditions: &'a Conditions,
    clock: Clock,
    /// By tenant.
    turns: Vec<Vec<Turn>>,
    /// By tenant.
    limits: Mutex<HeldLimits>,
    /// Somebody asked to stop.
    stop: &'a Stop,
    /// Something has failed.
    abandoned: AtomicBool,
}

impl<'a> Stage<'a> {
    fn new(scenario: &'a Scenario, stop: &'a Stop, conditions: &'a Conditions, limits: HeldLimits) -> Self {
        let mut turns: Vec<Vec<Turn>> = scenario.tenants.iter().map(|_| Vec::new()).collect();
        for step in &scenario.steps {
            if let Action::Start { tenants, lasts, .. } = &step.action {
                for &tenant in tenants {
                    turns[tenant].push(Turn::new(*lasts));
                }
            }
        }
        let limits = Mutex::new(limits);
        let clock = Clock::real();
        Self { scenario, conditions, clock, turns, limits, stop, abandoned: AtomicBool::new(false) }
    }

    /// Whether a tenant has a process of its own.
    fn is_apart(&self, tenant: usize) -> bool {
        !self.scenario.tenants[tenant].limits.is_none()
    }

    /// The limits of all tenants.
    fn limits(&self) -> std::sync::MutexGuard<'_, HeldLimits> {
        self.limits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the scenario ends early.
    fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Acquire)
    }

    /// Ends every load, and those that have not begun; at once if somebody asked twice.
    fn end_all(&self) {
        self.abandoned.store(true, Ordering::Release);
        for turn in self.turns.iter().flatten().filter(|turn| !turn.control.is_ended()) {
            if !turn.stop.requested() || self.stop.is_immediate() && !turn.stop.is_immediate() {
                turn.stop.request();
            }
        }
    }
}

/// Prepares the tenants and runs the steps. The run is stored whatever comes of it, once it has begun.
///
/// # Errors
/// When a tenant cannot be prepared or limited, or the run cannot be stored.
pub fn execute(
    scenario: &Scenario,
    bench: &mut StoreBench<'_>,
    stop: &Stop,
    conditions: &Conditions,
) -> Result<CompletedScenario, StoreBenchError> {
    let loads = prepare::prepare(scenario, bench, stop, &conditions.devices)?;
    // Those of the tenants' servers follow those of their processes.
    let tenants = || scenario.tenants.iter().zip(&loads);
    let processes = tenants().map(|(tenant, load)| Ok(limited(tenant, load)));
    let servers = tenants().map(|(tenant, load)| limited_server(tenant, load));
    let limited: Vec<Option<Limited<'_>>> = processes.chain(servers).collect::<Result<_, _>>()?;
    let limits = HeldLimits::hold(&limited)?;
    let environment = prepare::environment(&loads);
    let described = serde_json::to_value(&environment)?;
    let info = new_run(scenario, &loads, &limits, described, bench.command());
    let stage = Stage::new(scenario, stop, conditions, limits);
    let view = view(scenario);
    let (run, ()) =
        bench.record(&info, &environment, &view, |sink| Ok(((), drive(&stage, &loads, &info, sink)?)))?;
    // What was limited is put back before anybody reads that it is over.
    drop(stage);
    let tenants = TenantSeries::all(&run.stored).map_err(StoreBenchError::kept)?;
    let expectations = scenario.expect.iter().flat_map(|expected| expected.judge(&tenants)).collect();
    Ok(CompletedScenario { run, expectations, tenants })
}

/// What is to be limited of a tenant; none of one without limits.
fn limited<'a>(tenant: &'a Tenant, load: &PreparedLoad) -> Option<Limited<'a>> {
    let (name, limits, paths) = (tenant.name.clone(), &tenant.limits, load.paths(&tenant.spec));
    (!limits.is_none()).then_some(Limited { name, limits, paths, server: None })
}

/// The same of its database's server.
fn limited_server<'a>(
    tenant: &'a Tenant,
    load: &PreparedLoad,
) -> Result<Option<Limited<'a>>, StoreBenchError> {
    let engine = load.engine().filter(|_| !tenant.server_limits.is_none());
    let name = format!("{}.server", tenant.name);
    engine.map(|engine| Limited::server(name, &tenant.server_limits, &**engine)).transpose()
}

/// What is known of the run before it begins.
fn new_run(
    scenario: &Scenario,
    loads: &[PreparedLoad],
    limits: &HeldLimits,
    environment: serde_json::Value,
    command: &str,
) -> NewRun {
    let (kinds, counter_names) = merge::layout(scenario, loads);
    let target = scenario.tenants.iter().zip(loads);
    let target: Vec<String> =
        target.map(|(tenant, load)| format!("{}: {}", tenant.name, load.target())).collect();
    let mut notes = vec![format!("scenario: {}", scenario.name)];
    for (index, (tenant, load)) in scenario.tenants.iter().zip(loads).enumerate() {
        let server = limits.describe(scenario.tenants.len() + index);
        notes.extend(limits.describe(index).map(|limits| format!("{}: at most {limits}", tenant.name)));
        notes.extend(server.map(|limits| format!("{}: its server at most {limits}", tenant.name)));
        notes.extend(load.notes().into_iter().map(|note| format!("{}: {note}", tenant.name)));
        notes.extend(
            tenant.host.iter().map(|host| format!("{}: its load is generated by agent {host}", tenant.name)),
        );
    }
    let changed = scenario.parameters.iter().filter(|one| one.value != one.default);
    notes.extend(
        changed.map(|one| format!("parameter {} = {} (default {})", one.name, one.value, one.default)),
    );
    NewRun {
        workload: labels::SCENARIO.into(),
        target: kelvin_measure::text::few(target, 4),
        label: scenario.label.clone(),
        spec_toml: scenario.text.clone(),
        command: command.to_owned(),
        seed: scenario.seed,
        random_algorithm: kelvin_measure::RANDOM_ALGORITHM.into(),
        kelvin_version: env!("CARGO_PKG_VERSION").into(),
        kinds,
        headline: "transactions and I/Os per second".into(),
        headline_per: kelvin_measure::event::RatePeriod::Second,
        counter_names,
        notes,
        environment,
        started: jiff::Timestamp::now(),
    }
}

/// What views are shown of the load: it begins at once, and has the users of all tenants.
pub fn view(scenario: &Scenario) -> Spec {
    let mut spec = scenario
        .tenants
        .first()
        .map_or_else(|| Spec::new(kelvin_run::spec::WorkloadName::Script), |tenant| tenant.spec.clone());
    spec.load.ramp_up = Span::seconds(0);
    spec.load.duration = Span::seconds(scenario.timeline.seconds.ceil() as u64);
    let users: u32 = scenario.tenants.iter().map(|tenant| tenant.users).sum();
    spec.load.users = users.to_string().parse::<Users>().unwrap_or_default();
    spec
}

/// Runs all threads and puts their events into the sink. The last event is always [`Event::Finished`], unless the sink itself
/// failed. The answer is the sums of all tenants.
fn drive(
    stage: &Stage<'_>,
    loads: &[PreparedLoad],
    info: &NewRun,
    sink: &mut dyn Sink,
) -> Result<Totals, RunError> {
    let watchers = Watchers::for_host(&stage.scenario.observe);
    let mut watched = Watched::start(sink, watchers, &stage.clock)?;
    let mut merge = Merge::new(stage, loads, info);
    merge.declare(loads, &mut watched)?;
    let (sender, messages) = mpsc::channel();
    let merged = std::thread::scope(|scope| -> Result<(), RunError> {
        let begun = merge.begin(&mut watched);
        let mut refused = None;
        let started = begun.map_err(RunError::from).and_then(|()| {
            for (tenant, load) in loads.iter().enumerate() {
                let sender = sender.clone();
                // From this thread, whose children are seen as part of the load.
                let process = stage.is_apart(tenant).then(|| process::start(stage, tenant, load));
                spawn(scope, &format!("tenant-{}", tenant + 1), move || match process {
                    Some(process) => process::run(stage, tenant, process, &sender),
                    None => tenant::run(stage, tenant, load, &sender),
                })?;
            }
            let sender = sender.clone();
            spawn(scope, "timeline", move || steps::run(stage, &sender))
        });
        drop(sender);
        if let Err(error) = started {
            stage.end_all();
            refused = Some(error);
        }
        for message in messages {
            // Figures that nobody keeps are not worth the load; the threads are heard to their end.
            if refused.is_none()
                && let Err(error) = merge.take(message, &mut watched)
            {
                stage.end_all();
                refused = Some(error.into());
            }
            if merge.has_failed() || stage.stop.requested() {
                stage.end_all();
            }
        }
        refused.map_or(Ok(()), Err)
    });
    merged?;
    merge.check_limits();
    merge.end(&mut watched)?;
    watched.finish()?;
    merge.finish(sink)
}

fn spawn<'scope, 'env>(
    scope: &'scope std::thread::Scope<'scope, 'env>,
    name: &str,
    work: impl FnOnce() + Send + 'scope,
) -> Result<(), RunError> {
    let spawned = std::thread::Builder::new().name(name.into()).spawn_scoped(scope, work);
    spawned.map(drop).map_err(|error| RunError::Start(format!("cannot start a thread: {error}")))
}

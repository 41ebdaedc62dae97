//! `kelvin agent`, `kelvin fleet`, and the fleet of a run.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use kelvin_database::process_sessions;
use kelvin_fleet::agent::{self, ALONE, AgentEnd, AgentOptions, AllowedIo, AllowedTargets, ClockTestHook};
use kelvin_fleet::controller::{CalledAgents, NatsFleet};
use kelvin_fleet::server::{FleetServer, ServerOptions};
use kelvin_fleet::{AgentState, Beat, Bus, Connection, Name, find_agents};
use kelvin_lab::directories;
use kelvin_measure::Machine;
use kelvin_measure::text::printable_lines;
use kelvin_run::fleet::{Fleet, FleetPoint, RemoteGenerators};
use kelvin_run::{RunError, Spec};
use kelvin_scenario::Scenario;
use kelvin_scenario::execute::{TenantAgent, TenantAgents};

use super::fleet_ssh;
use crate::args::{AgentArgs, FleetCommand, FleetNameArgs, FleetUpArgs, Global, NatsArgs, RunFleetArgs};
use crate::exit::Code;
use crate::{out, paths, signal};

/// How long to wait for answers of agents to a call.
const CALL: Duration = Duration::from_millis(1500);

/// Runs an agent that waits for runs.
pub(crate) fn agent(args: &AgentArgs, global: &Global) -> Result<Code> {
    let io = AllowedIo::parse(&args.allow_paths, &args.i_know_it_destroys, &args.allow_commands)?;
    let targets = AllowedTargets::parse(&args.allow_targets, io)?;
    let name = if let Some(name) = &args.name {
        name.clone()
    } else {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Name::from_host(&host).context("this host has no name; give the agent one with --name")?
    };
    let alone = args.alone.duration();
    if alone > ALONE || alone.is_zero() {
        bail!("--alone: more than 0 s and at most {} s", ALONE.as_secs());
    }
    let (connection, lab) = server(&args.nats, name.as_str())?;
    share_session_name(&lab)?;
    let clock = args.clock_test_hook.as_deref().map(ClockTestHook::parse).transpose()?.unwrap_or_default();
    // The agent has a separate store: its shares are not runs of the users of this host.
    let store = if let Some(store) = &global.store {
        store.clone()
    } else {
        let directory = directories::data()?.join("agents");
        out::directory(&directory)?;
        directory.join(format!("{name}.db"))
    };
    let stop = signal::listen_saying("kelvin: stopping the agent; Ctrl-C again to stop now")?;
    let options = AgentOptions { name, lab, connection, targets, store, alone, once: args.once, clock };
    let quiet = global.quiet;
    let end = agent::serve(&options, &stop, &mut |text| {
        if !quiet {
            out::note(&format!("kelvin: {text}"));
        }
    })?;
    Ok(match end {
        AgentEnd::Ended => Code::Success,
        AgentEnd::Alone => Code::Aborted,
    })
}

/// Runs a subcommand.
pub(crate) fn fleet(command: &FleetCommand, global: &Global) -> Result<Code> {
    match command {
        FleetCommand::Up(args) => up(args, global),
        FleetCommand::Status { of } => status(of, global),
        FleetCommand::Resume(args) => super::fleet_collect::resume(args, global),
        FleetCommand::Collect(args) => super::fleet_collect::collect(args, global),
        FleetCommand::Down { of } => {
            let server = managed_server(&of.name)?;
            let removed = fleet_ssh::remove_all(&server, global.quiet);
            let ended = server.down()?;
            removed?;
            out::line(if ended { "stopped" } else { "no server was running" })?;
            Ok(Code::Success)
        }
    }
}

fn up(args: &FleetUpArgs, global: &Global) -> Result<Code> {
    let server = managed_server(&args.of.name)?;
    let placed = fleet_ssh::planned(args)?;
    let agents = if placed.is_empty() {
        args.agents.clone()
    } else {
        placed.iter().map(|placed| placed.agent.clone()).collect()
    };
    let options = ServerOptions { listen: args.listen, port: args.port, agents };
    let state = server.up(&args.of.name, &options)?;
    out::line(&state.url)?;
    if !placed.is_empty() {
        return fleet_ssh::place(&placed, args, (&server, &state), global.quiet);
    }
    if !global.quiet {
        let agent = args.agents.first().map_or("NAME", |name| name.as_str());
        let mut more = format!("key of each agent: {}\n", server.key("NAME").display());
        if state.url.starts_with("tls://") {
            more.push_str(&format!("certificate of the authority: {}\n", server.authority().display()));
        }
        more.push_str(&format!(
            "agents here: kelvin agent --fleet {} --name {agent} --allow-target TARGET",
            args.of.name
        ));
        out::note(&more);
    }
    Ok(Code::Success)
}

fn status(of: &FleetNameArgs, global: &Global) -> Result<Code> {
    let server = managed_server(&of.name)?;
    let Some(state) = server.state() else {
        out::line("no server is running")?;
        fleet_ssh::show(&server)?;
        return Ok(Code::NotValid);
    };
    let bus = Bus::connect(&server.connection("controller")?, "kelvin fleet status", None)?;
    let agents = find_agents(&bus, &state.lab, CALL)?;
    out::line(&format!("{}  process {}  {} agents", state.url, state.pid, agents.len()))?;
    for (number, beat) in agents.iter().enumerate() {
        out::line(&printable_lines(&describe(beat)))?;
        let same = |other: &&Beat| other.machine.is_some() && boot_id(other) == boot_id(beat);
        if let Some(first) = agents[..number].iter().find(same) {
            let (own, first) = (&beat.agent, &first.agent);
            out::line(&format!("    {own} is on the machine of {first}: its CPUs and disks count once"))?;
        }
    }
    fleet_ssh::show(&server)?;
    super::fleet_collect::show_stored(bus, &state.lab, paths::store(global.store.as_deref())?)?;
    Ok(Code::Success)
}

/// The boot identifier, which distinguishes machines.
fn boot_id(beat: &Beat) -> Option<&str> {
    beat.machine.as_ref().map(|machine| machine.boot.as_str())
}

/// One line that describes an agent.
fn describe(beat: &Beat) -> String {
    let doing = match &beat.state {
        AgentState::Idle => "idle".into(),
        AgentState::Preparing => "opening the target".into(),
        AgentState::Prepared => "ready".into(),
        AgentState::Connecting { done, .. } => format!("connecting, {done} users"),
        AgentState::Armed { .. } => "armed".into(),
        AgentState::Running { .. } => "running".into(),
    };
    let run = beat.run.as_ref().map(|run| format!("  run {run}")).unwrap_or_default();
    format!("  {}  {}  {} CPUs  kelvin {}  {doing}{run}", beat.agent, beat.host, beat.cpus, beat.kelvin)
}

/// The managed NATS server of a fleet, in the fleet's directory.
fn managed_server(name: &Name) -> Result<FleetServer> {
    let directory: PathBuf = directories::data()?.join("fleet").join(name.as_str());
    Ok(FleetServer::new(directory))
}

/// Connects to the fleet's server as this client. It is the server of the flags, or the managed one of the
/// fleet's name.
pub(super) fn server(args: &NatsArgs, client: &str) -> Result<(Connection, Name)> {
    if let Some(given) = args.given_server()? {
        return Ok(given);
    }
    let Some(name) = &args.fleet else {
        bail!("no fleet is given: use --fleet NAME after kelvin fleet up, or --nats URL");
    };
    Ok((managed_server(name)?.connection(client)?, name.clone()))
}

/// Gives the sessions of this process the name that all sessions of the lab have, so that none counts as a
/// session of another Kelvin.
fn share_session_name(lab: &Name) -> Result<()> {
    // PostgreSQL truncates names to 63 characters.
    if !process_sessions::join_run(&format!("kelvin fleet {:.50}", lab.as_str())) {
        bail!("the sessions of this process have a name already");
    }
    Ok(())
}

/// Calls the agents of a run, if the flags name a fleet. Their number is entered in `spec`.
pub(super) fn gather(args: &RunFleetArgs, spec: &mut Spec) -> Result<Option<NatsFleet>> {
    if !args.nats.is_given() {
        if args.is_given() || spec.load.most_hosts().is_some() {
            bail!("no fleet is given: use --fleet NAME after kelvin fleet up, or --nats URL");
        }
        return Ok(None);
    }
    let number = match &args.hosts[..] {
        [one] => one.as_str().parse::<u32>().ok(),
        _ => None,
    };
    let names = if number.is_some() { &[][..] } else { &args.hosts[..] };
    let mut distinct = names.to_vec();
    distinct.sort();
    distinct.dedup();
    if distinct.len() < names.len() {
        bail!("--hosts: an agent is named twice");
    }
    let (connection, lab) = server(&args.nats, "controller")?;
    share_session_name(&lab)?;
    let bus = Bus::connect(&connection, "kelvin controller", None)?;
    let agents = CalledAgents::call(bus, &lab, names)?;
    let there = agents.count();
    let swept = spec.load.sweep.as_ref().is_some_and(kelvin_run::spec::Sweep::is_over_hosts);
    let named = (!names.is_empty()).then_some(names.len() as u32);
    let asked = number.or(named).filter(|_| !swept);
    let wanted = asked.or(spec.load.most_hosts()).unwrap_or(there);
    let limit = number.filter(|_| swept).map_or(there, |number| number.min(there));
    if wanted > limit {
        bail!("{wanted} hosts are needed; there are {limit} idle agents for the run");
    }
    if let Some(skew) = args.start_skew {
        spec.load.start_skew = skew;
    }
    // Every host runs every job, so there is nothing to divide; the specification is validated already.
    if spec.is_io() {
        ensure!(wanted > 0, "--hosts: at least 1");
    } else {
        if !swept {
            spec.load.hosts = Some(std::num::NonZeroU32::new(wanted).context("--hosts: at least 1")?);
        }
        spec.validate()?;
    }
    Ok(Some(agents.take(wanted, spec)?))
}

/// The agents that the tenants of a scenario name; `None` if all tenants run on this host.
pub(super) fn scenario_agents(args: &NatsArgs, scenario: &Scenario) -> Result<Option<Arc<dyn TenantAgents>>> {
    let placed = scenario.tenants.iter().find_map(|tenant| Some((&tenant.name, tenant.host.as_ref()?)));
    match placed {
        None if args.is_given() => bail!(
            "--fleet: the tenants of this scenario run on this host, since none names an agent: write host = \"g1\" in its \
             table, or use --place GROUP=g1 of kelvin xray"
        ),
        None => return Ok(None),
        Some((tenant, agent)) if !args.is_given() => bail!(
            "{tenant} runs on the agent {agent}; no fleet is given: use --fleet NAME after kelvin fleet up, \
                or --nats URL"
        ),
        Some(_) => {}
    }
    let (connection, lab) = server(args, "controller")?;
    share_session_name(&lab)?;
    Ok(Some(Arc::new(ScenarioAgents { connection, lab, calls: Mutex::new(()) })))
}

/// The agents of a fleet that run tenants of a scenario.
#[derive(Debug)]
struct ScenarioAgents {
    connection: Connection,
    lab: Name,
    /// Serializes the calls.
    calls: Mutex<()>,
}

impl TenantAgents for ScenarioAgents {
    fn take(&self, agent: &str, spec: &Spec) -> std::result::Result<Box<dyn TenantAgent>, String> {
        let text = |error: kelvin_fleet::FleetError| error.to_string();
        let name: Name =
            agent.parse().map_err(|why| format!("{agent:?} is not a valid agent name: {why}"))?;
        let _call = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let bus = Bus::connect(&self.connection, "kelvin controller", None).map_err(text)?;
        let called = CalledAgents::call(bus, &self.lab, &[name]).map_err(text)?;
        let fleet = called.take(1, spec).map_err(text)?;
        // A run is named after the millisecond of its call, so two calls must not share one.
        std::thread::sleep(Duration::from_millis(2));
        Ok(Box::new(OneAgent(fleet)))
    }
}

/// The agent that runs a tenant.
struct OneAgent(NatsFleet);

impl Fleet for OneAgent {
    fn hosts(&self) -> Vec<String> {
        self.0.hosts()
    }

    fn machines(&self) -> Vec<Option<Machine>> {
        self.0.machines()
    }

    fn arm<'a>(
        &'a self,
        point: &FleetPoint<'_>,
        connected: &mut dyn FnMut(u64) -> std::result::Result<(), RunError>,
    ) -> std::result::Result<Box<dyn RemoteGenerators + 'a>, RunError> {
        self.0.arm(point, connected)
    }
}

impl TenantAgent for OneAgent {
    fn finish(&self) {
        // The controller already has the tenant's measurements; the agent's own file is not needed.
        let _ = self.0.finish(true);
    }
}

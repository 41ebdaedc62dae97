//! The agents of a fleet, as a run or a scenario uses them.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use kelvin_database::process_sessions;
use kelvin_fleet::controller::{CalledAgents, NatsFleet};
use kelvin_fleet::server::FleetServer;
use kelvin_fleet::{Bus, Connection, Name};
use kelvin_lab::directories;
use kelvin_measure::Machine;
use kelvin_run::fleet::{Fleet, FleetPoint, RemoteGenerators};
use kelvin_run::{RunError, Spec};
use kelvin_scenario::Scenario;
use kelvin_scenario::execute::{TenantAgent, TenantAgents};

use crate::args::{NatsArgs, RunFleetArgs};

/// How long to wait for answers of agents to a call.
pub(super) const CALL: Duration = Duration::from_millis(1500);

/// The managed NATS server of a fleet, in the fleet's directory.
pub(super) fn managed_server(name: &Name) -> Result<FleetServer> {
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
pub(super) fn share_session_name(lab: &Name) -> Result<()> {
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

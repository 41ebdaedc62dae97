//! `kelvin agent` and `kelvin fleet`.

use anyhow::{Context, Result, bail};
use kelvin_fleet::agent::{self, ALONE, AgentEnd, AgentOptions, AllowedIo, AllowedTargets, ClockTestHook};
use kelvin_fleet::server::ServerOptions;
use kelvin_fleet::{AgentState, Beat, Bus, Name, find_agents};
use kelvin_lab::directories;
use kelvin_measure::text::printable_lines;

use super::fleet_agents::{CALL, managed_server, server, share_session_name};
use super::fleet_ssh;
use crate::args::{AgentArgs, FleetCommand, FleetNameArgs, FleetUpArgs, Global};
use crate::exit::Code;
use crate::{out, paths, signal};

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

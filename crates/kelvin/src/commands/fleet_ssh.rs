//! `kelvin fleet up --ssh`: places agents on other hosts with the user's own ssh.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use kelvin_fleet::agent::{AllowedIo, AllowedTargets};
use kelvin_fleet::server::{FleetServer, ServerState};
use kelvin_fleet::ssh::{AgentFiles, PlacedAgent, Ssh};
use kelvin_fleet::{Bus, find_agents};

use crate::args::FleetUpArgs;
use crate::exit::Code;
use crate::out;

/// How long agents may take to answer after their start, and the interval of calls.
const ANSWER: Duration = Duration::from_secs(20);
const CALL: Duration = Duration::from_millis(500);

/// The variable with the user's own ssh command and its options.
const SSH: &str = "KELVIN_SSH";

fn ssh() -> Ssh {
    Ssh::new(std::env::var(SSH).ok().as_deref())
}

/// The agents of `--ssh`; empty without the flag.
pub(super) fn planned(args: &FleetUpArgs) -> Result<Vec<PlacedAgent>> {
    if args.ssh.is_empty() {
        return Ok(Vec::new());
    }
    if !args.agents.is_empty() && args.agents.len() != args.ssh.len() {
        bail!("--agents names {} agents for the {} hosts of --ssh", args.agents.len(), args.ssh.len());
    }
    if args.allow_targets.is_empty() && args.allow_paths.is_empty() {
        bail!("the agents have no allowed target: give --allow-target TARGET or --allow-path PATH");
    }
    // Checked before anything is copied: what an agent would refuse on its host.
    AllowedTargets::parse(&args.allow_targets, AllowedIo::default())?;
    if args.allow_paths.iter().any(|path| !path.starts_with('/') || path.contains(char::is_control)) {
        bail!("--allow-path: write an absolute path");
    }
    let mut agents = args.agents.iter();
    let placed = args.ssh.iter().map(|host| {
        let named = agents.next().cloned().or_else(|| host.agent_name());
        let agent = named.with_context(|| format!("{}: name its agent with --agents", host.as_str()))?;
        Ok(PlacedAgent { lab: args.of.name.clone(), agent, host: host.clone() })
    });
    placed.collect()
}

/// Copies and starts the agents, and waits until all of them answer.
pub(super) fn place(
    placed: &[PlacedAgent],
    args: &FleetUpArgs,
    (server, state): (&FleetServer, &ServerState),
    quiet: bool,
) -> Result<Code> {
    let kelvin = std::env::current_exe().context("where this command is")?;
    let authority = server.authority();
    let allow: Vec<String> = args
        .allow_targets
        .iter()
        .flat_map(|target| ["--allow-target".to_owned(), target.clone()])
        .chain(args.allow_paths.iter().flat_map(|path| ["--allow-path".to_owned(), path.clone()]))
        .collect();
    let mut all = server.placed()?;
    for one in placed {
        if !quiet {
            out::note(&format!("kelvin: agent {} on {}: copying", one.agent, one.host.as_str()));
        }
        // Recorded before the first byte is copied, so that `fleet down` removes it in any case.
        if !all.contains(one) {
            all.push(one.clone());
            server.remember(&all)?;
        }
        let key = server.key(one.agent.as_str());
        let files = AgentFiles {
            kelvin: &kelvin,
            key: &key,
            authority: state.url.starts_with("tls://").then_some(authority.as_path()),
            url: &state.url,
            allow: &allow,
        };
        if !ssh().place(one, &files)? {
            out::note(&format!(
                "kelvin: agent {} was already running, with the permissions of its start; `kelvin fleet \
                    down` stops it",
                one.agent
            ));
        }
    }
    let bus = Bus::connect(&server.connection("controller")?, "kelvin fleet up", None)?;
    let since = Instant::now();
    loop {
        let found = find_agents(&bus, &state.lab, CALL)?;
        let is_silent = |one: &&PlacedAgent| found.iter().all(|beat| beat.agent != one.agent);
        let silent: Vec<&PlacedAgent> = placed.iter().filter(is_silent).collect();
        if silent.is_empty() {
            break;
        }
        if since.elapsed() > ANSWER {
            let why = silent.iter().map(|one| {
                let log = ssh().log(one).unwrap_or_else(|error| error.to_string());
                format!(
                    "agent {} on {} does not answer; the end of its log: {log}",
                    one.agent,
                    one.host.as_str()
                )
            });
            bail!("{}", why.collect::<Vec<_>>().join("; "));
        }
    }
    for one in placed {
        out::line(&format!("  {}  on {}", one.agent, one.host.as_str()))?;
    }
    Ok(Code::Success)
}

/// Prints the placed agents and whether each runs.
pub(super) fn show(server: &FleetServer) -> Result<()> {
    for one in server.placed()? {
        let state = match ssh().state(&one) {
            Ok(Some(pid)) => format!("process {pid}"),
            Ok(None) => "does not run".into(),
            Err(error) => error.to_string(),
        };
        out::line(&kelvin_measure::text::printable_lines(&format!(
            "  {}  started on {} by ssh, {state}",
            one.agent,
            one.host.as_str()
        )))?;
    }
    Ok(())
}

/// Stops the placed agents and removes their files. Agents that cannot be reached stay recorded.
pub(super) fn remove_all(server: &FleetServer, quiet: bool) -> Result<()> {
    let placed = server.placed()?;
    let (mut left, mut why) = (Vec::new(), Vec::new());
    for one in &placed {
        match ssh().remove(one) {
            Ok(()) if quiet => {}
            Ok(()) => {
                out::note(&format!("kelvin: agent {} was removed from {}", one.agent, one.host.as_str()));
            }
            Err(error) => {
                left.push(one.clone());
                why.push(error.to_string());
            }
        }
    }
    if !placed.is_empty() {
        server.remember(&left)?;
    }
    if why.is_empty() { Ok(()) } else { bail!("{}", why.join("; ")) }
}

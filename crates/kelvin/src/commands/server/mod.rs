//! `kelvin server`: the servers that kelvin keeps for its runs, and the settings of others.

mod external_servers;
mod mysql;
mod profile;
mod text;

use anyhow::Result;
use kelvin_database::Engine;
use kelvin_database::managed::{Manager, Profile};
use kelvin_database::postgres::PostgresEngine;
use kelvin_database::postgres::settings::differences;
use kelvin_lab::directories;

use crate::args::{Global, ProfileArgs, ServerCommand, ServerEngine};
use crate::exit::Code;
use crate::out;

/// Starts, stops, describes or changes it.
pub(crate) fn server(command: &ServerCommand, global: &Global) -> Result<Code> {
    let manager = Manager::new(directories::servers()?);
    let mut tell = |text: &str| {
        if !global.quiet {
            out::note(text);
        }
    };
    match command {
        ServerCommand::Up { engine, version, profile } => match mysql::product(*engine) {
            None => up(&manager, *version, profile, global, &mut tell)?,
            Some(product) => mysql::up(&manager, product, *version, profile, global, &mut tell)?,
        },
        ServerCommand::Down { engine, version } => {
            let stopped = match engine {
                None | Some(ServerEngine::Postgres) => manager.down(*version)?,
                Some(_) => Vec::new(),
            };
            let others = match engine {
                None if version.is_none() => kelvin_database::mysql::managed::down(&manager, None)?,
                None | Some(ServerEngine::Postgres) => Vec::new(),
                Some(engine) => kelvin_database::mysql::managed::down(&manager, mysql::product(*engine))?,
            };
            for name in &others {
                out::line(&format!("stopped {name}"))?;
            }
            if stopped.is_empty() && others.is_empty() {
                out::line("no server was running")?;
            }
            for major in stopped {
                out::line(&format!("stopped PostgreSQL {major}"))?;
            }
        }
        ServerCommand::Status => {
            let all = manager.status()?;
            let others = kelvin_database::mysql::managed::status(&manager);
            if all.is_empty() && others.is_empty() {
                out::line("no server exists yet; `kelvin server up` creates one")?;
            }
            for status in all {
                out::write(&text::status(&status))?;
            }
            for status in others {
                out::write(&mysql::describe_status(&status))?;
            }
        }
        ServerCommand::Diff { target: Some(target), profile, .. } => {
            external_servers::diff(target, profile, global, &mut tell)?;
        }
        ServerCommand::Diff { target: None, version, profile } => {
            let version = manager.version(*version)?;
            let profile = managed_profile(&manager, version, profile, global)?;
            let engine = PostgresEngine::new(manager.running(version)?.config());
            let found = differences(&mut *engine.connect()?, &profile.lines)?;
            out::write(&text::differences(&format!("PostgreSQL {version}"), &profile.name, &found))?;
        }
        ServerCommand::Apply { target, profile, allow_settings } => {
            external_servers::apply(target, profile, *allow_settings, global, &mut tell)?;
        }
        ServerCommand::Restore { target } => external_servers::restore(target.as_ref(), &manager, &mut tell)?,
    }
    Ok(Code::Success)
}

fn up(
    manager: &Manager,
    version: Option<u32>,
    asked: &ProfileArgs,
    global: &Global,
    tell: &mut dyn FnMut(&str),
) -> Result<()> {
    let Some(name) = &asked.profile else {
        let instance = manager.up(version, tell)?;
        if instance.was_running() {
            tell("it was already running");
        }
        return out::line(&instance.config().to_string());
    };
    let host = manager.host(manager.version(version)?);
    let profile = profile::resolve(name, asked.sized_for.as_deref(), host, global)?;
    profile.cautions.iter().for_each(|caution| tell(&format!("caution: {caution}")));
    warn_of_lost_durability(&profile);
    let instance = manager.up_with_profile(version, &profile, tell)?;
    // Lines of the user's own below the section, and what ALTER SYSTEM has set, count more.
    let mut session = PostgresEngine::new(instance.config()).connect()?;
    for one in differences(&mut *session, &profile.lines)? {
        let has = one
            .server
            .map_or("does not have this setting".into(), |value| format!("has {value} ({})", one.source));
        let undo = if one.source == "ALTER SYSTEM" {
            format!("; ALTER SYSTEM RESET {} lets the profile apply", one.name)
        } else {
            String::new()
        };
        tell(&format!("{} is not {}: the server {has}{undo}", one.name, one.wanted));
    }
    out::line(&instance.config().to_string())
}

/// Prints in red, also with --quiet, that a profile gives up durability.
fn warn_of_lost_durability(profile: &Profile) {
    let value =
        |name: &str| profile.lines.iter().find(|line| line.name == name).map(|line| line.value.clone());
    if let Some(words) = kelvin_diagnose::durability_given_up(value) {
        out::warning(&format!("profile {}: {words}", profile.name));
    }
}

/// The asked profile, or the one that the server has. One of the same name that was sized when the server was given it is
/// not sized anew: free space has changed since, and nothing is wrong with the server for that.
fn managed_profile(manager: &Manager, version: u32, asked: &ProfileArgs, global: &Global) -> Result<Profile> {
    let kept = manager.profile(version);
    let name = asked.profile.as_deref();
    match (kept, name) {
        (Some(kept), None) => Ok(kept),
        (Some(kept), Some(name))
            if kept.name == name && profile::is_built_in(name) && asked.sized_for.is_none() =>
        {
            Ok(kept)
        }
        (_, name) => profile::resolve(
            name.unwrap_or("default"),
            asked.sized_for.as_deref(),
            manager.host(version),
            global,
        ),
    }
}

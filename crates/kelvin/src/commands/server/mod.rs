//! `kelvin server`: managed servers, and the settings of external ones.

mod external_servers;
mod profile;
mod server_text;

use anyhow::{Context, Result};
use kelvin_database::managed::{ManagedServer, Manager, Profile};
use kelvin_database::mysql::Product;
use kelvin_database::settings::Difference;
use kelvin_database::target::Target;
use kelvin_database::{Engine, mysql};
use kelvin_lab::directories;

use crate::args::{Global, ProfileArgs, ServerCommand, ServerEngine};
use crate::exit::Code;
use crate::out;

/// Runs a subcommand.
pub(crate) fn server(command: &ServerCommand, global: &Global) -> Result<Code> {
    let manager = Manager::new(directories::servers()?);
    let mut report = |text: &str| {
        if !global.quiet {
            out::note(text);
        }
    };
    match command {
        ServerCommand::Up { engine, version, profile } => {
            let server = select_server(&manager, *engine, *version)?;
            up(server.as_ref(), profile, global, &mut report)?;
        }
        ServerCommand::Down { engine, version } => down(&manager, *engine, *version)?,
        ServerCommand::Status => status(&manager)?,
        ServerCommand::Diff { target: Some(target), profile, .. } => {
            external_servers::diff(target, profile, global, &mut report)?;
        }
        ServerCommand::Diff { target: None, engine, version, profile } => {
            let server = select_server(&manager, *engine, *version)?;
            let profile = managed_profile(server.as_ref(), profile, global)?;
            let found = differences(server.as_ref(), server.running()?.as_ref(), &profile)?;
            out::write(&server_text::differences(&server.label(), &profile.name, &found))?;
        }
        ServerCommand::Apply { target, profile, allow_settings } => {
            external_servers::apply(target, profile, *allow_settings, global, &mut report)?;
        }
        ServerCommand::Restore { target } => {
            external_servers::restore(target.as_ref(), &manager, &mut report)?;
        }
    }
    Ok(Code::Success)
}

/// The product; `None` for PostgreSQL.
fn product(engine: ServerEngine) -> Option<Product> {
    match engine {
        ServerEngine::Postgres => None,
        ServerEngine::Mariadb => Some(Product::Mariadb),
        ServerEngine::Mysql => Some(Product::Mysql),
    }
}

/// The managed server that the flags select.
fn select_server(
    manager: &Manager,
    engine: ServerEngine,
    version: Option<u32>,
) -> Result<Box<dyn ManagedServer>> {
    let target = match product(engine) {
        None => Target::ManagedPostgres { version },
        Some(product) if version.is_some() => anyhow::bail!(
            "--version chooses among installed PostgreSQL servers; for {product} the newest is used"
        ),
        Some(product) => Target::ManagedMysql { product },
    };
    target.managed_server(manager)?.with_context(|| format!("{target} is not managed"))
}

fn up(
    server: &dyn ManagedServer,
    asked: &ProfileArgs,
    global: &Global,
    report: &mut dyn FnMut(&str),
) -> Result<()> {
    let Some(name) = &asked.profile else {
        let started = server.start(None, report)?;
        if started.was_running {
            report("it was already running");
        }
        return out::line(&started.engine.describe());
    };
    let profiles = server.profiles();
    let profile =
        profile::resolve(name, asked.sized_for.as_deref(), server.host(), profiles.as_ref(), global)?;
    profile.cautions.iter().for_each(|caution| report(&format!("caution: {caution}")));
    warn_of_lost_durability(&profile);
    let engine = server.start(Some(&profile), report)?.engine;
    // User settings after the section, those of ALTER SYSTEM, and those of a study take precedence.
    for one in differences(server, engine.as_ref(), &profile)? {
        let has = one
            .server
            .map_or("does not have this setting".into(), |value| format!("has {value} ({})", one.source));
        let undo = if one.source == "ALTER SYSTEM" {
            format!("; ALTER SYSTEM RESET {} lets the profile apply", one.name)
        } else {
            String::new()
        };
        report(&format!("{} is not {}: the server {has}{undo}", one.name, one.wanted));
    }
    out::line(&engine.describe())
}

fn differences(
    server: &dyn ManagedServer,
    engine: &dyn Engine,
    profile: &Profile,
) -> Result<Vec<Difference>> {
    Ok(server.settings()?.differences(&mut *engine.connect()?, &profile.lines)?)
}

fn down(manager: &Manager, engine: Option<ServerEngine>, version: Option<u32>) -> Result<()> {
    let stopped = match engine {
        None | Some(ServerEngine::Postgres) => manager.down(version)?,
        Some(_) => Vec::new(),
    };
    let others = match engine {
        None if version.is_none() => mysql::managed::down(manager, None)?,
        None | Some(ServerEngine::Postgres) => Vec::new(),
        Some(engine) => mysql::managed::down(manager, product(engine))?,
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
    Ok(())
}

fn status(manager: &Manager) -> Result<()> {
    let all = manager.status()?;
    let others = mysql::managed::status(manager);
    if all.is_empty() && others.is_empty() {
        out::line("no server exists yet; `kelvin server up` creates one")?;
    }
    for status in all {
        out::write(&server_text::status(&status))?;
    }
    for status in others {
        out::write(&server_text::mysql_status(&status))?;
    }
    Ok(())
}

/// Prints in red, also with --quiet, that a profile gives up durability.
fn warn_of_lost_durability(profile: &Profile) {
    let value =
        |name: &str| profile.lines.iter().find(|line| line.name == name).map(|line| line.value.clone());
    if let Some(words) = kelvin_diagnose::durability_given_up(value) {
        out::warning(&format!("profile {}: {words}", profile.name));
    }
}

/// The requested profile, or the server's present one. A profile of the same name is not sized again after it was
/// applied: free space has changed since, which is no problem of the server.
fn managed_profile(server: &dyn ManagedServer, asked: &ProfileArgs, global: &Global) -> Result<Profile> {
    let kept = server.profile();
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
            server.host(),
            server.profiles().as_ref(),
            global,
        ),
    }
}

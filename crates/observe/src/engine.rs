//! The watchers of a database, by its engine.

use std::sync::Arc;

use kelvin_database::{Engine, EngineKind, Error, Result, Session};

use crate::activity::Activity;
use crate::baseline_fact::BaselineFact;
use crate::server::ServerPlacement;
use crate::{mysql, postgres, sqlite, sqlserver};

pub use crate::mysql::Instrument;
pub use crate::server::EngineWatchers;
pub use crate::watch_plan::{ExplainSample, WatchPlan};

/// Makes the watchers of a database, with connections of their own.
///
/// # Errors
/// When it cannot be connected to, or nothing of its engine can be watched.
pub fn watchers(engine: &Arc<dyn Engine>, plan: &WatchPlan) -> Result<EngineWatchers> {
    match engine.kind() {
        EngineKind::Postgres => postgres::watchers(engine, plan),
        EngineKind::Sqlite => {
            let data = engine.connect().ok().and_then(|mut session| engine.data_directory(&mut *session));
            let place = ServerPlacement { data, ..ServerPlacement::default() };
            Ok(EngineWatchers { watchers: sqlite::watchers(engine, plan.figures), place })
        }
        EngineKind::Mysql => mysql::watchers(engine, plan),
        EngineKind::SqlServer => sqlserver::watchers(engine, plan),
        kind @ EngineKind::Other(_) => Err(Error::usage(format!("observing {kind} is not supported yet"))),
    }
}

/// Connects to a server to ask what it is doing; `looks` is how often its sessions are sampled, a second.
///
/// # Errors
/// When it cannot be connected to, or its engine has no sessions that wait.
pub fn activity(engine: &Arc<dyn Engine>, looks: u32) -> Result<Activity> {
    let plan = WatchPlan { looks, texts: true, ..WatchPlan::default() };
    match engine.kind() {
        EngineKind::Postgres => postgres::activity(engine, &plan),
        EngineKind::Mysql => mysql::activity(engine, &plan),
        EngineKind::SqlServer => sqlserver::activity(engine, &plan),
        other => {
            Err(Error::usage(format!("{other} has no server whose sessions and statements can be observed"))
                .with_help("give the address of a server with --target"))
        }
    }
}

/// Where a database's server runs and keeps its files, when that is this host and sure.
pub fn locate_server(engine: &dyn Engine, session: &mut dyn Session) -> ServerPlacement {
    match engine.kind() {
        EngineKind::Postgres => postgres::locate_server(engine, session),
        EngineKind::Mysql => mysql::locate_server(engine, session),
        EngineKind::Sqlite | EngineKind::SqlServer | EngineKind::Other(_) => ServerPlacement::default(),
    }
}

/// What a server's catalogue calls the files of its relations: the database's number, the file's, and the name. Empty
/// for engines whose files bear the names of what they hold.
///
/// # Errors
/// When the server does not answer.
pub fn file_names(engine: &dyn Engine) -> Result<Vec<(String, String, String)>> {
    match engine.kind() {
        EngineKind::Postgres => postgres::file_names(engine.connect()?.as_mut()),
        _ => Ok(Vec::new()),
    }
}

/// What the planner makes of indexes that are not there, as [`postgres::try_indexes`] says, in a session of its own, which ends with
/// them. None where the engine or the database cannot try it.
///
/// # Errors
/// When the server fails, or refuses an index.
pub fn try_indexes(
    engine: &dyn Engine,
    create: &[&str],
    texts: &[&str],
) -> Result<Option<postgres::HypotheticalUse>> {
    match engine.kind() {
        EngineKind::Postgres => postgres::try_indexes(engine.connect()?.as_mut(), create, texts),
        _ => Ok(None),
    }
}

/// The server's instruments that show more of what its sessions wait for, and are off. None where an engine has no such.
///
/// # Errors
/// When the server has them and they cannot be switched on.
pub fn instruments_off(engine: &dyn Engine) -> Result<Vec<Instrument>> {
    match engine.kind() {
        EngineKind::Mysql => mysql::instruments::that_are_off(engine.connect()?.as_mut()),
        _ => Ok(Vec::new()),
    }
}

/// Switches instruments on, or gives them the state that they have here where they are `put_back`.
///
/// # Errors
/// When the server does not let this user do so.
pub fn switch_instruments(engine: &dyn Engine, all: &[Instrument], put_back: bool) -> Result<()> {
    if all.is_empty() {
        return Ok(());
    }
    let mut session = engine.connect()?;
    if put_back {
        mysql::instruments::set(session.as_mut(), all)
    } else {
        mysql::instruments::switch_on(session.as_mut(), all)
    }
}

/// What a database is set to, among the doctor's facts.
pub(crate) fn settings(
    facts: &mut Vec<BaselineFact>,
    engine: &dyn Engine,
    session: &mut dyn Session,
) -> Result<()> {
    if engine.kind() == EngineKind::Postgres {
        return postgres::baseline_settings(facts, session);
    }
    let fingerprint = engine.fingerprint(session)?;
    facts.push(BaselineFact::new("database.version", "version", fingerprint.version));
    for one in fingerprint.settings {
        facts.push(BaselineFact::new(&format!("database.{}", one.name), &one.name, one.value));
    }
    Ok(())
}

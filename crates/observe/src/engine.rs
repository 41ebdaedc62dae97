//! The watchers of a database, by its engine.

use std::sync::Arc;
use std::time::Duration;

use kelvin_database::{Engine, EngineKind, Error, Result, Session};
use serde::{Deserialize, Serialize};

use crate::activity::Activity;
use crate::baseline::Baseline;
use crate::server::ServerPlacement;
use crate::watch::Watcher;
use crate::{mysql, postgres, sqlite, sqlserver};

pub use crate::mysql::Instrument;

/// How closely to watch.
#[derive(Debug, Clone)]
pub struct WatchPlan {
    /// Looks at the sessions a second, 1 to 100.
    pub looks: u32,
    /// Time between two readings of the counters.
    pub figures: Duration,
    /// Statements to report for each point, those with the most time.
    pub statements: usize,
    /// Whether the extension `pg_stat_statements` may be created in the database where it is only preloaded. For
    /// servers that are kelvin's own.
    pub create_extension: bool,
    /// Whether sessions of other applications are distinguished from the load's, which connect as we do. Where there is
    /// no load of ours, all are the ones to watch.
    pub apart: bool,
    /// Whether the texts of the sessions' statements are sent as they come, without their values; statements to which the server
    /// gives no identifier are then told apart by their text.
    pub texts: bool,
    /// Whether the statements with the most time are executed once more when the window is over, for the rows of their plans (PostgreSQL, MySQL, MariaDB).
    pub explain: Option<ExplainSample>,
}

/// Which statements are executed for their plans, in a transaction that is rolled back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExplainSample {
    /// Those that only read.
    Reads,
    /// Also those that change data (PostgreSQL).
    Writes,
}

impl Default for WatchPlan {
    fn default() -> Self {
        Self {
            looks: 10,
            figures: Duration::from_secs(1),
            statements: 10,
            create_extension: false,
            apart: false,
            texts: false,
            explain: None,
        }
    }
}

/// Watchers, and what was found about the server for those who watch its host.
pub struct EngineWatchers {
    /// The watchers, connected.
    pub watchers: Vec<Box<dyn Watcher>>,
    /// Where the server runs and keeps its files, when it is on this host and lets us know.
    pub place: ServerPlacement,
}

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
        EngineKind::Mysql => mysql::locate_server(engine, session),
        EngineKind::SqlServer => ServerPlacement::default(),
        _ => postgres::locate_server(engine, session),
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
    baseline: &mut Baseline,
    engine: &dyn Engine,
    session: &mut dyn Session,
) -> Result<()> {
    if engine.kind() == EngineKind::Postgres {
        return postgres::baseline_settings(baseline, session);
    }
    let fingerprint = engine.fingerprint(session)?;
    baseline.add_fact("database.version", "version", fingerprint.version);
    for one in fingerprint.settings {
        baseline.add_fact(&format!("database.{}", one.name), &one.name, one.value);
    }
    Ok(())
}

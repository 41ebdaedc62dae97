//! Observation of a database server, common to all engines: two watchers, each with a separate connection that is
//! opened before the users'. One samples the sessions ([`sessions::Sessions`]), the other reads the counters once a second and
//! at the window's edges ([`figures::Figures`]). The engine supplies the queries.

pub(crate) mod counters;
pub(crate) mod figures;
pub(crate) mod horizon;
pub(crate) mod link;
pub(crate) mod sampled;
pub(crate) mod sessions;
pub(crate) mod statement_text;
mod waits;

use std::path::PathBuf;
use std::sync::Arc;

use kelvin_database::{Engine, Error, Result};

use crate::watch::Watcher;
use crate::watch_plan::WatchPlan;
use link::{Connect, Link};

/// The process and directories of a server on this host; empty for a remote server.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ServerPlacement {
    /// Its first process, where that is sure.
    pub server: Option<u32>,
    /// Whether it serves sessions in child processes; otherwise its own threads do.
    pub forks: bool,
    /// The data directory.
    pub data: Option<PathBuf>,
    /// The directory of the write-ahead log, links followed.
    pub wal: Option<PathBuf>,
}

/// Watchers, and what was found about the server for those who watch its host.
pub struct EngineWatchers {
    /// The watchers, connected.
    pub watchers: Vec<Box<dyn Watcher>>,
    /// Where the server runs and keeps its files, when it is on this host and lets us know.
    pub place: ServerPlacement,
}

/// Opens the connections of the two watchers: of the sessions, of the counters.
///
/// # Errors
/// When the server cannot be connected to, or is behind a pooler that lends connections by transaction: what a session sets
/// there would stay with others.
pub(crate) fn links<S>(
    engine: &Arc<dyn Engine>,
    plan: &WatchPlan,
    connect: Connect<S>,
) -> Result<(Link<S>, Link<S>)> {
    engine.capabilities().need_session_state("watching the server")?;
    if !(1..=100).contains(&plan.looks) {
        return Err(Error::usage(format!("{} session samples per second were requested", plan.looks))
            .with_help("choose 1 to 100"));
    }
    Ok((Link::open(engine, connect)?, Link::open(engine, connect)?))
}

/// The first characters of a name that a user chose.
pub(crate) fn shortened(name: &str) -> String {
    name.chars().take(40).collect()
}

//! What a PostgreSQL server does while a run goes on, seen through its own views.
//!
//! Two watchers, each on a connection of its own that is opened before the users': one looks at the sessions ten times a
//! second (waits, row locks, checkpoints, autovacuum), the other reads the server's counters once a second and takes stock
//! of statements, relations and settings at the edges. What a version or a role cannot show is told as
//! [`kelvin_measure::observation::Absent`] with what would show it.
//!
//! Backends publish their counters only between transactions and at most once a second, so a second's rates are those of a
//! second that ended up to one second ago; over a window of minutes this is nothing.

mod checkpoints;
mod counters;
mod figures;
mod link;
mod locks;
mod log;
mod place;
mod plans;
mod relations;
mod sessions;
mod settings;
mod sql;
mod statements;
mod vacuums;
mod waits;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kelvin_database::{Engine, Error, Result};

use crate::watch::Watcher;
use link::Link;
pub use place::{Place, find};

/// What the observers' sessions are called in `pg_stat_activity`, by which they are left out.
pub const APPLICATION_NAME: &str = "kelvin observer";

/// How closely to watch.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Looks at the sessions a second, 1 to 100.
    pub looks: u32,
    /// Time between two readings of the counters.
    pub figures: Duration,
    /// Statements to tell of for each point, those that took the most time.
    pub statements: usize,
    /// Whether the extension `pg_stat_statements` may be created in the database where it is only preloaded. For
    /// servers that are kelvin's own.
    pub create_extension: bool,
    /// Whether sessions of other applications are told apart from those that connect as we do, the load's. Where there is
    /// no load of ours, all are the ones to watch.
    pub apart: bool,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            looks: 10,
            figures: Duration::from_secs(1),
            statements: 10,
            create_extension: false,
            apart: false,
        }
    }
}

/// Watchers, and what was found about the server for those who watch its host.
pub struct Found {
    /// The watchers, connected.
    pub watchers: Vec<Box<dyn Watcher>>,
    /// The server's first process, when it runs on this host and that is sure.
    pub server: Option<u32>,
    /// The data directory, when the server is on this host and lets us know.
    pub data: Option<PathBuf>,
    /// The directory of the write-ahead log, links followed.
    pub wal: Option<PathBuf>,
}

/// Connects to the server twice and makes the watchers.
///
/// # Errors
/// When it cannot be connected to, is no PostgreSQL, or is behind a pooler that lends connections by transaction: what a
/// session sets there would stay with others.
pub fn watchers(engine: &Arc<dyn Engine>, plan: &Plan) -> Result<Found> {
    if engine.kind() != kelvin_database::EngineKind::Postgres {
        return Err(Error::usage(format!("{} has no sessions to watch", engine.kind())));
    }
    engine.capabilities().need_session_state("watching the server")?;
    if !(1..=100).contains(&plan.looks) {
        return Err(Error::usage(format!("{} looks a second were asked for", plan.looks))
            .with_help("choose 1 to 100"));
    }
    let mut sessions = Link::open(engine)?;
    let figures = Link::open(engine)?;
    let place = place::find_by(engine.as_ref(), &mut sessions);
    let log = place.server.and_then(|server| log::find(&mut sessions, server, place.data.as_deref()));
    Ok(Found {
        watchers: vec![
            Box::new(sessions::Sessions::new(sessions, plan, log)),
            Box::new(figures::Figures::new(figures, plan)),
        ],
        server: place.server,
        data: place.data,
        wal: place.wal,
    })
}

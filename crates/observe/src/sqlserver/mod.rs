//! What a SQL Server does while a run is running, seen through its dynamic management views.
//!
//! Two watchers, each with a separate connection that is opened before the users': one samples the tasks of the sessions (what each
//! does or waits for, on which page, who holds the lock), the other reads the server's counters once a second and takes stock of
//! statements, tables and settings at the edges. Waits are counted twice: those of the load's own sessions, which are the
//! workload's and nobody else's, and those of the whole server less what it waits when it has nothing to do.
//!
//! A server of the same protocol without these views (Babelfish), one before 2016 and a login that may not see them are rejected with
//! what would show more. No SQL Server was at hand when this was written: statements and columns are those of Microsoft's
//! reference, and the tests answer them from recordings made by it.

mod activity;
mod checkpoints;
mod counter_watcher;
mod counters;
mod indexes;
mod latches;
mod link;
mod pages;
mod plan_xml;
mod relations;
mod sessions;
mod settings;
mod several;
mod shown_text;
mod sql;
mod statements;
mod wait_types;

use std::sync::Arc;
use std::time::Duration;

use kelvin_database::{Engine, Result};

use crate::server::EngineWatchers;
use crate::server::figures::Figures;
use crate::server::link::{FIGURES, Observers, SESSIONS};
use crate::server::sessions::Sessions;
use crate::server::{self, ServerPlacement};
use crate::watch_plan::WatchPlan;
pub(crate) use activity::activity;

/// Connects to the server twice and makes the watchers.
///
/// # Errors
/// As [`server::links`]; when the server has not the views, or the login may not see them.
pub(crate) fn watchers(engine: &Arc<dyn Engine>, plan: &WatchPlan) -> Result<EngineWatchers> {
    let (sessions, figures) = server::links(engine, plan, link::connect)?;
    let observers = Observers::default();
    observers.set(SESSIONS, sessions.about.connection);
    observers.set(FIGURES, figures.about.connection);
    let looks = sessions::SqlServerSessions::new(plan, observers.clone());
    let counters = counter_watcher::SqlServerCounters::new(plan, observers);
    Ok(EngineWatchers {
        watchers: vec![
            Box::new(Sessions::new(sessions, Duration::from_secs(1) / plan.looks, looks)),
            Box::new(Figures::new(figures, plan, counters)),
        ],
        place: ServerPlacement::default(),
    })
}

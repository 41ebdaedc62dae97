//! What a MySQL or MariaDB server does while a run is running, seen through its own tables and, where it runs on this host, through
//! its threads.
//!
//! Two watchers, each with a separate connection that is opened before the users': one samples the sessions (what each does or
//! waits for, row locks), the other reads the server's counters once a second and takes stock of statements, tables and
//! settings at the edges.
//!
//! Neither server says by default what a session waits for: MySQL has the waits of `performance_schema` switched off, MariaDB all
//! of it. What is always there is each session's state as text and, for row locks, `INNODB_TRX`. Where the server is a process of
//! this host whose threads may be read, the kernel says the rest: the system call that a session's thread is in, and of which
//! file ([`thread`]). What neither can show is reported as [`kelvin_measure::observation::Absent`].

mod activity;
mod counter_watcher;
mod counters;
mod executed_plans;
mod files;
mod flushing;
pub(crate) mod instruments;
mod link;
mod locks;
mod other_programs;
mod placement;
mod plans;
mod relations;
mod sampled;
mod samples;
mod sessions;
mod settings;
mod sql;
mod state;
mod statements;
mod thread;
mod tokens;

use std::sync::Arc;
use std::time::Duration;

use kelvin_database::{Engine, Result};

use crate::server;
use crate::server::EngineWatchers;
use crate::server::figures::Figures;
use crate::server::link::{FIGURES, Observers, SESSIONS};
use crate::server::sessions::Sessions;
use crate::watch_plan::WatchPlan;
pub(crate) use activity::activity;
pub use instruments::Instrument;
pub use placement::locate_server;

/// InnoDB renews what it shows of transactions only when nobody has read it for 0.1 s: looks that come sooner would see the same
/// transactions for ever.
const BETWEEN_LOOKS: Duration = Duration::from_millis(120);

/// Connects to the server twice and makes the watchers.
///
/// # Errors
/// As [`server::links`].
pub(crate) fn watchers(engine: &Arc<dyn Engine>, plan: &WatchPlan) -> Result<EngineWatchers> {
    let (mut sessions, figures) = server::links(engine, plan, link::connect)?;
    let place = placement::find_by(engine.as_ref(), &mut sessions);
    let observers = Observers::default();
    observers.set(SESSIONS, sessions.about.connection);
    observers.set(FIGURES, figures.about.connection);
    let interval = (Duration::from_secs(1) / plan.looks).max(BETWEEN_LOOKS);
    let looks =
        sessions::MysqlSessions::new(plan, place.server, observers.clone(), samples::Samples::default());
    let counters = counter_watcher::MysqlCounters::new(plan, observers);
    Ok(EngineWatchers {
        watchers: vec![
            Box::new(Sessions::new(sessions, interval, looks)),
            Box::new(Figures::new(figures, plan, counters)),
        ],
        place,
    })
}

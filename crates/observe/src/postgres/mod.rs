//! Observation of a PostgreSQL server during a run, through the server's views.
//!
//! Two watchers, each with a separate connection that is opened before the users': one samples the sessions ten times a
//! second (waits, row locks, checkpoints, autovacuum), the other reads the server's counters once a second and captures
//! statements, relations and settings at the edges. Information that a version or a role cannot show is reported as
//! [`kelvin_measure::observation::Absent`] with the remedy.
//!
//! Backends publish their counters only between transactions and at most once a second, so the rates of a second are
//! those of a second that ended up to one second ago; over a window of minutes this is negligible.

mod activity;
mod baseline;
mod checkpoints;
mod counter_watcher;
mod counters;
mod custom_plans;
mod file_names;
mod hypothetical;
mod link;
mod locks;
mod logged_plans;
mod placement;
mod plans;
mod relations;
mod sampled;
mod server_log;
mod sessions;
mod settings;
mod sql;
mod statements;
mod vacuums;
mod wait_kind;

use std::sync::Arc;
use std::time::Duration;

use kelvin_database::{Engine, Result};

use crate::server;
use crate::server::EngineWatchers;
use crate::server::figures::Figures;
use crate::server::sessions::Sessions;
use crate::watch_plan::WatchPlan;
pub(crate) use activity::activity;
pub(crate) use baseline::settings as baseline_settings;
pub(crate) use file_names::file_names;
pub use hypothetical::{HypotheticalUse, try_indexes};
pub use placement::locate_server;
pub use wait_kind::wait_group;

/// The `application_name` of the observers' sessions in `pg_stat_activity`, by which they are excluded.
pub const APPLICATION_NAME: &str = "kelvin observer";

/// Connects to the server twice and makes the watchers.
///
/// # Errors
/// As [`server::links`].
pub(crate) fn watchers(engine: &Arc<dyn Engine>, plan: &WatchPlan) -> Result<EngineWatchers> {
    let (mut sessions, figures) = server::links(engine, plan, link::connect)?;
    let place = placement::find_by(engine.as_ref(), &mut sessions);
    let log = place.server.and_then(|server| server_log::find(&mut sessions, server, place.data.as_deref()));
    let counters = counter_watcher::PostgresCounters::new(plan, figures.about.version);
    Ok(EngineWatchers {
        watchers: vec![
            Box::new(Sessions::new(
                sessions,
                Duration::from_secs(1) / plan.looks,
                sessions::PostgresSessions::new(plan, log),
            )),
            Box::new(Figures::new(figures, plan, counters)),
        ],
        place,
    })
}

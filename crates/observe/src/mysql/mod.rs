//! What a MySQL or MariaDB server does while a run goes on, seen through its own tables and, where it runs on this host, through
//! its threads.
//!
//! Two watchers, each on a connection of its own that is opened before the users': one looks at the sessions (what each does or
//! waits for, row locks), the other reads the server's counters once a second and takes stock of statements, tables and
//! settings at the edges.
//!
//! Neither server says by default what a session waits for: MySQL has the waits of `performance_schema` switched off, MariaDB all
//! of it. What is always there is each session's state in words and, for row locks, `INNODB_TRX`. Where the server is a process of
//! this host whose threads may be read, the kernel says the rest: the system call that a session's thread is in, and of which
//! file ([`thread`]). What neither can show is told as [`kelvin_measure::observation::Absent`].

mod counters;
mod figures;
mod flushing;
mod link;
mod locks;
mod place;
mod relations;
mod sessions;
mod settings;
mod sql;
mod state;
mod statements;
mod thread;

use std::sync::Arc;

use kelvin_database::{Engine, Error, Result};

use crate::engine::{Found, Plan};
use link::Link;
pub use place::find;

/// Connects to the server twice and makes the watchers.
///
/// # Errors
/// When it cannot be connected to.
pub(crate) fn watchers(engine: &Arc<dyn Engine>, plan: &Plan) -> Result<Found> {
    engine.capabilities().need_session_state("watching the server")?;
    if !(1..=100).contains(&plan.looks) {
        return Err(Error::usage(format!("{} samples per second were asked for", plan.looks))
            .with_help("choose 1 to 100"));
    }
    let mut sessions = Link::open(engine, link::connect)?;
    let figures = Link::open(engine, link::connect)?;
    let place = place::find_by(engine.as_ref(), &mut sessions);
    let observers = link::Observers::default();
    Ok(Found {
        watchers: vec![
            Box::new(sessions::Sessions::new(sessions, plan, place.server, observers.clone())),
            Box::new(figures::Figures::new(figures, plan, observers)),
        ],
        server: place.server,
        data: place.data,
        wal: place.wal,
    })
}

//! SQLite, embedded in this process: one file in WAL mode, one connection per session.
//!
//! SQLite admits one writer at a time and lets the others poll for the lock, which starves some of them for
//! seconds under load. The sessions of one [`SqliteEngine`] therefore queue for the right to write
//! ([`turns`]), and SQLite's own busy handler only sees locks of other processes.

mod bulk;
mod busy;
mod engine;
mod error;
mod home;
mod location;
mod parameters;
mod session;
mod snapshot;
mod turns;

pub use engine::{BUSY_LIMIT, SqliteEngine, confine_sessions};
pub(crate) use error::translate;
pub(crate) use location::SqliteLocation;

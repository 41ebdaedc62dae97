//! What an SQLite file does under a load: its log, its checkpoints, and the time that writers queue for it.
//!
//! SQLite has no views for outside observers. Sizes come from the file system. What is in the log and how much
//! of it has been moved into the database is in the wal-index, which every process with a connection has mapped;
//! it is read where it is mapped (`wal_index`), never through its file: closing a file that SQLite has locked
//! would take this process's locks away from the users' connections
//! (<https://www.sqlite.org/howtocorrupt.html#_posix_advisory_locks_canceled_by_a_separate_thread_doing_close_>).

mod contents;
mod wal_follower;
mod wal_index;
mod watcher;

use std::sync::Arc;
use std::time::Duration;

use kelvin_database::Engine;

use crate::watch::Watcher;

/// The watchers of an SQLite database. One reading comes every `interval`; the log is examined fifty times a second,
/// so that a checkpoint's beginning and end are known to 20 ms.
///
/// They keep a connection to the file until they end, and so must begin after the data were built: a bulk load wants
/// the file for itself.
pub fn watchers(engine: &Arc<dyn Engine>, interval: Duration) -> Vec<Box<dyn Watcher>> {
    vec![Box::new(watcher::SqliteWatcher::new(Arc::clone(engine), interval))]
}

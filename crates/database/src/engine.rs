//! A database that can be connected to.

use serde::{Deserialize, Serialize};

use crate::profile::Profiles;
use crate::settings::ServerSettings;
use crate::{EngineKind, Error, Home, Result, Session};

/// Capabilities of an engine; workloads choose by them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Capabilities {
    /// [`Session::flush`] sends a whole batch in one round trip.
    pub one_round_trip_batch: bool,
    /// The server skips the statements after a failed one in a batch. On other engines the session ensures that
    /// statements which ran after a failed one in a transaction are rolled back with it, and sends the end of a
    /// transaction separately.
    pub batch_stops_at_error: bool,
    /// Routines can be stored in the database and called.
    pub stored_functions: bool,
    /// Parameters can be arrays.
    pub arrays: bool,
    /// More than one transaction can write at a time.
    pub concurrent_writers: bool,
    /// The address space of the database is this process: its CPU time cannot be separated from the client's.
    pub embedded: bool,
    /// While a session waits for the server, other fibers of its thread run: many users can share a thread. On other
    /// engines each user has its own thread.
    pub waits_in_fibers: bool,
    /// Tables can be created and dropped within transactions: such statements commit nothing.
    pub transactional_ddl: bool,
    /// Settings and locks of a session persist until it ends. A pooler in transaction mode hands them to other clients.
    pub session_state: bool,
    /// Observers can execute a statement for its plan, and roll it back.
    pub executed_plans: bool,
}

impl Capabilities {
    /// Refuses `doing`, which needs session settings and locks. The error is text.
    pub fn need_session_state(self, doing: &str) -> Result<()> {
        if self.session_state {
            return Ok(());
        }
        Err(Error::usage(format!(
            "{doing} needs dedicated sessions, which prepared_statements=false in the URL does not \
            guarantee: behind a pooler in transaction mode, its settings and locks would end up on other \
            clients' connections"
        ))
        .with_help("use the server's own address for this, and the pooler's address for the run"))
    }
}

/// Description of a database as it reports it, stored with every run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// Product and version, such as "PostgreSQL 15.18 (Debian …)".
    pub version: String,
    /// Every setting that is not at its default, and those that decide durability even at their default.
    pub settings: Vec<ServerSetting>,
    /// Known faults of this version that affect workloads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<ServerFault>,
}

/// A fault of a server version, as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerFault {
    /// Stable name.
    pub id: String,
    /// The versions that have it, such as "PostgreSQL 18.0 and 18.1".
    pub versions: String,
    /// What goes wrong.
    pub what: String,
    /// What it does to the workloads.
    pub effect: String,
    /// Where it is written down.
    pub source: String,
}

/// One setting of the database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerSetting {
    /// Its name.
    pub name: String,
    /// Its value with its unit.
    pub value: String,
    /// The source of the value ("default", "configuration file", …).
    pub source: String,
}

/// The server's own counters. Only the difference between two readings is meaningful.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerCounters {
    /// Transactions committed in this database, by whomever.
    pub commits: u64,
    /// Transactions rolled back in this database, by whomever.
    pub rollbacks: u64,
}

/// A database that can be connected to. Shared by all users.
pub trait Engine: Send + Sync {
    /// The kind of this engine.
    fn kind(&self) -> EngineKind;

    /// Its upkeep around runs; none where only statements can be run in it.
    fn home(&self) -> Option<&dyn Home> {
        None
    }

    /// Its settings, which are changed by statements; none where it has no server.
    fn settings(&self) -> Option<&dyn ServerSettings> {
        None
    }

    /// The profiles that can be applied to its server; `session` is connected to it.
    fn profiles(&self, _session: &mut dyn Session) -> Result<Option<Box<dyn Profiles>>> {
        Ok(None)
    }

    /// The location of the database, for display to the user: never with a password.
    fn describe(&self) -> String;

    /// The engine's capabilities.
    fn capabilities(&self) -> Capabilities;

    /// Opens a connection.
    fn connect(&self) -> Result<Box<dyn Session>>;

    /// Version and settings.
    fn fingerprint(&self, session: &mut dyn Session) -> Result<Fingerprint>;

    /// Commits and rollbacks as counted by the server; `None` where it has no such counters.
    fn counters(&self, session: &mut dyn Session) -> Result<Option<ServerCounters>>;

    /// Bytes that the database takes on disk.
    fn size(&self, session: &mut dyn Session) -> Result<u64>;

    /// Directory that holds the data, when it is on this host and known (for the file system's fingerprint).
    fn data_directory(&self, session: &mut dyn Session) -> Option<std::path::PathBuf>;

    /// Directories of the server outside of those of its data (`data`) and its log: each can be on a further disk.
    fn further_directories(
        &self,
        _session: &mut dyn Session,
        _data: &std::path::Path,
    ) -> Vec<std::path::PathBuf> {
        Vec::new()
    }

    /// Time that this engine's sessions have waited in this process for their turn to write, summed over sessions,
    /// since the engine was opened; `None` where they do not queue here. Use the difference of two readings.
    fn queued(&self) -> Option<std::time::Duration> {
        None
    }

    /// Brings everything written so far to its place on disk (PostgreSQL's CHECKPOINT, SQLite's WAL checkpoint).
    fn checkpoint(&self, session: &mut dyn Session) -> Result<()>;
}

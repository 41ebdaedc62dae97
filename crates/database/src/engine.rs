//! A database that can be connected to.

use serde::{Deserialize, Serialize};

use crate::{Error, Result, Session};

/// The engines this build knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EngineKind {
    /// SQLite, embedded.
    Sqlite,
    /// PostgreSQL and what speaks its protocol.
    Postgres,
}

impl std::fmt::Display for EngineKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Sqlite => "SQLite",
            Self::Postgres => "PostgreSQL",
        })
    }
}

/// What an engine can do, for workloads that choose by it.
#[derive(Debug, Clone, Copy)]
pub struct Capabilities {
    /// [`Session::flush`] sends a whole batch in one round trip.
    pub one_round_trip_batch: bool,
    /// Routines can be stored in the database and called.
    pub stored_functions: bool,
    /// Parameters can be arrays.
    pub arrays: bool,
    /// More than one transaction can write at a time.
    pub concurrent_writers: bool,
    /// The address space of the database is this process: its CPU time cannot be told from the client's.
    pub embedded: bool,
    /// What a session sets or locks is its own until it ends. A pooler in transaction mode hands it to others.
    pub session_state: bool,
}

impl Capabilities {
    /// Refuses `doing` what needs settings and locks of a session's own, in words.
    pub fn need_session_state(self, doing: &str) -> Result<()> {
        if self.session_state {
            return Ok(());
        }
        Err(Error::usage(format!(
            "{doing} needs sessions of its own, which a URL with prepared_statements=false does not promise: \
             behind a pooler in transaction mode its settings and locks would stay with other clients' connections"
        ))
        .with_help("give the server's own address for that, and the pooler's for the run"))
    }
}

/// What the database said about itself, stored with every run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// Product and version, such as "PostgreSQL 15.18 (Debian …)".
    pub version: String,
    /// Every setting that is not at its default, and those that decide durability even when they are.
    pub settings: Vec<Setting>,
}

/// One setting of the database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// Its name.
    pub name: String,
    /// Its value with its unit.
    pub value: String,
    /// Where it comes from ("default", "configuration file", …).
    pub source: String,
}

/// The server's own counters. Differences between two readings are meant, never one reading.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerCounters {
    /// Transactions committed in this database, by whomever.
    pub commits: u64,
    /// Transactions rolled back in this database, by whomever.
    pub rollbacks: u64,
}

/// A database that can be connected to. Shared by all users.
pub trait Engine: Send + Sync {
    /// Which engine this is.
    fn kind(&self) -> EngineKind;

    /// Where it is, as the user may read it: never with a password.
    fn describe(&self) -> String;

    /// What it can do.
    fn capabilities(&self) -> Capabilities;

    /// Opens a connection.
    fn connect(&self) -> Result<Box<dyn Session>>;

    /// Version and settings.
    fn fingerprint(&self, session: &mut dyn Session) -> Result<Fingerprint>;

    /// Commits and rollbacks by the server's own count; `None` where it keeps none.
    fn counters(&self, session: &mut dyn Session) -> Result<Option<ServerCounters>>;

    /// Bytes that the database takes on disk.
    fn size(&self, session: &mut dyn Session) -> Result<u64>;

    /// Directory that holds the data, when it is on this host and known (for the file system's fingerprint).
    fn data_directory(&self, session: &mut dyn Session) -> Option<std::path::PathBuf>;

    /// Time that this engine's sessions have waited in this process for one another's turn to write, summed over
    /// sessions, since the engine was opened; `None` where they do not queue here. A difference of two is meant.
    fn queued(&self) -> Option<std::time::Duration> {
        None
    }

    /// Brings everything written so far to its place on disk (PostgreSQL's CHECKPOINT, SQLite's WAL checkpoint).
    fn checkpoint(&self, session: &mut dyn Session) -> Result<()>;
}

//! A database that can be connected to.

use serde::{Deserialize, Serialize};

use crate::managed::Profiles;
use crate::postgres::faults::ServerFault;
use crate::settings::ServerSettings;
use crate::{Error, Home, Result, Session};

/// Which engine a database is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EngineKind {
    /// SQLite, embedded.
    Sqlite,
    /// PostgreSQL and what speaks its protocol.
    Postgres,
    /// MySQL and MariaDB. Which of them a server is, its version says.
    Mysql,
    /// SQL Server, and what speaks its protocol.
    SqlServer,
    /// One that this crate does not know, by its name: of a program that brings its own.
    Other(&'static str),
}

impl EngineKind {
    const KNOWN: [Self; 4] = [Self::Sqlite, Self::Postgres, Self::Mysql, Self::SqlServer];

    /// Its name in results and specifications.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
            Self::Mysql => "mysql",
            Self::SqlServer => "sqlserver",
            Self::Other(name) => name,
        }
    }
}

impl std::fmt::Display for EngineKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Sqlite => "SQLite",
            Self::Postgres => "PostgreSQL",
            Self::Mysql => "MySQL",
            Self::SqlServer => "SQL Server",
            Self::Other(name) => name,
        })
    }
}

impl Serialize for EngineKind {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for EngineKind {
    /// Only of the engines that this crate knows.
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        let known = Self::KNOWN.into_iter().find(|kind| kind.as_str() == word);
        known.ok_or_else(|| serde::de::Error::custom(format!("unknown engine {word:?}")))
    }
}

/// What an engine can do, for workloads that choose by it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Capabilities {
    /// [`Session::flush`] sends a whole batch in one round trip.
    pub one_round_trip_batch: bool,
    /// The server skips what follows a failed statement of a batch. Elsewhere the session sees to it that what ran behind
    /// a failed statement of a transaction is rolled back with it, and sends the end of a transaction by itself.
    pub batch_stops_at_error: bool,
    /// Routines can be stored in the database and called.
    pub stored_functions: bool,
    /// Parameters can be arrays.
    pub arrays: bool,
    /// More than one transaction can write at a time.
    pub concurrent_writers: bool,
    /// The address space of the database is this process: its CPU time cannot be separated from the client's.
    pub embedded: bool,
    /// While a session waits for the server, other fibers of its thread run: many users can share a thread. Elsewhere each
    /// has its own.
    pub waits_in_fibers: bool,
    /// Tables are made and dropped within transactions: a statement of that kind commits nothing.
    pub transactional_ddl: bool,
    /// What a session sets or locks is its own until it ends. A pooler in transaction mode hands it to others.
    pub session_state: bool,
}

impl Capabilities {
    /// Refuses `doing` what needs settings and locks of a session's own, as text.
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

/// What the database said about itself, stored with every run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// Product and version, such as "PostgreSQL 15.18 (Debian …)".
    pub version: String,
    /// Every setting that is not at its default, and those that decide durability even when they are.
    pub settings: Vec<ServerSetting>,
    /// Faults that are known of this version and touch what workloads do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<ServerFault>,
}

/// One setting of the database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerSetting {
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

    /// Its upkeep around runs; none where only statements can be run in it.
    fn home(&self) -> Option<&dyn Home> {
        None
    }

    /// Its settings, which are changed by statements; none where it has no server.
    fn settings(&self) -> Option<&dyn ServerSettings> {
        None
    }

    /// The profiles that its server can be given; `session` is one with it.
    fn profiles(&self, _session: &mut dyn Session) -> Result<Option<Box<dyn Profiles>>> {
        Ok(None)
    }

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

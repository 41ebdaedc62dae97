//! Everything in a run's environment that could affect its results.

use std::collections::BTreeMap;
use std::path::Path;

use kelvin_database::ServerFault;
use kelvin_database::{Engine, EngineKind, Fingerprint, Session};
use kelvin_host::SystemTree;
use kelvin_host::cgroup::memory_groups;
use kelvin_observe::host::{Filesystem, Host};
use serde::{Deserialize, Serialize};

/// The database's own description of itself. Settings are stored under their names, so that two runs compare by name
/// whatever other settings one of them has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Database {
    /// Product and version.
    pub version: String,
    /// Value, and in brackets where it comes from, by name.
    pub settings: BTreeMap<String, String>,
    /// Known faults of this version that affect workloads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<ServerFault>,
}

impl From<Fingerprint> for Database {
    fn from(fingerprint: Fingerprint) -> Self {
        let settings = fingerprint.settings.into_iter();
        let settings = settings.map(|one| (one.name, format!("{} ({})", one.value, one.source))).collect();
        Self { version: fingerprint.version, settings, faults: fingerprint.faults }
    }
}

/// A control group and what it leaves of the memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryGroup {
    /// Its directory.
    pub directory: String,
    /// Bytes that its processes may have together; none without a limit.
    pub limit: Option<u64>,
}

/// The environment, read just before the load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Version of Kelvin.
    pub kelvin: String,
    /// The host on which Kelvin ran. The database's host is another when the target is remote.
    pub client_host: Host,
    /// The engine; `None` for a run without a database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineKind>,
    /// Whether it runs within Kelvin's own process.
    #[serde(default)]
    pub embedded: bool,
    /// The target, without a password.
    pub target: String,
    /// The database's version and settings; none of a run without a database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<Database>,
    /// Bytes of the database before the load; none if unknown.
    #[serde(default)]
    pub database_bytes: Option<u64>,
    /// The file system under the database, or under the first file of I/O jobs, when it is on this host.
    #[serde(default)]
    pub data_filesystem: Option<Filesystem>,
    /// The least that the control groups of the server's process leave of the memory, in bytes; none without a limit, or
    /// where they are not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_memory_limit: Option<u64>,
    /// The control groups with memory that the server's process is in, the nearest first; none of a server that is not known
    /// to be on this host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub server_memory_groups: Vec<MemoryGroup>,
}

impl Environment {
    /// Reads everything; takes some milliseconds.
    pub fn read(engine: &dyn Engine, session: &mut dyn Session) -> kelvin_database::Result<Self> {
        let data_directory = engine.data_directory(session);
        let server = kelvin_observe::engine::locate_server(engine, session).server;
        let groups = server.map_or_else(Vec::new, |pid| memory_groups(&SystemTree::default(), pid));
        let limit = groups.iter().filter_map(|(_, limit)| *limit).min();
        let groups = groups.into_iter().map(|(directory, limit)| MemoryGroup { directory, limit });
        Ok(Self {
            kelvin: env!("CARGO_PKG_VERSION").into(),
            client_host: Host::read(),
            engine: Some(engine.kind()),
            embedded: engine.capabilities().embedded,
            target: engine.describe(),
            database: Some(engine.fingerprint(session)?.into()),
            database_bytes: engine.size(session).ok(),
            data_filesystem: data_directory.and_then(|path| Filesystem::of(&path)),
            server_memory_limit: limit,
            server_memory_groups: groups.collect(),
        })
    }

    /// For a run without a database: of files and devices, the first of which is at `path`.
    pub fn of_files(target: String, path: Option<&Path>) -> Self {
        Self {
            kelvin: env!("CARGO_PKG_VERSION").into(),
            client_host: Host::read(),
            engine: None,
            embedded: false,
            target,
            database: None,
            database_bytes: None,
            data_filesystem: path.and_then(Filesystem::of),
            server_memory_limit: None,
            server_memory_groups: Vec::new(),
        }
    }
}

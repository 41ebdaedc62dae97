//! Everything in a run's environment that could affect its results.

use std::collections::BTreeMap;
use std::path::Path;

use kelvin_database::ServerFault;
use kelvin_database::{Engine, EngineKind, Fingerprint, Session};
use kelvin_host::SystemTree;
use kelvin_host::cgroup::memory_groups;
use kelvin_observe::host::{Filesystem, Host};
use serde::{Deserialize, Serialize};

/// The database's description of itself. Settings are stored by name, so that two runs can be compared by
/// name even if one has additional settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Database {
    /// Product and version.
    pub version: String,
    /// Values by name, with their source in brackets.
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

/// A control group and its memory limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryGroup {
    /// Its directory.
    pub directory: String,
    /// Bytes that its processes may use together; `None` without a limit.
    pub limit: Option<u64>,
}

/// The environment, read immediately before the load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Version of Kelvin.
    pub kelvin: String,
    /// The host on which Kelvin ran. The database's host is another when the target is remote.
    pub client_host: Host,
    /// The engine; `None` for a run without a database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineKind>,
    /// Whether the engine runs within Kelvin's process.
    #[serde(default)]
    pub embedded: bool,
    /// The target, without a password.
    pub target: String,
    /// The database's version and settings; `None` for a run without a database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<Database>,
    /// Size of the database in bytes before the load; `None` if unknown.
    #[serde(default)]
    pub database_bytes: Option<u64>,
    /// The file system of the database, or of the first file of I/O jobs; `None` when it is on another host.
    #[serde(default)]
    pub data_filesystem: Option<Filesystem>,
    /// The lowest memory limit of the control groups of the server's process, in bytes; `None` without a
    /// limit or where the groups are unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_memory_limit: Option<u64>,
    /// The memory control groups of the server's process, the nearest first; empty if the server is not known
    /// to be on this host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub server_memory_groups: Vec<MemoryGroup>,
}

impl Environment {
    /// Reads everything, which takes a few milliseconds.
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
            data_filesystem: data_directory.and_then(|path| Filesystem::containing(&path)),
            server_memory_limit: limit,
            server_memory_groups: groups.collect(),
        })
    }

    /// The environment of a run without a database, on files and devices of which the first is at `path`.
    pub fn for_files(target: String, path: Option<&Path>) -> Self {
        Self {
            kelvin: env!("CARGO_PKG_VERSION").into(),
            client_host: Host::read(),
            engine: None,
            embedded: false,
            target,
            database: None,
            database_bytes: None,
            data_filesystem: path.and_then(Filesystem::containing),
            server_memory_limit: None,
            server_memory_groups: Vec::new(),
        }
    }
}

//! Everything about a run's surroundings that could decide its figures.

use kelvin_database::{Engine, EngineKind, Fingerprint, Session};
use kelvin_observe::host::{Filesystem, Host};
use serde::{Deserialize, Serialize};

/// The surroundings, read just before the load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Version of Kelvin.
    pub kelvin: String,
    /// The host on which Kelvin ran. The database's own host is another when the target is remote.
    pub client_host: Host,
    /// Which engine.
    pub engine: EngineKind,
    /// Where, without a password.
    pub target: String,
    /// The database's version and settings.
    pub database: Fingerprint,
    /// Bytes of the database before the load; none when it could not be told.
    pub database_bytes: Option<u64>,
    /// The file system under the database, when it is on this host.
    pub data_filesystem: Option<Filesystem>,
}

impl Environment {
    /// Reads everything; takes some milliseconds.
    pub fn read(engine: &dyn Engine, session: &mut dyn Session) -> kelvin_database::Result<Self> {
        let data_directory = engine.data_directory(session);
        Ok(Self {
            kelvin: env!("CARGO_PKG_VERSION").into(),
            client_host: Host::read(),
            engine: engine.kind(),
            target: engine.describe(),
            database: engine.fingerprint(session)?,
            database_bytes: engine.size(session).ok(),
            data_filesystem: data_directory.and_then(|path| Filesystem::of(&path)),
        })
    }
}

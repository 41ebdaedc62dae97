//! The data of a PostgreSQL database.

use std::path::PathBuf;
use std::sync::Arc;

use super::managed::PostgresServer;
use super::snapshot::{self, Facts, Templates};
use super::{Config, PostgresEngine};
use crate::snapshot::{SnapshotMethod, SnapshotMethods, SnapshotStore};
use crate::{DataLocation, Engine, LoadSettings, Result, ServerDirectories};

/// A database of a PostgreSQL server.
#[derive(Debug)]
pub(crate) struct PostgresLocation {
    engine: PostgresEngine,
    managed: Option<PostgresServer>,
    dumps: PathBuf,
}

impl PostgresLocation {
    /// The database that `config` names. A managed server is also found by its address, so that a study may name it
    /// either way.
    pub(crate) fn new(config: &Config, directories: ServerDirectories) -> Self {
        let managed = PostgresServer::by_socket(directories.manager, config);
        Self { engine: PostgresEngine::new(config.clone()), managed, dumps: directories.dumps }
    }

    /// Starts the managed server of this version, or the newest, making it first if need be.
    pub(crate) fn start(
        version: Option<u32>,
        directories: ServerDirectories,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Self> {
        let ServerDirectories { manager, dumps } = directories;
        let instance = manager.up(version, progress)?;
        let managed = Some(PostgresServer { manager, version: instance.major() });
        Ok(Self { engine: PostgresEngine::new(instance.config()), managed, dumps })
    }
}

impl DataLocation for PostgresLocation {
    fn engine(&self) -> Arc<dyn Engine> {
        Arc::new(self.engine.clone())
    }

    fn is_managed(&self) -> bool {
        self.managed.is_some()
    }

    fn begin_load(&self, progress: &mut dyn FnMut(&str)) -> Result<Option<Box<dyn LoadSettings>>> {
        let Some(server) = &self.managed else { return Ok(None) };
        let loading = server.manager.begin_load(server.version, progress)?;
        Ok(loading.map(|loading| Box::new(loading) as Box<dyn LoadSettings>))
    }

    fn snapshot_methods(&self) -> Result<Option<SnapshotMethods>> {
        let manager = self.managed.as_ref().map(|server| &server.manager);
        Ok(Some(Facts::read(&self.engine, manager)?.methods()))
    }

    fn snapshot_store(&self, way: SnapshotMethod) -> Result<Option<Box<dyn SnapshotStore>>> {
        let config = self.engine.config().clone();
        Ok(match (way, &self.managed) {
            (SnapshotMethod::Template, _) => Some(Box::new(Templates::new(config))),
            (SnapshotMethod::Files, Some(server)) => {
                Some(snapshot::files(server.manager.clone(), server.version))
            }
            (SnapshotMethod::Files, None) => None,
            (SnapshotMethod::Dump, _) => Some(snapshot::dumps(config, &self.dumps)),
        })
    }
}
